"""Nodes whose output always equals their input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from ..edit import can_take_over
from ..symbolic import same_as_input
from .base import Action, Edit, given, integers, known_shape, simplification, small_constant, static_shape


def _is_inference_dropout(node: ir.Node) -> bool:
    """Dropout passes its input through unless training is asked for; a mask that somebody reads keeps the node."""
    if len(node.outputs) > 1 and (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        return False
    if given(node, 2) is None:
        return True
    mode = small_constant(given(node, 2))
    return mode is not None and not bool(mode.reshape(-1)[0])


def _is_same_cast(node: ir.Node) -> bool:
    source = node.inputs[0]
    return (
        source is not None and source.dtype is not None and "to" in node.attributes and source.dtype.value == node.attributes["to"].as_int()
    )


def _is_same_reshape(node: ir.Node) -> bool:
    """Reshape, Expand, Tile, Flatten... to the shape the tensor has already."""
    before, after = static_shape(node.inputs[0]), static_shape(node.outputs[0])
    return before is not None and before == after


def _is_same_transpose(node: ir.Node) -> bool:
    shape = known_shape(node.inputs[0])
    if "perm" in node.attributes:
        permutation = list(node.attributes["perm"].as_ints())
        return permutation == list(range(len(permutation)))
    return shape is not None and len(shape) < 2


def _is_empty_pad(node: ir.Node) -> bool:
    pads = integers(node, "pads", 1)
    return pads is not None and not any(pads)


def _is_whole_slice(node: ir.Node) -> bool:
    """A Slice that keeps every element, in order: same static shape, or from the start to the very end, and no other step than 1."""
    steps = small_constant(given(node, 4))
    if given(node, 4) is not None and (steps is None or bool(np.any(steps.astype(np.int64) != 1))):
        return False
    if _is_same_reshape(node):
        return True
    starts, ends = integers(node, "starts", 1), integers(node, "ends", 2)
    # A dimension cannot be longer than an int32 can count, so such an end keeps everything (exporters write INT32_MAX or INT64_MAX).
    return starts is not None and ends is not None and not any(starts) and all(end >= np.iinfo(np.int32).max for end in ends)


def _is_tile_of_one(node: ir.Node) -> bool:
    repeats = small_constant(given(node, 1)) if len(node.inputs) == 2 else None
    return (repeats is not None and bool(np.all(repeats == 1))) or _is_same_reshape(node)


def _is_expand_of_ones(node: ir.Node) -> bool:
    """Expand to ones of no more dimensions than there are: broadcasting with 1 changes nothing."""
    shape, given_rank = small_constant(given(node, 1)), known_shape(node.inputs[0])
    return _is_same_reshape(node) or (
        shape is not None and given_rank is not None and shape.size <= len(given_rank) and bool(np.all(shape == 1))
    )


def _is_single_input(node: ir.Node) -> bool:
    return len(node.inputs) == 1


_NO_OPS: dict[str, Callable[[ir.Node], bool]] = {
    "Cast": _is_same_cast,
    "Concat": _is_single_input,
    "Dropout": _is_inference_dropout,
    "Expand": _is_expand_of_ones,
    "Flatten": _is_same_reshape,
    "Identity": lambda _node: True,
    "Pad": _is_empty_pad,
    "Reshape": _is_same_reshape,
    "Slice": _is_whole_slice,
    "Squeeze": _is_same_reshape,
    "Sum": _is_single_input,
    "Max": _is_single_input,
    "Min": _is_single_input,
    "Mean": _is_single_input,
    "Tile": _is_tile_of_one,
    "Transpose": _is_same_transpose,
    "Unsqueeze": _is_same_reshape,
}


@simplification("no-op", *_NO_OPS, "Where")
def _no_op(node: ir.Node, edit: Edit) -> Action | None:
    """Nodes whose first output always equals an input, by their form or by the shapes."""
    test = _NO_OPS.get(node.op_type)
    source = node.inputs[0] if test is not None and node.inputs and node.inputs[0] is not None and test(node) else None
    source = source or same_as_input(node, edit.known)
    if source is None or not can_take_over(node.outputs[0], source):
        return None
    return lambda: edit.pass_through(node, source)
