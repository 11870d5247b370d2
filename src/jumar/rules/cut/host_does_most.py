"""CU851: a cut that leaves most of the work to the host."""

from __future__ import annotations

from ..base import Rule


class HostDoesMost(Rule):
    code = "CU851"
    name = "host-does-most"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: after `--cut` more than half of the work runs on the host, or work does that cannot be estimated: products of open sizes, loops of unknown length, operators of other domains.

    Why on Ascend: what the host does is not accelerated, and tensors travel between host and device in every run.

    Fix: replace the operators that the cut names, before the export, or choose a SoC that has them (`jumar targets show OPERATOR`).

    Fix safety: advice only. The share counts multiply-adds, and elements of what does not multiply, from sizes of tensors; it is no measurement of time.

    Evidence: sizes of the user's model.
    """
    DOC_ZH = """
    问题：`--cut` 之后，一半以上的计算量在主机上执行，或主机上有无法估算的计算：大小未定的乘积、次数未知的循环、其他域的算子。

    在昇腾上的原因：主机执行的部分没有加速，且每次运行都要在主机与设备之间搬运张量。

    修复：在导出前替换切分所列的算子，或选择支持它们的 SoC（`jumar targets show OPERATOR`）。

    修复安全性：仅为建议。该比例由张量大小统计乘加次数（不含乘法的算子统计元素数），并非时间测量。

    依据：用户模型中的张量大小。
    """
