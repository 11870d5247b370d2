"""AI108: aipp differs from transform."""

from __future__ import annotations

from ..base import Rule


class AippDiffersFromTransform(Rule):
    code = "AI108"
    name = "aipp-differs-from-transform"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: what AIPP gives the model is not what the training transform gave it, by more than rounding explains. The finding names the slip that explains the difference where one does.

    Why on Ascend: nothing fails; the accuracy drops.

    Fix: `jumar aipp derive` writes the block for the transform.

    Fix safety: advice only.

    Evidence: the emulated arithmetic of AIPP against the transform in float64, on all pixel values and on images given.
    """
    DOC_ZH = """
    问题：AIPP 送给模型的数据与训练时的预处理不同，差别超出舍入所能解释的范围。若某种常见疏漏能解释差别，结果会指出。

    在昇腾上的原因：不会报错，但精度下降。

    修复：`jumar aipp derive` 可按预处理生成配置块。

    修复安全性：仅为建议。

    依据：模拟的 AIPP 运算与 float64 预处理的对比，覆盖全部像素值和所给图像。
    """
