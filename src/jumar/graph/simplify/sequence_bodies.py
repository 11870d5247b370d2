"""Sequences that bodies make or go through: SequenceMap by element, and an If that chooses between sequences."""

from __future__ import annotations

import onnx_ir as ir

from .base import Action, Edit, describe, given, simplification
from .inline import inline_body, lift_weights
from .loops import why_not_unrolled
from .sequences import elements


@simplification("mapped-sequence", "SequenceMap")
def _mapped(node: ir.Node, edit: Edit) -> Action | None:
    """What is done with every element is done with each."""
    body = node.attributes["body"].as_graph()
    first = elements(given(node, 0))
    if not first or len(body.inputs) != len(node.inputs):
        return None
    columns: list[list[ir.Value]] = []
    for value in node.inputs:
        if value is None:
            return None
        items = elements(value) if isinstance(value.type, ir.SequenceType) else [value] * len(first)
        # ONNX says nothing of what becomes of elements that have no partner.
        if items is None or len(items) != len(first):
            return None
        columns.append(items)
    if why_not_unrolled(edit, body, len(first), 1) is not None:
        return None
    return lambda: _map(node, edit, body, columns)


def _map(node: ir.Node, edit: Edit, body: ir.Graph, columns: list[list[ir.Value]]) -> None:
    builder = edit.at(node, "mapped-sequence")
    results: list[list[ir.Value]] = [[] for _ in node.outputs]
    dtypes = [value.dtype for value in body.outputs]
    count = len(columns[0])
    if count > 1:
        lift_weights(edit, node, body)
    for index in range(count):
        piece = body if index == count - 1 else body.clone(allow_outer_scope_values=True)
        outputs = inline_body(edit, node, piece, [column[index] for column in columns], f"_{index}" if count > 1 else "")
        for values, value, dtype in zip(results, outputs, dtypes, strict=True):
            values.append(value if value.dtype is not None else describe(value, None, dtype))
    for output, values in zip(list(node.outputs), results, strict=True):
        if output.uses() or output.is_graph_output():
            sequence = builder.op("SequenceConstruct", *values)
            sequence.type = output.type
            builder.replace(output, sequence)
    edit.discard(node)


@simplification("sequence-through-if", "If")
def _through_if(node: ir.Node, edit: Edit) -> Action | None:
    """Both branches give a sequence of as many elements: the If gives the elements."""
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    for index, output in enumerate(node.outputs):
        if not isinstance(output.type, ir.SequenceType) or not (output.uses() or output.is_graph_output()):
            continue
        pair = [elements(branch.outputs[index]) for branch in branches]
        if pair[0] and pair[1] and len(pair[0]) == len(pair[1]) and all(item.dtype is not None for side in pair for item in side or ()):
            sides = [side or [] for side in pair]
            return lambda place=index, items=sides: _spread(node, edit, branches, place, items)  # type: ignore[misc]
    return None


def _spread(node: ir.Node, edit: Edit, branches: list[ir.Graph], index: int, sides: list[list[ir.Value]]) -> None:
    graph = node.graph
    if not isinstance(graph, ir.Graph):
        raise ValueError("the node must belong to a graph")
    count = len(sides[0])
    for branch, items in zip(branches, sides, strict=True):
        copies = [_own(branch, edit, item) for item in items]
        branch.outputs[:] = [*branch.outputs[:index], *copies, *branch.outputs[index + 1 :]]
    old = list(node.outputs)
    fresh = [ir.Value(name=_fresh(edit, f"{old[index].name}_{place}"), type=ir.TensorType(sides[0][place].dtype)) for place in range(count)]  # type: ignore[arg-type]
    kept = [ir.Value(name=value.name, type=value.type, shape=value.shape) for value in old]
    outputs = [*kept[:index], *fresh, *kept[index + 1 :]]
    made = ir.Node(
        node.domain,
        node.op_type,
        list(node.inputs),
        list(node.attributes.values()),
        outputs=outputs,
        name=node.name,
        metadata_props=dict(node.metadata_props),
    )
    sequence = ir.node(
        "SequenceConstruct", fresh, outputs=[ir.Value(name=old[index].name, type=old[index].type)], name=f"{node.name}/sequence"
    )
    graph.insert_before(node, [made, sequence])
    kept[index] = sequence.outputs[0]
    for before, after in zip(old, kept, strict=True):
        before.replace_all_uses_with(after, replace_graph_outputs=True)
    for place in range(len(node.inputs)):
        node.replace_input_with(place, None)
    graph.remove(node)


def _own(branch: ir.Graph, edit: Edit, item: ir.Value) -> ir.Value:
    """A branch returns each of its tensors once, and none from outside: an Identity of it."""
    name = _fresh(edit, f"{item.name}__copy")
    copy = ir.node("Identity", [item], outputs=[ir.Value(name=name, type=item.type, shape=item.shape)], name=name)
    branch.append(copy)
    return copy.outputs[0]


def _fresh(edit: Edit, stem: str) -> str:
    name, number = stem, 0
    while name in edit.names:
        number += 1
        name = f"{stem}_{number}"
    edit.names.add(name)
    return name
