"""AI110: aipp left to host."""

from __future__ import annotations

from ..base import Rule


class AippLeftToHost(Rule):
    code = "AI110"
    name = "aipp-left-to-host"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: a part of the transform that AIPP cannot do, or does otherwise: resizing, crops of odd sizes, padding over 32 pixels, conversions.

    Why on Ascend: AIPP crops, pads, converts colours and normalises; it does not scale on these chips.

    Fix: do it on the host before the image is handed over.

    Fix safety: advice only.

    Evidence: the documents of AIPP.
    """
    DOC_ZH = """
    问题：预处理中 AIPP 不能完成或做法不同的部分：缩放、奇数大小的裁剪、超过 32 像素的补边、其他转换。

    在昇腾上的原因：AIPP 只做裁剪、补边、色域转换和归一化，在这些芯片上不做缩放。

    修复：请在交付图像之前于主机上完成。

    修复安全性：仅为建议。

    依据：AIPP 文档。
    """
