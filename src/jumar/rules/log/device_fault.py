"""LG807: device fault."""

from __future__ import annotations

from ..base import Rule


class DeviceFault(Rule):
    code = "LG807"
    name = "device-fault"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the model was loaded and failed while it ran on the device.

    Why on Ascend: execution is asynchronous: the call that reports it (a wait, a copy) is not the one that caused it. Return codes such as 507011 and 507015 say only that much; the plog names kernel and node.

    Fix: a list of usual causes: indices out of range, NaN, gears that were not set, buffers that are too small or freed too early, faulty hardware.

    Fix safety: advice only.

    Evidence: the lines of the log.
    """
    DOC_ZH = """
    问题：模型已加载，但在设备上执行时失败。

    在昇腾上的原因：执行是异步的：报告错误的调用（等待、拷贝）不一定是引起错误的调用。507011、507015 等返回码只说明这一点；plog 中有算子核和节点。

    修复：常见原因列表：下标越界、NaN、未设置档位、缓冲区过小或过早释放、硬件故障。

    修复安全性：仅为建议。

    依据：日志行。
    """
