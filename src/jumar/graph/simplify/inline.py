"""Taking the body of an If, Loop or Scan apart: into the graph around it, or away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import onnx_ir as ir

from .base import Edit, bodies


@dataclass
class _Names:
    """Names that several scopes define, which a tensor or node moved between scopes cannot keep; and all names of nodes."""

    tensors: set[str]
    nodes: set[str]
    all_nodes: set[str]


_NAMES: WeakKeyDictionary[Edit, _Names] = WeakKeyDictionary()


def _names_of(edit: Edit) -> _Names:
    """Counted once: no change of a simplification defines a name a second time."""
    found = _NAMES.get(edit)
    if found is None:
        tensors: Counter[str] = Counter()
        nodes: Counter[str] = Counter()
        for graph in edit.model.graphs():
            tensors.update(name for name in {value.name for value in (*graph.inputs, *graph.initializers.values())} if name)
            for node in graph:
                nodes[node.name or ""] += 1
                tensors.update(value.name for value in node.outputs if value.name)
        several = {name for name, count in tensors.items() if count > 1}
        found = _Names(several, {name for name, count in nodes.items() if count > 1}, set(nodes))
        _NAMES[edit] = found
    return found


def _fresh(stem: str, *taken: set[str]) -> str:
    name, number = stem, 0
    while any(name in names for names in taken):
        number += 1
        name = f"{stem}_{number}"
    for names in taken:
        names.add(name)
    return name


def inline_body(edit: Edit, anchor: ir.Node, body: ir.Graph, inputs: Sequence[ir.Value | None], suffix: str = "") -> list[ir.Value]:
    """Move a body's nodes and weights before ``anchor``, and say which tensors are its outputs there.

    The body is empty afterwards; give a clone to keep it. Tensors it reads from outside stay what they are, nodes keep their metadata
    and take what they lack from the anchor. Names that another scope uses too are made unique.

    Args:
        inputs: what each input of the body is; None for one that nobody reads.
        suffix: appended to every name at any depth (for the copies of a body; each then has names of its own).
    """
    graph = anchor.graph
    if not isinstance(graph, ir.Graph):
        raise ValueError("the anchor must belong to a graph")
    names = _names_of(edit)
    outputs = list(body.outputs)
    body.outputs.clear()
    actual: dict[ir.Value, ir.Value] = {}
    for old, new in zip(body.inputs, inputs, strict=True):
        if new is not None:
            old.replace_all_uses_with(new)
            actual[old] = new
    for value in list(body.initializers.values()):
        _move_weight(edit, value, body, graph, suffix)
    for node in list(body):
        body.remove(node)
        if suffix:
            _rename_all(edit, node, suffix)
        else:
            for value in node.outputs:
                if value.name in names.tensors:
                    value.name = _fresh(value.name or "", edit.names)
            if node.name in names.nodes:
                node.name = _fresh(node.name or node.op_type, edit.names, names.all_nodes)
        for key, entry in anchor.metadata_props.items():
            node.metadata_props.setdefault(key, entry)
        graph.insert_before(anchor, node)
    return [actual.get(value, value) for value in outputs]


def _move_weight(edit: Edit, value: ir.Value, body: ir.Graph, graph: ir.Graph, suffix: str = "") -> None:
    name = value.name or "constant"
    del body.initializers[name]
    if suffix or name in _names_of(edit).tensors:
        value.name = _fresh(name + suffix, edit.names)
        if value.const_value is not None:
            value.const_value.name = value.name
    graph.register_initializer(value)


def _rename_all(edit: Edit, node: ir.Node, suffix: str) -> None:
    """Give a copied node, its tensors and what is in its bodies names of their own; their shapes may differ from the original's."""
    names = _names_of(edit)
    if node.name:
        node.name = _fresh(node.name + suffix, edit.names, names.all_nodes)
    for value in node.outputs:
        _forget(value)
        if value.name:
            value.name = _fresh(value.name + suffix, edit.names)
    for graph in bodies(node):
        for index, value in enumerate(graph.inputs):
            shape = value.shape
            _forget(value)
            if node.op_type == "Loop" and index < 2:  # the number of the trip and the condition are of one form in every trip
                value.shape = shape
            value.name = _fresh((value.name or "input") + suffix, edit.names)
        for value in list(graph.initializers.values()):
            _move_weight(edit, value, graph, graph, suffix)
        for inner in graph:
            _rename_all(edit, inner, suffix)


def _forget(value: ir.Value) -> None:
    """No shape (it was inferred for another iteration), and a type object of its own (the original's would be edited with it)."""
    value.shape = None
    if isinstance(value.type, (ir.TensorType, ir.SparseTensorType)):
        value.type = type(value.type)(value.type.dtype, denotation=value.type.denotation)
    elif value.type is not None:
        value.type = deepcopy(value.type)


def lift_weights(edit: Edit, anchor: ir.Node, body: ir.Graph) -> None:
    """Move the weights of a body, and of the bodies in it, before ``anchor``, so that copies of the body share them."""
    graph = anchor.graph
    if not isinstance(graph, ir.Graph):
        raise ValueError("the anchor must belong to a graph")
    for inner in (body, *inner_graphs(body)):
        inputs = set(inner.inputs)
        for value in list(inner.initializers.values()):
            if not value.is_graph_output() and value not in inputs and value.const_value is not None:
                _move_weight(edit, value, inner, graph)


def inner_graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """The bodies of the nodes of a graph, at any depth."""
    for node in graph:
        for body in bodies(node):
            yield body
            yield from inner_graphs(body)


def replace_outputs(edit: Edit, node: ir.Node, values: Iterable[ir.Value], kind: str) -> None:
    """Let ``values`` take the place of the node's outputs, in order, and drop the node."""
    builder = edit.at(node, kind)
    for old, new in zip(node.outputs, values, strict=True):
        if new.type is None:
            new.type = old.type
        builder.replace(old, new)
    edit.discard(node)


def rebuild(node: ir.Node, inputs: Sequence[ir.Value | None], kept_outputs: Sequence[int]) -> ir.Node:
    """A node of the same kind, bodies and names with other inputs and only some of its outputs, in the place of ``node``.

    The outputs left out must have no reader.
    """
    graph = node.graph
    if not isinstance(graph, ir.Graph):
        raise ValueError("the node must belong to a graph")
    old_outputs = [node.outputs[index] for index in kept_outputs]
    outputs = []
    for old in old_outputs:
        new = ir.Value(name=old.name, type=old.type, shape=old.shape, doc_string=old.doc_string)
        new.metadata_props.update(old.metadata_props)
        outputs.append(new)
    made = ir.Node(
        node.domain,
        node.op_type,
        inputs,
        list(node.attributes.values()),
        overload=node.overload,
        outputs=outputs,
        version=node.version,
        name=node.name,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    graph.insert_before(node, made)
    for old, new in zip(old_outputs, outputs, strict=True):
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    for index in range(len(node.inputs)):
        node.replace_input_with(index, None)
    graph.remove(node)
    return made


__all__ = ["inline_body", "inner_graphs", "lift_weights", "rebuild", "replace_outputs"]
