"""SH202: arithmetic on shapes and constants left in the graph."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph.fold import fold_constants, foldable_nodes
from ...text import say
from ..base import Change, Context, Example, ModelRule


class ComputedShape(ModelRule):
    code = "SH202"
    name = "computed-shape"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 40
    DOC_EN = """
    What: nodes that compute what is known already: Shape, Gather, Concat, Range, NonZero and the like on constants or on tensors of known shape.

    Why on Ascend: they keep Reshape, Slice, Tile or TopK parameters from being constants, which moves those to the AI CPU or makes output shapes unknown; int64 arithmetic has few kernels.

    Fix: ONNX Runtime computes them once and the results are stored. A fold never makes the file more than --fold-limit bytes larger per tensor, so ConstantOfShape, Expand and Tile do not explode it.

    Fix safety: safe; the folded values are the ones ONNX Runtime computes, and the model equals the original in every element when they are fed.

    Evidence: proven on the user's model.
    """
    DOC_ZH = """
    问题：图中仍在计算已知的内容：对常量或已知形状张量的 Shape、Gather、Concat、Range、NonZero 等。

    在昇腾上的原因：它们使 Reshape、Slice、Tile、TopK 的参数不是常量，从而落到 AI CPU 或使输出形状未知；int64 运算的算子也很少。

    修复：由 ONNX Runtime 计算一次并保存结果。每个张量的折叠最多使文件增大 --fold-limit 字节，因此 ConstantOfShape、Expand、Tile 不会使文件膨胀。

    修复安全性：安全；折叠值由 ONNX Runtime 计算得到，以其为输入时模型与原模型逐元素相等。

    依据：在用户的模型上证明。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (float[2,12] y)
        <int64[1] zero = {0}, int64[1] rest = {-1}> {
            shape = Shape(x)
            batch = Gather(shape, zero)
            target = Concat<axis = 0>(batch, rest)
            y = Reshape(x, target)
        }
        """),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[7] x) => (float[7] y)
        <int64[1] minus = {-1}> {
            shape = Shape(x)
            ones = ConstantOfShape(shape)
            ones_bool = Cast<to = 9>(ones)
            flags = Not(ones_bool)
            found = NonZero(flags)
            index = Reshape(found, minus)
            y = Gather(x, index)
        }
        """,
            also=("OP210",),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        nodes = foldable_nodes(ctx.model, ctx.fold_limit)
        if nodes:
            kinds = sorted({node.op_type for node in nodes})
            yield self.finding(
                say(
                    "{count} nodes compute constants ({kinds})",
                    "{count} 个节点在计算常量（{kinds}）",
                    count=len(nodes),
                    kinds=", ".join(kinds[:6]) + (", ..." if len(kinds) > 6 else ""),
                ),
                say("parameters they feed are not constants for ATC", "它们产生的参数对 ATC 而言不是常量"),
                say("fold them", "请将其折叠"),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        if ctx.evaluator is None:
            raise ValueError("folding needs an evaluator")
        nodes = tuple(node.name or node.op_type for node in foldable_nodes(model, ctx.fold_limit))
        folded = fold_constants(model, ctx.evaluator, ctx.fold_limit)
        return Change(nodes, constants=tuple(folded)) if folded else None
