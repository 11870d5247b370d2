"""Computing a part of a graph in int32 instead of another integer type: which part, and the rewrite.

A part is made of type variables of nodes (``T`` of an Add, ``Tind`` of a Gather): all tensors of one variable have the same type. Which
variables become int32 is a minimum cut: each Cast at the border costs as much as one removed problem is worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import onnx
import onnx_ir as ir

from ..edit import can_take_over, replace_value, used_names
from ..shapes import constant_of
from ..walk import model_opset
from .analyse import Ranges
from .interval import Interval, whole
from .mincut import SINK, SOURCE, UNLIMITED, Network

Unit = tuple[ir.Node, str]
"""A node and one of its type variables."""

NARROW = ir.DataType.INT32
REPLACEABLE = (
    ir.DataType.INT64,
    ir.DataType.UINT64,
    ir.DataType.UINT32,
    ir.DataType.UINT16,
    ir.DataType.INT16,
    ir.DataType.INT8,
    ir.DataType.UINT8,
)
"""Types in whose place int32 can compute, where nothing wraps around in them."""
_LIMITS = np.iinfo(np.int32)
_CAST = 1000
"""Cost of a Cast; a removed problem is worth two, and with a bonus of one outweighs them."""

# Operators that give the same integers in both types as long as the type holds the results, and for which ONNX Runtime has both.
NARROWABLE = frozenset(
    (
        *("Abs", "Add", "Div", "Max", "Min", "Mod", "Mul", "Neg", "Sign", "Sub", "Where", "MatMul"),
        *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
        *("ArgMax", "ArgMin", "CumSum", "NonZero", "Range", "Shape", "Size", "TopK"),
        *("ReduceL1", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
        *("Cast", "Compress", "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad"),
        *("Reshape", "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
# Their result may leave the type although both operands lie in it; it then wraps around, as int32 would not.
_WRAPPING = frozenset(
    "Abs Add CumSum Div MatMul Mul Neg Range ReduceL1 ReduceProd ReduceSum ReduceSumSquare Sub Cast Size Mod".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Assumption:
    """A tensor whose values are taken to lie within int32 because the user says so, and what is known of it."""

    tensor: str
    known: Interval

    def to_dict(self) -> dict[str, object]:
        return {"tensor": self.tensor, "lo": int(_LIMITS.min), "hi": int(_LIMITS.max), "known": [int(self.known.lo), int(self.known.hi)]}


@dataclass(frozen=True)
class Plan:
    """The type variables that become int32, and what must be assumed for it."""

    units: frozenset[Unit]
    assumptions: tuple[Assumption, ...] = ()
    unproven: Mapping[Unit, ir.Value] = field(default_factory=dict)
    """Variables that may not become int32, and a tensor of each that int32 may not hold."""


def unit_of(node: ir.Node, index: int, opset: int, *, output: bool = False, wide: ir.DataType = ir.DataType.INT64) -> Unit | None:
    """The type variable of an input or output, if it may be int32 as well as ``wide``."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in NARROWABLE:
        return None
    name = _variable(node.op_type, opset, index, output, f"tensor({wide.name.lower()})")
    return None if name is None else (node, name)


@cache
def _variable(op_type: str, opset: int, index: int, output: bool, wide: str) -> str | None:
    try:
        schema = onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None
    parameters = schema.outputs if output else schema.inputs
    if not parameters:
        return None
    name: str = parameters[min(index, len(parameters) - 1)].type_str
    allowed = next((item.allowed_type_strs for item in schema.type_constraints if item.type_param_str == name), ())
    return name if "tensor(int32)" in allowed and wide in allowed else None


def is_constant(value: ir.Value) -> bool:
    """Whether a tensor is an initializer or a Constant that no caller can override."""
    maker = value.producer()
    return (value.const_value is not None and not value.is_graph_input()) or (maker is not None and maker.op_type == "Constant")


