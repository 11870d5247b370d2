"""LG813: cause not shown."""

from __future__ import annotations

from ..base import Rule


class CauseNotShown(Rule):
    code = "LG813"
    name = "cause-not-shown"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the log shows a failure, and no line of it says why: only inner errors, codes that no public table has, or general failures.

    Why on Ascend: "Inner Error" codes (E19999, EZ9999, EE9999 and so on) say only which module gave up. The cause is in the plog, in ~/ascend/log or where ASCEND_PROCESS_LOG_PATH points.

    Fix: run again with ASCEND_GLOBAL_LOG_LEVEL=1 and ASCEND_SLOG_PRINT_TO_STDOUT=1, and diagnose that log.

    Fix safety: advice only.

    Evidence: the best line of the log.
    """
    DOC_ZH = """
    问题：日志表明失败，但没有一行说明原因：只有内部错误、公开码表中没有的代码，或笼统的失败。

    在昇腾上的原因："Inner Error" 类代码（E19999、EZ9999、EE9999 等）只说明哪个模块放弃了。原因在 plog 中，位于 ~/ascend/log 或 ASCEND_PROCESS_LOG_PATH 所指的目录。

    修复：设置 ASCEND_GLOBAL_LOG_LEVEL=1 和 ASCEND_SLOG_PRINT_TO_STDOUT=1 重新运行，再诊断该日志。

    修复安全性：仅为建议。

    依据：日志中信息最多的一行。
    """
