"""QT101: calibration saw few samples."""

from __future__ import annotations

from ..base import Rule


class FewCalibrationSamples(Rule):
    code = "QT101"
    name = "few-calibration-samples"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: fewer than 32 samples were given to calibrate on, or so few that none could be held out.

    Why on Ascend: scales are fixed when the model is built; what the samples do not show is clipped on the device.

    Fix: give 100 to 1000 samples of the real data, drawn at random.

    Fix safety: `--calib` with more samples changes scales only.

    Evidence: the number of samples.
    """
    DOC_ZH = """
    问题：用于校准的样本少于 32 个，或少到无法留出评估样本。

    在昇腾上的原因：scale 在构建模型时就已固定；样本中未出现的数值会在设备上被截断。

    修复：请给出 100 到 1000 个随机抽取的真实样本。

    修复安全性：`--calib` 给出更多样本只会改变 scale。

    依据：样本数量。
    """
