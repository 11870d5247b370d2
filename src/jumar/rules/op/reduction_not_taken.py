"""OP265: a reduction that the target does not run on the AI Core."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class ReductionNotTaken(ExpansionRule):
    code = "OP265"
    name = "reduction-not-taken"
    since = "0.1"
    ops = frozenset(
        (
            "ReduceSum",
            "ReduceProd",
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceLogSum",
            "ReduceLogSumExp",
        )
    )
    bound = 1e-05
    always = False
    DOC_EN = """
    What: a reduction of a type or form that the target refuses, ignores or runs on the AI CPU: of integers, of booleans, without axes (noop_with_empty_axes), of nothing, or of a kind without kernel (ReduceL1, ReduceL2, ReduceLogSumExp).

    Why on Ascend: kernels reduce floats; the parser does not read noop_with_empty_axes.

    Fix: integers are combined half with half until one is left, which wraps around as the reduction does; booleans and bytes go through float16, which holds them; norms and logarithms are written with ReduceSum; a reduction of one element or of nothing needs no reduction.

    Fix safety: safe within 1e-5 of the largest element, integers equal.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：目标不支持、忽略或只能在 AI CPU 上执行的归约：整数、布尔、没有 axes（noop_with_empty_axes）、空集，或没有算子实现的种类（ReduceL1、ReduceL2、ReduceLogSumExp）。

    在昇腾上的原因：算子实现只归约浮点；解析器不读取 noop_with_empty_axes。

    修复：整数两两对半合并直到只剩一个，回绕方式与归约相同；布尔与字节经 float16（能精确表示）计算；范数与对数用 ReduceSum 写出；单个元素或空集的归约无需归约。

    修复安全性：误差在最大元素的 1e-5 以内为安全，整数相等。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (int32[2,5] x) => (int32[2,1] y) { y = ReduceProd<axes = [1]>(x) }
        """,
            opsets=(11, 13),
            ranges={"x": (-9, 9)},
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (float[2,1] y) { y = ReduceL1<axes = [1]>(x) }
        """,
            opsets=(11, 13),
            edges=False,
            soc="BS9SX1AA",
        ),
    )
