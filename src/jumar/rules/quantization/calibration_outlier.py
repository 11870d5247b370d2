"""QT103: one sample alone sets the range of tensors."""

from __future__ import annotations

from ..base import Rule


class CalibrationOutlier(Rule):
    code = "QT103"
    name = "calibration-outlier"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: the largest magnitude of one sample is more than 8 times that of all others in some tensors.

    Why on Ascend: with the method max this sample takes nearly all of the 256 steps, and all other data shares the few that are left.

    Fix: look at the sample; take it out if it is broken. The method histogram leaves such a sample out of the range.

    Fix safety: advice only.

    Evidence: the largest magnitudes of each tensor by sample.
    """
    DOC_ZH = """
    问题：在某些张量中，一个样本的最大幅值超过其余样本的 8 倍。

    在昇腾上的原因：使用 max 方法时，该样本几乎占用全部 256 级，其余数据只能共享剩下的少数几级。

    修复：请检查该样本；若已损坏请去掉。histogram 方法会在确定范围时排除这样的样本。

    修复安全性：仅为建议。

    依据：各张量按样本的最大幅值。
    """
