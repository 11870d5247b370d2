"""CU851: a cut that leaves most of the work to the host."""

from __future__ import annotations

from ..base import Rule


class HostDoesMost(Rule):
    code = "CU851"
    name = "host-does-most"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: after `--cut` more than half of the estimated operations run on the host, or products whose sizes depend on the data do, so that no estimate can be made.

    Why on Ascend: what the host does is not accelerated, and tensors travel between host and device in every run.

    Fix: replace the operators that the cut names, before the export, or choose a SoC that has them (`jumar targets show OPERATOR`).

    Fix safety: advice only. The share is an estimate from sizes of tensors, not a measurement.

    Evidence: sizes of the user's model.
    """
    DOC_ZH = """
    问题：`--cut` 之后，估计有一半以上的运算在主机上执行，或主机上有大小依赖数据、无法估算的矩阵乘或卷积。

    在昇腾上的原因：主机执行的部分没有加速，且每次运行都要在主机与设备之间搬运张量。

    修复：在导出前替换切分所列的算子，或选择支持它们的 SoC（`jumar targets show OPERATOR`）。

    修复安全性：仅为建议。该比例由张量大小估算，并非测量。

    依据：用户模型中的张量大小。
    """
