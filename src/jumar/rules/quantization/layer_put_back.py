"""QT105: a layer went back to floats so that accuracy holds."""

from __future__ import annotations

from ..base import Rule


class LayerPutBack(Rule):
    code = "QT105"
    name = "layer-put-back"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: with all layers in int8 more accuracy was lost than --max-drop allows; these layers went back to floats (float16 on the device), the most gain for the least cost first.

    Why on Ascend: a few layers mostly lose what a model loses: wide ranges, few channels, depthwise convolutions.

    Fix: none is needed. --max-drop, --method, --correct-bias or more samples change the choice.

    Fix safety: advice only; the accuracy is measured on samples that calibration has not seen.

    Evidence: each layer's loss when it alone is in int8, and the score of each choice (curve.csv).
    """
    DOC_ZH = """
    问题：全部层使用 int8 时，精度损失超过 --max-drop；这些层恢复为浮点（设备上为 float16），按单位代价的收益从高到低选择。

    在昇腾上的原因：模型的精度损失大多来自少数层：取值范围宽、通道少，或逐深度卷积。

    修复：无需处理。--max-drop、--method、--correct-bias 或更多样本会改变选择。

    修复安全性：仅为建议；精度在校准未见过的样本上测得。

    依据：每层单独使用 int8 时的损失，以及各种选择的得分（curve.csv）。
    """
