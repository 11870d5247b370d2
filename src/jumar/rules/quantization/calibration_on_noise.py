"""QT102: the samples look like noise."""

from __future__ import annotations

from ..base import Rule


class CalibrationOnNoise(Rule):
    code = "QT102"
    name = "calibration-on-noise"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: neighbouring elements of the samples (pictures, spectra) are uncorrelated, as in random numbers.

    Why on Ascend: the ranges of noise inside a network are not those of real data, so that the scales are wrong in every layer.

    Fix: calibrate on real data, preprocessed exactly as in use.

    Fix safety: advice only; noise is accepted where the inputs are noise in use too.

    Evidence: the correlation of neighbours over all samples.
    """
    DOC_ZH = """
    问题：样本（图像、频谱等）中相邻元素不相关，与随机数相同。

    在昇腾上的原因：噪声在网络内部的取值范围与真实数据不同，每一层的 scale 都会不合适。

    修复：请用真实数据校准，预处理与使用时完全一致。

    修复安全性：仅为建议；如果实际输入就是噪声，可以忽略。

    依据：全部样本中相邻元素的相关性。
    """
