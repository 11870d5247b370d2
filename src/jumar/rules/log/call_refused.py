"""LG808: call refused."""

from __future__ import annotations

from ..base import Rule


class CallRefused(Rule):
    code = "LG808"
    name = "call-refused"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a function of ACL, the runtime or the driver refused its arguments, its order, or a resource.

    Why on Ascend: contexts belong to threads, streams to contexts, buffers and gears to models; a call out of order or with sizes of another gear is refused.

    Fix: the remedy of the code.

    Fix safety: advice only.

    Evidence: the line of the log.
    """
    DOC_ZH = """
    问题：ACL、Runtime 或驱动的接口拒绝了参数、调用顺序或资源请求。

    在昇腾上的原因：context 属于线程，流属于 context，缓冲区和档位属于模型；顺序错误或大小属于其他档位的调用会被拒绝。

    修复：按该错误码的处理建议。

    修复安全性：仅为建议。

    依据：日志行。
    """
