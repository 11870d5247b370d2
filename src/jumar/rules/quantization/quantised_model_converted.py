"""QT110: a QDQ model was converted."""

from __future__ import annotations

from ..base import Rule


class QuantisedModelConverted(Rule):
    code = "QT110"
    name = "quantised-model-converted"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: the model came with QuantizeLinear and DequantizeLinear (trained with quantisation, or quantised for another runtime); its scales were taken over into the deploy form.

    Why on Ascend: ATC has no parser for these operators.

    Fix: none is needed. What could not be taken over is in floats now, and the finding counts it.

    Fix safety: advice only; uint8 activations become int8 with the same scale, exactly.

    Evidence: both models on samples.
    """
    DOC_ZH = """
    问题：给定模型含有 QuantizeLinear 与 DequantizeLinear（量化感知训练，或为其他运行时量化）；其 scale 已转入部署形式。

    在昇腾上的原因：ATC 没有这些算子的解析器。

    修复：无需处理。无法转入的部分现为浮点，结果中给出数量。

    修复安全性：仅为建议；uint8 激活以相同 scale 精确地变为 int8。

    依据：在样本上比较两个模型。
    """
