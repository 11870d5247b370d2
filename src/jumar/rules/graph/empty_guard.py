"""GR513: an If that asks whether anything was found."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import infer_shapes, node_place
from ...graph.empty_guard import empty_guards, take_full_branch
from ...text import say
from ..base import Change, Context, Example, ModelRule, Refused


class EmptyGuard(ModelRule):
    code = "GR513"
    name = "empty-guard"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 45
    DOC_EN = """
    What: an If that asks whether a tensor is empty and returns an empty constant if it is (torchvision's batched_nms, after the boxes were filtered by score).

    Why on Ascend: control flow takes a parser, subgraphs and a host round trip that few targets have; and what is behind it has a size only the run time knows.

    Fix: what is done with a tensor that is not empty is done always. With an empty one it gives the same empty result, which is shown by running it: where all it reads is empty, there is only one result. The largest element of all, which an empty tensor does not have, is taken of the elements and the least finite number.

    Fix safety: safe; equal in every element (a largest element of minus infinity becomes the least finite number). Refused if the branch reads a computed tensor that need not be empty with the other, or does not give that result.

    Evidence: ONNX operator definitions; proven on the user's model, and on no elements.
    """
    DOC_ZH = """
    问题：If 判断张量是否为空，若为空则返回空常量（torchvision 的 batched_nms，在按分数筛选框之后）。

    在昇腾上的原因：控制流需要解析器、子图以及与主机的往返，很少有目标具备；其后张量的大小也只有运行时才知道。

    修复：始终执行非空时的计算。对空张量它给出同样的空结果，这一点通过运行来证明：当其读取的所有张量都为空时，结果只有一种。空张量没有最大元素，因此在所有元素与最小有限数中取最大值。

    修复安全性：安全；逐元素相等（最大元素为负无穷时改为最小有限数）。若该分支读取的某个计算张量不一定同时为空，或结果不同，则拒绝改写。

    依据：ONNX 算子定义；在用户的模型上以及无元素的输入上证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[5,4] x, float[5] score) => (float[m] y) <int64 zero = {0}, float limit = {0.5}, int64[1] flat = {-1}> {
            good = Greater(score, limit)
            found = NonZero(good)
            which = Reshape(found, flat)
            b = Gather(x, which)
            s = Gather(score, which)
            shape = Shape(b)
            count = Gather(shape, zero)
            none = Equal(count, zero)
            y = If (none) <
                then_branch = t () => (float[0] e) { e = Constant <value = float[0] {}> () },
                else_branch = f () => (float[n] k) { top = ReduceMax<keepdims = 0>(b) k = Mul(s, top) }
            >
        }
        """,
            also=("OP101", "OP104", "OP105", "OP112", "OP215"),
            edges=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for guard in empty_guards(ctx.model):
            yield self.finding(
                say("`{node}`: it asks whether a tensor is empty", "`{node}`：判断张量是否为空", node=node_place(guard.node)),
                say("few targets have subgraphs", "很少有目标支持子图"),
                say("do always what is done with a tensor that is not empty", "始终执行非空时的计算"),
                node=guard.node,
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        if ctx.evaluator is None:
            raise Refused(say("nothing can be run here to show it", "此处无法运行以证明"))
        done, passed = [], 0
        while passed < len(guards := empty_guards(model)):
            place = node_place(guards[passed].node)
            if take_full_branch(model, passed, ctx.evaluator):
                done.append(place)
            else:
                passed += 1
        if not done:
            raise Refused(say("with nothing to read, the branch does not give the empty result", "无元素可读时，该分支没有给出空结果"))
        infer_shapes(model, forget=True)
        return Change(tuple(done))
