"""OP269: a loss left in the model."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class LossNotTaken(ExpansionRule):
    code = "OP269"
    name = "loss-not-taken"
    since = "0.1"
    ops = frozenset(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"))
    bound = 1e-05
    DOC_EN = """
    What: NegativeLogLikelihoodLoss or SoftmaxCrossEntropyLoss in a model that is to be compiled.

    Why on Ascend: losses are of training; parsers and kernels of inference targets do not have them all.

    Fix: the score of the target class is chosen by comparing its number with all classes, weighted, and summed or averaged; a target equal to ignore_index weighs nothing.

    Fix safety: safe within 1e-5 of the largest element.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：待编译的模型中有 NegativeLogLikelihoodLoss 或 SoftmaxCrossEntropyLoss。

    在昇腾上的原因：损失属于训练；推理目标的解析器与算子实现并不都支持。

    修复：通过把目标类别编号与所有类别比较来选出其分数，加权后求和或求平均；等于 ignore_index 的目标权重为零。

    修复安全性：误差在最大元素的 1e-5 以内为安全。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[4,3] x, int32[4] t) => (float[4] y) { y = NegativeLogLikelihoodLoss<reduction = "none">(x, t) }
        """,
            opsets=(13, 18),
            ranges={"t": (0, 2)},
            edges=False,
        ),
    )
