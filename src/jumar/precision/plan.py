"""What a precision mode does to each node of a model: narrowed, kept in float32, or computed by the host before anything is narrowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import onnx_ir as ir

from ..errors import UsageError
from ..graph import all_nodes, constant_of, model_opset, node_place, static_shape
from ..graph.walk import bodies
from ..targets import Target
from ..targets.floats import FloatKernel, cube_takes_float32, float_kernel
from ..text import Text, say
from .modes import PrecisionMode
from .units import UnitRule, rule_of

Decision = Literal["narrow", "narrow-in", "keep", "host", "own", "control"]
"""``narrow``: inputs and results in 16 bits; ``narrow-in``: inputs only; ``keep``: float32 as in the model; ``host``: computed from constants
before the device sees it; ``own``: types are the node's own business (Cast); ``control``: its bodies decide."""
FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_FOLDED = frozenset(("Constant", "ConstantOfShape", "Range"))
_RANDOM = frozenset(("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"))


@dataclass(frozen=True)
class Plan:
    """The decision for each node of a model, at every depth.

    Attributes:
        decisions: by node.
        gaps: what the emulation leaves out, with the number of nodes concerned.
    """

    mode: PrecisionMode
    decisions: Mapping[ir.Node, Decision]
    gaps: tuple[Text, ...] = ()
    kept: frozenset[str] = frozenset()

    def of(self, node: ir.Node) -> Decision:
        return self.decisions.get(node, "keep")

    def only(self, node: ir.Node) -> Plan:
        """The plan with nothing narrowed but this node."""
        alone: dict[ir.Node, Decision] = {
            other: "keep" if decision in ("narrow", "narrow-in") and other is not node else decision
            for other, decision in self.decisions.items()
        }
        return replace(self, decisions=alone)

    def narrowed(self) -> list[ir.Node]:
        """Nodes whose results are stored in 16 bits."""
        return [node for node, decision in self.decisions.items() if decision in ("narrow", "narrow-in")]


@dataclass
class _Planner:
    model: ir.Model
    mode: PrecisionMode
    kept: frozenset[str]
    target: Target | None
    decisions: dict[ir.Node, Decision] = field(default_factory=dict)
    host: set[ir.Value] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    listed: dict[ir.Node, Decision] = field(default_factory=dict)
    """What the lists say, whatever is kept: it is not known that a gray operator follows one that was kept by name."""

    def graph(self, graph: ir.Graph) -> None:
        for node in graph:
            self.decisions[node] = self.decide(node)
            for body in bodies(node):
                self.graph(body)

    def decide(self, node: ir.Node) -> Decision:
        if self.from_constants(node):
            self.host.update(node.outputs)
            return "host"
        rule = rule_of(node)
        if rule.unit in ("control", "cast"):
            return "control" if rule.unit == "control" else "own"
        return self.by_policy(node, rule)

    def from_constants(self, node: ir.Node) -> bool:
        """Whether the graph engine folds the node, which it does before it changes any type.

        It folds moves and arithmetic; it has no host kernel for matrix products and norms.
        """
        if node.op_type in ("Shape", "Size") and node.domain in ("", "ai.onnx"):
            return static_shape(node.inputs[0]) is not None
        if node.op_type in _RANDOM or any(True for _ in bodies(node)):
            return False
        if rule_of(node).unit not in ("vector", "move", "cast") and node.op_type not in _FOLDED:
            return False
        return all(item is None or self.is_host(item) for item in node.inputs)

    def is_host(self, value: ir.Value) -> bool:
        return value in self.host or _is_constant(value)

    def by_policy(self, node: ir.Node, rule: UnitRule) -> Decision:
        kernel = self.kernel(node)
        wide = self.takes_float32(rule, kernel)
        decision = self.unkept(node, rule, kernel, wide)
        self.listed[node] = decision
        if self.is_kept(node):
            if wide is not False:
                return "keep"
            self.stuck.add(node_place(node))
        return decision

    def unkept(self, node: ir.Node, rule: UnitRule, kernel: FloatKernel | None, wide: bool | None) -> Decision:
        storage = self.mode.storage_name
        if kernel is not None and kernel.takes(storage) is False:
            return "keep"
        if self.mode.policy == "all" or wide is False:
            return "keep" if self.mode.policy == "none" else "narrow"
        if self.mode.policy == "none":
            return "keep"
        if self.mode.policy in ("cube", "cube-in"):
            if rule.unit != "cube":
                return "keep"
            return "narrow" if self.mode.policy == "cube" else "narrow-in"
        return self.by_list(node, rule, kernel)

    def by_list(self, node: ir.Node, rule: UnitRule, kernel: FloatKernel | None) -> Decision:
        """Black keeps, white narrows, gray does what the node before it does."""
        on_list = kernel.on_list if kernel is not None and kernel.on_list is not None else _general_list(node, rule)
        if on_list != "gray":
            return "keep" if on_list == "black" else "narrow"
        before = [item.producer() for item in node.inputs if item is not None and is_float(item) and not self.is_host(item)]
        known = [self.listed.get(item, self.decisions.get(item)) for item in before if item is not None]
        return "narrow" if known and all(item == "narrow" for item in known) and len(known) == len(before) else "keep"

    def is_kept(self, node: ir.Node) -> bool:
        names = {node.name, f"OpType::{node.op_type}"}
        return bool(self.kept) and bool(names & self.kept)

    def kernel(self, node: ir.Node) -> FloatKernel | None:
        if self.target is None:
            return None
        return float_kernel(node.domain, node.op_type, node.version or model_opset(self.model), self.target)

    def takes_float32(self, rule: UnitRule, kernel: FloatKernel | None) -> bool | None:
        if self.target is None:
            return None
        if rule.unit == "cube" and cube_takes_float32(self.target) is False:
            return False
        return None if kernel is None else kernel.takes("float32")

    def gaps(self) -> tuple[Text, ...]:
        counts: dict[str, tuple[Text, set[str]]] = {}
        for node, decision in self.decisions.items():
            gap = rule_of(node).gap
            if gap is not None and decision in ("narrow", "narrow-in") and any(is_float(output) for output in node.outputs):
                counts.setdefault(gap.en, (gap, set()))[1].add(node.op_type)
        found = [say("{ops}: {gap}", "{ops}：{gap}", ops=", ".join(sorted(ops)), gap=gap) for gap, ops in counts.values()]
        untyped = sum(
            any(output.type is None and output.name for output in node.outputs) for node, item in self.decisions.items() if item == "narrow"
        )
        if untyped:
            found.append(
                say(
                    "{count} nodes have results of unknown type, which are not rounded",
                    "{count} 个节点的结果类型未知，未做舍入",
                    count=untyped,
                )
            )
        return tuple(found)


