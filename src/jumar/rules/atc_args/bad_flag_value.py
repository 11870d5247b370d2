"""AT902: bad flag value."""

from __future__ import annotations

from ..base import Rule


class BadFlagValue(Rule):
    code = "AT902"
    name = "bad-flag-value"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a flag has a value that it does not take: not in its list, of the wrong kind, or none at all.

    Why on Ascend: ATC compares values letter by letter and refuses the call (E10001, E10003, E10005, E10006, E10007, E10010, E10022). Where only documents list the values it is a warning.

    Fix: write one of the values that the finding lists; the nearest stands first.

    Fix safety: advice only.

    Evidence: the value lists of ATC's parser and option checks.
    """
    DOC_ZH = """
    问题：参数的取值不被接受：不在列表中、类型不对或为空。

    在昇腾上的原因：ATC 逐字符比较取值并拒绝命令（E10001、E10003、E10005、E10006、E10007、E10010、E10022）。取值仅见于文档时为警告。

    修复：改用结果中列出的取值，最接近的排在最前。

    修复安全性：仅为建议。

    依据：ATC 解析器与选项检查中的取值表。
    """
