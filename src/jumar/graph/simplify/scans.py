"""Scan over a sequence of known length, unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ...text import Text, say
from ..edit import Builder
from .base import Action, Edit, describe, given, integer, known_shape, rank, simplification, small_constant
from .inline import inline_body, lift_weights, replace_outputs
from .loops import stack, why_not_unrolled

# Before, Scan had a batch dimension and sequence lengths.
_FIRST_OPSET = 9


@simplification("unrolled-scan", "Scan")
def _unroll_scan(node: ir.Node, edit: Edit) -> Action | None:
    """A known number of slices becomes that many copies of the body."""
    plan = _plan(node, edit)
    if isinstance(plan, Text):
        return None
    if edit.opset < _FIRST_OPSET:
        return lambda: _unroll_batched(node, edit, plan.length, plan.batch)
    return lambda: _unroll(node, edit, plan)


@dataclass(frozen=True)
class _Plan:
    """What is scanned: ``length`` slices along axes of the inputs, into axes of the results; in version 8 for each of ``batch`` sequences."""

    length: int
    in_axes: tuple[int, ...] = ()
    out_axes: tuple[int, ...] = ()
    batch: int = 1


def why_not_scanned(node: ir.Node, edit: Edit) -> Text | None:
    """Why a Scan cannot be unrolled; None if it can."""
    plan = _plan(node, edit)
    return plan if isinstance(plan, Text) else None


def _plan(node: ir.Node, edit: Edit) -> _Plan | Text:
    batched = edit.opset < _FIRST_OPSET
    body = node.attributes["body"].as_graph()
    scanned = integer(node, "num_scan_inputs", 0)
    inputs = list(node.inputs[1:] if batched else node.inputs)
    states, results = len(inputs) - scanned, len(body.outputs) - (len(inputs) - scanned)
    if not scanned or states < 0 or results < 0 or len(body.inputs) != len(inputs) or any(value is None for value in inputs):
        return say("its inputs are not those of its body", "其输入与循环体不符")
    if batched:
        in_axes: list[int] | None = [1] * scanned
        out_axes: list[int] | None = [1] * results
    else:
        in_axes = _axes(node, "scan_input_axes", scanned, [rank(value) for value in inputs[states:]])
        out_axes = _axes(node, "scan_output_axes", results, [_one_more(value) for value in body.outputs[states:]])
    if in_axes is None or out_axes is None:
        return say("an axis is counted from the end of a tensor of unknown rank", "有维度从秩未知的张量末尾数起")
    length = _size(inputs[states:], in_axes)
    batch = _size(inputs, [0] * len(inputs)) if batched else 1
    # Nothing to scan stays: ONNX Runtime refuses it.
    if not length or not batch:
        return say("the length of what it scans is not known; give it with --shape", "其扫描的长度未知；请用 --shape 指定")
    if batched and not _all_whole(node, length):
        return say("its sequences have lengths of their own", "各序列的长度不同")
    reason = why_not_unrolled(edit, body, length * batch, results + scanned)
    return _Plan(length, tuple(in_axes), tuple(out_axes), batch) if reason is None else reason


def _all_whole(node: ir.Node, length: int) -> bool:
    """Whether every sequence has all slices (what fills the rest is not defined)."""
    lengths = given(node, 0)
    if lengths is None:
        return True
    constant = small_constant(lengths)
    return constant is not None and bool(np.all(constant == length))


def _unroll(node: ir.Node, edit: Edit, plan: _Plan) -> None:
    builder = edit.at(node, "unrolled-scan")
    body = node.attributes["body"].as_graph()
    length, in_axes, out_axes = plan.length, plan.in_axes, plan.out_axes
    count = len(node.inputs) - len(in_axes)
    carried = [value for value in node.inputs[:count] if value is not None]
    scanned = [value for value in node.inputs[count:] if value is not None]
    collected: list[list[ir.Value]] = [[] for _ in out_axes]
    backwards_in, backwards_out = _directions(node, "scan_input_directions", in_axes), _directions(node, "scan_output_directions", out_axes)
    if length > 1:
        lift_weights(edit, node, body)
    for trip in range(length):
        piece = body if trip == length - 1 else body.clone(allow_outer_scope_values=True)
        slices = [
            _slice(builder, value, length - 1 - trip if backwards else trip, axis)
            for value, axis, backwards in zip(scanned, in_axes, backwards_in, strict=True)
        ]
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


def _unroll_batched(node: ir.Node, edit: Edit, length: int, batch: int) -> None:
    """Scan of version 8: every tensor has a batch dimension before the sequence's, and states have it too."""
    builder = edit.at(node, "unrolled-scan")
    body = node.attributes["body"].as_graph()
    inputs = [value for value in node.inputs[1:] if value is not None]
    count = len(inputs) - integer(node, "num_scan_inputs", 0)
    backwards = _directions(node, "directions", inputs[count:])
    collected: list[list[ir.Value]] = [[] for _ in node.outputs]
    lift_weights(edit, node, body)
    for item in range(batch):
        carried = [_slice(builder, value, item, 0) for value in inputs[:count]]
        sequences = [_slice(builder, value, item, 0) for value in inputs[count:]]
        results: list[list[ir.Value]] = [[] for _ in node.outputs[count:]]
        for trip in range(length):
            piece = body if (item, trip) == (batch - 1, length - 1) else body.clone(allow_outer_scope_values=True)
            slices = [
                _slice(builder, value, length - 1 - trip if reverse else trip, 0)
                for value, reverse in zip(sequences, backwards, strict=True)
            ]
            outputs = inline_body(edit, node, piece, [*carried, *slices], f"_{item}_{trip}")
            carried = outputs[:count]
            for values, value in zip(results, outputs[count:], strict=True):
                values.append(value)
        for values, value in zip(collected, carried, strict=False):
            values.append(value)
        for values, pieces, output in zip(collected[count:], results, node.outputs[count:], strict=True):
            if output.uses() or output.is_graph_output():
                values.append(stack(builder, edit, pieces, 0, output.dtype))
    finals = [
        stack(builder, edit, values, 0, output.dtype) if output.uses() or output.is_graph_output() else output
        for values, output in zip(collected, node.outputs, strict=True)
    ]
    replace_outputs(edit, node, finals, "unrolled-scan")


def _slice(builder: Builder, value: ir.Value, place: int, axis: int) -> ir.Value:
    """One slice, without the axis."""
    return describe(builder.op("Gather", value, builder.const(place, np.int64, "place"), axis=axis), _without(value, axis), value.dtype)


def _directions(node: ir.Node, name: str, axes: Sequence[object]) -> list[bool]:
    """True where a sequence is read or written from its end."""
    return [bool(item) for item in node.attributes[name].as_ints()] if name in node.attributes else [False] * len(axes)


def _one_more(value: ir.Value) -> int | None:
    size = rank(value)
    return None if size is None else size + 1


def _size(values: Sequence[ir.Value | None], axes: Sequence[int]) -> int | None:
    """The size that all tensors share along these axes, as far as one of them shows it."""
    sizes = set()
    for value, axis in zip(values, axes, strict=True):
        shape = known_shape(value)
        if shape is not None and axis < len(shape) and isinstance(shape[axis], int):
            sizes.add(shape[axis])
    size = sizes.pop() if len(sizes) == 1 else None
    return size if isinstance(size, int) else None


def _without(value: ir.Value, axis: int) -> list[int | str | None] | None:
    shape = known_shape(value)
    return None if shape is None else [dim for index, dim in enumerate(shape) if index != axis]


__all__ = ["why_not_scanned"]