def make_plan(model: ir.Model, mode: PrecisionMode, keep: Collection[str] = (), target: Target | None = None) -> Plan:
    """Decide for each node of a model whose types and shapes are inferred.

    Args:
        keep: names of nodes, or ``OpType::TYPE`` with ONNX's type, that stay in float32.
        target: with it the kernel tables say what can be narrowed or kept; without, everything can.

    Raises:
        UsageError: ``keep`` names nothing in the model, or what the target cannot compute in float32.
    """
    known = {item for node in all_nodes(model) for item in (node.name, f"OpType::{node.op_type}") if item}
    for item in keep:
        if item not in known:
            raise UsageError(
                say("`{item}` is no node of the model", "`{item}` 不是模型中的节点", item=item),
                say("expected the name of a node, or OpType::TYPE", "应为节点名称，或 OpType::类型"),
                say("correct --keep", "请修正 --keep"),
            )
    planner = _Planner(model, mode, frozenset(keep), target)
    planner.graph(model.graph)
    for function in model.functions.values():
        for node in function:
            planner.decisions[node] = planner.decide(node)
    if planner.stuck and target is not None:
        raise UsageError(
            say("{node} cannot be kept in float32", "{node} 无法保持 float32", node=sorted(planner.stuck)[0]),
            say("{soc} computes matrix products in float16 only", "{soc} 的矩阵乘法只支持 float16", soc=target.soc.name),
            say("keep other nodes, or choose another target", "请保留其他节点，或更换目标"),
        )
    return Plan(mode, planner.decisions, planner.gaps(), frozenset(keep))


def keepable(node: ir.Node, model: ir.Model, target: Target | None) -> bool:
    """Whether a node can be computed in float32 (as far as is known)."""
    planner = _Planner(model, _ANY_MODE, frozenset(), target)
    return planner.takes_float32(rule_of(node), planner.kernel(node)) is not False


_ANY_MODE = PrecisionMode("fp16", "force_fp16", "all")


def is_float(value: ir.Value | None) -> bool:
    """Whether a tensor is float32 (or double, which ATC narrows too)."""
    return value is not None and isinstance(value.type, ir.TensorType) and value.type.dtype in FLOATS


def _is_constant(value: ir.Value) -> bool:
    return constant_of(value) is not None or (value.is_initializer() and not value.is_graph_input())


def _general_list(node: ir.Node, rule: UnitRule) -> str:
    """Without a target: white what all tables hold white, black what most hold black."""
    if rule.unit == "cube" and node.op_type not in ("AveragePool", "GlobalAveragePool"):
        return "white"
    return "black" if node.op_type in ("Pow", "ReduceMean", "ReduceSum", "LogSoftmax", "Log", "ReduceProd", "ReduceSumSquare") else "gray"
