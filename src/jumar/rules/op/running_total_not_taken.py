"""OP264: CumSum or CumProd that the target does not run on the AI Core."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class RunningTotalNotTaken(ExpansionRule):
    code = "OP264"
    name = "running-total-not-taken"
    since = "0.1"
    ops = frozenset(("CumSum", "CumProd"))
    bound = 1e-05
    DOC_EN = """
    What: CumSum of a type without AI Core kernel, or CumProd, which came with opset 26.

    Why on Ascend: the kernel of CumSum takes few types, and no parser knows CumProd.

    Fix: each element is combined with the one 1, 2, 4 and so on places before it, by Slice, Concat and Add (or Mul); exclusive and reverse decide where the shift goes. Where the target has a kernel, the operator stays.

    Fix safety: safe within 1e-5 of the largest element, integers equal. The axis must be constant and its size static. Sums of many elements in float16 lose digits, by whatever operator they are made.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：没有 AI Core 算子实现的类型的 CumSum，或 opset 26 引入的 CumProd。

    在昇腾上的原因：CumSum 的算子实现只支持少数类型，没有解析器支持 CumProd。

    修复：用 Slice、Concat 与 Add（或 Mul）把每个元素依次与其前 1、2、4……处的元素合并；exclusive 与 reverse 决定移动方向。目标有算子实现时保持不变。

    修复安全性：误差在最大元素的 1e-5 以内为安全，整数相等。axis 必须是常量且其大小静态。用 float16 累加很多元素会损失精度，与所用算子无关。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (float[2,5] y) <int64 axis = {1}> {
            big = Cast<to = 7>(x) total = CumSum<exclusive = 1, reverse = 1>(big, axis) y = Cast<to = 1>(total)
        }
        """,
            opsets=(11, 18),
            edges=False,
            also=("DT305",),
        ),
    )
