"""AT913: flag without effect."""

from __future__ import annotations

from ..base import Rule


class FlagWithoutEffect(Rule):
    code = "AT913"
    name = "flag-without-effect"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: a flag that changes nothing beside the others, or not what it seems to: given twice, --keep_dtype in a mode that keeps all types, an .om suffix that ATC doubles.

    Why on Ascend: the model is compiled, perhaps not as it was meant.

    Fix: leave it out, or keep the one that was meant.

    Fix safety: advice only.

    Evidence: the checks of ATC's sources.
    """
    DOC_ZH = """
    问题：参数在其他参数存在时不起作用，或作用与字面不同：给出两次、在保留所有类型的模式下使用 --keep_dtype、.om 后缀被 ATC 重复追加。

    在昇腾上的原因：模型仍会编译，但可能并非所期望的结果。

    修复：去掉它，或只保留想要的那个。

    修复安全性：仅为建议。

    依据：ATC 源码中的检查。
    """
