"""A reduction drops the dimensions it reduces by itself."""

from __future__ import annotations

import onnx_ir as ir

from .base import Action, Edit, given, integer, integers, known_shape, only_reader, producer, simplification, static_shape
from .fuse_conv import rebuilt

_REDUCTIONS = (
    *(f"Reduce{name}" for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")),
    "ArgMax",
    "ArgMin",
)


def _reduced_axes(node: ir.Node, dims: int) -> set[int] | None:
    """The axes a reduction works on; None where they are not known, or empty axes mean that nothing is reduced."""
    if node.op_type.startswith("Arg"):
        return {integer(node, "axis", 0) % dims} if dims else None
    axes = integers(node, "axes", 1)
    if axes is None and given(node, 1) is not None:
        return None
    if not axes:
        return None if integer(node, "noop_with_empty_axes", 0) else set(range(dims))
    return {axis % dims for axis in axes} if dims else None


@simplification("reduce-squeeze", "Squeeze", "Reshape", "Flatten")
def _reduce_squeeze(node: ir.Node, edit: Edit) -> Action | None:
    """``keepdims=1`` and then a removal of exactly those dimensions is ``keepdims=0``."""
    value = node.inputs[0]
    reduction = producer(value, *_REDUCTIONS)
    source = None if reduction is None else known_shape(reduction.inputs[0])
    if value is None or reduction is None or source is None or not only_reader(value) or not integer(reduction, "keepdims", 1):
        return None
    axes = _reduced_axes(reduction, len(source))
    if axes is None:
        return None
    removed = integers(node, "axes", 1) if node.op_type == "Squeeze" else None
    if removed is not None and removed:
        same = {axis % len(source) for axis in removed} == axes
    else:
        kept = tuple(dim for axis, dim in enumerate(source) if axis not in axes)
        same = static_shape(node.outputs[0]) == kept
    if not same:
        return None
    return lambda: rebuilt(reduction, node, list(reduction.inputs), "reduce-squeeze", edit, keepdims=0)
