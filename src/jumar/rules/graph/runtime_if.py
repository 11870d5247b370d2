"""GR510: an If whose condition only the run time knows."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import copy_model, node_place
from ...graph.both_branches import compute_both, runtime_ifs, switch_of
from ...graph.empty_guard import empty_guards
from ...graph.ranges import Ranges
from ...text import Text, say
from ..base import Change, Context, Example, ModelRule


class RuntimeIf(ModelRule):
    code = "GR510"
    name = "runtime-if"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 46
    DOC_EN = """
    What: an If whose condition depends on the values of the inputs.

    Why on Ascend: control flow takes a parser, subgraphs and a host round trip that few targets have.

    Fix: both branches are computed and a Where chooses, if no operator in them can fail on values it was not meant for (an index outside its axis, an integer divided by 0, a random number) and both give the same fixed shapes. Where an integer or boolean scalar input alone decides (a sampling rate) and a branch multiplies matrices, it is refused: --set-const makes one model for each value, and none of them computes what it does not use.

    Fix safety: safe; equal in every element: the choice is by Where, so that NaN and infinities of the other branch do not leak. Both branches cost time. Refused above 200 nodes in a branch.

    Evidence: ONNX operator definitions; proven on the user's model.
    """
    DOC_ZH = """
    问题：If 的条件取决于输入数据。

    在昇腾上的原因：控制流需要解析器、子图以及与主机的往返，很少有目标具备。

    修复：若两个分支中的算子都不会因数据不符而出错（索引越界、整数除以 0、随机数），且形状固定且相同，则两个分支都计算，用 Where 选择。若仅由一个整数或布尔标量输入（例如采样率）决定，且分支中有矩阵运算，则拒绝改写：用 --set-const 为每个取值各生成一个模型，不做无用的计算。

    修复安全性：安全；逐元素相等：用 Where 选择，另一分支的 NaN 与无穷大不会泄漏。两个分支都会耗时。分支超过 200 个节点时拒绝。

    依据：ONNX 算子定义；在用户的模型上证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[1] s) => (float[2,3] y) <float[1] zero = {0.0}> {
            more = Greater(s, zero)
            a = If (more) <
                then_branch = then_graph () => (float[2,3] t) { t = Relu(x) },
                else_branch = else_graph () => (float[2,3] e) { e = Neg(x) }
            >
            y = Exp(a)
        }
        """,
            also=("OP101",),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        guards = {guard.node for guard in empty_guards(ctx.model)}  # another rule speaks of these
        nodes = [node for node in runtime_ifs(ctx.model.graph) if node not in guards]
        if not nodes:
            return
        reasons = self._reasons(ctx, nodes[0])
        for node in nodes:
            reason, switch = reasons.get(node_place(node)), switch_of(node, ctx.model)
            remedy = (
                say("compute both branches and choose", "计算两个分支后选择")
                if reason is None
                else say("not rewritten: {reason}", "未改写：{reason}", reason=reason)
            )
            if switch is not None:
                remedy = say(
                    "{remedy}; or make one model for each value of `{name}` with --set-const (it is compared with {values})",
                    "{remedy}；或用 --set-const 为 `{name}` 的每个取值各生成一个模型（与其比较的取值：{values}）",
                    remedy=remedy,
                    name=switch[0],
                    values=", ".join(map(str, switch[1])) or "true, false",
                )
            yield self.finding(
                say("`{node}`: its condition depends on the inputs", "`{node}`：其条件取决于输入", node=node_place(node)),
                say("few targets have subgraphs", "很少有目标支持子图"),
                remedy,
                node=node,
                fix="safe" if reason is None else "none",
            )

    def _reasons(self, ctx: Context, first: ir.Node) -> dict[str, Text]:
        """Why Ifs would stand, found by trying on a copy; remembered for the model."""
        key = (self.code, first)
        if key not in ctx.tried:
            ctx.tried[key] = compute_both(copy_model(ctx.model), lambda copy: _ranges(copy, ctx))[1]
        found = ctx.tried[key]
        assert isinstance(found, dict)
        return found

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        done, _ = compute_both(model, lambda copy: _ranges(copy, ctx))
        return Change(tuple(done)) if done else None


def _ranges(model: ir.Model, ctx: Context) -> Ranges:
    """Of this very model: by name one could not tell tensors of two branches apart."""
    return Context(model, ctx.target, ctx.shapes, declared=ctx.declared).ranges()
