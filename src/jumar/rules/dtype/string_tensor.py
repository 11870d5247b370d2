"""DT304: text in a model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...text import say
from ..base import Context, Example, ModelRule


class StringTensor(ModelRule):
    code = "DT304"
    name = "string-tensor"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: an input or output of the model is a tensor of strings.

    Why on Ascend: device memory holds numbers; no kernel of the AI Core takes strings, and the buffers of an .om are described by numeric types.

    Fix: look the strings up on the host and give the model their codes as int32; cut the model behind the operators that read text.

    Fix safety: advice only.

    Evidence: dtype lists of the AI Core kernel tables.
    """
    DOC_ZH = """
    问题：模型的某个输入或输出是字符串张量。

    在昇腾上的原因：设备内存存放的是数值；AI Core 算子都不支持字符串，.om 的缓冲区以数值类型描述。

    修复：在主机侧查表，将字符串的编码以 int32 送入模型；在读取文本的算子之后切分模型。

    修复安全性：仅为建议。

    依据：AI Core 算子信息库中的数据类型列表。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (string[2] s, float[2] x) => (float[2] y, string[2] t) { y = Relu(x) t = Identity(s) }
        """,
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for value in (*ctx.model.graph.inputs, *ctx.model.graph.outputs):
            if value.dtype == ir.DataType.STRING:
                yield self.finding(
                    say("`{name}` is a tensor of strings", "`{name}` 是字符串张量", name=value.name),
                    say("no AI Core kernel takes strings", "AI Core 算子都不支持字符串"),
                    say("look the strings up on the host and pass int32 codes", "请在主机侧查表，以 int32 编码送入"),
                    place=value.name,
                )
