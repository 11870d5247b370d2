"""OP109: a limit that cannot be judged."""

from __future__ import annotations

import onnx_ir as ir

from ...case import Finding
from ...targets import Status, Support
from ...text import say
from ..base import Context, SupportRule, operator_name


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

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        return self.finding(
            say(
                "`{node}`: {op}: {reason}",
                "`{node}`：{op}：{reason}",
                node=node.name or node.op_type,
                op=operator_name(node),
                reason=answer.reason or say("no reason given", "未说明原因"),
            ),
            say("unknown is not supported", "未知不等于支持"),
            say("pin the input shapes with --shape", "请用 --shape 固定输入形状"),
            node=node,
            evidence=answer.evidence,
        )
