"""OP202: HardSwish where the target has none."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import Builder
from ...text import say
from ..base import Context, Example, NodeRule, Refused


class HardSwishNoKernel(NodeRule):
    code = "OP202"
    name = "hardswish-no-kernel"
    since = "0.1"
    ops = frozenset({"HardSwish"})
    safety = "safe"
    phase = 70
    bound = 1e-6
    covers_support = True
    DOC_EN = """
    What: HardSwish on a target that has no kernel for it or cannot parse it at its opset ceiling (it exists from opset 14 on).

    Why on Ascend: the vehicle and camera SoCs carry no HardSwish kernel; ATC ends with "No supported Ops kernel".

    Fix: x * HardSigmoid(x) with alpha 1/6 and beta 0.5, which is how the standard defines HardSwish. HardSigmoid's own default alpha is 0.2: it is written out.

    Fix safety: safe within 1e-6 relative.

    Evidence: the kernel tables of the CANN 8.1.RC1 toolkit; ONNX definition of HardSwish.
    """
    DOC_ZH = """
    问题：目标没有 HardSwish 的算子实现，或其 opset 上限无法解析它（HardSwish 自 opset 14 起存在）。

    在昇腾上的原因：车载与摄像头 SoC 没有 HardSwish 算子；ATC 会报 "No supported Ops kernel"。

    修复：x * HardSigmoid(x)，alpha 为 1/6、beta 为 0.5，即标准对 HardSwish 的定义。HardSigmoid 自身的 alpha 默认值为 0.2，因此需显式写出。

    修复安全性：相对误差 1e-6 以内为安全。

    依据：CANN 8.1.RC1 工具包的算子信息库；HardSwish 的 ONNX 定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { y = HardSwish(x) }
        """,
            opsets=(14, 18),
            soc="BS9SX1AA",
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        if ctx.takes("HardSwish"):
            return
        answer = ctx.support("HardSwish")
        yield self.finding(
            say(
                "`{node}`: {soc} does not take HardSwish",
                "`{node}`：{soc} 不支持 HardSwish",
                node=node.name or node.op_type,
                soc=ctx.target.label,
            ),
            say("its kernel or its parser is missing ({status})", "缺少其算子实现或解析器（{status}）", status=answer.status.value),
            say("use x * HardSigmoid(x) with alpha 1/6", "改用 x * HardSigmoid(x)，alpha 为 1/6"),
            node=node,
            fix="safe" if ctx.takes("HardSigmoid", "Mul") else "none",
            evidence=answer.evidence,
        )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        if not ctx.takes("HardSigmoid", "Mul"):
            raise Refused(say("the target lacks HardSigmoid or Mul too", "目标同样缺少 HardSigmoid 或 Mul"))
        gate = builder.op("HardSigmoid", node.inputs[0], alpha=1.0 / 6.0, beta=0.5)
        builder.replace(node.outputs[0], builder.op("Mul", node.inputs[0], gate))
