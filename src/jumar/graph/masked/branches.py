"""An If that asks whether any place is there, as exporters write it before operators that fail on nothing."""

from __future__ import annotations

import math

import onnx_ir as ir

from ..shapes import static_shape
from ..simplify import Journal
from ..simplify.base import Edit
from ..simplify.inline import inline_body
from .base import Emptiness, Held, Packed

_SAME_LENGTH = frozenset(("Gather", "Squeeze", "Slice", "Cast", "Reshape", "Identity"))
"""Operators that may stand between the rows of a NonMaxSuppression and one column of them."""


def taken(node: ir.Node, condition: Held | None) -> ir.Graph | None:
    """The branch for tensors with places, if the other one only gives empty tensors."""
    if not isinstance(condition, Emptiness):
        return None
    then, other = (node.attributes[name].as_graph() for name in ("then_branch", "else_branch"))
    empty, full = (then, other) if condition.true_when_empty else (other, then)
    shapes = [static_shape(value) for value in empty.outputs]
    return full if all(shape is not None and math.prod(shape) == 0 for shape in shapes) else None


def inlined(model: ir.Model, node: ir.Node, branch: ir.Graph) -> list[ir.Value]:
    """The branch's nodes before the If; its outputs there."""
    return inline_body(Edit(model, Journal(), 0), node, branch, [])


def empty_with(item: Held, condition: Held) -> bool:
    """Whether a tensor has no element where the mask of the condition has no place."""
    if not isinstance(item, Packed) or not isinstance(condition, Emptiness):
        return False
    if item.axis is not None:
        return item.mask is condition.mask
    if item.points is not condition.mask:
        return False
    maker = item.dense.producer()
    while maker is not None and maker.op_type in _SAME_LENGTH and maker.inputs[0] is not None:
        if (
            len(maker.inputs) > 1
            and maker.op_type == "Gather"
            and int(maker.attributes["axis"].as_int() if "axis" in maker.attributes else 0) != 1
        ):
            return False
        maker = maker.inputs[0].producer()
    return maker is not None and maker.op_type == "NonMaxSuppression"
