"""OP263: a Softmax of before opset 13 whose axis is not the last."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class SoftmaxJoinsAxes(ExpansionRule):
    code = "OP263"
    name = "softmax-joins-axes"
    severity = "warning"
    since = "0.1"
    ops = frozenset(("Softmax", "LogSoftmax"))
    bound = 1e-06
    always = False
    DOC_EN = """
    What: Softmax or LogSoftmax before opset 13 with an axis before the last: everything from the axis on is one axis there, and from opset 13 on it is not.

    Why on Ascend: the parser hands the axis on as it is, and the compiled model relies on a later fusion for the joining of axes.

    Fix: the tensor is reshaped to a matrix, the operator works on its rows, and the result is reshaped back; at every opset that means the same.

    Fix safety: safe within 1e-6 of the largest element. Shapes must be static.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：opset 13 之前的 Softmax 或 LogSoftmax，axis 不是最后一维：在这些版本中从 axis 起的各维合为一维，自 opset 13 起则不是。

    在昇腾上的原因：解析器原样传递 axis，编译后的模型依赖后续融合来合并这些维。

    修复：把张量变形为矩阵，在行上计算，再变形回来；在任何 opset 下含义都相同。

    修复安全性：误差在最大元素的 1e-6 以内为安全。形状必须静态。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis = 1>(x) }
        """,
            opsets=(11, 12),
            edges=False,
        ),
    )
