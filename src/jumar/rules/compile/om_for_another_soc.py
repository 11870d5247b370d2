"""CP710: a compiled model for another SoC than the target."""

from __future__ import annotations

from ..base import Rule


class OmForAnotherSoc(Rule):
    code = "CP710"
    name = "om-for-another-soc"
    since = "0.2"
    severity = "error"
    DOC_EN = """
    What: the .om names a soc_version that is not the target's.

    Why on Ascend: an .om holds compiled kernels of one chip. Another chip refuses the file, or the first kernel fails. It is an error where the two names are different chips, and a warning where they are members of one family (cores and memory differ) or where Jumar does not know the name.

    Fix: compile the model again with the target's --soc_version.

    Fix safety: advice only.

    Evidence: the attribute soc_version in the file.
    """
    DOC_ZH = """
    问题：.om 中写明的 soc_version 不是目标的 SoC。

    在昇腾上的原因：.om 中是某一种芯片的已编译算子，其他芯片会拒绝该文件，或在第一个算子处失败。两个名称属于不同芯片时为错误；同属一个系列（核数和内存不同）或 Jumar 不认识该名称时为警告。

    修复：用目标的 --soc_version 重新编译模型。

    修复安全性：仅为建议。

    依据：文件中的属性 soc_version。
    """
