"""OP262: arithmetic of a type or form that the target does not take."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class ArithmeticNotTaken(ExpansionRule):
    code = "OP262"
    name = "arithmetic-not-taken"
    since = "0.1"
    ops = frozenset(("Det", "Pow", "Selu"))
    bound = 1e-5
    DOC_EN = """
    What: Pow with integers, Selu with other constants than its defaults, or Det, on a target that refuses it or runs it on the AI CPU.

    Why on Ascend: kernels take few types, and the Selu kernel has its constants built in.

    Fix: integers that float32 holds exactly are raised as floats and rounded back; Selu is written by its definition; a determinant of up to four rows is the sum over permutations.

    Fix safety: safe within 1e-5 of the largest element, integers equal. Refused where ranges do not show that the results are exact (--range declares them for inputs).

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：整数 Pow、常数不是默认值的 Selu，或 Det，目标不支持或只能在 AI CPU 上执行。

    在昇腾上的原因：算子实现支持的类型很少，Selu 的常数固定在算子实现中。

    修复：float32 能精确表示的整数以浮点求幂再取整；Selu 按定义写出；四行以内的行列式按排列求和。

    修复安全性：误差在最大元素的 1e-5 以内为安全，整数相等。取值范围不能证明结果精确时拒绝（可用 --range 声明输入范围）。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { y = Selu<alpha = 2.0>(x) }
        """,
            opsets=(11, 18),
            edges=False,
            soc="BS9SX1AA",
        ),
    )
