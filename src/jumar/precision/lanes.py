"""Models in which a piece of the graph runs three times side by side: as it is, as the device would, and each node alone on right inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ..graph import static_shape
from ..graph.walk import bodies
from .emulator import Rounder, nested, round_nodes
from .plan import Plan
from .units import rule_of

DEVICE = "~device"
ALONE = "~alone"
DEFAULT_CHUNK_BYTES = 96 << 20
"""Bytes of results that one chunk may make in each of its three lanes."""
_UNKNOWN_BYTES = 1 << 20
_MOST_NODES = 400


@dataclass
class Lanes:
    """One chunk as a model.

    Attributes:
        right, device: names of the tensors to feed from earlier chunks; ``device`` ones are fed as ``NAME~device``.
        results: for each node the tensors compared: name, and whether it runs alone as well.
        leaving: names of tensors that later chunks or the caller need.
        split: of those, the ones that differ between the lanes.
    """

    model: ir.Model
    right: tuple[str, ...]
    device: tuple[str, ...]
    results: tuple[tuple[ir.Node, str, bool], ...]
    leaving: tuple[str, ...]
    split: frozenset[str]


def chunks_of(model: ir.Model, limit: int = DEFAULT_CHUNK_BYTES) -> list[list[ir.Node]]:
    """The main graph's nodes in order, in runs whose results stay below ``limit`` bytes."""
    found: list[list[ir.Node]] = [[]]
    size = 0
    for node in model.graph:
        own = sum(_bytes(output) for output in node.outputs)
        if found[-1] and (size + own > limit or len(found[-1]) >= _MOST_NODES):
            found.append([])
            size = 0
        found[-1].append(node)
        size += own
    return [chunk for chunk in found if chunk]


def _bytes(value: ir.Value) -> int:
    shape = static_shape(value)
    if shape is None or value.dtype is None:
        return _UNKNOWN_BYTES
    count = 1
    for size in shape:
        count *= size
    return count * 8 if value.dtype == ir.DataType.DOUBLE else count * 4


@dataclass
class LaneBuilder:
    """Builds the model of one chunk.

    Attributes:
        split_before: names of tensors from earlier chunks that differ between the lanes.
        single: False leaves the third lane out.
    """

    source: ir.Model
    plan: Plan
    nodes: Sequence[ir.Node]
    split_before: frozenset[str]
    single: bool = True
    inputs: dict[str, ir.Value] = field(default_factory=dict)
    weights: dict[ir.Value, ir.Value] = field(default_factory=dict)
    right: dict[ir.Value, ir.Value] = field(default_factory=dict)
    device: dict[ir.Value, ir.Value] = field(default_factory=dict)
    made: list[ir.Node] = field(default_factory=list)
    rounding: list[tuple[ir.Node, ir.Node]] = field(default_factory=list)
    results: list[tuple[ir.Node, ir.Value, bool]] = field(default_factory=list)

    def build(self) -> Lanes:
        own = {output for node in self.nodes for output in node.outputs}
        for node in self.nodes:
            for value in read_by(node):
                if value not in own and value not in self.right:
                    self._enter(value)
        for node in self.nodes:
            self._add(node, self.right, "")
        for node in self.nodes:
            if self._differs(node):
                self._add(node, self.device, DEVICE)
        for node in self.nodes:
            alone = self.single and self._errs(node)
            if alone:
                self._add(node, {}, ALONE)
            self.results += [(node, output, alone) for output in node.outputs if output.name and output in self.device]
        graph = ir.Graph(
            list(self.inputs.values()),
            [],
            nodes=self.made,
            initializers=list(self.weights.values()),
            opset_imports=dict(self.source.graph.opset_imports),
            name="lanes",
        )
        model = ir.Model(graph, ir_version=self.source.ir_version)
        names = {value.name or "" for inner in model.graphs() for node in inner for value in node.outputs} | set(self.inputs)
        names |= {value.name or "" for inner in model.graphs() for value in (*inner.inputs, *inner.initializers.values())}
        round_nodes(Rounder(self.plan.mode.storage, names), [(twin, self.plan.of(node)) for node, twin in self.rounding])
        return self._finish(model, own)

    def _finish(self, model: ir.Model, own: set[ir.Value]) -> Lanes:
        inside = {inner for node in self.nodes for inner in (node, *_inner(node))}
        leaving = [
            value for value in own if value.name and (value.is_graph_output() or any(user not in inside for user, _ in value.uses()))
        ]
        split = {value.name or "" for value in leaving if value in self.device}
        wanted = {value.name or "" for value in leaving} | {f"{name}{DEVICE}" for name in split}
        for _, value, alone in self.results:
            wanted |= {value.name or "", f"{value.name}{DEVICE}"} | ({f"{value.name}{ALONE}"} if alone else set())
        for node in model.graph:
            for output in node.outputs:
                if output.name in wanted:
                    model.graph.outputs.append(output)
        return Lanes(
            model,
            tuple(name for name in self.inputs if not name.endswith(DEVICE)),
            tuple(name.removesuffix(DEVICE) for name in self.inputs if name.endswith(DEVICE)),
            tuple((node, value.name or "", alone) for node, value, alone in self.results),
            tuple(value.name or "" for value in leaving),
            frozenset(split),
        )

    def _enter(self, value: ir.Value) -> None:
        """Bring a tensor from outside: a weight, or an input of the chunk, in two versions where the lanes differ by now."""
        name = value.name or ""
        if value.is_initializer() and value.producer() is None and not value.is_graph_input():
            weight = ir.Value(name=name, shape=value.shape, type=value.type, const_value=value.const_value)
            self.right[value] = self.weights[value] = weight
            return
        self.right[value] = self.inputs[name] = ir.Value(name=name, shape=value.shape, type=value.type)
        if name in self.split_before:
            twin = ir.Value(name=f"{name}{DEVICE}", shape=value.shape, type=value.type)
            self.device[value] = self.inputs[f"{name}{DEVICE}"] = twin

    def _narrows(self, node: ir.Node) -> bool:
        return any(self.plan.of(item) in ("narrow", "narrow-in") for item in (node, *_inner(node)))

    def _errs(self, node: ir.Node) -> bool:
        """Whether the node makes an error of its own; what only moves values makes none."""
        return self._narrows(node) and rule_of(node).unit not in ("move", "cast")

    def _differs(self, node: ir.Node) -> bool:
        return self._narrows(node) or any(value in self.device for value in read_by(node))

    def _add(self, node: ir.Node, lane: dict[ir.Value, ir.Value], suffix: str) -> None:
        """Clone a node into a lane; what the lane has not is read from the right one."""
        twin = _clone(node, {**self.right, **lane} if lane is not self.right else self.right, suffix)
        self.made.append(twin)
        if suffix != ALONE:
            lane.update(zip(node.outputs, twin.outputs, strict=True))
        if suffix:
            self.rounding += list(zip(nested([node]), nested([twin]), strict=True))


