"""Where two models differ: the pieces between tensors that both have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from ..graph import copy_model, static_shape
from ..graph.walk import bodies

# Tensors captured at once, by bytes; and weights compared by content up to this size, by identity above.
_CAPTURE_LIMIT = 256 << 20
_CONTENT_LIMIT = 1 << 16


@dataclass(frozen=True)
class Batch:
    """Some pieces of a model as one model.

    Attributes:
        inputs: tensors that both models have.
        outputs: likewise, with the name that the computed one has here.
        size: bytes of these tensors, as far as their shapes are known.
    """

    model: ir.Model
    inputs: tuple[str, ...]
    outputs: Mapping[str, str]
    size: int


def piece_batches(before: ir.Model, after: ir.Model) -> Iterator[Batch]:
    """The changed pieces of ``after``, each reaching back to tensors that ``before`` has under the same name, a few at a time.

    A tensor of one name has the same value in both models unless a rewrite is wrong; that is what the comparison finds out.
    """
    known = {value.name: value for node in before.graph for value in node.outputs if value.name}
    inputs = {value.name or "" for value in before.graph.inputs}
    same = {node.outputs[0].name: _signature(node) for node in before.graph if node.outputs}
    outputs: list[str] = []
    size = 0
    for node in after.graph:
        if not node.outputs or same.get(node.outputs[0].name) == _signature(node):
            continue
        common = [value for value in node.outputs if value.name in known and _comparable(value) and _comparable(known[value.name])]
        if not common:
            continue
        outputs += [value.name or "" for value in common]
        size += sum(_bytes(value) for value in (*common, *_sources(node)))
        if size > _CAPTURE_LIMIT:
            yield _batch(after, outputs, known.keys() | inputs, size)
            outputs, size = [], 0
    if outputs:
        yield _batch(after, outputs, known.keys() | inputs, size)


def _comparable(value: ir.Value) -> bool:
    return isinstance(value.type, ir.TensorType) or value.type is None


def _sources(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.inputs if value is not None and value.const_value is None]


def _bytes(value: ir.Value) -> int:
    shape = static_shape(value)
    return 1 << 20 if shape is None or value.dtype is None else int(math.prod(shape) * value.dtype.itemsize)


def _signature(node: ir.Node) -> tuple[object, ...]:
    """What a node computes from tensors of these names. Small weights count by content, for their names may change."""
    attributes = tuple(sorted((name, str(attribute)) for name, attribute in node.attributes.items())) if node.attributes else ()
    return node.domain, node.op_type, tuple(_identity(value) for value in node.inputs), len(node.outputs), attributes


def _identity(value: ir.Value | None) -> object:
    tensor = None if value is None or value.is_graph_input() else value.const_value
    if value is None or tensor is None:
        return None if value is None else value.name
    if tensor.dtype == ir.DataType.STRING or tensor.nbytes > _CONTENT_LIMIT:
        return id(tensor)
    return tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes()


def _batch(after: ir.Model, outputs: list[str], known: set[str], size: int) -> Batch:
    """A model that computes ``outputs`` from the nearest tensors that both models have.

    A tensor may be the end of one piece and the start of the next: the computed one then has a name of its own.
    """
    model = copy_model(after)
    graph = model.graph
    values = ir.convenience.create_value_mapping(graph)
    wanted = {name: values[name] for name in outputs}
    needed, borders = _bounded([value.producer() for value in wanted.values()], known)
    graph.outputs.clear()
    graph.inputs.clear()
    for name, value in borders.items():
        start = ir.Value(name=name, type=value.type, shape=value.shape)
        value.replace_all_uses_with(start)
        graph.inputs.append(start)
    for name, value in wanted.items():
        value.name = f"{name}__found"
        graph.outputs.append(value)
    for node in reversed(graph):
        if node not in needed:
            graph.remove(node, safe=True)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output():
            del graph.initializers[name]
    return Batch(model, tuple(borders), {name: f"{name}__found" for name in wanted}, size)


def _bounded(ends: list[ir.Node | None], known: set[str]) -> tuple[set[ir.Node], dict[str, ir.Value]]:
    """The nodes between some ends and the nearest tensors of known names, and those tensors."""
    needed: set[ir.Node] = set()
    borders: dict[str, ir.Value] = {}
    while ends:
        node = ends.pop()
        if node is None or node in needed:
            continue
        needed.add(node)
        for value in _read_outside(node):
            if value.const_value is not None and not value.is_graph_input():
                continue
            if value.name and value.name in known and value.type is not None:  # ONNX Runtime wants the type of an input
                borders[value.name] = value
            else:
                ends.append(value.producer())
    return needed, borders


def _read_outside(node: ir.Node) -> Iterator[ir.Value]:
    """What a node reads of the graph it is in, for its bodies too."""
    yield from (value for value in node.inputs if value is not None)
    for body in bodies(node):
        for inner in ir.traversal.RecursiveGraphIterator(body):
            yield from (value for value in inner.inputs if value is not None and value.graph is node.graph)
        yield from (value for value in body.outputs if value.graph is node.graph)
