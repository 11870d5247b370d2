"""OP278: a model whose activations are rounded to integers for another runtime."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, node_place
from ...graph.edit import can_take_over
from ...text import say
from ..base import Change, Context, Example, ModelRule
from .fake_quantisation import drop_unread, pairs_of


class QuantisedForAnotherRuntime(ModelRule):
    code = "OP278"
    name = "quantised-for-another-runtime"
    since = "0.1"
    safety = "unsafe"
    severity = "info"
    phase = 52
    bound = 0.1
    measure = "max_scaled"
    DOC_EN = """
    What: the pairs of QuantizeLinear and DequantizeLinear of OP277, seen as what they are: the model in floats, with the rounding of another runtime's int8 around it.

    Why on Ascend: in float16 or float32 this rounding costs time and accuracy and gains nothing; a quantisation for Ascend starts from the float model.

    Fix: the pairs are left out (weights are widened by DT306). The model then computes in floats what it approximated in integers.

    Fix safety: unsafe, because results differ by design; allow it with --unsafe OP278. They may differ by 10 % of the largest element; the record states what was measured. Never equal: each pair rounded by up to half its scale, and clipped what lay outside its range.

    Evidence: ONNX definition of QuantizeLinear and DequantizeLinear.
    """
    DOC_ZH = """
    问题：OP277 所说的 QuantizeLinear 与 DequantizeLinear 对，其本质是浮点模型加上另一运行时的 int8 舍入。

    在昇腾上的原因：在 float16 或 float32 下，这一舍入只会损失速度与精度；面向昇腾的量化从浮点模型开始。

    修复：去掉这些成对的算子（权重由 DT306 展宽），模型以浮点计算原先用整数近似的结果。

    修复安全性：不安全，因为结果本就不同；请用 --unsafe OP278 启用。允许相差最大元素的 10%，记录中给出实测值。结果不会相等：每一对最多舍入半个 scale，并截断超出范围的值。

    依据：ONNX 对 QuantizeLinear 与 DequantizeLinear 的定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <float scale = {0.1}, uint8 zero = {120}> {
            q = QuantizeLinear(x, scale, zero) d = DequantizeLinear(q, scale, zero) y = Neg(d)
        }
        """,
            opsets=(11, 13, 18),
            edges=False,
            also=("OP275", "OP277"),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        pairs = pairs_of(ctx.model)
        if not pairs or ctx.takes("QuantizeLinear", "DequantizeLinear"):
            return
        yield self.finding(
            say(
                "{count} roundings to int8 of another runtime lie around the float model",
                "浮点模型外包有另一运行时的 {count} 处 int8 舍入",
                count=len(pairs),
            ),
            say("on a device that computes in floats they cost time and accuracy", "在以浮点计算的设备上，它们只会损失速度与精度"),
            say(
                "leave them out with --unsafe OP278 and quantise for Ascend from the float model; results differ by up to half a scale each",
                "用 --unsafe OP278 去掉它们，再从浮点模型面向昇腾量化；每处结果最多相差半个 scale",
            ),
            place=node_place(pairs[0].quantize),
        )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        pairs = pairs_of(model)
        for pair in pairs:
            builder, old, data = Builder(model, pair.dequantize, self.code), pair.dequantize.outputs[0], pair.quantize.inputs[0]
            if data is None or not can_take_over(old, data):
                data = builder.op("Identity", data)
            builder.replace(old, data)
            builder.remove(pair.dequantize)
        drop_unread(model, pairs)
        return Change(tuple(node_place(pair.dequantize) for pair in pairs)) if pairs else None
