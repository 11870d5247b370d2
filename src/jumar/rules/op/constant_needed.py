"""OP106: an operator whose AI Core form wants its parameter as a constant."""

from __future__ import annotations

import onnx_ir as ir

from ...case import Finding
from ...graph import constant_of
from ...targets import Status, Support
from ...text import say
from ..base import Context, SupportRule, operator_name


class ConstantNeeded(SupportRule):
    code = "OP106"
    name = "constant-needed"
    since = "0.1"
    severity = "warning"
    status = Status.NEEDS_CONSTANT
    DOC_EN = """
    What: on this SoC the AI Core form of the operator exists only with its parameter inputs (axes, split sizes, K, indices) as constants, and one of them is computed.

    Why on Ascend: without the constant the operator falls to the AI CPU or finds no engine.

    Fix: make the parameter constant: pin the input shapes with --shape so that the arithmetic that computes it folds away.

    Fix safety: advice; the folding itself is rule SH202.

    Evidence: the kernel tables of the target's CANN toolkit.
    """
    DOC_ZH = """
    问题：在此 SoC 上，该算子的 AI Core 形式要求参数输入（axes、切分长度、K、索引）为常量，而其中之一是计算得到的。

    在昇腾上的原因：没有常量时算子会落到 AI CPU，或找不到引擎。

    修复：让参数成为常量：用 --shape 固定输入形状，使计算它的形状运算被折叠。

    修复安全性：建议；折叠由规则 SH202 完成。

    依据：目标 CANN 工具包中的算子信息库。
    """

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        computed = [value.name for value in node.inputs[1:] if value is not None and constant_of(value) is None]
        return self.finding(
            say(
                "`{node}`: {op} wants {names} as constants on {soc}",
                "`{node}`：{op} 在 {soc} 上要求 {names} 为常量",
                node=node.name or node.op_type,
                op=operator_name(node),
                names=", ".join(f"`{name}`" for name in computed),
                soc=ctx.target.soc.name,
            ),
            say("its AI Core form has the parameter as an attribute", "其 AI Core 形式以属性保存该参数"),
            say("pin the input shapes with --shape", "请用 --shape 固定输入形状"),
            node=node,
            evidence=answer.evidence,
        )
