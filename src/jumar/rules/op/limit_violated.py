"""OP108: a form of an operator that ATC refuses."""

from __future__ import annotations

from ...targets import Status
from ...text import say
from ..base import SupportRule


class LimitViolated(SupportRule):
    code = "OP108"
    name = "limit-violated"
    since = "0.1"
    severity = "error"
    status = Status.LIMIT_VIOLATED
    DOC_EN = """
    What: the operator is known, but this form of it is refused: an attribute value, a rank, a missing or computed parameter, an output that is used.

    Why on Ascend: the parser plug-in, a graph pass or the kernel's own check ends the compilation.

    Fix: the message says what must hold; change the form before export.

    Fix safety: advice only; rules for single operators offer their rewrites.

    Evidence: the limit's source and how sure it is are named in the finding.
    """
    DOC_ZH = """
    问题：该算子受支持，但这种形式会被拒绝：某个属性取值、维数、缺失或由计算得到的参数、被使用的输出。

    在昇腾上的原因：解析插件、图优化或算子自身的检查会使编译终止。

    修复：消息说明了必须满足的条件；请在导出前改变形式。

    修复安全性：仅为建议；针对单个算子的规则各有自己的改写。

    依据：检查结果中注明该限制的来源与可信度。
    """
    why = say("ATC refuses this form", "ATC 会拒绝这种形式")
    remedy = say("change the form before export", "请在导出前改变其形式")
