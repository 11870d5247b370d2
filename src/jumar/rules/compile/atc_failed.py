"""CP701: ATC ran and did not make an .om."""

from __future__ import annotations

from ..base import Rule


class AtcFailed(Rule):
    code = "CP701"
    name = "atc-failed"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: `atc` was found and run, and ended with an error, a signal or the time limit.

    Why on Ascend: the log is kept in the bundle as atc.log; the finding quotes its first error code. A death by SIGKILL is usually the memory limit, one by SIGSEGV a fault of ATC itself on this model.

    Fix: read the quoted line; look its code up in CANN's error reference.

    Fix safety: advice only.

    Evidence: the log.
    """
    DOC_ZH = """
    问题：找到并运行了 `atc`，但它以错误、信号或超时结束。

    在昇腾上的原因：日志保存在 bundle 的 atc.log 中，检查结果引用其中第一个错误码。SIGKILL 通常是内存不足，SIGSEGV 则是 ATC 在该模型上自身出错。

    修复：阅读引用的日志行，并在 CANN 错误码手册中查找该代码。

    修复安全性：仅为建议。

    依据：该日志。
    """
