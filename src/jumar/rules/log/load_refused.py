"""LG806: load refused."""

from __future__ import annotations

from ..base import Rule


class LoadRefused(Rule):
    code = "LG806"
    name = "load-refused"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: an .om was refused when it was loaded.

    Why on Ascend: an .om holds kernels of one soc_version and tasks of one CANN; another chip, an older driver or a slice of a card (vNPU) may lack what it needs.

    Fix: build it for this device and version.

    Fix safety: advice only.

    Evidence: the line of the log.
    """
    DOC_ZH = """
    问题：加载 .om 时被拒绝。

    在昇腾上的原因：.om 中的算子核属于一个 soc_version，任务属于一个 CANN 版本；其他芯片、较旧的驱动或切分实例（vNPU）可能缺少所需能力。

    修复：按本设备和版本重新编译。

    修复安全性：仅为建议。

    依据：日志行。
    """
