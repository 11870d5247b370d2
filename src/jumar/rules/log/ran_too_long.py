"""LG810: ran too long."""

from __future__ import annotations

from ..base import Rule


class RanTooLong(Rule):
    code = "LG810"
    name = "ran-too-long"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a run, a kernel or a wait took longer than allowed.

    Why on Ascend: a time-out on the device usually is one kernel in a loop or with a very large shape; one on the host may be a hang of the compiler.

    Fix: find the kernel in the plog; raise the time-out only when it is known to be slow and not stuck.

    Fix safety: advice only.

    Evidence: the line of the log.
    """
    DOC_ZH = """
    问题：运行、算子核或等待超过了允许的时间。

    在昇腾上的原因：设备侧超时通常是某个算子核陷入循环或形状过大；主机侧超时可能是编译器卡住。

    修复：在 plog 中找到该算子核；只有确认是慢而不是卡住时才调大超时时间。

    修复安全性：仅为建议。

    依据：日志行。
    """
