"""LG812: silent death."""

from __future__ import annotations

from ..base import Rule


class SilentDeath(Rule):
    code = "LG812"
    name = "silent-death"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a process ended without an error code: by a signal, or its log just stops.

    Why on Ascend: SIGSEGV is a crash of ATC itself on this model; SIGKILL usually is the out-of-memory killer; a log that stops after "ATC start working now" is a hang or a kill that nobody wrote down.

    Fix: `jumar check` knows forms that crash ATC (NonMaxSuppression with 3 or 4 inputs); else cut the model to find the node, or give it memory.

    Fix safety: advice only.

    Evidence: the line of the log, or the exit status.
    """
    DOC_ZH = """
    问题：进程没有留下错误码就结束：因信号退出，或日志突然中断。

    在昇腾上的原因：SIGSEGV 是 ATC 自身在该模型上崩溃；SIGKILL 通常来自 OOM killer；日志停在 "ATC start working now" 之后，说明卡住或被无记录地终止。

    修复：`jumar check` 知道会使 ATC 崩溃的形式（3 或 4 个输入的 NonMaxSuppression）；否则切分模型定位节点，或增加内存。

    修复安全性：仅为建议。

    依据：日志行或退出状态。
    """
