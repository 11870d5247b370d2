"""PF807: a Softmax over few elements on the last axis."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import static_shape
from ...text import say
from ..base import Context, Example, NodeRule

_LANE = 16
"""Elements of half precision in the 32 bytes that the vector unit reads at once."""
_MANY = 1024
"""Rows from which on it is worth a word."""


class SoftmaxOverFew(NodeRule):
    code = "PF807"
    name = "softmax-over-few"
    since = "0.1"
    ops = frozenset({"Softmax", "LogSoftmax"})
    safety = "advice"
    severity = "info"
    DOC_EN = """
    What: a Softmax over fewer than 16 elements on the last axis, 1024 times or more, such as the class scores of every box of a detector.

    Why on Ascend: the vector unit reads 32 bytes at once, 16 elements in half precision; rows that are shorter leave it idle or are laid out anew. Seven of 388 models in the public model zoo had the axis of a Softmax moved by hand.

    Fix: where the model is made, compute the scores with the long axis last ([batch, classes, boxes] in place of [batch, boxes, classes]) and take the Softmax over the axis before. Transposes around the Softmax alone cost as much as they save, so Jumar puts in none; those that are there go (PF803).

    Fix safety: advice only; which layout is better for what comes before and after is known to who made the model. That it is faster was not measured here, as no device was at hand.

    Evidence: hand-made changes in the public ModelZoo-PyTorch.
    """
    DOC_ZH = """
    问题：最后一维上少于 16 个元素的 Softmax，重复 1024 次或更多，例如检测器中每个框的类别分数。

    在昇腾上的原因：向量单元一次读取 32 字节，即 16 个半精度元素；更短的行会使其空闲或需要重新排布。公开模型库的 388 个模型中有 7 个手工移动了 Softmax 的 axis。

    修复：在制作模型处让长的维位于最后（用 [batch, classes, boxes] 代替 [batch, boxes, classes]），并对其前一维做 Softmax。仅在 Softmax 前后加 Transpose 得不偿失，因此 Jumar 不会新增；已有的会去掉（PF803）。

    修复安全性：仅为建议；哪种排布更适合前后的计算只有模型作者知道。由于没有设备，未测量速度。

    依据：公开的 ModelZoo-PyTorch 中的手工修改。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2000,3] x) => (float[1,2000,3] y) { y = Softmax<axis = 2>(x) }
        """,
            cured=False,
            edges=False,
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        shape = static_shape(node.inputs[0])
        if not shape or not 1 < shape[-1] < _LANE:
            return
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else -1 if ctx.opset >= 13 else 1
        rows = math.prod(shape[:-1])
        if axis % len(shape) == len(shape) - 1 and rows >= _MANY:
            yield self.finding(
                say(
                    "`{node}`: {op} over {count} elements, {rows} times",
                    "`{node}`：对 {count} 个元素做 {op}，共 {rows} 次",
                    node=node.name or node.op_type,
                    op=node.op_type,
                    count=shape[-1],
                    rows=rows,
                ),
                say("the vector unit reads 16 elements at once", "向量单元一次读取 16 个元素"),
                say("let the long axis be the last, where the model is made", "请在制作模型处让长的维位于最后"),
                node=node,
            )
