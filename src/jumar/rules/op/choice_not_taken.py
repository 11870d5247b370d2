"""OP266: a choice or comparison of a type that the target does not run on the AI Core."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class ChoiceNotTaken(ExpansionRule):
    code = "OP266"
    name = "choice-not-taken"
    since = "0.1"
    ops = frozenset(("Where", "Max", "Min", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Xor"))
    bound = 0.0
    always = False
    DOC_EN = """
    What: Where, Max, Min or a comparison of booleans or of integers that the target refuses or runs on the AI CPU.

    Why on Ascend: kernels of these operators take floats and few integer types.

    Fix: Where of booleans is logic (c and x, or not c and y); integers that 32 bits are shown to hold are taken as int32; others are chosen by products with 0 and 1, Max and Min by a comparison.

    Fix safety: safe; equal in every element.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：布尔或整数的 Where、Max、Min 或比较，目标不支持或只能在 AI CPU 上执行。

    在昇腾上的原因：这些算子的实现只支持浮点和少数整数类型。

    修复：布尔的 Where 改为逻辑运算（c 与 x，或非 c 与 y）；能证明可用 32 位表示的整数按 int32 处理；其余用与 0、1 的乘积选择，Max 与 Min 用比较。

    修复安全性：安全；逐元素相等。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[3] z, float[2,1] w) => (float[2,3] y) {
            c = Greater(w, x) a = Less(x, z) b = Greater(x, w) both = Where(c, a, b) y = Cast<to = 1>(both)
        }
        """,
            opsets=(11, 18),
            edges=False,
        ),
    )
