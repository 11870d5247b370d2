"""PF806: products of computed matrices whose sizes are no multiples of the device's block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import constant_of, node_place, static_shape
from ...text import say
from ..base import Context, Example, ModelRule

_BLOCK = 16
"""Rows and columns that the matrix unit takes at once in half precision."""


def _sizes(node: ir.Node) -> set[int]:
    """The sizes of a product of two computed matrices: rows, what is summed over, columns."""
    if node.op_type != "MatMul" or node.domain not in ("", "ai.onnx") or any(constant_of(value) is not None for value in node.inputs):
        return set()
    one, other = static_shape(node.inputs[0]), static_shape(node.inputs[1])
    return set() if one is None or other is None or min(len(one), len(other)) < 2 else {*one[-2:], other[-1]}


class SizesOffTheBlock(ModelRule):
    code = "PF806"
    name = "sizes-off-the-block"
    since = "0.1"
    safety = "advice"
    severity = "info"
    DOC_EN = """
    What: products of two computed matrices, as attention makes them, over a size above 16 that is no multiple of 16, such as the 197 tokens of a vision transformer.

    Why on Ascend: the matrix unit works on blocks of 16 x 16 x 16 elements in half precision, so that 197 takes the time of 208, and data of such sizes is laid out anew (TransData) where it leaves the matrix format. Four of 388 models in the public model zoo were padded by hand (197 to 208).

    Fix: where the model is made, pad the axis to the multiple named and mask the padding before the Softmax (a value that float16 holds, such as -65504); pad inputs of any length to a gear that is a multiple (`jumar compile --gears`). Jumar does not pad by itself.

    Fix safety: advice only: which positions may be padded, and what reads them, is known to who made the model. Whether it is faster depends on the rest of the model, and was not measured here, as no device was at hand.

    Evidence: hand-made changes in the public ModelZoo-PyTorch.
    """
    DOC_ZH = """
    问题：两个计算得到的矩阵相乘（如注意力），其某个大于 16 的大小不是 16 的倍数，例如视觉 Transformer 的 197 个 token。

    在昇腾上的原因：半精度下矩阵单元以 16 x 16 x 16 的块计算，因此 197 所需时间与 208 相同；此类大小的数据在离开矩阵格式时还要重新排布（TransData）。公开模型库的 388 个模型中有 4 个手工做了填充（197 到 208）。

    修复：在制作模型处将该维填充到所给的倍数，并在 Softmax 之前屏蔽填充部分（使用 float16 能表示的值，例如 -65504）；长度不定的输入填充到为倍数的档位（`jumar compile --gears`）。Jumar 不会自行填充。

    修复安全性：仅为建议：哪些位置可以填充、由谁读取，只有模型作者知道。是否更快取决于模型的其余部分；由于没有设备，未测量速度。

    依据：公开的 ModelZoo-PyTorch 中的手工修改。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,19,16] q, float[1,2,16,19] k) => (float[1,2,19,19] y) { s = MatMul(q, k) y = Softmax<axis = -1>(s) }
        """,
            opsets=(13, 18),
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        users: defaultdict[int, list[ir.Node]] = defaultdict(list)
        for node in ctx.model.graph:
            for size in _sizes(node):
                if size > _BLOCK and size % _BLOCK:
                    users[size].append(node)
        for size, nodes in sorted(users.items()):
            yield self.finding(
                say(
                    "{count} products of computed matrices are over {size}, which is no multiple of {block}",
                    "{count} 个计算得到的矩阵乘积涉及大小 {size}，它不是 {block} 的倍数",
                    count=len(nodes),
                    size=size,
                    block=_BLOCK,
                ),
                say("the matrix unit works on whole blocks", "矩阵单元以整块计算"),
                say(
                    "pad it to {padded} and mask the padding, where the model is made",
                    "请在制作模型处将其填充到 {padded} 并屏蔽填充部分",
                    padded=-(-size // _BLOCK) * _BLOCK,
                ),
                place=node_place(nodes[0]),
            )
