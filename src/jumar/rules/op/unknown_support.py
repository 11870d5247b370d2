"""OP105: an operator of which nobody outside knows"""

from __future__ import annotations

import onnx_ir as ir

from ...case import Finding
from ...targets import Status, Support
from ...text import say
from ..base import Context, SupportRule, operator_name


class UnknownSupport(SupportRule):
    code = "OP105"
    name = "unknown-support"
    since = "0.1"
    severity = "warning"
    status = Status.UNKNOWN
    DOC_EN = """
    What: the public facts do not say whether this target takes the operator. Unknown is not supported: the model is not called ready.

    Why on Ascend: the parser sources between 2022-06 and 8.5 and some tables are not public; the message says which piece is missing.

    Fix: try it with the real ATC, or use an operator that is known to be taken.

    Fix safety: advice only.

    Evidence: named in the finding.
    """
    DOC_ZH = """
    问题：公开资料无法说明该目标是否支持此算子。未知不等于支持：模型不会被判为 ready。

    在昇腾上的原因：2022-06 到 8.5 之间的解析器源码和部分算子表没有公开；消息中会说明缺少哪一项。

    修复：用真实的 ATC 试编译，或改用已知受支持的算子。

    修复安全性：仅为建议。

    依据：见检查结果。
    """

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        return self.finding(
            say(
                "`{node}`: not known whether {soc} takes {op}: {reason}",
                "`{node}`：无法确定 {soc} 是否支持 {op}：{reason}",
                node=node.name or node.op_type,
                soc=ctx.target.label,
                op=operator_name(node),
                reason=answer.reason or say("no public facts", "没有公开资料"),
            ),
            say("unknown is not supported", "未知不等于支持"),
            say("compile with the real ATC to find out", "请用真实的 ATC 编译确认"),
            node=node,
            evidence=answer.evidence,
        )
