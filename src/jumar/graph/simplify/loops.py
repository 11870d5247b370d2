"""Loop: what need not be carried round, and loops whose trips are known, unrolled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import onnx_ir as ir

from ...text import Text, say
from ..edit import Builder
from ..walk import weight_bytes
from .base import Action, Array, Edit, bodies, describe, given, known_shape, read_values, simplification, static_shape
from .control import made_by
from .inline import inline_body, inner_graphs, lift_weights, rebuild, replace_outputs
from .known import known_scalar, known_value

UNROLL_LIMIT = 1000
"""Nodes that unrolling one loop may make."""

_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
_AXES_INPUT_OPSET = 13


def _body(node: ir.Node) -> ir.Graph:
    return node.attributes["body"].as_graph()


@simplification("unused-loop-value", "Loop")
def _unused_values(node: ir.Node, _edit: Edit) -> Action | None:
    """Carried tensors and results that nothing reads, inside or outside, are not computed."""
    body = _body(node)
    carried = len(body.inputs) - 2
    read = [bool(value.uses()) or value.is_graph_output() for value in node.outputs]
    if not any(read):
        return None
    kept = _live(body, read)
    if all(kept):
        return None
    places = [index for index, keep in enumerate(kept) if keep]

    def act() -> None:
        body.outputs[:] = [body.outputs[0], *(body.outputs[1 + index] for index in places)]
        states = [index for index in places if index < carried]
        rebuild(node, [*_leading(node), *(node.inputs[2 + index] for index in states)], places)
        gone = [body.inputs[2 + index] for index in range(carried) if not kept[index]]
        # What made the carried tensors reads them still.
        _remove_unread(body)
        body.inputs[:] = [value for value in body.inputs if value not in gone]

    return act


def _leading(node: ir.Node) -> tuple[ir.Value | None, ir.Value | None]:
    """The trip count and the condition."""
    return given(node, 0), given(node, 1)


def _live(body: ir.Graph, read: list[bool]) -> list[bool]:
    """Which outputs (after the condition) are needed: read outside, or carried to what is needed."""
    kept = list(read)
    inputs = {value: index for index, value in enumerate(body.inputs[2:])}
    seen: set[ir.Value] = set()
    waiting = [body.outputs[0], *(value for value, keep in zip(body.outputs[1:], kept, strict=True) if keep)]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        index = inputs.get(value)
        if index is not None:
            kept[index] = True
            waiting.append(body.outputs[1 + index])
        maker = value.producer()
        if maker is not None and maker.graph is body:
            waiting += read_values(maker)
    # A carried tensor that is read outside needs its input too: without a trip that is its value.
    return kept


def _remove_unread(body: ir.Graph) -> None:
    for node in reversed(list(body)):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            _detach(node)
            body.remove(node)


def _detach(node: ir.Node) -> None:
    for inner in chain((node,), (inner for graph in bodies(node) for inner in _nodes(graph))):
        for index in range(len(inner.inputs)):
            inner.replace_input_with(index, None)


def _nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    return chain(graph, *inner_graphs(graph))


@simplification("loop-invariant", "Loop")
def _invariant_values(node: ir.Node, edit: Edit) -> Action | None:
    """A carried tensor that every trip passes on unchanged is read from outside."""
    body = _body(node)
    carried = len(body.inputs) - 2
    same = [index for index in range(carried) if made_by(body.outputs[1 + index]) is body.inputs[2 + index]]
    if not same or any(node.inputs[2 + index] is None for index in same):
        return None

    def act() -> None:
        builder = edit.at(node, "loop-invariant")
        places = [index for index in range(len(node.outputs)) if index not in same]
        outputs = list(body.outputs)
        body.outputs.clear()
        for index in same:
            initial = node.inputs[2 + index]
            if initial is not None:
                body.inputs[2 + index].replace_all_uses_with(initial)
                builder.replace(node.outputs[index], initial)
                outputs = [_local_copy(body, edit, value, body.inputs[2 + index], initial) for value in outputs]
        if not places:
            edit.discard(node)
            return
        body.outputs.extend([outputs[0], *(outputs[1 + index] for index in places)])
        body.inputs[:] = [value for index, value in enumerate(body.inputs) if index - 2 not in same]
        rebuild(node, [*_leading(node), *(node.inputs[2 + index] for index in range(carried) if index not in same)], places)

    return act


def _local_copy(body: ir.Graph, edit: Edit, output: ir.Value, old: ir.Value, new: ir.Value) -> ir.Value:
    """A body cannot return a tensor from outside; an Identity in it can."""
    if output is not old:
        return output
    name = f"{old.name or 'value'}__copy"
    while name in edit.names:
        name += "_"
    edit.names.add(name)
    copy = ir.node("Identity", [new], outputs=[ir.Value(name=name, type=new.type, shape=new.shape)], name=name)
    body.append(copy)
    return copy.outputs[0]


@simplification("unrolled-loop", "Loop")
def _unroll_loop(node: ir.Node, edit: Edit) -> Action | None:
    """A known number of trips becomes that many copies of the body."""
    body = _body(node)
    trips = known_trips(node)
    if trips is None or why_loop_stands(node, edit) is not None:
        return None
    stacked = body.outputs[len(body.inputs) - 1 :]
    empty = [_empty(value) for value in stacked] if trips == 0 else []
    return lambda: _unroll(node, edit, body, trips, empty)


def why_loop_stands(node: ir.Node, edit: Edit) -> Text | None:
    """Why a Loop of a known number of trips cannot be unrolled; None if it can, or if the number is not known."""
    body, trips = _body(node), known_trips(node)
    stacked = body.outputs[len(body.inputs) - 1 :]
    if trips is None:
        return None
    if trips == 0:
        outputs = node.outputs[len(node.outputs) - len(stacked) :]
        if any(is_read(output) and _empty(value) is None for output, value in zip(outputs, stacked, strict=True)):
            return say("it never runs, and the shape of what it stacks is not known", "它从不执行，且其堆叠结果的形状未知")
    return why_not_unrolled(edit, body, trips, len(stacked))


def is_read(value: ir.Value) -> bool:
    """Whether something reads a tensor, or it is an output of its graph."""
    return bool(value.uses()) or value.is_graph_output()


def _unroll(node: ir.Node, edit: Edit, body: ir.Graph, trips: int, empty: list[Array | None]) -> None:
    builder = edit.at(node, "unrolled-loop")
    carried = len(body.inputs) - 2
    states = [value for value in node.inputs[2:] if value is not None]
    collected: list[list[ir.Value]] = [[] for _ in body.outputs[1 + carried :]]
    counter, condition = body.inputs[:2]
    if trips > 1:
        lift_weights(edit, node, body)
    for trip in range(trips):
        piece = body if trip == trips - 1 else body.clone(allow_outer_scope_values=True)
        number = builder.const(like_input(counter, trip), np.int64, "trip") if is_read(counter) else None
        goes_on = builder.const(like_input(condition, True), np.bool_, "condition") if is_read(condition) else None
        outputs = inline_body(edit, node, piece, [number, goes_on, *states], f"_{trip}" if trips > 1 else "")[1:]
        states = outputs[:carried]
        for values, value in zip(collected, outputs[carried:], strict=True):
            values.append(value)
    finals = list(states)
    for index, values in enumerate(collected):
        output = node.outputs[carried + index]
        if not is_read(output):
            finals.append(output)
        elif values:
            finals.append(stack(builder, edit, values, 0, output.dtype))
        else:
            finals.append(builder.const(empty[index]))
    replace_outputs(edit, node, finals, "unrolled-loop")


def stack(builder: Builder, edit: Edit, values: list[ir.Value], axis: int, dtype: ir.DataType | None) -> ir.Value:
    """The tensors as slices of one along a new axis."""
    slices = [describe(unsqueeze(builder, edit, value, axis), None, dtype) for value in values]
    return slices[0] if len(slices) == 1 else describe(builder.op("Concat", *slices, axis=axis), None, dtype)


def unsqueeze(builder: Builder, edit: Edit, value: ir.Value, axis: int) -> ir.Value:
    """A new dimension of size 1."""
    if edit.opset < _AXES_INPUT_OPSET:
        return builder.op("Unsqueeze", value, axes=[axis])
    return builder.op("Unsqueeze", value, builder.const([axis], np.int64, "axes"))


def like_input(value: ir.Value, content: int) -> Array:
    """A scalar, or a tensor of one element where the body declares its input so."""
    return np.full([1] if known_shape(value) in ((1,), (None,)) else [], content)


def _empty(value: ir.Value) -> Array | None:
    """What a loop without trips stacks; None where its shape is not known."""
    shape = static_shape(value)
    if shape is None or value.dtype is None or value.dtype == ir.DataType.STRING:
        return None
    return np.zeros((0, *shape), value.dtype.numpy())


def why_not_unrolled(edit: Edit, body: ir.Graph, trips: int, results: int) -> Text | None:
    """What speaks against so many copies of a body; None if nothing does. ``results``: nodes of each copy besides."""
    if trips <= 1:
        return None
    nodes, held = 0, 0
    for graph in (body, *inner_graphs(body)):
        for item in graph:
            nodes += item.op_type != "Identity"
            if item.op_type in _RANDOM:  # a seed starts over in every copy, a loop goes on
                return say("it draws random numbers ({op})", "它产生随机数（{op}）", op=item.op_type)
            held += sum(
                weight_bytes(attribute.as_tensor()) for attribute in item.attributes.values() if attribute.type == ir.AttributeType.TENSOR
            )
        held += sum(weight_bytes(value.const_value) for value in _kept_weights(graph))
    if trips * (nodes + results) > UNROLL_LIMIT:
        return say(
            "unrolled it has {count} nodes; {limit} are allowed", "展开后有 {count} 个节点，上限为 {limit}", count=trips * (nodes + results),
            limit=UNROLL_LIMIT,
        )  # fmt: skip
    if (trips - 1) * held > edit.fold_limit:
        return say("each copy repeats {count} bytes of weights", "每个副本重复 {count} 字节的权重", count=held)
    return None


def _kept_weights(graph: ir.Graph) -> Iterable[ir.Value]:
    """Weights that are outputs of their body cannot be shared by its copies."""
    return (value for value in graph.initializers.values() if value.is_graph_output())


def known_trips(node: ir.Node) -> int | None:
    """How often the body of a Loop runs; None where that is not known, or more often than loops are unrolled."""
    body = _body(node)
    count, condition = _leading(node)
    limit = known_scalar(count)
    start = 1 if condition is None else known_scalar(condition)
    if start == 0 or (limit is not None and limit <= 0):
        return 0
    if start is None or (count is not None and limit is None):
        return None
    return _count_trips(node, body, np.iinfo(np.int64).max if limit is None else limit)


def _count_trips(node: ir.Node, body: ir.Graph, limit: int) -> int | None:
    """Follow the condition through the trips, as far as it depends on integers that are known."""
    decision = body.outputs[0]
    fixed = known_scalar(decision, {body.inputs[1]: np.array(True)})
    if fixed is not None:
        return _finite(limit if fixed else 1)
    for trip, assumed in enumerate(assumptions(node, min(limit, UNROLL_LIMIT))):
        goes_on = known_scalar(decision, assumed)
        if goes_on is None:
            return None
        if not goes_on:
            return trip + 1
    return _finite(limit)


def assumptions(node: ir.Node, trips: int) -> Iterator[dict[ir.Value, Array]]:
    """What is known of the counter and of carried integers in each trip of a Loop, if it comes to that trip."""
    body = _body(node)
    known = {
        value: array for value, start in zip(body.inputs[2:], node.inputs[2:], strict=True) if (array := known_value(start)) is not None
    }
    for trip in range(trips):
        assumed = {**known, body.inputs[0]: np.array(trip, np.int64), body.inputs[1]: np.array(True)}
        yield assumed
        following = {
            value: known_value(output, assumed) for value, output in zip(body.inputs[2:], body.outputs[1:], strict=False) if value in known
        }
        known = {value: array for value, array in following.items() if array is not None}


def _finite(trips: int) -> int | None:
    return trips if trips <= UNROLL_LIMIT else None


__all__ = [
    "UNROLL_LIMIT",
    "assumptions",
    "is_read",
    "known_trips",
    "like_input",
    "stack",
    "unsqueeze",
    "why_loop_stands",
    "why_not_unrolled",
]
