"""AI106: aipp suspicious number."""

from __future__ import annotations

from ..base import Rule


class AippSuspiciousNumber(Rule):
    code = "AI106"
    name = "aipp-suspicious-number"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: the numbers are probably not what is meant: a mean on the scale 0..1, a standard deviation in var_reci_chn, a mean in both mean_chn and min_chn, var_reci_chn for some channels only, means in the order of the other colours, values beyond float16.

    Why on Ascend: the model compiles and runs, and its accuracy drops.

    Fix: give the training transform to `jumar aipp check --preprocess`, which proves it, or to `jumar aipp derive`, which writes the numbers.

    Fix safety: advice only.

    Evidence: AIPP computes (pixel - mean_chn - min_chn) * var_reci_chn on pixels of 0..255.
    """
    DOC_ZH = """
    问题：数值很可能不是本意：0..1 尺度的均值、把标准差写入 var_reci_chn、均值同时写入 mean_chn 和 min_chn、只为部分通道写 var_reci_chn、均值的颜色顺序相反、超出 float16 的值。

    在昇腾上的原因：模型能编译、能运行，但精度下降。

    修复：把训练时的预处理交给 `jumar aipp check --preprocess` 加以证明，或用 `jumar aipp derive` 生成数值。

    修复安全性：仅为建议。

    依据：AIPP 对 0..255 的像素计算 (像素 - mean_chn - min_chn) * var_reci_chn。
    """
