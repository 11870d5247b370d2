"""QT109: tensors are infinite or NaN on samples."""

from __future__ import annotations

from ..base import Rule


class CalibrationNotFinite(Rule):
    code = "QT109"
    name = "calibration-not-finite"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: tensors that layers read hold infinities or NaN on the calibration samples.

    Why on Ascend: int8 clips infinity to 127 steps and makes NaN zero; the float model passes both on.

    Fix: look at the samples and at the float model first.

    Fix safety: advice only; such elements are left out of the ranges.

    Evidence: the histograms.
    """
    DOC_ZH = """
    问题：在校准样本上，某些层读取的张量含有无穷大或 NaN。

    在昇腾上的原因：int8 会把无穷大截断为 127 级、把 NaN 变为零，而浮点模型会继续传递。

    修复：请先检查样本与浮点模型。

    修复安全性：仅为建议；这些元素不计入范围。

    依据：直方图。
    """
