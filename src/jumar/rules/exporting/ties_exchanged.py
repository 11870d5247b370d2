"""EX115: ties exchanged."""

from __future__ import annotations

from ..base import Rule


class TiesExchanged(Rule):
    code = "EX115"
    name = "ties-exchanged"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: outputs are equal only when rows of equal score may change places.

    Why on Ascend: which of two detections of the same score comes first is not defined, and differs between runtimes.

    Fix: none; do not compare such outputs row by row.

    Fix safety: advice only.

    Evidence: the comparison with the module.
    """
    DOC_ZH = """
    问题：只有允许得分相同的行互换位置时，输出才相等。

    在昇腾上的原因：得分相同的两个检测结果谁在前没有定义，不同运行环境会不同。

    修复：无需处理；不要逐行比较这类输出。

    修复安全性：仅为建议。

    依据：与模块的对比。
    """
