"""VF607: what the emulation of precision leaves out."""

from __future__ import annotations

from ..base import Rule


class PrecisionNotModelled(Rule):
    code = "VF607"
    name = "precision-not-modelled"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: operators whose kernels round in ways that are not known or not followed, or tensors of unknown type.

    Why on Ascend: the device may lose more or less there than the emulation says.

    Fix: compare with a dump of the device where such an operator matters.

    Fix safety: advice only.

    Evidence: the rules of the units, each with its confidence; see the page on precision.
    """
    DOC_ZH = """
    问题：算子内部的舍入方式未知或未被跟踪，或张量类型未知。

    在昇腾上的原因：设备在此处的损失可能多于或少于模拟结果。

    修复：若此类算子很重要，请与设备导出的数据对比。

    修复安全性：仅为建议。

    依据：各计算单元的规则及其可信度，见精度页面。
    """
