"""Put something else in the place of nodes, or of the region between tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import onnx_ir as ir

from ...errors import UsageError
from ...text import say
from ..shapes import infer_shapes
from .guest import adopt_functions, at_opset, free_names, move_in, rename_clashes
from .lookup import (
    AnyModel,
    Names,
    Scope,
    behind,
    bodies_of,
    captures,
    discard,
    drop_dead,
    find_node,
    find_value,
    opened,
    take_over,
)
from .splice import Operand, finished, import_domain, operand, visible

Replacement = str | Sequence[onnx.NodeProto] | ir.Model
"""An operator, ONNX nodes, or a model."""


def replace(
    model: AnyModel,
    nodes: str | Sequence[str],
    by: Replacement,
    *,
    inputs: Sequence[Operand] | None = None,
    attributes: Mapping[str, Any] | None = None,
    domain: str = "",
    scope: str | None = None,
) -> ir.Model:
    """Put something else in the place of a node or of several.

    Args:
        nodes: by name, or by the name of an output; all of one graph.
        by: an operator (then ``inputs``, ``attributes`` and ``domain`` are its own), ONNX nodes (they read tensors of the model by name
            and must make those that the removed nodes made), or a model (its inputs and outputs are matched in order).
        inputs: what is read, in order; by default what the nodes read from outside, weights included for an operator, left out for a model.

    Raises:
        UsageError: unknown or ambiguous name, another number of inputs or outputs, a result of another dtype or shape than the one it
            replaces, or a model that is not valid.
    """
    result = opened(model)
    infer_shapes(result)
    found = [find_node(result, name, scope) for name in ([nodes] if isinstance(nodes, str) else nodes)]
    if not found or len({id(place.graph) for _, place in found}) != 1:
        raise UsageError(
            say("the nodes are not of one graph", "这些节点不在同一计算图中"),
            say("expected one or more nodes of one graph", "应为同一计算图中的一个或多个节点"),
            say("replace them graph by graph", "请逐图替换"),
        )
    chosen = {node for node, _ in found}
    place = found[0][1]
    inner = _with_bodies(chosen)
    outputs = [value for node in place.graph if node in chosen for value in node.outputs if _is_read_outside(value, inner)]
    read = list(
        dict.fromkeys(value for node in place.graph if node in chosen for value in _in_order(node) if value.producer() not in chosen)
    )
    return _replace(result, place, _Region(read, outputs, chosen), by, inputs, dict(attributes or {}), domain)


def replace_between(
    model: AnyModel,
    inputs: Sequence[str],
    outputs: Sequence[str],
    by: Replacement,
    *,
    attributes: Mapping[str, Any] | None = None,
    domain: str = "",
    scope: str | None = None,
) -> ir.Model:
    """As :func:`replace`, for the region between tensors: ``by`` reads ``inputs`` and makes ``outputs``.

    Nodes inside that something else reads too stay.
    """
    result = opened(model)
    infer_shapes(result)
    ends = [find_value(result, name, scope) for name in outputs]
    if not ends:
        raise UsageError(say("no outputs are named", "未指定输出"), None, say("name at least one tensor", "请至少指定一个张量"))
    place = ends[0][1]
    for name, (value, where) in zip(outputs, ends, strict=True):
        if value.producer() is None or where.graph is not place.graph:
            raise UsageError(
                say("`{name}` is not made by a node of the same graph", "`{name}` 不是由同一计算图的节点产生", name=name),
                say("expected results of nodes", "应为节点的结果"),
                say("name other outputs", "请指定其他输出"),
            )
    region = _Region([visible(result, place, name) for name in inputs], [value for value, _ in ends], set(), tuple(inputs))
    return _replace(result, place, region, by, None, dict(attributes or {}), domain)


@dataclass(frozen=True)
class _Region:
    """What is replaced. ``nodes`` may be empty: then those go that nobody reads any more."""

    read: list[ir.Value]
    outputs: list[ir.Value]
    nodes: set[ir.Node]
    given: tuple[str, ...] | None = None


def _in_order(node: ir.Node) -> list[ir.Value]:
    inner = sorted(captures(node), key=lambda value: value.name or "") if any(bodies_of(node)) else []
    own = {id(graph) for _, graphs in bodies_of(node) for graph in graphs}
    return [value for value in (*node.inputs, *inner) if value is not None and id(value.graph) not in own]


def _is_read_outside(value: ir.Value, nodes: set[ir.Node]) -> bool:
    return value.is_graph_output() or any(use.node not in nodes for use in value.uses())


def _with_bodies(nodes: Iterable[ir.Node]) -> set[ir.Node]:
    found, waiting = set[ir.Node](), list(nodes)
    while waiting:
        node = waiting.pop()
        found.add(node)
        waiting += [inner for _, bodies in bodies_of(node) for body in bodies for inner in body]
    return found


def _replace(
    model: ir.Model,
    place: Scope,
    region: _Region,
    by: Replacement,
    inputs: Sequence[Operand] | None,
    attributes: dict[str, Any],
    domain: str,
) -> ir.Model:
    names = Names(model, place.function)
    expected = [(value.name or "", ir.Value(name=value.name, type=value.type, shape=value.shape)) for value in region.outputs]
    old_nodes = set(place.graph)
    if isinstance(by, str):
        read = region.read if inputs is None else [operand(model, place, item, names) for item in inputs]
        made = _single(by, read, len(region.outputs), attributes, domain, names)
        _put(place.graph, region, [made])
        new = list(made.outputs)
        import_domain(model, place, domain)
    elif isinstance(by, ir.Model):
        read = [value for value in region.read if region.given is not None or not value.is_initializer()]
        read = read if inputs is None else [operand(model, place, item, names) for item in inputs]
        new = _from_model(model, place, region, by, read, names)
    else:
        new = _from_protos(model, place, region, list(by), names)
    sources = set(behind(region.outputs))
    for old, value in zip(region.outputs, new, strict=True):
        take_over(old, value, names)
    discard(place.graph, [node for node in place.graph if node in region.nodes])
    drop_dead(model, place.graph, () if region.nodes else sources)
    for value, (name, _) in zip(new, expected, strict=True):
        # A result inside the model takes the name of the one that it replaces, if that has gone.
        if value.producer() in set(place.graph) - old_nodes and all(other.name != name for other in place.values()):
            value.name = name
    return finished(model, place, new, [old for _, old in expected])


def _single(op_type: str, read: Sequence[ir.Value], outputs: int, attributes: dict[str, Any], domain: str, names: Names) -> ir.Node:
    stem = names.node(op_type)
    values = [ir.Value(name=names.tensor(f"{stem}_output_{index}")) for index in range(outputs)]
    return ir.node(op_type, list(read), attributes=attributes, domain=domain, outputs=values, name=stem)


def _put(graph: ir.Graph, region: _Region, nodes: Sequence[ir.Node]) -> None:
    """In the place of the last node of the region; sorting brings them where they belong."""
    makers = {value.producer() for value in region.outputs} | region.nodes
    last = next((node for node in reversed(list(graph)) if node in makers), None)
    if last is None:
        graph.extend(nodes)
    else:
        graph.insert_after(last, nodes)


def _must_count(found: int, expected: int, what: str) -> None:
    if found != expected:
        raise UsageError(
            say("the replacement has {found} {what}", "替换内容的 {what} 数为 {found}", found=found, what=what),
            say("expected {expected}", "应为 {expected}", expected=expected),
            say("name them with inputs=, or use replace_between", "请用 inputs= 指明，或使用 replace_between"),
        )


def _from_model(model: ir.Model, place: Scope, region: _Region, by: ir.Model, read: Sequence[ir.Value], names: Names) -> list[ir.Value]:
    guest = at_opset(opened(by), model)
    _must_count(sum(not value.is_initializer() for value in guest.graph.inputs), len(read), "inputs")
    _must_count(len(guest.graph.outputs), len(region.outputs), "outputs")
    adopt_functions(model, guest)
    rename_clashes(guest, names, "")
    nodes, outputs = move_in(guest.graph, place, read, names)
    _put(place.graph, region, nodes)
    for name, version in guest.opset_imports.items():
        model.opset_imports.setdefault(name, version)
    return outputs


def _from_protos(model: ir.Model, place: Scope, region: _Region, by: list[onnx.NodeProto], names: Names) -> list[ir.Value]:
    made = {name for node in by for name in node.output if name}
    wanted = [value.name or "" for value in region.outputs]
    missing = [name for name in wanted if name not in made]
    if missing:
        raise UsageError(
            say("the new nodes do not make `{name}`", "新节点没有产生 `{name}`", name=missing[0]),
            say("expected nodes with the outputs {names}", "新节点的输出应包含 {names}", names=", ".join(f"`{name}`" for name in wanted)),
            say("name their outputs so", "请如此命名其输出"),
        )
    read = free_names(by)
    graph = onnx.GraphProto(name="replacement")
    graph.node.extend(by)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in read)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    values = [visible(model, place, name) for name in read]
    guest = ir.Model(ir.serde.deserialize_graph(graph), ir_version=model.ir_version)
    rename_clashes(guest, names, "")
    nodes, outputs = move_in(guest.graph, place, values, names)
    _put(place.graph, region, nodes)
    for node in nodes:
        import_domain(model, place, node.domain)
    return outputs
