"""OP109: a limit that cannot be judged."""

from __future__ import annotations

from ...targets import Status
from ...text import say
from ..base import SupportRule


class LimitNotJudged(SupportRule):
    code = "OP109"
    name = "limit-not-judged"
    since = "0.1"
    severity = "warning"
    status = Status.LIMIT_UNJUDGED
    DOC_EN = """
    What: the operator has a limit that depends on a shape or a value the model does not show.

    Why on Ascend: if the limit is broken, ATC refuses the node or computes something else.

    Fix: pin the input shapes with --shape, so that the limit can be judged.

    Fix safety: advice only.

    Evidence: the limit's source is named in the finding.
    """
    DOC_ZH = """
    问题：该算子有一项限制，取决于模型中未体现的形状或取值。

    在昇腾上的原因：若违反该限制，ATC 会拒绝该节点或计算出不同的结果。

    修复：用 --shape 固定输入形状，以便判断。

    修复安全性：仅为建议。

    依据：检查结果中注明该限制的来源。
    """
    why = say("unknown is not supported", "未知不等于支持")
    remedy = say("pin the input shapes with --shape", "请用 --shape 固定输入形状")
