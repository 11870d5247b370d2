"""AI105: aipp without effect."""

from __future__ import annotations

from ..base import Rule


class AippWithoutEffect(Rule):
    code = "AI105"
    name = "aipp-without-effect"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: a field is given that nothing reads: its switch is off, the mode or the format has no use for it, or it is reserved.

    Why on Ascend: the model is compiled as if the line were not there, which may not be what was meant.

    Fix: turn the switch on, or take the line out.

    Fix safety: advice only.

    Evidence: checks of the operator; documents of AIPP.
    """
    DOC_ZH = """
    问题：给出了不被读取的字段：其开关关闭、该模式或格式用不到，或为保留字段。

    在昇腾上的原因：编译时如同没有这一行，可能与本意不符。

    修复：开启开关，或去掉该行。

    修复安全性：仅为建议。

    依据：算子的检查；AIPP 文档。
    """
