"""AI109: aipp normalised twice."""

from __future__ import annotations

from ..base import Rule


class AippNormalisedTwice(Rule):
    code = "AI109"
    name = "aipp-normalised-twice"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the network begins with a normalisation of its own, and AIPP normalises too.

    Why on Ascend: the pixels are normalised twice, and the accuracy is lost.

    Fix: leave it to one of them; `jumar aipp move` takes it out of the network with proof.

    Fix safety: advice only.

    Evidence: the leading Sub, Add, Mul, Div and BatchNormalization of the model on constants.
    """
    DOC_ZH = """
    问题：网络开头自带归一化，而 AIPP 也做归一化。

    在昇腾上的原因：像素被归一化两次，精度丢失。

    修复：只保留其一；`jumar aipp move` 可带证明地把它移出网络。

    修复安全性：仅为建议。

    依据：模型开头以常量为操作数的 Sub、Add、Mul、Div 和 BatchNormalization。
    """
