"""LG814: device unhealthy."""

from __future__ import annotations

from ..base import Rule


class DeviceUnhealthy(Rule):
    code = "LG814"
    name = "device-unhealthy"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: npu-smi reports a device whose health is not OK.

    Why on Ascend: models fail on such a device in ways that look like faults of the model.

    Fix: use another device, and repair or reset this one.

    Fix safety: advice only.

    Evidence: the row of npu-smi.
    """
    DOC_ZH = """
    问题：npu-smi 报告某个设备的健康状态不是 OK。

    在昇腾上的原因：模型在这样的设备上失败时，看起来像模型的问题。

    修复：改用其他设备，并修复或复位该设备。

    修复安全性：仅为建议。

    依据：npu-smi 的表格行。
    """
