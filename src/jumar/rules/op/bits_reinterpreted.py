"""OP268: the bits of a number read as another type."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class BitsReinterpreted(ExpansionRule):
    code = "OP268"
    name = "bits-reinterpreted"
    since = "0.1"
    ops = frozenset(("BitCast",))
    bound = 0.0
    DOC_EN = """
    What: BitCast, which reads the bits of a tensor as another type.

    Why on Ascend: no parser of a known CANN release reads it, and no other operator of ONNX gives the bits of a float.

    Fix: between integers of one width, and from boolean to uint8, it is Cast. Bits of floats are not had by arithmetic; that is refused.

    Fix safety: safe; equal in every element.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：BitCast，把张量的比特当作另一种类型读取。

    在昇腾上的原因：没有已知 CANN 版本的解析器支持，ONNX 也没有其他算子能取得浮点数的比特。

    修复：同宽整数之间，以及布尔到 uint8，等同于 Cast。浮点数的比特无法通过算术得到，因此拒绝。

    修复安全性：安全；逐元素相等。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[2,3] z) => (float[2,3] y) { c = Greater(x, z) b = BitCast<to = 2>(c) y = Cast<to = 1>(b) }
        """,
            opsets=(26,),
            ir_version=12,
            also=("OP110",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (int32[2,3] y) { y = BitCast<to = 6>(x) }
        """,
            opsets=(26,),
            ir_version=12,
            also=("OP110",),
            cured=False,
        ),
    )
