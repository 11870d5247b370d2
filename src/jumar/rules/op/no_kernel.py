"""OP103: an operator that parses but has no kernel on the SoC"""

from __future__ import annotations

import onnx_ir as ir

from ...case import Finding
from ...targets import Status, Support
from ...text import say
from ..base import Context, SupportRule, operator_name


class NoKernel(SupportRule):
    code = "OP103"
    name = "no-kernel"
    since = "0.1"
    severity = "error"
    status = Status.NO_KERNEL
    DOC_EN = """
    What: the operator is parsed, but neither the AI Core nor the AI CPU of this SoC has a kernel for what it becomes, and no graph pass is known that rewrites it.

    Why on Ascend: ATC ends with "No supported Ops kernel and engine are found" (EZ3002 and relatives).

    Fix: use another form of the operator, or another SoC.

    Fix safety: there is no general rewrite; rules for single operators offer theirs.

    Evidence: the kernel tables of the target's CANN toolkit.
    """
    DOC_ZH = """
    问题：该算子可以解析，但此 SoC 的 AI Core 和 AI CPU 都没有对应的算子实现，也没有已知的图优化将其改写。

    在昇腾上的原因：ATC 会报 "No supported Ops kernel and engine are found"（EZ3002 等）。

    修复：使用该算子的其他形式，或更换 SoC。

    修复安全性：没有通用的改写；针对单个算子的规则各有自己的改写。

    依据：目标 CANN 工具包中的算子信息库。
    """

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        return self.finding(
            say(
                "`{node}`: {op} has no kernel on {soc}",
                "`{node}`：{op} 在 {soc} 上没有算子实现",
                node=node.name or node.op_type,
                op=operator_name(node),
                soc=ctx.target.soc.name,
            ),
            say("it is parsed, but no engine of this SoC holds it", "它能被解析，但该 SoC 没有引擎能够执行"),
            say(
                "replace the operator, or choose a SoC that has it (`jumar targets show`)",
                "请替换该算子，或选择支持它的 SoC（`jumar targets show`）",
            ),
            node=node,
            evidence=answer.evidence,
        )
