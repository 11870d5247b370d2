"""OP214: a bit operation that the target does not run on the AI Core."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class BitOperationNotTaken(ExpansionRule):
    code = "OP214"
    name = "bit-operation-not-taken"
    since = "0.1"
    ops = frozenset(("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"))
    bound = 0.0
    DOC_EN = """
    What: BitShift or a Bitwise operator that the target refuses or runs on the AI CPU.

    Why on Ascend: bit operations run on the AI CPU, if at all.

    Fix: shifts become products with, or quotients by, powers of two from a table; And, Or and Xor work on digits of base two; Not is a subtraction.

    Fix safety: safe; equal in every element. Refused unless 32 bits are proven to hold the operands (ranges of inputs can be declared with --range); int32 and narrower types always do.

    Evidence: the kernel tables that `jumar targets show` cites; ONNX operator definitions.
    """
    DOC_ZH = """
    问题：目标不支持 BitShift 或按位运算算子，或只能在 AI CPU 上执行。

    在昇腾上的原因：位运算即使支持也在 AI CPU 上执行。

    修复：移位改为与查表得到的 2 的幂相乘或相除；与、或、异或按二进制位计算；取反改为减法。

    修复安全性：安全；逐元素相等。只有能够证明操作数可用 32 位表示时才改写（可用 --range 声明输入范围）；int32 及更窄的类型总是可以。

    依据：`jumar targets show` 给出的算子信息库；ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (int32[2,3] y) <float low = {0.0}, float high = {200.0}, uint8 two = {2}> {
            c = Clip(x, low, high) u = Cast<to = 2>(c) s = BitShift<direction = "RIGHT">(u, two) y = Cast<to = 6>(s)
        }
        """,
            opsets=(12, 18),
            edges=False,
        ),
    )
