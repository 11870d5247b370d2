"""QT111: what ATC does not take together with a quantised model."""

from __future__ import annotations

from ..base import Rule


class QuantisedModelLimits(Rule):
    code = "QT111"
    name = "quantised-model-limits"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: ATC does not take gears of batch or image sizes (--dynamic_batch_size, --dynamic_image_size) with a deploy model, nor the precision modes force_fp32, must_keep_origin_dtype and origin.

    Why on Ascend: the layers are built for int8 and one shape.

    Fix: build one model for each size.

    Fix safety: advice only.

    Evidence: AMCT's documentation.
    """
    DOC_ZH = """
    问题：ATC 不支持对部署模型使用 batch 或图像尺寸档位（--dynamic_batch_size、--dynamic_image_size），也不支持 force_fp32、must_keep_origin_dtype、origin 精度模式。

    在昇腾上的原因：各层按 int8 和固定形状构建。

    修复：请为每种尺寸各构建一个模型。

    修复安全性：仅为建议。

    依据：AMCT 的文档。
    """
