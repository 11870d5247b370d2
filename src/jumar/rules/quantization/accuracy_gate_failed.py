"""QT106: more accuracy is lost than allowed."""

from __future__ import annotations

from ..base import Rule


class AccuracyGateFailed(Rule):
    code = "QT106"
    name = "accuracy-gate-failed"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the int8 model loses more than --max-drop, and putting layers back was switched off (--no-fallback).

    Why on Ascend: the model on the device would be this much worse.

    Fix: leave out --no-fallback; or give better samples, another --method, or a larger --max-drop.

    Fix safety: advice only.

    Evidence: the metric on held-out samples.
    """
    DOC_ZH = """
    问题：int8 模型的精度损失超过 --max-drop，且已用 --no-fallback 关闭回退。

    在昇腾上的原因：设备上的模型会有同样的精度损失。

    修复：请去掉 --no-fallback；或提供更好的样本、更换 --method、放宽 --max-drop。

    修复安全性：仅为建议。

    依据：留出样本上的指标。
    """
