"""Sequences and optionals whose content is known: their elements are read directly."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import Text, say
from .base import (
    Action,
    Edit,
    describe,
    given,
    integer,
    known_shape,
    node_place,
    producer,
    rank,
    simplification,
    small_constant,
    static_shape,
)
from .known import known_scalar
from .loops import stack, unsqueeze

_SPLIT_SIZES_INPUT_OPSET = 13
_MAX_PIECES = 256
# Readers that need a sequence no more once its elements are known, and makers of other sequences from it.
_READERS = ("SequenceAt", "SequenceLength", "ConcatFromSequence", "SequenceInsert", "SequenceErase", "SequenceMap", "Identity")
SEQUENCE_OPS = frozenset(
    """SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence ConcatFromSequence
    Optional OptionalGetElement OptionalHasElement""".split()  # noqa: SIM905
)


def elements(value: ir.Value | None) -> list[ir.Value] | None:
    """The tensors a sequence holds, in order; None where they are not known."""
    changes: list[ir.Node] = []
    while True:
        node = producer(value, "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "Identity")
        if node is None:
            return None
        if node.op_type in ("SequenceConstruct", "SequenceEmpty"):
            break
        changes.append(node)
        value = given(node, 0)
    items = [item for item in node.inputs if item is not None]
    for change in reversed(changes):
        if change.op_type == "SequenceInsert" and not _insert(items, change):
            return None
        if change.op_type == "SequenceErase" and not _erase(items, change):
            return None
    return items


def _insert(items: list[ir.Value], node: ir.Node) -> bool:
    item, place = given(node, 1), len(items) if given(node, 2) is None else known_scalar(given(node, 2))
    if item is None or place is None or not -len(items) <= place <= len(items):
        return False
    items.insert(place, item)
    return True


def _erase(items: list[ir.Value], node: ir.Node) -> bool:
    place = -1 if given(node, 1) is None else known_scalar(given(node, 1))
    if place is None or not -len(items) <= place < len(items):
        return False
    del items[place]
    return True


@simplification("known-sequence", "SequenceAt")
def _element(node: ir.Node, edit: Edit) -> Action | None:
    place, items = known_scalar(given(node, 1)), elements(given(node, 0))
    if place is None or items is None or not -len(items) <= place < len(items):
        return None
    return lambda: edit.pass_through(node, items[place])


@simplification("chosen-element", "SequenceAt")
def _chosen(node: ir.Node, edit: Edit) -> Action | None:
    """Which element is read is known at run time only: where all have one shape, it is a slice of all of them."""
    place, items = given(node, 1), elements(given(node, 0))
    if place is None or not items or known_scalar(place) is not None or static_shape(place) != () or len(items) > _MAX_PIECES:
        return None
    shapes, dtypes = {static_shape(item) for item in items}, {item.dtype for item in items}
    if len(shapes) > 1 or None in shapes or len(dtypes) > 1 or ir.DataType.STRING in dtypes:
        return None

    def act() -> None:
        builder = edit.at(node, "chosen-element")
        rows = stack(builder, edit, items, 0, items[0].dtype)
        edit.pass_through(node, describe(builder.op("Gather", rows, place, axis=0), static_shape(items[0]), items[0].dtype))

    return act


@simplification("known-sequence", "SequenceLength")
def _length(node: ir.Node, edit: Edit) -> Action | None:
    items = elements(given(node, 0))
    if items is None:
        return None
    return lambda: edit.pass_through(node, edit.at(node, "known-sequence").const(len(items), np.int64, "length"))


@simplification("known-sequence", "ConcatFromSequence")
def _concat(node: ir.Node, edit: Edit) -> Action | None:
    items = elements(given(node, 0))
    if "axis" not in node.attributes:
        return None
    axis, new_axis = integer(node, "axis", 0), bool(integer(node, "new_axis", 0))
    if not items:
        return None
    if new_axis and axis < 0:
        size = next((size for item in items if (size := rank(item)) is not None), None)
        if size is None:
            return None
        axis += size + 1

    def act() -> None:
        builder = edit.at(node, "known-sequence")
        output = node.outputs[0]
        parts = [describe(unsqueeze(builder, edit, item, axis), None, item.dtype) for item in items] if new_axis else items
        joined = parts[0] if len(parts) == 1 else describe(builder.op("Concat", *parts, axis=axis), output.shape, output.dtype)
        edit.pass_through(node, joined)

    return act


@simplification("joined-split", "ConcatFromSequence")
def _joined_split(node: ir.Node, edit: Edit) -> Action | None:
    """What was split along an axis and is joined along it again."""
    split = producer(given(node, 0), "SplitToSequence")
    source = None if split is None else given(split, 0)
    size = rank(source)
    if split is None or source is None or size is None or "axis" not in node.attributes:
        return None
    dropped = _drops_axis(split)
    if (
        dropped is None
        or dropped != bool(integer(node, "new_axis", 0))
        or integer(split, "axis", 0) % size != integer(node, "axis", 0) % size
    ):
        return None
    return lambda: edit.pass_through(node, source)


@simplification("known-sequence", "SplitToSequence")
def _split(node: ir.Node, edit: Edit) -> Action | None:
    """A Split into a known number of pieces, where all that read the sequence can read the pieces instead."""
    source, shape = given(node, 0), known_shape(given(node, 0))
    output = node.outputs[0]
    if source is None or not shape or output.is_graph_output() or not output.uses():
        return None
    axis = integer(node, "axis", 0) % len(shape)
    sizes, drop = _sizes(node, shape[axis]), _drops_axis(node)
    if (
        sizes is None
        or drop is None
        or not 0 < len(sizes) <= _MAX_PIECES
        or not all(_reads_known(use.node, use.idx) for use in output.uses())
    ):
        return None
    return lambda: _split_into(node, edit, source, axis, sizes, drop)


def _split_into(node: ir.Node, edit: Edit, source: ir.Value, axis: int, sizes: list[int], drop: bool) -> None:
    builder = edit.at(node, "known-sequence")
    shape = list(known_shape(source) or ())
    if len(sizes) == 1:
        pieces = [source]
    elif edit.opset < _SPLIT_SIZES_INPUT_OPSET:
        builder.op("Split", source, outputs=len(sizes), axis=axis, split=sizes)
        pieces = list(builder.made[-1].outputs)
    else:
        builder.op("Split", source, builder.const(sizes, np.int64, "split"), outputs=len(sizes), axis=axis)
        pieces = list(builder.made[-1].outputs)
    if len(sizes) > 1:
        for piece, size in zip(pieces, sizes, strict=True):
            describe(piece, [*shape[:axis], size, *shape[axis + 1 :]], source.dtype)
    if drop:
        pieces = [_squeeze(edit, node, piece, axis, shape) for piece in pieces]
    sequence = builder.op("SequenceConstruct", *pieces)
    sequence.type = node.outputs[0].type
    edit.pass_through(node, sequence)


def _squeeze(edit: Edit, node: ir.Node, value: ir.Value, axis: int, shape: list[int | str | None]) -> ir.Value:
    builder = edit.at(node, "known-sequence")
    if edit.opset < _SPLIT_SIZES_INPUT_OPSET:
        made = builder.op("Squeeze", value, axes=[axis])
    else:
        made = builder.op("Squeeze", value, builder.const([axis], np.int64, "axes"))
    return describe(made, [*shape[:axis], *shape[axis + 1 :]], value.dtype)


def _drops_axis(split: ir.Node) -> bool | None:
    """Whether the pieces lack the axis. ONNX keeps it where lengths are given, ONNX Runtime asks keepdims even then: None."""
    if integer(split, "keepdims", 1):
        return False
    return True if given(split, 1) is None else None


def _sizes(node: ir.Node, size: int | str | None) -> list[int] | None:
    """The lengths of the pieces."""
    if not isinstance(size, int):
        return None
    if given(node, 1) is None:
        return [1] * size if size <= _MAX_PIECES else None
    split = small_constant(given(node, 1))
    if split is None:
        return None
    if split.ndim == 1:
        sizes = [int(item) for item in split]
        return sizes if sum(sizes) == size and all(item >= 0 for item in sizes) else None
    step = int(split.reshape(-1)[0]) if split.size == 1 else 0
    if step <= 0 or size > step * _MAX_PIECES:
        return None
    return [min(step, size - start) for start in range(0, size, step)]


def _reads_known(node: ir.Node, index: int) -> bool:
    """Whether a reader may need the sequence no more once its elements are known."""
    return node.op_type in _READERS and node.domain in ("", "ai.onnx") and (index == 0 or node.op_type == "SequenceMap")


def why_sequence_stands(value: ir.Value | None) -> Text:
    """Why the elements of a sequence are not known."""
    while (node := producer(value, "SequenceInsert", "SequenceErase", "Identity")) is not None:
        value = given(node, 0)
        place = given(node, {"SequenceInsert": 2, "SequenceErase": 1, "Identity": 9}[node.op_type])
        if place is not None and known_scalar(place) is None:
            return say("`{name}`: its place is not known", "`{name}`：其位置未知", name=node_place(node))
    maker = None if value is None else value.producer()
    if maker is None:
        return say("the sequence `{name}` is an input", "序列 `{name}` 是输入", name="?" if value is None else value.name)
    if maker.op_type == "SplitToSequence":
        return say(
            "`{name}`: how many pieces it makes is not known, or more than {limit}",
            "`{name}`：拆分的段数未知或超过 {limit}",
            name=node_place(maker),
            limit=_MAX_PIECES,
        )
    return say("the sequence comes from {op} `{name}`", "该序列来自 {op} `{name}`", op=maker.op_type, name=node_place(maker))


@simplification("known-optional", "OptionalGetElement")
def _optional_element(node: ir.Node, edit: Edit) -> Action | None:
    source = given(node, 0)
    made = producer(source, "Optional")
    inner = given(made, 0) if made is not None else source
    if source is None or inner is None or (made is None and not isinstance(source.type, (ir.TensorType, ir.SequenceType))):
        return None
    return lambda: edit.pass_through(node, inner)


@simplification("known-optional", "OptionalHasElement")
def _optional_has(node: ir.Node, edit: Edit) -> Action | None:
    source = given(node, 0)
    made = producer(source, "Optional")
    if source is None:
        answer = False
    elif made is not None:
        answer = given(made, 0) is not None
    elif isinstance(source.type, (ir.TensorType, ir.SequenceType)):
        answer = True
    else:
        return None
    return lambda: edit.pass_through(node, edit.at(node, "known-optional").const(answer, np.bool_, "has"))


__all__ = ["SEQUENCE_OPS", "elements", "why_sequence_stands"]
