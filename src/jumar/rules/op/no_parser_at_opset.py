"""OP102: an operator registered, but not at the model's opset"""

from __future__ import annotations

import onnx_ir as ir

from ...case import Finding
from ...targets import Status, Support
from ...text import say
from ..base import Context, SupportRule, operator_name


class NoParserAtOpset(SupportRule):
    code = "OP102"
    name = "no-parser-at-opset"
    since = "0.1"
    severity = "error"
    status = Status.NO_PARSER_AT_OPSET
    DOC_EN = """
    What: ATC has a parser for the operator, but not at the opset the model declares.

    Why on Ascend: the key is `domain::opset::operator` and matches exactly; there is no fallback to an older registration.

    Fix: export the model at an opset named in the message.

    Fix safety: the opset rule (OP110) converts what it can express; the rest needs another export.

    Evidence: the parser plug-in sources of the states around the target's CANN.
    """
    DOC_ZH = """
    问题：ATC 有该算子的解析器，但不是在模型声明的 opset 上。

    在昇腾上的原因：查找键为 `domain::opset::算子名`，必须完全一致，不会回退到旧版本的注册。

    修复：按消息中给出的 opset 重新导出模型。

    修复安全性：opset 规则（OP110）会转换能够表示的部分，其余需要重新导出。

    依据：目标 CANN 前后版本的解析插件源码。
    """

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        return self.finding(
            say(
                "`{node}`: {op} has no parser at opset {opset}, only at {opsets}",
                "`{node}`：{op} 在 opset {opset} 没有解析器，仅支持 {opsets}",
                node=node.name or node.op_type,
                op=operator_name(node),
                opset=ctx.opset_of(node.domain),
                opsets=answer.opsets,
            ),
            say("ATC matches the opset exactly, without falling back", "ATC 精确匹配 opset，不会回退"),
            say("export at one of these opsets", "请以其中一个 opset 导出"),
            node=node,
            evidence=answer.evidence,
        )
