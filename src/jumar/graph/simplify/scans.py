"""Scan over a sequence of known length, unrolled."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .base import Action, Edit, describe, integer, known_shape, rank, simplification
from .inline import inline_body, lift_weights, replace_outputs
from .loops import may_unroll, stack

# Before, Scan had a batch dimension and sequence lengths.
_FIRST_OPSET = 9


@simplification("unrolled-scan", "Scan")
def _unroll_scan(node: ir.Node, edit: Edit) -> Action | None:
    """A known number of slices becomes that many copies of the body."""
    if edit.opset < _FIRST_OPSET or "num_scan_inputs" not in node.attributes or any(value is None for value in node.inputs):
        return None
    body = node.attributes["body"].as_graph()
    scanned = integer(node, "num_scan_inputs", 0)
    states = len(node.inputs) - scanned
    results = len(body.outputs) - states
    in_axes = _axes(node, "scan_input_axes", scanned, [rank(value) for value in node.inputs[states:]])
    out_axes = _axes(node, "scan_output_axes", results, [_one_more(value) for value in body.outputs[states:]])
    if in_axes is None or out_axes is None or not scanned or states < 0 or len(body.inputs) != len(node.inputs):
        return None
    length = _length(node, states, in_axes)
    # Nothing to scan stays: ONNX Runtime refuses it.
    if not length or not may_unroll(edit, body, length, results + scanned):
        return None
    return lambda: _unroll(node, edit, body, length, in_axes, out_axes)


def _unroll(node: ir.Node, edit: Edit, body: ir.Graph, length: int, in_axes: list[int], out_axes: list[int]) -> None:
    builder = edit.at(node, "unrolled-scan")
    count = len(node.inputs) - len(in_axes)
    carried = [value for value in node.inputs[:count] if value is not None]
    scanned = [value for value in node.inputs[count:] if value is not None]
    collected: list[list[ir.Value]] = [[] for _ in out_axes]
    backwards_in, backwards_out = _directions(node, "scan_input_directions", in_axes), _directions(node, "scan_output_directions", out_axes)
    if length > 1:
        lift_weights(edit, node, body)
    for trip in range(length):
        piece = body if trip == length - 1 else body.clone(allow_outer_scope_values=True)
        slices = []
        for value, axis, backwards in zip(scanned, in_axes, backwards_in, strict=True):
            place = builder.const(length - 1 - trip if backwards else trip, np.int64, "place")
            slices.append(describe(builder.op("Gather", value, place, axis=axis), _without(value, axis), value.dtype))
        outputs = inline_body(edit, node, piece, [*carried, *slices], f"_{trip}" if length > 1 else "")
        carried = outputs[:count]
        for values, value, backwards in zip(collected, outputs[count:], backwards_out, strict=True):
            values.insert(0 if backwards else len(values), value)
    finals = list(carried)
    for values, axis, output in zip(collected, out_axes, node.outputs[count:], strict=True):
        read = output.uses() or output.is_graph_output()
        finals.append(stack(builder, edit, values, axis, output.dtype) if read else output)
    replace_outputs(edit, node, finals, "unrolled-scan")


def _axes(node: ir.Node, name: str, count: int, ranks: list[int | None]) -> list[int] | None:
    """One axis for each, counted from the front; None where that needs a rank nobody knows."""
    axes = [int(axis) for axis in node.attributes[name].as_ints()] if name in node.attributes else [0] * count
    if len(axes) != count or len(ranks) != count:
        return None
    found = []
    for axis, size in zip(axes, ranks, strict=True):
        if axis < 0 and size is None:
            return None
        found.append(axis if size is None or axis >= 0 else axis + size)
    return found


def _directions(node: ir.Node, name: str, axes: list[int]) -> list[bool]:
    """True where a sequence is read or written from its end."""
    return [bool(item) for item in node.attributes[name].as_ints()] if name in node.attributes else [False] * len(axes)


def _one_more(value: ir.Value) -> int | None:
    size = rank(value)
    return None if size is None else size + 1


def _length(node: ir.Node, states: int, axes: list[int]) -> int | None:
    """The size that all sequences share, as far as one of them shows it."""
    sizes = set()
    for value, axis in zip(node.inputs[states:], axes, strict=True):
        shape = known_shape(value)
        if shape is not None and axis < len(shape) and isinstance(shape[axis], int):
            sizes.add(shape[axis])
    size = sizes.pop() if len(sizes) == 1 else None
    return size if isinstance(size, int) else None


def _without(value: ir.Value, axis: int) -> list[int | str | None] | None:
    shape = known_shape(value)
    return None if shape is None else [dim for index, dim in enumerate(shape) if index != axis]
