"""VF608: keeping all that can be kept in float32 is not enough."""

from __future__ import annotations

from ..base import Rule


class PrecisionBeyondKeeping(Rule):
    code = "VF608"
    name = "precision-beyond-keeping"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: with every node in float32 that the target can compute so, the outputs still miss the bound.

    Why on Ascend: the matrix products of some cores take float16 only; an operator that must be narrowed loses too much.

    Fix: rescale the model where the error is born (VF610), or choose a target with float32 matrix products.

    Fix safety: advice only.

    Evidence: the emulation with all such nodes kept.
    """
    DOC_ZH = """
    问题：将目标能以 float32 计算的节点全部保留后，输出仍未达到界限。

    在昇腾上的原因：部分核心的矩阵乘只支持 float16；必须降精度的算子损失过大。

    修复：在误差起源处（VF610）重新缩放模型，或选择矩阵乘支持 float32 的目标。

    修复安全性：仅为建议。

    依据：保留全部此类节点后的模拟。
    """
