"""OP255: decoding of compressed images inside the model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...text import say
from ..base import Context, Example, NodeRule


class ImageDecoding(NodeRule):
    code = "OP255"
    name = "image-decoding"
    since = "0.1"
    ops = frozenset(("ImageDecoder",))
    severity = "error"
    covers_support = True
    DOC_EN = """
    What: the model decodes a compressed image (ImageDecoder).

    Why on Ascend: no parser takes it, and a result whose size is in the data has no place in a model of fixed shapes.

    Fix: decode before the model, on the host or with the decoder of the device (DVPP, which reads JPEG), and make the decoded image the input.

    Fix safety: advice only: decoders differ in the last bit of a pixel.

    Evidence: ONNX definition of ImageDecoder; the parser tables that `jumar targets show ImageDecoder` cites.
    """
    DOC_ZH = """
    问题：模型中解码压缩图像（ImageDecoder）。

    在昇腾上的原因：没有解析器支持它；结果大小取决于数据，无法用于固定形状的模型。

    修复：在模型之前解码，可在主机上或用设备的解码单元（DVPP，支持 JPEG），以解码后的图像作为输入。

    修复安全性：仅为建议：不同解码器的像素末位可能不同。

    依据：ImageDecoder 的 ONNX 定义；`jumar targets show ImageDecoder` 给出的解析器事实。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 9, opset_import: ["" : OPSET]>
        agraph (uint8[64] x) => (uint8[H, W, 3] y) { y = ImageDecoder(x) }
        """,
            opsets=(20,),
            cured=False,
            ir_version=9,
            also=("OP110", "OP108", "OP109"),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        yield self.finding(
            say("`{node}`: an image is decoded inside the model", "`{node}`：模型内解码图像", node=node.name or node.op_type),
            say("no parser takes it, and the size of its result is in the data", "没有解析器支持它，且结果大小取决于数据"),
            say("decode before the model and make the image its input", "请在模型之前解码，并以图像作为输入"),
            node=node,
        )
