"""If: the branch that is known to be taken, and what both branches agree on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from .base import Action, Array, Edit, describe, given, known_shape, simplification, small_constant
from .inline import inline_body, inner_graphs, rebuild, replace_outputs
from .known import known_scalar

# What ONNX Runtime and the NPUs alike can select between.
_WHERE_DTYPES = {ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64}
_WHERE_OPSET = 9
_SMALL_TENSOR = 1 << 16


def _branches(node: ir.Node) -> tuple[ir.Graph, ir.Graph]:
    return node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()


def _take(edit: Edit, node: ir.Node, branch: ir.Graph, kind: str) -> None:
    replace_outputs(edit, node, inline_body(edit, node, branch, []), kind)


@simplification("constant-if", "If")
def _constant_if(node: ir.Node, edit: Edit) -> Action | None:
    """The condition is known: what the branch does is done instead."""
    condition = known_scalar(given(node, 0))
    if condition is None:
        return None
    branch = _branches(node)[0 if condition else 1]
    return lambda: _take(edit, node, branch, "constant-if")


@simplification("same-branches", "If")
def _same_branches(node: ir.Node, edit: Edit) -> Action | None:
    """Both branches do the same."""
    first, second = _branches(node)
    if len(first) != len(second) or _fingerprint(first, {}) != _fingerprint(second, {}):
        return None
    return lambda: _take(edit, node, first, "same-branches")


@simplification("condition-within-if", "If")
def _condition_within(node: ir.Node, edit: Edit) -> Action | None:
    """Within a branch the condition itself is known."""
    condition = given(node, 0)
    if condition is None or len(condition.uses()) < 2:
        return None
    inside = []
    for branch, holds in zip(_branches(node), (True, False), strict=True):
        within = {branch, *inner_graphs(branch)}
        uses = [use for use in condition.uses() if use.node.graph in within]
        if uses:
            inside.append((uses, holds))
    shape = known_shape(condition)
    if not inside or shape is None or any(dim != 1 for dim in shape):
        return None

    def act() -> None:
        builder = edit.at(node, "condition-within-if")
        for uses, holds in inside:
            constant = builder.const(np.full([1] * len(shape), holds), np.bool_, "condition")
            for use in uses:
                use.node.replace_input_with(use.idx, constant)

    return act


@simplification("agreed-output", "If")
def _agreed_output(node: ir.Node, edit: Edit) -> Action | None:
    """An output that is the same outer tensor or the same constant in both branches."""
    first, second = _branches(node)
    found: list[tuple[ir.Value, ir.Value | Array]] = []
    for output, one, other in zip(node.outputs, first.outputs, second.outputs, strict=True):
        if not output.uses() and not output.is_graph_output():
            continue
        source, array = _source(one, first), small_constant(made_by(one))
        if source is not None and source is _source(other, second):
            found.append((output, source))
        elif array is not None and _same_array(array, small_constant(made_by(other))):
            found.append((output, array))
    if not found:
        return None

    def act() -> None:
        builder = edit.at(node, "agreed-output")
        for output, what in found:
            builder.replace(output, what if isinstance(what, ir.Value) else builder.const(what))
        if not any(output.uses() or output.is_graph_output() for output in node.outputs):
            edit.discard(node)

    return act


@simplification("unused-branch-output", "If")
def _unused_output(node: ir.Node, _edit: Edit) -> Action | None:
    """Outputs nobody reads are not computed. (An If of which nobody reads anything is an unused node.)"""
    kept = [index for index, value in enumerate(node.outputs) if value.uses() or value.is_graph_output()]
    if not kept or len(kept) == len(node.outputs):
        return None

    def act() -> None:
        for branch in _branches(node):
            branch.outputs[:] = [branch.outputs[index] for index in kept]
        rebuild(node, list(node.inputs), kept)

    return act


@simplification("if-of-constants", "If")
def _of_constants(node: ir.Node, edit: Edit) -> Action | None:
    """Both branches give constants of one shape: Where selects among them without leaving the graph."""
    condition = given(node, 0)
    cond_shape = known_shape(condition)
    if condition is None or cond_shape is None or any(dim != 1 for dim in cond_shape) or edit.opset < _WHERE_OPSET:
        return None
    pairs: list[tuple[Array, Array]] = []
    for one, other in zip(*(branch.outputs for branch in _branches(node)), strict=True):
        first, second = small_constant(made_by(one)), small_constant(made_by(other))
        if first is None or second is None or first.shape != second.shape or first.dtype != second.dtype:
            return None
        if one.dtype not in _WHERE_DTYPES or one.dtype != other.dtype or first.ndim < len(cond_shape):
            return None
        pairs.append((first, second))
    if not pairs:
        return None

    def act() -> None:
        builder = edit.at(node, "if-of-constants")
        chosen = [
            describe(builder.op("Where", condition, builder.const(first), builder.const(second)), first.shape, output.dtype)
            for (first, second), output in zip(pairs, node.outputs, strict=True)
        ]
        replace_outputs(edit, node, chosen, "if-of-constants")

    return act


def made_by(value: ir.Value) -> ir.Value:
    """The tensor that a chain of Identity passes on."""
    node = value.producer()
    while node is not None and node.op_type == "Identity" and node.domain in ("", "ai.onnx") and node.inputs[0] is not None:
        value = node.inputs[0]
        node = value.producer()
    return value


def _source(value: ir.Value, branch: ir.Graph) -> ir.Value | None:
    """The tensor from outside the branch that an output of the branch is; None for what the branch makes."""
    source = made_by(value)
    maker = source.producer()
    graph = source.graph if maker is None else maker.graph
    return None if graph is branch else source


def _same_array(first: Array, second: Array | None) -> bool:
    return second is not None and first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def _fingerprint(graph: ir.Graph, seen: dict[ir.Value, int]) -> tuple[object, ...]:
    """What a graph does, apart from names: equal for two graphs that compute the same in the same order."""

    def number(value: ir.Value | None) -> object:
        if value is None:
            return None
        if value in seen:
            return seen[value]
        if value.const_value is not None and value.graph is graph and not value.is_graph_input():
            return _tensor_key(value.const_value)
        return "outer", id(value)

    for value in graph.inputs:
        seen[value] = len(seen)
    nodes = []
    for node in graph:
        inputs = tuple(number(value) for value in node.inputs)
        attributes = tuple(
            sorted((name, _attribute_key(attribute)) for name, attribute in node.attributes.items() if not _holds_graphs(attribute))
        )
        inner = tuple(
            tuple(_fingerprint(body, seen) for body in _graphs_of(node.attributes[name]))
            for name in sorted(node.attributes)
            if _holds_graphs(node.attributes[name])
        )
        for value in node.outputs:
            seen[value] = len(seen)
        nodes.append((node.domain, node.op_type, node.overload, inputs, attributes, inner, len(node.outputs)))
    return tuple(str(value.type) for value in graph.inputs), tuple(nodes), tuple(number(value) for value in graph.outputs)


def _holds_graphs(attribute: ir.Attr) -> bool:
    return attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def _graphs_of(attribute: ir.Attr) -> Sequence[ir.Graph]:
    return [attribute.as_graph()] if attribute.type == ir.AttributeType.GRAPH else attribute.as_graphs()


def _attribute_key(attribute: ir.Attr) -> str:
    if attribute.type == ir.AttributeType.TENSOR:
        return repr(_tensor_key(attribute.as_tensor()))
    return repr(attribute.value)


def _tensor_key(tensor: ir.TensorProtocol) -> tuple[object, ...]:
    """The content of a small tensor, the identity of a large one."""
    if tensor.dtype == ir.DataType.STRING or tensor.nbytes > _SMALL_TENSOR:
        return (id(tensor),)
    return str(tensor.dtype), str(tensor.shape), tensor.tobytes()
