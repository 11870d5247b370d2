"""OP276: a quantised sum, mean or softmax of ONNX Runtime's own domain, whose last rounding is the runtime's."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule

RUNTIME_ROUNDED = frozenset(f"com.microsoft::{name}" for name in ("QLinearAdd", "QLinearAveragePool", "QLinearSoftmax"))


class QuantisedSum(ExpansionRule):
    code = "OP276"
    name = "quantised-sum"
    since = "0.1"
    ops = RUNTIME_ROUNDED
    safety = "unsafe"
    bound = 0.05
    steps = 1
    DOC_EN = """
    What: QLinearAdd, QLinearAveragePool or QLinearSoftmax of the domain com.microsoft.

    Why on Ascend: ATC's parser knows no operator of that domain.

    Fix: the same arithmetic in floats. Sums that lie just between two integers may be rounded the other way: ONNX Runtime multiplies and adds in one instruction where the processor has it and adds in an order of its own, so its own results differ by one step from machine to machine.

    Fix safety: unsafe; allow it with --unsafe OP276 if a difference of one quantisation step in a few elements is acceptable. Integers may differ by one, what is computed from them by 5 % of the largest element; the record states what was measured. Better is to start from the float model.

    Evidence: the kernels of ONNX Runtime's MLAS library, and random comparison with them (about 1 element in 2000 differs where scales have simple ratios, none in 19000 where they do not).
    """
    DOC_ZH = """
    问题：模型含有 com.microsoft 域的 QLinearAdd、QLinearAveragePool 或 QLinearSoftmax。

    在昇腾上的原因：ATC 的解析器不认识该域的任何算子。

    修复：用浮点完成同样的运算。恰好处于两个整数之间的和可能舍入到另一侧：ONNX Runtime 在处理器支持时用一条指令完成乘加，并按自己的顺序求和，因此其结果在不同机器上也会相差一级。

    修复安全性：不安全；若可以接受少数元素相差一个量化级，请用 --unsafe OP276 启用。整数允许相差 1，由其计算的结果允许相差最大元素的 5%；记录中给出实测值。更好的做法是从浮点模型开始。

    依据：ONNX Runtime 的 MLAS 内核，以及与其随机对比（缩放比为简单分数时约每 2000 个元素有 1 个不同，否则 19000 个元素中没有不同）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "com.microsoft" : 1]>
        agraph (uint8[2,4] x, uint8[2,4] w) => (uint8[2,4] y) <float one = {0.0313}, float two = {0.0517}, float out = {0.0791}, uint8 zero = {128}> {
            y = com.microsoft.QLinearAdd(x, one, zero, w, two, zero, out, zero) }
        """,
            opsets=(13, 18),
            ranges={"x": (0, 255), "w": (0, 255)},
            edges=False,
        ),
    )