def _clone(node: ir.Node, values: Mapping[ir.Value, ir.Value], suffix: str) -> ir.Node:
    attributes = []
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
            attributes.append(ir.AttrGraph(attribute.name, _clone_body(attribute.as_graph(), values)))
        elif attribute.type == ir.AttributeType.GRAPHS and not attribute.is_ref():
            attributes.append(ir.AttrGraphs(attribute.name, [_clone_body(body, values) for body in attribute.as_graphs()]))
        else:
            attributes.append(attribute)
    outputs = [
        ir.Value(name=f"{value.name}{suffix}" if value.name else "", shape=value.shape, type=_fresh_type(value)) for value in node.outputs
    ]
    return ir.Node(
        node.domain,
        node.op_type,
        [None if value is None else values.get(value, value) for value in node.inputs],
        attributes,
        overload=node.overload,
        outputs=outputs,
        name=f"{node.name}{suffix}" if node.name else None,
    )


def _fresh_type(value: ir.Value) -> ir.TypeProtocol | None:
    return ir.TensorType(value.type.dtype) if isinstance(value.type, ir.TensorType) else value.type


def _clone_body(body: ir.Graph, values: Mapping[ir.Value, ir.Value]) -> ir.Graph:
    copy = body.clone(allow_outer_scope_values=True)
    for node in ir.traversal.RecursiveGraphIterator(copy):
        for index, value in enumerate(node.inputs):
            if value is not None and value in values:
                node.replace_input_with(index, values[value])
    return copy


def _inner(node: ir.Node) -> list[ir.Node]:
    return [item for body in bodies(node) for item in nested(body)]


def read_by(node: ir.Node) -> list[ir.Value]:
    """Tensors of the main graph that a node and its bodies read."""
    found = [value for value in node.inputs if value is not None]
    inner = _inner(node)
    own = {output for item in inner for output in item.outputs}
    for body in (body for item in (node, *inner) for body in bodies(item)):
        own |= {*body.inputs, *body.initializers.values()}
        found += [value for value in body.outputs if value not in own]
    found += [value for item in inner for value in item.inputs if value is not None and value not in own]
    return list(dict.fromkeys(value for value in found if value not in own))
