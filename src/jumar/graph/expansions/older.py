"""Operators written out with those that are older than they: the steps down between opsets, at whatever opset the model has."""

from __future__ import annotations

from ...text import say
from ..opset import lower  # noqa: F401 - it registers the steps down
from ..opset.schemas import find_schema
from ..opset.step import LOWER, Adapter, Step
from .base import Expansion, expands

# Written out by an expansion of its own, or a step down that relies on those of the versions between.
_ELSEWHERE = frozenset(
    (
        *("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "ConstantOfShape", "DFT", "DequantizeLinear"),
        *("GatherElements", "GatherND", "IsInf", "IsNaN", "MatMulInteger", "Mod", "QuantizeLinear", "Resize", "ScatterElements"),
    )
)


def _expansion(adapter: Adapter) -> Expansion:
    def expand(step: Step) -> None:
        adapter(step)
        if step.node.graph is not None:
            step.refuse(say("it has no older form here", "此处没有更早的形式"))

    return expand


for (_op_type, _version), _adapter in LOWER.items():
    if find_schema(_op_type, _version - 1) is None and _op_type not in _ELSEWHERE:
        expands(_op_type)(_expansion(_adapter))
