"""What is there twice, and what nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from .base import Edit, bodies, node_place, release

# Larger weights are compared by identity alone: hashing hundreds of megabytes costs more than it saves.
_WEIGHT_LIMIT = 1 << 20
_CONTENT_LIMIT = 1 << 10
_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}


def merge(edit: Edit) -> None:
    """Let equal weights be one weight and equal nodes one node, in the main graph and within each body."""
    drop_unused(edit)
    for graph in list(edit.model.graphs()):
        _merge_weights(graph, edit)
        _merge_nodes(graph, edit)


def drop_unused(edit: Edit) -> None:
    """Remove nodes from which no output can be reached, and weights nobody reads."""
    for graph in list(edit.model.graphs()):
        for node in reversed(graph):
            if not is_unused(node):
                _drop_unused_outputs(node, edit.opset)
            elif edit.journal.allows("unused-node", node_place(node)):
                release(node)
                graph.remove(node, safe=True)
        inputs = set(graph.inputs)
        for name, value in list(graph.initializers.items()):
            if not value.uses() and not value.is_graph_output() and value not in inputs:
                del graph.initializers[name]


def is_unused(node: ir.Node) -> bool:
    """Whether nobody reads any output."""
    return not any(value.uses() or value.is_graph_output() for value in node.outputs)


def _drop_unused_outputs(node: ir.Node, opset: int) -> None:
    """Trailing optional outputs nobody reads (a Dropout mask, say); ATC makes a tensor of each that is named.

    Not those of BatchNormalization before opset 14, for there they ask for training.
    """
    if node.op_type not in ("Dropout", "MaxPool", "LayerNormalization", "BatchNormalization") or node.domain not in ("", "ai.onnx"):
        return
    if node.op_type == "BatchNormalization" and opset < 14:
        return
    count = len(node.outputs)
    while count > 1 and not node.outputs[count - 1].uses() and not node.outputs[count - 1].is_graph_output():
        count -= 1
    if count < len(node.outputs):
        node.resize_outputs(count)


def _merge_weights(graph: ir.Graph, edit: Edit) -> None:
    seen: dict[object, ir.Value] = {}
    inputs = set(graph.inputs)
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or value in inputs or value.is_graph_output() or tensor.dtype == ir.DataType.STRING:
            continue
        key: object = (id(tensor),) if tensor.nbytes > _WEIGHT_LIMIT else (tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes())
        first = seen.setdefault(key, value)
        if first is not value and edit.journal.allows("duplicate-weight", value.name or ""):
            value.replace_all_uses_with(first)


def twins(graph: ir.Graph) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Nodes that repeat an earlier one (operator, attributes, inputs), with that one. The earlier may be merged while this goes on."""
    seen: dict[object, ir.Node] = {}
    for node in graph:
        if node.op_type == "Constant" or node.op_type in _RANDOM or next(bodies(node), None) is not None:
            continue
        if any(value.is_graph_output() for value in node.outputs):
            continue
        attributes = tuple(sorted((name, _content(attribute)) for name, attribute in node.attributes.items())) if node.attributes else ()
        inputs = tuple(_identity(value) for value in node.inputs)
        first = seen.setdefault((node.domain, node.op_type, node.overload, inputs, len(node.outputs), attributes), node)
        if first is not node:
            yield node, first


def _identity(value: ir.Value | None) -> object:
    """A small weight is known by its content, anything else by itself."""
    tensor = None if value is None or value.is_graph_input() else value.const_value
    if tensor is None or tensor.dtype == ir.DataType.STRING or tensor.nbytes > _CONTENT_LIMIT:
        return id(value)
    return tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes()


def _merge_nodes(graph: ir.Graph, edit: Edit) -> None:
    for node, first in twins(graph):
        if edit.journal.allows("duplicate-node", node_place(node)):
            for old, new in zip(node.outputs, first.outputs, strict=True):
                old.replace_all_uses_with(new)
            graph.remove(node, safe=True)


def _content(attribute: ir.Attr) -> object:
    if attribute.type == ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        return str(tensor.dtype), str(tensor.shape), tensor.tobytes() if tensor.dtype != ir.DataType.STRING else id(tensor)
    return repr(attribute.value)
