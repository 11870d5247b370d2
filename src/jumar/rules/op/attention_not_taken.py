"""OP267: Attention of opset 23 and later."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class AttentionNotTaken(ExpansionRule):
    code = "OP267"
    name = "attention-not-taken"
    since = "0.1"
    ops = frozenset(("Attention",))
    bound = 1e-05
    DOC_EN = """
    What: the operator Attention of opset 23, 24 or 25.

    Why on Ascend: no parser of a known CANN release reads it, and masks of -infinity become the lowest float16, or NaN, in half precision.

    Fix: the scaled query times the key, Softmax, and times the value. Scores of keys that are not attended (causal, window, boolean mask, lengths, infinities of a constant mask) are chosen to be -65504, which float16 holds, and their weights to be 0, so that a query without any key gives 0 as the standard has it. Queries that share a key become rows of one matrix. Masks of floats that the model computes are added as the function body of the standard does it.

    Fix safety: safe within 1e-5 of the largest element, as long as the scores of attended keys stay above -65504, as float16 has it anyway. Shapes must be static.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：opset 23、24 或 25 的 Attention 算子。

    在昇腾上的原因：没有已知 CANN 版本的解析器支持；半精度下负无穷的掩码会变成最小的 float16 或 NaN。

    修复：缩放后的 query 乘 key，Softmax，再乘 value。不参与注意力的 key（因果、窗口、布尔掩码、长度、常量掩码中的无穷）的分数取 float16 能表示的 -65504，其权重取 0，因此没有任何 key 的 query 按标准得到 0。共用 key 的 query 作为同一矩阵的行。模型计算得到的浮点掩码按标准函数体相加。

    修复安全性：误差在最大元素的 1e-5 以内为安全，前提是参与注意力的 key 的分数大于 -65504（float16 本来也只到此为止）。形状必须静态。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,4,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,4,3,4] y) { y = Attention<is_causal = 1>(q, k, v) }
        """,
            opsets=(23, 24),
            ir_version=10,
            edges=False,
            also=("OP110",),
        ),
    )
