"""OP209: an operator that the target does not take and that the standard defines by others."""

from __future__ import annotations

from functools import cache

import onnx_ir as ir

from ...graph.expansions import schema_functions
from ...targets import Support
from ..base import Context, Example, NodeRule, operator_name
from ..expansion import ExpansionRule


class CompositeOperator(ExpansionRule):
    code = "OP209"
    name = "composite-operator"
    since = "0.1"
    ops = schema_functions()
    phase = 72
    DOC_EN = """
    What: an operator that the target refuses or runs on the AI CPU, and that the ONNX standard defines by simpler operators (CastLike, GroupNormalization, MeanVarianceNormalization, the losses and others).

    Why on Ascend: ATC knows operators by name; it does not read the function bodies of the standard.

    Fix: the function body that the ONNX schema has for the model's opset is put in its place, with what is known of shapes and constants computed.

    Fix safety: safe within 1e-5 of the largest element.

    Evidence: ONNX operator schemas.
    """
    DOC_ZH = """
    问题：目标不支持该算子或只能在 AI CPU 上执行，而 ONNX 标准用更简单的算子定义了它（CastLike、GroupNormalization、MeanVarianceNormalization、各种损失等）。

    在昇腾上的原因：ATC 按名称识别算子，不读取标准中的函数体。

    修复：用 ONNX 定义在该 opset 的函数体替换，并预先计算已知的形状和常量。

    修复安全性：误差在最大元素的 1e-5 以内为安全。

    依据：ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[1] z) => (float[2,3] y) { y = CastLike(x, z) }
        """,
            opsets=(15, 18),
        ),
    )

    def troubles(self, node: ir.Node, ctx: Context) -> tuple[Support, ...]:
        return () if operator_name(node) in claimed() else super().troubles(node, ctx)


@cache
def claimed() -> frozenset[str]:
    """Operators for which another rule speaks."""
    from ..registry import all_rules

    rules = [rule for rule in all_rules() if isinstance(rule, NodeRule) and rule.covers_support and not isinstance(rule, CompositeOperator)]
    return frozenset(op for rule in rules for op in rule.ops)