class Narrowing:
    """The tensors of one integer type (``wide``) of a main graph as a network of type variables."""

    def __init__(self, model: ir.Model, ranges: Ranges, *, assume: bool = False, wide: ir.DataType = ir.DataType.INT64) -> None:
        self._type = wide
        self._model, self._graph, self._ranges, self._assume = model, model.graph, ranges, assume
        self._opset = model_opset(model)
        self._slots: dict[Unit, list[tuple[ir.Value, int]]] = defaultdict(list)  # inputs
        self._made: dict[ir.Value, Unit] = {}
        self._wide: list[ir.Value] = []
        self._untyped: dict[Unit, ir.Value] = {}
        for node in model.graph:
            for index, value in enumerate(node.inputs):
                unit = None if value is None else unit_of(node, index, self._opset, wide=self._type)
                if unit is not None and value is not None and value.dtype == self._type:
                    self._slots[unit].append((value, index))
                elif unit is not None and value is not None and value.dtype is None:
                    self._untyped[unit] = value
            for index, value in enumerate(node.outputs):
                if value.dtype == self._type and not is_constant(value):
                    self._wide.append(value)
                    unit = unit_of(node, index, self._opset, output=True, wide=self._type)
                    if unit is not None:
                        self._made[value] = unit
        self._wide += [value for value in model.graph.inputs if value.dtype == self._type]
        self.units = dict.fromkeys([*self._slots, *self._made.values()])

    def _fits(self, value: ir.Value) -> bool:
        known = self._ranges.of(value)
        maker = value.producer()
        if maker is not None and maker.op_type in _WRAPPING and self._type not in (ir.DataType.INT64, ir.DataType.UINT64):
            # All that the type holds is also what is said of a result that may have wrapped around.
            everything = whole(self._type)
            return known.fits(NARROW) and not (known.lo <= everything.lo and known.hi >= everything.hi)
        return known.fits(NARROW)

    def _may_assume(self, value: ir.Value) -> bool:
        return self._assume and not is_constant(value)

    def _obstacle(self, unit: Unit) -> ir.Value | None:
        """A tensor because of which a variable must stay int64."""
        node, _ = unit
        if unit in self._untyped:
            return self._untyped[unit]
        for value, index in self._slots.get(unit, ()):
            constant = is_constant(value)
            if constant and not self._fits(value) and not (node.op_type == "Slice" and index in (1, 2, 4)):
                return value
        made = [value for value in node.outputs if self._made.get(value) == unit]
        for value in made:
            if not self._fits(value) and not self._may_assume(value):
                return value
        if node.op_type == "Range":
            start, limit = (self._ranges.of(node.inputs[index]) for index in (0, 1))
            if not Interval(limit.lo - start.hi, limit.hi - start.lo).fits(NARROW) and not self._assume:
                return node.inputs[1]
        return None

    def plan(self, gains: Mapping[Unit, int]) -> Plan:
        """The variables that are better int32.

        Args:
            gains: problems that vanish if this variable becomes int32; negative where it would make some.
        """
        network = Network()
        unproven: dict[Unit, ir.Value] = {}
        for unit in self.units:
            obstacle = self._obstacle(unit)
            if obstacle is not None:
                unproven[unit] = obstacle
            gain = gains.get(unit, 0)
            if obstacle is not None or gain < 0:
                network.connect(unit, SINK, UNLIMITED)
            elif gain > 0:
                network.connect(SOURCE, unit, gain * 2 * _CAST + 1)
            if _spares_a_cast(unit):
                network.connect(SOURCE, unit, _CAST)
        for value in self._wide:
            self._connect(network, value, unproven)
        units = frozenset(item for item in network.source_side() if item in self.units)
        assumed = [
            Assumption(value.name or "", self._ranges.of(value))
            for value in self._wide
            if not self._fits(value) and (self._made.get(value) in units or (value.is_graph_input() and self._narrow_readers(value, units)))
        ]
        return Plan(units, tuple(assumed), unproven)

    def _narrow_readers(self, value: ir.Value, units: Set[object]) -> list[tuple[ir.Node, int]]:
        return [(node, index) for node, index in value.uses() if self._reader(node, index) in units]

    def _reader(self, node: ir.Node, index: int) -> Unit | None:
        return unit_of(node, index, self._opset, wide=self._type) if node.graph is self._graph else None

    def _connect(self, network: Network, value: ir.Value, unproven: dict[Unit, ir.Value]) -> None:
        """A Cast down if the maker is wide and some reader narrow; a Cast up if the maker is narrow and some reader wide."""
        maker: object = self._made.get(value, SINK)
        down, up = ("down", value), ("up", value)
        may_cast = self._fits(value) or (self._may_assume(value) and value.is_graph_input())
        network.connect(down, maker, _CAST if may_cast else UNLIMITED)
        if maker is not SINK:
            network.connect(maker, up, _CAST)
        readers = {self._reader(node, index) for node, index in value.uses()}
        for reader in readers - {None}:
            network.connect(reader, down, UNLIMITED)
            network.connect(up, reader, UNLIMITED)
            if not may_cast and maker is SINK and reader is not None:
                unproven.setdefault(reader, value)
        if None in readers or value.is_graph_output():
            network.connect(up, SINK, UNLIMITED)

    def apply(self, plan: Plan) -> list[str]:
        """Rewrite the graph in place.

        Returns:
            The names of the nodes that compute in int32 now.
        """
        names, constants = used_names(self._model), dict[ir.Value, ir.Value]()
        for unit in self.units:
            if unit not in plan.units:
                continue
            node, _ = unit
            for value, index in self._slots.get(unit, ()):
                if is_constant(value):
                    if value not in constants:
                        constants[value] = self._narrow_constant(value, names)
                    node.replace_input_with(index, constants[value])
            _retype_attributes(unit)
        for value in self._wide:
            self._cast(value, plan, names)
        for old in constants:
            name = old.name or ""
            if not old.uses() and not old.is_graph_output() and name in self._graph.initializers:
                del self._graph.initializers[name]
        changed = [node for node in self._graph if any(unit[0] is node for unit in plan.units)]
        _drop_idle_casts(self._graph, changed)
        return [node.name or node.op_type for node in changed]

    def _narrow_constant(self, value: ir.Value, names: set[str]) -> ir.Value:
        array = constant_of(value)
        if array is None:
            raise AssertionError("only constants are asked for")
        # A bound or step of a Slice beyond int32 means "to the end"; so does the end of int32, which no axis exceeds.
        data = np.clip(array, _LIMITS.min, _LIMITS.max).astype(np.int32)
        tensor = ir.tensor(data, name=_fresh(f"{value.name}_int32", names))
        narrow = ir.Value(name=tensor.name, const_value=tensor, shape=ir.Shape(data.shape), type=ir.TensorType(NARROW))
        self._graph.register_initializer(narrow)
        return narrow

    def _cast(self, value: ir.Value, plan: Plan, names: set[str]) -> None:
        narrow_readers = self._narrow_readers(value, plan.units)
        if self._made.get(value) not in plan.units:
            if narrow_readers:
                self._insert(value, NARROW, narrow_readers, names)
            return
        value.dtype = NARROW
        wide_readers = [use for use in ((node, index) for node, index in value.uses()) if use not in narrow_readers]
        if value.is_graph_output():
            name, place = value.name or "", [index for index, output in enumerate(self._graph.outputs) if output is value]
            value.name = _fresh(f"{name}_int32", names)
            wide = self._insert(value, self._type, wide_readers, names, name=name)
            for index in place:
                self._graph.outputs[index] = wide
        elif wide_readers:
            self._insert(value, self._type, wide_readers, names)

    def _insert(
        self, value: ir.Value, dtype: ir.DataType, readers: Iterable[tuple[ir.Node, int]], names: set[str], name: str | None = None
    ) -> ir.Value:
        label = name or _fresh(f"{value.name}_{dtype.name.lower()}", names)
        result = ir.Value(name=label, type=ir.TensorType(dtype), shape=value.shape)
        node = ir.node("Cast", [value], {"to": dtype.value}, outputs=[result], name=_fresh(f"{label}_cast", names))
        maker = value.producer()
        if maker is None:
            self._graph.insert_before(self._graph[0], [node])
        else:
            self._graph.insert_after(maker, [node])
        for reader, index in readers:
            reader.replace_input_with(index, result)
        return result


