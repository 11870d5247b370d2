"""OP104: an operator that runs, slowly"""

from __future__ import annotations

import onnx_ir as ir

from ...case import Finding
from ...targets import Status, Support
from ...text import say
from ..base import Context, SupportRule, operator_name


class AicpuOnly(SupportRule):
    code = "OP104"
    name = "aicpu-only"
    since = "0.1"
    severity = "warning"
    status = Status.AICPU_ONLY
    DOC_EN = """
    What: the only kernel of this SoC for the operator is on the AI CPU.

    Why on Ascend: it compiles and gives right results, but each call leaves the AI Core, and a few of them can dominate the latency.

    Fix: replace it by AI Core operators, or move it out of the hot path.

    Fix safety: advice only.

    Evidence: the kernel tables of the target's CANN toolkit.
    """
    DOC_ZH = """
    问题：此 SoC 上该算子只有 AI CPU 实现。

    在昇腾上的原因：可以编译，结果也正确，但每次调用都要离开 AI Core，少数几个这样的算子就可能决定整体时延。

    修复：改用 AI Core 算子，或移出关键路径。

    修复安全性：仅为建议。

    依据：目标 CANN 工具包中的算子信息库。
    """

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        return self.finding(
            say(
                "`{node}`: {op} runs on the AI CPU on {soc}{reason}",
                "`{node}`：{op} 在 {soc} 上由 AI CPU 执行{reason}",
                node=node.name or node.op_type,
                op=operator_name(node),
                soc=ctx.target.soc.name,
                reason=say("", "") if answer.reason is None else say(": {reason}", "：{reason}", reason=answer.reason),
            ),
            say("it works but is slow: every call leaves the AI Core", "可以运行但很慢：每次调用都要离开 AI Core"),
            say("replace it by AI Core operators where latency matters", "若关注时延，请改用 AI Core 算子"),
            node=node,
            evidence=answer.evidence,
        )
