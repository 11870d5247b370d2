"""EV807: an NPU does not report OK."""

from __future__ import annotations

from ..base import Rule


class NpuNotHealthy(Rule):
    code = "EV807"
    name = "npu-not-healthy"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: `npu-smi info` shows a state other than OK for an NPU.

    Why on Ascend: a device that is not healthy may refuse models or compute wrongly.

    Fix: read the details that the finding's command shows; reset or replace the device.

    Fix safety: advice only.

    Evidence: the table of `npu-smi info`.
    """
    DOC_ZH = """
    问题：`npu-smi info` 显示某个 NPU 的状态不是 OK。

    在昇腾上的原因：不健康的设备可能拒绝加载模型或计算出错。

    修复：查看检查结果中命令给出的详情；复位或更换设备。

    修复安全性：仅为建议。

    依据：`npu-smi info` 的表格。
    """