def _fresh(stem: str, names: set[str]) -> str:
    name, number = stem, 0
    while name in names:
        number += 1
        name = f"{stem}_{number}"
    names.add(name)
    return name


def _spares_a_cast(unit: Unit) -> bool:
    """A Cast from int32 has nothing to do once its result is int32, and one to int32 nothing once what it reads is."""
    node, variable = unit
    if node.op_type != "Cast" or node.inputs[0] is None or not can_take_over(node.outputs[0], node.inputs[0]):
        return False
    return (variable == "T2" and node.inputs[0].dtype == NARROW) or (variable == "T1" and node.outputs[0].dtype == NARROW)


def _retype_attributes(unit: Unit) -> None:
    node, variable = unit
    if node.op_type == "Cast" and variable == "T2":
        node.attributes["to"] = ir.AttrInt64("to", NARROW.value)
    elif node.op_type == "ConstantOfShape" and variable == "T2":
        array = node.attributes["value"].as_tensor().numpy().astype(np.int32)
        node.attributes["value"] = ir.AttrTensor("value", ir.tensor(array))


def _drop_idle_casts(graph: ir.Graph, nodes: Iterable[ir.Node]) -> None:
    for node in nodes:
        source = node.inputs[0] if node.op_type == "Cast" else None
        result = node.outputs[0]
        if source is not None and source.dtype == NARROW == result.dtype and can_take_over(result, source):
            replace_value(result, source)
            graph.remove(node, safe=True)
