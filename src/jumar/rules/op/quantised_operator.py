"""OP275: a quantised operator, which ATC has no parser for."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class QuantisedOperator(ExpansionRule):
    code = "OP275"
    name = "quantised-operator"
    since = "0.1"
    ops = frozenset(
        ("ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul", "QuantizeLinear")
    )
    bound = 1e-5
    DOC_EN = """
    What: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger, ConvInteger, QLinearMatMul or QLinearConv.

    Why on Ascend: ATC parses none of them. Its int8 form is AscendQuant and AscendDequant, whose scale is a reciprocal; ordinary quantisers do not write it.

    Fix: the same arithmetic in floats: integers less their zero point, products and sums that float32 holds exactly, one rounding to the nearest even integer, clipping. Weights become float weights. The model computes what it did, at float speed; to have int8 on the device, quantise the float model for Ascend.

    Fix safety: safe; integer results are equal, floats within 1e-5 of the largest element. Refused where sums may be larger than float32 holds exactly (2^24).

    Evidence: ONNX definitions and node tests; the parser registrations of CANN.
    """
    DOC_ZH = """
    问题：模型含有 QuantizeLinear、DequantizeLinear、DynamicQuantizeLinear、MatMulInteger、ConvInteger、QLinearMatMul 或 QLinearConv。

    在昇腾上的原因：ATC 都不解析它们。其 int8 形式为 AscendQuant 与 AscendDequant（scale 为倒数），普通量化工具不会生成。

    修复：用浮点完成同样的运算：整数减去零点、float32 能精确表示的乘积与和、一次向最近偶数舍入、截断。权重变为浮点权重。模型的计算结果不变，速度为浮点速度；若需在设备上使用 int8，请针对昇腾量化浮点模型。

    修复安全性：安全；整数结果相等，浮点误差在最大元素的 1e-5 以内。若和可能超过 float32 的精确范围（2^24）则拒绝。

    依据：ONNX 定义与节点测试；CANN 的解析器注册表。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <float scale = {0.1}, uint8 zero = {128}> {
            q = QuantizeLinear(x, scale, zero) y = DequantizeLinear(q, scale, zero)
        }
        """,
            opsets=(13, 18),
            edges=False,
            also=("OP277", "OP278"),
        ),
    )
