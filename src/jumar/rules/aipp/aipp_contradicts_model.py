"""AI104: aipp contradicts model."""

from __future__ import annotations

from ..base import Rule


class AippContradictsModel(Rule):
    code = "AI104"
    name = "aipp-contradicts-model"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: an AIPP block does not fit the model or the other flags: the input's number, its rank, type or channels, an input that is also a float16 node, gears of the image size beside crop, padding or a source size.

    Why on Ascend: ATC refuses it (E10052, E10034, E81012).

    Fix: the finding names the input to write, or the flag to leave out.

    Fix safety: advice only.

    Evidence: checks of the graph engine and of the operator.
    """
    DOC_ZH = """
    问题：AIPP 块与模型或其他参数不符：输入编号、维数、类型或通道数不对，输入同时列为 float16 节点，或图像大小档位与裁剪、补边、源图大小同时使用。

    在昇腾上的原因：ATC 会拒绝（E10052、E10034、E81012）。

    修复：结果给出应写的输入编号，或应去掉的参数。

    修复安全性：仅为建议。

    依据：图引擎与算子的检查。
    """
