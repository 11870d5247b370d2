"""OP271: arithmetic of integers of 8 or 16 bits that the target does not run on the AI Core."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class NarrowArithmetic(ExpansionRule):
    code = "OP271"
    name = "narrow-arithmetic"
    since = "0.1"
    ops = frozenset(("Add", "Sub", "Mul", "Div", "Neg", "Abs"))
    bound = 0.0
    always = False
    DOC_EN = """
    What: Add, Sub, Mul, Div, Neg or Abs of int8, uint8, int16 or uint16 that the target refuses or runs on the AI CPU.

    Why on Ascend: kernels of arithmetic take floats and int32.

    Fix: computed in int32 and cast back; where ranges do not show that the result fits, it is wrapped around to the width of its type with Mod, as ONNX Runtime does.

    Fix safety: safe; equal in every element. Refused where a product may have more than 24 bits, which a division in float32 would not keep.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：int8、uint8、int16 或 uint16 的 Add、Sub、Mul、Div、Neg 或 Abs，目标不支持或只能在 AI CPU 上执行。

    在昇腾上的原因：算术算子的实现只支持浮点与 int32。

    修复：用 int32 计算后再转换回来；取值范围不能证明结果可容纳时，用 Mod 按其类型的位宽回绕，与 ONNX Runtime 一致。

    修复安全性：安全；逐元素相等。乘积可能超过 24 位时拒绝，因为以 float32 实现的除法无法保留。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <float low = {-200.0}, float high = {200.0}> {
            c = Clip(x, low, high) small = Cast<to = 5>(c) sum = Add(small, small) y = Cast<to = 1>(sum)
        }
        """,
            opsets=(14, 18),
            edges=False,
            also=("DT305",),
        ),
    )
