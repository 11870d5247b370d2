"""AI103: aipp not on this target."""

from __future__ import annotations

from ..base import Rule


class AippNotOnThisTarget(Rule):
    code = "AI103"
    name = "aipp-not-on-this-target"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the chip does not take the image format, dynamic AIPP, resize, the width after padding, or the row size.

    Why on Ascend: the operator compiler refuses it (E81012), or no public source says that it takes it.

    Fix: do this part on the host or with DVPP, or choose another format.

    Fix safety: advice only.

    Evidence: the tables of aipp_comm.py in CANN 8.1.RC1.
    """
    DOC_ZH = """
    问题：该芯片不支持所用的图像格式、动态 AIPP、缩放、补边后的宽度或行字节数。

    在昇腾上的原因：算子编译器会拒绝（E81012），或没有公开资料说明其支持。

    修复：请在主机上或用 DVPP 完成这一部分，或改用其他格式。

    修复安全性：仅为建议。

    依据：CANN 8.1.RC1 中 aipp_comm.py 的表。
    """
