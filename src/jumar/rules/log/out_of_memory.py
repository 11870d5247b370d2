"""LG809: out of memory."""

from __future__ import annotations

from ..base import Rule


class OutOfMemory(Rule):
    code = "LG809"
    name = "out-of-memory"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the host or the device had no memory left.

    Why on Ascend: ATC compiles operators in parallel processes, each of which takes memory of the host; on the device weights, workspaces and every gear count.

    Fix: fewer compile processes, a smaller batch or gear, buffers released.

    Fix safety: advice only.

    Evidence: the line of the log.
    """
    DOC_ZH = """
    问题：主机或设备内存不足。

    在昇腾上的原因：ATC 以并行进程编译算子，每个进程都占用主机内存；在设备上，权重、workspace 和每个档位都占内存。

    修复：减少编译进程，减小 batch 或档位，释放缓冲区。

    修复安全性：仅为建议。

    依据：日志行。
    """
