"""AI102: aipp refused."""

from __future__ import annotations

from ..base import Rule


class AippRefused(Rule):
    code = "AI102"
    name = "aipp-refused"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: an AIPP block breaks a rule of ATC or of the operator compiler: a mode or format left out, a size, crop, padding or value out of range, an output that is not the size of the model.

    Why on Ascend: ATC ends with E10052, the operator compiler with E81012.

    Fix: the finding gives the rule and what to write.

    Fix safety: advice only.

    Evidence: checks of the graph engine (aipp_op.cc) and of the operator (aipp_comm.py). Where documents and code differ it is a warning.
    """
    DOC_ZH = """
    问题：AIPP 块违反了 ATC 或算子编译器的规则：缺少模式或格式，大小、裁剪、补边或数值越界，输出与模型大小不符。

    在昇腾上的原因：ATC 报 E10052，算子编译器报 E81012。

    修复：结果给出规则和应写的内容。

    修复安全性：仅为建议。

    依据：图引擎（aipp_op.cc）与算子（aipp_comm.py）的检查。文档与代码不一致时为警告。
    """
