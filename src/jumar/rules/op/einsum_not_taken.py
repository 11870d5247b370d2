"""OP260: Einsum."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class EinsumNotTaken(ExpansionRule):
    code = "OP260"
    name = "einsum-not-taken"
    since = "0.1"
    ops = frozenset(("Einsum",))
    bound = 1e-5
    DOC_EN = """
    What: Einsum on a target that has no kernel for it or parses it above its opset ceiling only.

    Why on Ascend: the kernel covers a few equations on a few SoCs; at opset 11 the operator does not exist.

    Fix: the operands are transposed and reshaped to batches of matrices and multiplied with MatMul; letters of one operand alone are summed first, and diagonals are selected.

    Fix safety: safe within 1e-5 of the largest element. Shapes must be static where dimensions are joined.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：目标没有 Einsum 的算子实现，或只在高于其 opset 上限的版本中解析。

    在昇腾上的原因：算子实现只在少数 SoC 上覆盖少数等式；opset 11 中不存在该算子。

    修复：操作数经转置与变形成为成批的矩阵，用 MatMul 相乘；只出现在一个操作数中的字母先求和，对角线用选取得到。

    修复安全性：误差在最大元素的 1e-5 以内为安全。合并的维必须静态。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x, float[2,4,5] z) => (float[2,3,5] y) { y = Einsum<equation = "bij,bjk->bik">(x, z) }
        """,
            opsets=(12, 18),
            edges=False,
        ),
    )
