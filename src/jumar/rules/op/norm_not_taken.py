"""OP261: a normalisation by a norm that the target does not take."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class NormNotTaken(ExpansionRule):
    code = "OP261"
    name = "norm-not-taken"
    since = "0.1"
    ops = frozenset(("LpNormalization",))
    bound = 1e-5
    DOC_EN = """
    What: LpNormalization on a target that refuses it or is not known to take it.

    Why on Ascend: parsers of different CANN releases make different operators of it, and not every SoC has them.

    Fix: the tensor is divided by the root of the sum of its squares (or by the sum of magnitudes); a vector of zeros stays one.

    Fix safety: safe within 1e-5 of the largest element.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：目标不支持 LpNormalization，或是否支持未知。

    在昇腾上的原因：不同 CANN 版本的解析器将其变为不同的算子，且并非每个 SoC 都有这些算子。

    修复：张量除以平方和的平方根（或绝对值之和）；零向量保持为零。

    修复安全性：误差在最大元素的 1e-5 以内为安全。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { y = LpNormalization<axis = 1>(x) }
        """,
            opsets=(11, 18),
            edges=False,
            soc="BS9SX1AA",
        ),
    )
