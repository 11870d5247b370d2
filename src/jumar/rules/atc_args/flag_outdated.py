"""AT910: flag outdated."""

from __future__ import annotations

from ..base import Rule


class FlagOutdated(Rule):
    code = "AT910"
    name = "flag-outdated"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a flag that was removed (error) or that is deprecated (info).

    Why on Ascend: ATC refuses a removed flag with any value (E10001); a deprecated one still works with a warning.

    Fix: use what the finding names instead; tuning is AOE's work now.

    Fix safety: advice only.

    Evidence: ATC's sources.
    """
    DOC_ZH = """
    问题：参数已被移除（错误）或已废弃（提示）。

    在昇腾上的原因：已移除的参数无论取何值都会被拒绝（E10001）；已废弃的仍可使用但会告警。

    修复：改用结果中给出的替代；调优现由 AOE 完成。

    修复安全性：仅为建议。

    依据：ATC 源码。
    """
