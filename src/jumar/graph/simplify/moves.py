"""Nodes that only move elements: two in a row become one, or none. All exact."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ..edit import can_take_over
from ..symbolic import constant_target, reshape_target
from .base import (
    Action,
    Edit,
    given,
    integer,
    integers,
    known_shape,
    only_reader,
    producer,
    rank,
    simplification,
    small_constant,
    static_shape,
)

_Bounds = tuple[int, int, int]
_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


@simplification("merge-transposes", "Transpose")
def _transposes(node: ir.Node, edit: Edit) -> Action | None:
    inner = producer(given(node, 0), "Transpose")
    if inner is None or "perm" not in inner.attributes or "perm" not in node.attributes or inner.inputs[0] is None:
        return None
    first, second = (list(item.attributes["perm"].as_ints()) for item in (inner, node))
    if len(first) != len(second):
        return None
    combined, source = [first[axis] for axis in second], inner.inputs[0]
    if combined == list(range(len(combined))):
        return (lambda: edit.pass_through(node, source)) if can_take_over(node.outputs[0], source) else None
    if not only_reader(inner.outputs[0]):
        return None

    def act() -> None:
        node.attributes["perm"] = ir.AttrInt64s("perm", combined)
        node.replace_input_with(0, source)
        edit.discard(inner)

    return act


def _keeps_order(node: ir.Node, edit: Edit) -> bool:
    """Whether the elements keep their order: a Reshape and the like, or a Transpose that only moves dimensions of size 1."""
    if node.op_type != "Transpose":
        return True
    shape = edit.known.shape(node.inputs[0])
    if shape is None or "perm" not in node.attributes:
        return False
    moved = [axis for axis in node.attributes["perm"].as_ints() if shape[axis] != 1]
    return moved == sorted(moved)


@simplification("merge-reshapes", *_RESHAPES, "Transpose")
def _reshapes(node: ir.Node, edit: Edit) -> Action | None:
    """Reshape of a Reshape (or Flatten, Squeeze, Unsqueeze): the elements keep their order, so that the first one does not matter."""
    inner = producer(given(node, 0), *_RESHAPES, "Transpose")
    source = None if inner is None else inner.inputs[0]
    if inner is None or source is None or edit.opset < 5 or not (_keeps_order(inner, edit) and _keeps_order(node, edit)):
        return None
    before, after = edit.known.shape(source), edit.known.shape(node.outputs[0])
    if ((before is not None and before == after) or _undoes(node, inner)) and can_take_over(node.outputs[0], source):
        return lambda: edit.pass_through(node, source)
    target = _independent_target(node) or (None if after is None else constant_target(before, after))
    if target is None or not only_reader(inner.outputs[0]):
        return None

    def act() -> None:
        builder = edit.at(node, "merge-reshapes")
        new = builder.op("Reshape", source, builder.const(target, np.int64, "shape"))
        _takes_place(node, new, edit)

    return act


def _undoes(node: ir.Node, inner: ir.Node) -> bool:
    """Squeeze and Unsqueeze of the same axes, either way round: both name axes of the longer shape."""
    if {node.op_type, inner.op_type} != {"Squeeze", "Unsqueeze"}:
        return False
    axes = [integers(item, "axes", 1) for item in (node, inner)]
    length = rank(inner.inputs[0] if inner.op_type == "Squeeze" else inner.outputs[0])
    if axes[0] is None or axes[1] is None or length is None:
        return False
    return sorted(axis % length for axis in axes[0]) == sorted(axis % length for axis in axes[1])


def _independent_target(node: ir.Node) -> list[int] | None:
    """The constant target of a Reshape if it copies no size of its input (no 0)."""
    target = small_constant(given(node, 1)) if node.op_type == "Reshape" else None
    return None if target is None or 0 in target else [int(size) for size in target.reshape(-1)]


def _takes_place(node: ir.Node, new: ir.Value, edit: Edit) -> None:
    old = node.outputs[0]
    new.shape, new.type = old.shape, old.type
    edit.pass_through(node, new)


@simplification("computed-target", "Reshape")
def _computed_target(node: ir.Node, edit: Edit) -> Action | None:
    """A computed target whose result is known, but for sizes that are copied and one more, needs no computation: 0 copies, -1 follows."""
    computed = given(node, 1)
    if computed is None or small_constant(computed) is not None or integer(node, "allowzero", 0):
        return None
    target = reshape_target(node, edit.known)
    if target is None:
        return None

    def act() -> None:
        node.replace_input_with(1, edit.at(node, "computed-target").const(target, np.int64, "shape"))
        maker = computed.producer()
        if maker is not None:
            edit.discard(maker)

    return act


@simplification("merge-concats", "Concat")
def _concats(node: ir.Node, edit: Edit) -> Action | None:
    """A Concat within a Concat along the same axis gives its parts to it, in their place."""
    axis = _axis(node)
    inner = [producer(value, "Concat") for value in node.inputs]
    mergeable = [item is not None and _axis(item) == axis and only_reader(item.outputs[0]) for item in inner]
    if not any(mergeable):
        return None

    def act() -> None:
        parts: list[ir.Value | None] = []
        for value, item, merge in zip(node.inputs, inner, mergeable, strict=True):
            parts += list(item.inputs) if item is not None and merge else [value]
        node.resize_inputs(len(parts))
        for index, value in enumerate(parts):
            node.replace_input_with(index, value)
        for item, merge in zip(inner, mergeable, strict=True):
            if item is not None and merge:
                edit.discard(item)

    return act


def _axis(node: ir.Node) -> tuple[int, bool]:
    """The axis of a Concat, counted from the front where the rank is known."""
    axis, length = integer(node, "axis", 1), rank(node.outputs[0])
    return (axis, False) if length is None else (axis % length if length else 0, True)


@simplification("rejoined-split", "Concat")
def _rejoined(node: ir.Node, edit: Edit) -> Action | None:
    """A Concat of all parts of a Split, in order, along the same axis."""
    split = producer(given(node, 0), "Split")
    if split is None or list(node.inputs) != list(split.outputs) or split.inputs[0] is None:
        return None
    length, source = rank(split.inputs[0]), split.inputs[0]
    if length is None or (integer(split, "axis", 0) - integer(node, "axis", 1)) % length or not can_take_over(node.outputs[0], source):
        return None
    return lambda: edit.pass_through(node, source)


# Every value of the first type is one of the second.
_FLOATS = {ir.DataType.FLOAT16: 11, ir.DataType.BFLOAT16: 8, ir.DataType.FLOAT: 24, ir.DataType.DOUBLE: 53}  # bits of the significand


def _keeps_values(source: ir.DataType, target: ir.DataType) -> bool:
    if source == target or source == ir.DataType.BOOL:
        return True
    if source.is_integer() and target.is_integer():
        signed = [dtype.is_signed() for dtype in (source, target)]
        bits = [dtype.bitwidth for dtype in (source, target)]
        return (bits[0] <= bits[1] and signed[0] == signed[1]) or (not signed[0] and signed[1] and bits[0] < bits[1])
    if source.is_integer() and target in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return source.bitwidth - source.is_signed() <= _FLOATS[target]
    return (source, target) in (
        (ir.DataType.FLOAT16, ir.DataType.FLOAT),
        (ir.DataType.FLOAT16, ir.DataType.DOUBLE),
        (ir.DataType.BFLOAT16, ir.DataType.FLOAT),
        (ir.DataType.BFLOAT16, ir.DataType.DOUBLE),
        (ir.DataType.FLOAT, ir.DataType.DOUBLE),
    )


@simplification("merge-casts", "Cast")
def _casts(node: ir.Node, edit: Edit) -> Action | None:
    """The first of two Casts goes if it keeps every value; one that truncates or rounds stays.

    What a float out of range becomes as an integer is not defined and differs between kernels, so that a float is not cast directly to an
    integer where it was not before.
    """
    inner = producer(given(node, 0), "Cast")
    source = None if inner is None else inner.inputs[0]
    if inner is None or source is None or source.dtype is None or "to" not in node.attributes or "to" not in inner.attributes:
        return None
    middle, last = ir.DataType(inner.attributes["to"].as_int()), ir.DataType(node.attributes["to"].as_int())
    if not _keeps_values(source.dtype, middle) or (source.dtype.is_floating_point() and not last.is_floating_point()):
        return None
    if ir.DataType.STRING in (source.dtype, middle, last):
        return None

    def act() -> None:
        node.replace_input_with(0, source)
        edit.discard(inner)

    return act


@simplification("merge-slices", "Slice")
def _slices(node: ir.Node, edit: Edit) -> Action | None:
    """A Slice of a Slice: along other axes both apply; along the same axis the steps multiply.

    The first one must go in the end: all that read it are Slices that can do without it.
    """
    inner = producer(given(node, 0), "Slice")
    source = None if inner is None else inner.inputs[0]
    combined = None if inner is None else _combined(inner, node)
    if inner is None or source is None or combined is None or edit.opset < 10 or inner.outputs[0].is_graph_output():
        return None
    readers = [use.node for use in inner.outputs[0].uses()]
    if not all(reader is node or (producer(given(reader, 0), "Slice") is inner and _combined(inner, reader)) for reader in readers):
        return None

    def act() -> None:
        builder = edit.at(node, "merge-slices")
        axes = sorted(combined)
        columns = {
            "starts": [combined[axis][0] for axis in axes],
            "ends": [combined[axis][1] for axis in axes],
            "axes": axes,
            "steps": [combined[axis][2] for axis in axes],
        }
        new = builder.op("Slice", source, *(builder.const(values, np.int64, name) for name, values in columns.items()))
        _takes_place(node, new, edit)

    return act


def _combined(inner: ir.Node, outer: ir.Node) -> dict[int, _Bounds] | None:
    """Start, end and step by axis of one Slice that does what two do in a row; None where that is not known."""
    source = inner.inputs[0]
    shape = known_shape(source)
    first = None if source is None or outer.op_type != "Slice" else _ranges(inner, source)
    second = _ranges(outer, inner.outputs[0]) if first is not None else None
    if first is None or second is None or shape is None:
        return None
    combined = dict(first)
    for axis, bounds in second.items():
        size = shape[axis]
        if axis not in combined:
            combined[axis] = bounds
        elif isinstance(size, int):
            combined[axis] = _bounds(range(size)[slice(*combined[axis])][slice(*bounds)])
        else:
            return None
    return combined


def _bounds(items: range) -> _Bounds:
    """Start, end and step of a Slice that takes these positions; INT64_MIN stands for the end before position 0 going backwards."""
    stop = items.stop if items.stop >= 0 else np.iinfo(np.int64).min
    return (items.start, stop, items.step) if len(items) else (0, 0, 1)


def _ranges(node: ir.Node, source: ir.Value) -> dict[int, _Bounds] | None:
    """Start, end and step by axis; None where something is computed or an axis is named twice.

    Python's slices and ONNX's agree on negative numbers and on numbers beyond the ends.
    """
    starts, ends, length = integers(node, "starts", 1), integers(node, "ends", 2), rank(source)
    if starts is None or ends is None or length is None:
        return None
    axes = integers(node, "axes", 3) if given(node, 3) is not None else list(range(len(starts)))
    steps = integers(node, "steps", 4) if given(node, 4) is not None else [1] * len(starts)
    if axes is None or steps is None or len({axis % length for axis in axes}) < len(starts):
        return None
    return {axis % length: (start, end, step) for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)}


_BROADCASTING = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Less",
    "Greater",
    "LessOrEqual",
    "GreaterOrEqual",
    "Where",
)


@simplification("expanded-operand", *_BROADCASTING, "Max", "Min", "Mod")
def _expanded(node: ir.Node, edit: Edit) -> Action | None:
    """An Expand before an operator that broadcasts by itself, where the result has the same shape without it."""
    if node.op_type in ("Max", "Min") and edit.opset < 8:
        return None
    for index, value in enumerate(node.inputs):
        expand = producer(value, "Expand")
        source = None if expand is None else expand.inputs[0]
        if value is None or source is None or expand is None:
            continue
        shapes = [static_shape(source if position == index else item) for position, item in enumerate(node.inputs)]
        known = [shape for shape in shapes if shape is not None]
        if len(known) < len(shapes) or not _broadcasts_to(known, static_shape(node.outputs[0])):
            continue

        def act(index: int = index, source: ir.Value = source, expand: ir.Node = expand) -> None:
            node.replace_input_with(index, source)
            edit.discard(expand)

        return act
    return None


def _broadcasts_to(shapes: list[tuple[int, ...]], wanted: tuple[int, ...] | None) -> bool:
    try:
        return wanted is not None and np.broadcast_shapes(*shapes) == wanted and math.prod(wanted) > 0
    except ValueError:
        return False
