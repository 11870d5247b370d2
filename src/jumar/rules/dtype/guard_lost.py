"""DT310: a small constant that guards a division and is zero in half precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from ...case import Finding, Severity
from ...graph import constant_of, node_place
from ...text import say
from ..base import Context, Example, NodeRule

_GUARDS = frozenset(("Add", "Clip", "Max"))
_PASSES = frozenset(("Cast", "Expand", "Identity", "Mul", "Pow", "Reshape", "Sqrt", "Squeeze", "Transpose", "Unsqueeze"))
_FEW, _DEPTH = 4096, 6
_ROUNDS_TO_ZERO = 2.0**-25
"""Half of the least float16; a tie goes to the even one, which is 0."""


class GuardLost(NodeRule):
    code = "DT310"
    name = "guard-lost-in-float16"
    since = "0.1"
    ops = _GUARDS
    safety = "advice"
    severity: ClassVar[Severity] = "info"
    DOC_EN = """
    What: a constant such as 1e-12 is added to a divisor, or is its least value, so that nothing is divided by zero; in float16 it is 0 itself.

    Why on Ascend: ATC stores tensors in float16 unless told otherwise. The least float16 is 6e-8, and anything up to half of that is rounded to 0: the guard is gone, and where the divisor vanishes too (squares of values below 2.4e-4 do) the result is infinite or NaN.

    Fix: none by itself: whether it matters depends on the values, and `jumar verify --precision fp16 --feeds` shows it. Then divide by the largest magnitude before the squares are summed, which gives the same result, keep these nodes in float32 (`--keep-list` finds which), or raise the constant to 1e-7 or more where the results allow it.

    Fix safety: advice.

    Evidence: the format of float16 (IEEE 754); public report TensorRT 1954.
    """
    DOC_ZH = """
    问题：像 1e-12 这样的常量加到除数上，或作为除数的下限，以避免除以零；而它在 float16 中本身就是 0。

    在昇腾上的原因：除非另行指定，ATC 以 float16 存储张量。float16 的最小值为 6e-8，不超过其一半的数都舍入为 0：保护失效；若除数也消失（小于 2.4e-4 的数的平方即如此），结果为无穷大或 NaN。

    修复：不自动修改：是否有影响取决于数值，可用 `jumar verify --precision fp16 --feeds` 查看。之后可以在平方求和之前先除以最大绝对值（结果相同），把这些节点保持为 float32（`--keep-list` 会找出），或在结果允许时把常量提高到 1e-7 以上。

    修复安全性：仅为建议。

    依据：float16 的格式（IEEE 754）；公开报告 TensorRT 1954。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[2,1] n) => (float[2,3] y) <float least = {0.000000000001}> { m = Max(n, least) y = Div(x, m) }
        """,
            cured=False,
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        lost = _lost(node)
        if lost is not None and _divides(node.outputs[0], 0):
            yield self.finding(
                say(
                    "`{node}`: the {value:g} that keeps it from dividing by zero is 0 in float16",
                    "`{node}`：用于避免除以零的 {value:g} 在 float16 中为 0",
                    node=node_place(node),
                    value=lost,
                ),
                say("ATC's default is float16", "ATC 默认使用 float16"),
                say("see whether it matters: `jumar verify --precision fp16`", "请用 `jumar verify --precision fp16` 查看是否有影响"),
                node=node,
            )


def _numbers(value: ir.Value | None) -> np.ndarray | None:
    constant = constant_of(value)
    return None if constant is None else constant.astype(np.float64)


def _lost(node: ir.Node) -> float | None:
    """The constant of a guard that is positive and rounds to 0. The bound of a Clip is its second input."""
    for value in node.inputs[1:2] if node.op_type == "Clip" else node.inputs:
        if value is None or value.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
            continue
        if value.const_value is not None and value.const_value.size > _FEW:
            continue
        constant = _numbers(value)
        if constant is not None and 0 < constant.size <= _FEW and np.all((constant > 0) & (constant <= _ROUNDS_TO_ZERO)):
            return float(constant.max())
    return None


def _divides(value: ir.Value, depth: int) -> bool:
    """Whether something is divided by the value, or by what is made of it alone."""
    for node, index in value.uses():
        if (
            node.op_type == "Reciprocal"
            or (node.op_type == "Div" and index == 1)
            or (node.op_type == "Pow" and index == 0 and _is_negative(node))
        ):
            return True
        if node.op_type in _PASSES and index == 0 and depth < _DEPTH and _divides(node.outputs[0], depth + 1):
            return True
    return False


def _is_negative(power: ir.Node) -> bool:
    exponent = _numbers(power.inputs[1])
    return exponent is not None and bool(np.all(exponent < 0))
