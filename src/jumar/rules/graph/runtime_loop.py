"""GR511: a Loop or Scan that is not unrolled as it is."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes, copy_model, node_place
from ...graph.bounded_loop import runtime_loops, unroll_bounded
from ...graph.origin import origin_of
from ...graph.ranges import Ranges, value_ranges
from ...graph.simplify import Journal
from ...graph.simplify.base import Edit
from ...graph.simplify.loops import known_trips, why_loop_stands
from ...graph.simplify.scans import why_not_scanned
from ...text import Text, say
from ..base import Change, Context, Example, ModelRule

_STANDARD = ("", "ai.onnx")


class RuntimeLoop(ModelRule):
    code = "GR511"
    name = "runtime-loop"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 47
    DOC_EN = """
    What: a Loop or Scan whose number of trips only the run time knows, or that would be too long unrolled. The finding says what the number comes from.

    Why on Ascend: loops take a parser, subgraphs and a host round trip in every iteration that few targets have.

    Fix: where the number of trips has a bound of at most 1000 (a constant trip count with a condition that may end the loop before, or a trip count whose range --range states or the model shows), the body is written out that often, and a Where keeps the carried tensors as they are once the loop has ended. A trip count given with --set-const, or one that follows from shapes given with --shape, is constant, which is GR506.

    Fix safety: safe; equal in every element. Refused where a trip after the last could fail (an index outside its axis, an integer divided by 0), where a carried tensor changes its shape, where results of the trips are stacked (their number would not be fixed), and above 1000 nodes.

    Evidence: ONNX operator definitions; proven on the user's model.
    """
    DOC_ZH = """
    问题：Loop 或 Scan 的迭代次数只有运行时才知道，或展开后过长。检查结果会说明次数的来源。

    在昇腾上的原因：循环需要解析器、子图，每次迭代还要与主机往返，很少有目标具备。

    修复：若迭代次数有不超过 1000 的上限（次数为常量但条件可能提前结束循环，或次数的取值范围由 --range 给出或可从模型得出），则将循环体按上限展开，循环结束后用 Where 保持循环变量不变。用 --set-const 给定的次数，或由 --shape 给定的形状推出的次数是常量，属于 GR506。

    修复安全性：安全；逐元素相等。以下情况拒绝：结束之后的副本可能出错（索引越界、整数除以 0）、循环变量的形状会变化、堆叠每次迭代的结果（其数量不固定），以及超过 1000 个节点。

    依据：ONNX 算子定义；在用户的模型上证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[1] s) => (float[2,3] y) <int64 three = {3}, bool yes = {1}> {
            y = Loop (three, yes, x) <body = step (int64 i, bool goes, float[2,3] a) => (bool more, float[2,3] b) {
                c = Mul(a, a)
                b = Add(c, x)
                total = ReduceMax<keepdims = 0>(b)
                one = Squeeze(s)
                more = Less(total, one)
            }>
        }
        """,
            also=("OP101", "OP105"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, int64 n) => (float[2,3] y) <bool yes = {1}> {
            y = Loop (n, yes, x) <body = step (int64 i, bool goes, float[2,3] a) => (bool more, float[2,3] b) {
                b = Add(a, x)
                more = Identity(goes)
            }>
        }
        """,
            cured=False,
            ranges={"n": (0, 3)},
            also=("OP101", "OP105", "SH203", "DT301", "GR504"),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        loops = runtime_loops(ctx.model.graph)
        reasons = self._reasons(ctx, loops[0]) if loops else {}
        for node in loops:
            yield self._finding(node, ctx, reasons.get(node_place(node)))
        edit: Edit | None = None
        for node in all_nodes(ctx.model):
            if node.op_type not in ("Loop", "Scan") or node.domain not in _STANDARD or node in loops:
                continue
            edit = edit or Edit(copy_model(ctx.model), Journal(), ctx.fold_limit)
            reason = why_not_scanned(node, edit) if node.op_type == "Scan" else why_loop_stands(node, edit)
            if reason is not None:
                yield self._finding(node, ctx, reason)

    def _finding(self, node: ir.Node, ctx: Context, reason: Text | None) -> Finding:
        trips = known_trips(node) if node.op_type == "Loop" else None
        count = node.inputs[0] if node.inputs else None
        if node.op_type == "Scan":
            said = say("`{node}`: a Scan that stays one", "`{node}`：保留为 Scan", node=node_place(node))
        elif trips is not None:
            said = say("`{node}`: {trips} trips", "`{node}`：循环 {trips} 次", node=node_place(node), trips=trips)
        else:
            said = say(
                "`{node}`: its number of trips is not known; it comes from {count} and the condition from {condition}",
                "`{node}`：循环次数未知；次数来自 {count}，条件来自 {condition}",
                node=node_place(node),
                count=say("nothing", "无") if count is None else origin_of(count, ctx.model),
                condition=origin_of(node.attributes["body"].as_graph().outputs[0], ctx.model),
            )
        return self.finding(
            said,
            say("few targets have loops", "很少有目标支持循环"),
            say("write the trips out up to their bound", "按次数上限展开")
            if reason is None
            else say(
                "not rewritten: {reason}; state a range with --range, a value with --set-const, or sizes with --shape, as the case may be",
                "未改写：{reason}；请视情况用 --range 给出范围、用 --set-const 给出数值或用 --shape 给出尺寸",
                reason=reason,
            ),
            node=node,
            fix="safe" if reason is None else "none",
        )

    def _reasons(self, ctx: Context, first: ir.Node) -> dict[str, Text]:
        """Why Loops would stand, found by trying on a copy; remembered for the model."""
        key = (self.code, first)
        if key not in ctx.tried:
            ctx.tried[key] = unroll_bounded(copy_model(ctx.model), lambda model: _ranges(model, ctx))[1]
        found = ctx.tried[key]
        assert isinstance(found, dict)
        return found

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        done, _ = unroll_bounded(model, lambda changed: _ranges(changed, ctx))
        return Change(tuple(done)) if done else None


def _ranges(model: ir.Model, ctx: Context) -> Ranges:
    """What the user declared and the model shows; that an index lies within its axis is to be shown, not taken for granted."""
    names = {value.name or "" for value in model.graph.inputs}
    shapes = {name: shape for name, shape in ctx.shapes.items() if name in names}
    return value_ranges(model, ctx.declared_of(model), shapes, implied=False)
