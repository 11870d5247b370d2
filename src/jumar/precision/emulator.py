"""A model that computes as the device would: every float tensor rounded to the storage type after the node that makes it.

The rounding is a pair of Cast nodes, float32 to 16 bits and back. ONNX Runtime keeps such a pair (it removes only pairs that lose nothing), and
its Cast rounds to nearest even with subnormals and overflow to infinity, as a test shows bit by bit. Sums inside a node stay in float32, since
the kernel that ONNX Runtime runs is the float32 one; an operator that accumulates in 16 bits is written out (see ``stepwise``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from ..graph import copy_model, used_names
from ..graph.walk import bodies
from ..targets import Target
from .modes import PrecisionMode
from .plan import FLOATS, Decision, Plan, make_plan
from .rounding import Storage
from .stepwise import cumsum_in_steps
from .units import UnitRule, rule_of

MARK = "jumar.rounding"
"""Set in the metadata of the nodes that the emulator adds."""


@dataclass
class Rounder:
    """Adds rounding to graphs, in place.

    Attributes:
        storage: the type of the device's tensors.
        names: all tensor names of the model.
        narrow: tensors that hold nothing but values of the storage type.
    """

    storage: Storage
    names: set[str]
    narrow: set[ir.Value] = field(default_factory=set)
    pairs: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def node(self, node: ir.Node, decision: Decision) -> None:
        """Round what the node reads and makes, as decided. Nodes must come in the order of execution."""
        if decision not in ("narrow", "narrow-in"):
            return
        rule = rule_of(node)
        for index, value in enumerate(node.inputs):
            if value is not None and _is_float(value) and index not in rule.wide:
                node.replace_input_with(index, self.rounded(value))
        if decision == "narrow-in":
            return
        if node.op_type == "CumSum" and rule.accumulate == "storage":
            node = cumsum_in_steps(node, self.storage, self.fresh) or node
        for output in list(node.outputs):
            if _is_float(output):
                self.result(node, output, rule)

    def rounded(self, value: ir.Value) -> ir.Value:
        """The tensor rounded: itself where it is so already, else a pair of casts beside where it is made, shared by all its readers."""
        if value in self.narrow:
            return value
        found = self.pairs.get(value)
        if found is None:
            found = self.pairs[value] = self._pair(value)
            self.narrow.add(found)
        return found

    def result(self, node: ir.Node, output: ir.Value, rule: UnitRule) -> None:
        """Let all readers of a result read it rounded, under its name."""
        if rule.closed and all(
            item in self.narrow or not _is_float(item)
            for index, item in enumerate(node.inputs)
            if item is not None and index not in rule.wide
        ):
            self.narrow.add(output)
            return
        users = list(output.uses())
        pair = self.rounded(output)
        for user, index in users:
            user.replace_input_with(index, pair)
        name = output.name or ""
        output.name = self.fresh(f"{name}~wide")
        pair.name = name
        graph = output.graph
        for index, item in enumerate(graph.outputs if graph is not None else ()):
            if item is output and graph is not None:
                graph.outputs[index] = pair

    def _pair(self, value: ir.Value) -> ir.Value:
        stem = value.name or "tensor"
        wide = value.type.dtype if isinstance(value.type, ir.TensorType) else ir.DataType.FLOAT
        half = ir.Value(name=self.fresh(f"{stem}~half"), shape=value.shape, type=ir.TensorType(self.storage.onnx))
        back = ir.Value(name=self.fresh(f"{stem}~rounded"), shape=value.shape, type=ir.TensorType(wide))
        down = ir.node("Cast", [value], attributes={"to": self.storage.onnx}, outputs=[half], name=self.fresh(f"{stem}~down"))
        up = ir.node("Cast", [half], attributes={"to": wide}, outputs=[back], name=self.fresh(f"{stem}~up"))
        for node in (down, up):
            node.metadata_props[MARK] = "1"
        producer = value.producer()
        if producer is not None and isinstance(producer.graph, ir.Graph):
            producer.graph.insert_after(producer, [down, up])
            return back
        graph = value.graph
        if not isinstance(graph, ir.Graph):
            raise ValueError(f"`{stem}` belongs to no graph")
        first = next(iter(graph), None)
        if first is None:
            graph.extend([down, up])
        else:
            graph.insert_before(first, [down, up])
        return back

    def fresh(self, stem: str) -> str:
        """A name that no tensor has."""
        name, number = stem, 0
        while name in self.names:
            number += 1
            name = f"{stem}{number}"
        self.names.add(name)
        return name


def round_nodes(rounder: Rounder, nodes: Iterable[tuple[ir.Node, Decision]]) -> None:
    """Round the given nodes; those of bodies come with them (see :func:`nested`)."""
    for node, decision in nodes:
        rounder.node(node, decision)


def nested(graph: Iterable[ir.Node]) -> list[ir.Node]:
    """Nodes in order, those of a node's bodies before it."""
    found: list[ir.Node] = []
    for node in graph:
        for body in bodies(node):
            found += nested(body)
        found.append(node)
    return found


def emulated(model: ir.Model, plan: Plan) -> ir.Model:
    """A copy of the model that computes by the plan; inputs, outputs and names of tensors are those of the model."""
    copy = copy_model(model)
    rounder = Rounder(plan.mode.storage, used_names(copy))
    pairs = zip(nested(model.graph), nested(copy.graph), strict=True)
    round_nodes(rounder, [(other, plan.of(node)) for node, other in pairs])
    for function, other in zip(model.functions.values(), copy.functions.values(), strict=True):
        round_nodes(rounder, [(twin, plan.of(node)) for node, twin in zip(nested(function), nested(other), strict=True)])
    return copy


def emulate(model: ir.Model, mode: PrecisionMode, keep: Collection[str] = (), target: Target | None = None) -> ir.Model:
    """:func:`emulated` by the plan of a mode. Types and shapes of the model must be inferred."""
    return emulated(model, make_plan(model, mode, keep, target))


def _is_float(value: ir.Value) -> bool:
    return isinstance(value.type, ir.TensorType) and value.type.dtype in FLOATS
