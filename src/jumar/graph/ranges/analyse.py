"""Following intervals through a model, bodies of If, Loop and Scan included."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from ...errors import UsageError
from ...text import say
from ..walk import model_opset
from . import arithmetic, counting, moving  # noqa: F401 - they fill the table
from .indices import implied_range
from .interval import SMALL, UNKNOWN, Interval, Known, cells_of, hull, is_integer, settled, whole
from .moving import of_array
from .view import TRANSFER, Dims, Result, View, shape_in

_STANDARD = ("", "ai.onnx")
_FLOATS_LOOKED_AT = 4096  # elements of a float constant; weights are not read
_ROUNDS = 3  # of a loop body, before what still grows counts as unknown


class Ranges(Mapping[ir.Value, Interval]):
    """The interval of each tensor of a model, by value object.

    A tensor that was added since is not in it; :meth:`of` answers for any tensor.
    """

    def __init__(self, known: Mapping[ir.Value, Known]) -> None:
        self._known = known

    def __getitem__(self, value: ir.Value) -> Interval:
        return hull(self._known[value])

    def __iter__(self) -> Iterator[ir.Value]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def of(self, value: ir.Value | None) -> Interval:
        """The interval of a tensor; all that its type holds where nothing is known."""
        if value is None:
            return UNKNOWN
        known = self._known.get(value)
        return whole(value.dtype) if known is None else hull(known)

    def is_certain(self, value: ir.Value) -> bool:
        """Whether every element has only one possible value."""
        known = self._known.get(value)
        if isinstance(known, np.ndarray):
            return all(cell.is_point for cell in known.flat)
        return known is not None and known.is_point

    def elements(self, value: ir.Value) -> tuple[Interval, ...] | None:
        """Interval by element, in row-major order, of a small tensor whose elements are known one by one; else None."""
        known = self._known.get(value)
        return tuple(known.flat) if isinstance(known, np.ndarray) else None


def value_ranges(
    model: ir.Model,
    declared: Mapping[str, tuple[int, int]] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    implied: bool = True,
) -> Ranges:
    """Intervals that hold every value of every tensor, in every run of the model that succeeds.

    An integer that may leave its type wraps around, and its interval is then the whole type. What is not known of the size of an axis
    lies between 0 and 2^31 - 1. An integer input that indexes an axis lies within that axis, because no other value runs.

    Args:
        declared: least and largest value (inclusive) of integer inputs, as the user states them.
        shapes: sizes of inputs that the model leaves open.
        implied: take it for granted that an index lies within its axis. Not where that is what is to be shown.

    Raises:
        UsageError: a declared range is of no integer input, or is empty, or its type does not hold it.
    """
    given: dict[ir.Value, Dims] = {
        value: tuple(int(size) for size in shapes[value.name or ""])
        for value in model.graph.inputs
        if shapes is not None and (value.name or "") in shapes
    }
    analysis = _Analysis(model, given)
    stated = _declared(model, declared or {})
    for value in model.graph.inputs:
        limits = stated.get(value, whole(value.dtype))
        used = implied_range(model, value, analysis.shape_of) if implied and is_integer(value.dtype) else None
        if used is not None:
            lo, hi = max(limits.lo, used.lo), min(limits.hi, used.hi)
            limits = Interval(lo, hi) if lo <= hi else limits
        analysis.known[value] = limits
    analysis.graph(model.graph)
    return Ranges(analysis.known)


def _declared(model: ir.Model, declared: Mapping[str, tuple[int, int]]) -> dict[ir.Value, Interval]:
    inputs = {value.name or "": value for value in model.graph.inputs}
    found = {}
    for name, (lo, hi) in declared.items():
        value = inputs.get(name)
        if value is None or not is_integer(value.dtype):
            raise UsageError(
                say("`{name}` is no integer input of the model", "`{name}` 不是模型的整数输入", name=name),
                say(
                    "expected one of: {names}",
                    "应为其中之一：{names}",
                    names=", ".join(key for key, item in inputs.items() if is_integer(item.dtype)) or "-",
                ),
                say("correct the range's name", "请修正取值范围的输入名"),
            )
        limits = Interval(int(lo), int(hi))
        if lo > hi or value.dtype is None or not limits.fits(value.dtype):
            raise UsageError(
                say("{lo} to {hi} is no range of input `{name}`", "{lo} 到 {hi} 不是输入 `{name}` 的有效范围", lo=lo, hi=hi, name=name),
                say("expected a least and a largest value that fit its type", "应为该类型可以表示的最小值和最大值"),
                say("correct the range", "请修正取值范围"),
            )
        found[value] = limits
    return found


class _Analysis:
    """One pass. A body is gone through again until its loop variables no longer grow."""

    def __init__(self, model: ir.Model, shapes: Mapping[ir.Value, Dims]) -> None:
        self.opset, self.shapes = model_opset(model), shapes
        self.known: dict[ir.Value, Known] = {}

    def shape_of(self, value: ir.Value | None) -> Dims | None:
        return shape_in(self.shapes, value)

    def graph(self, graph: ir.Graph) -> None:
        for value in graph.inputs:
            self.known.setdefault(value, whole(value.dtype))
        for value in graph.initializers.values():
            if not value.is_graph_input():
                self.known[value] = _of_constant(value)
        for node in graph:
            for value, result in zip(node.outputs, self._results(node), strict=True):
                self.known[value] = self._fitting(value, settled(result, value.dtype))

    def _fitting(self, value: ir.Value, known: Known) -> Known:
        """Elements are kept apart only where their number is certain."""
        if isinstance(known, np.ndarray) and (known.size > SMALL or self.shape_of(value) not in (None, known.shape)):
            return hull(known)
        return known

    def of(self, value: ir.Value | None) -> Known | None:
        if value is None:
            return None
        known = self.known.get(value)
        return whole(value.dtype) if known is None else known

    def _results(self, node: ir.Node) -> Sequence[Result]:
        nothing: list[Result] = [None] * len(node.outputs)
        try:
            results = self._computed(node)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return nothing  # a form that ONNX does not allow; whoever runs the model says so
        return [*results, *nothing][: len(node.outputs)]

    def _computed(self, node: ir.Node) -> list[Result]:
        if any(item.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for item in node.attributes.values()):
            return self._with_bodies(node)
        if node.domain not in _STANDARD:
            return []
        if node.op_type == "Constant":
            return [_of_constant(node.outputs[0])]
        function = TRANSFER.get(node.op_type)
        # Without the types of what it reads, nothing is known of what it gives.
        if function is None or not all(value is None or value.dtype is not None for value in (*node.inputs, node.outputs[0])):
            return []
        results = function(View(node, tuple(self.of(value) for value in node.inputs), self.opset, self.shapes))
        return list(results) if isinstance(results, list) else [results]  # type: ignore[list-item]

    def _with_bodies(self, node: ir.Node) -> list[Result]:
        if node.domain in _STANDARD and node.op_type == "If":
            return self._branches(node)
        if node.domain in _STANDARD and node.op_type == "Loop":
            return self._loop(node)
        if node.domain in _STANDARD and node.op_type == "Scan" and self.opset >= 9:
            return self._scan(node)
        for attribute in node.attributes.values():
            for body in [attribute.as_graph()] if attribute.type == ir.AttributeType.GRAPH else ():
                self.graph(body)
        return []

    def _branches(self, node: ir.Node) -> list[Result]:
        bodies = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        for body in bodies:
            self.graph(body)
        return [hull(self._hull(value) for value in pair) for pair in zip(*(body.outputs for body in bodies), strict=True)]

    def _loop(self, node: ir.Node) -> list[Result]:
        body = node.attributes["body"].as_graph()
        trips = Interval(0, 2**63 - 1) if not node.inputs or node.inputs[0] is None else self._hull(node.inputs[0])
        self.known[body.inputs[0]] = Interval(0, max(trips.hi - 1, 0))
        self.known[body.inputs[1]] = Interval(0, 1)
        states = [self._hull(value) for value in node.inputs[2:]]
        states = self._settle(body, body.inputs[2:], body.outputs[1:], states)
        return [*states, *(self._hull(value) for value in body.outputs[1 + len(states) :])]

    def _scan(self, node: ir.Node) -> list[Result]:
        body = node.attributes["body"].as_graph()
        carried = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
        for inner, outer in zip(body.inputs[carried:], node.inputs[carried:], strict=True):
            self.known[inner] = self._hull(outer)
        states = self._settle(body, body.inputs[:carried], body.outputs, [self._hull(value) for value in node.inputs[:carried]])
        return [*states, *(self._hull(value) for value in body.outputs[carried:])]

    def _settle(
        self, body: ir.Graph, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], states: Sequence[Interval]
    ) -> list[Interval]:
        """Intervals of the loop variables that hold before, between and after all rounds."""
        present = list(states)
        for number in range(2 * _ROUNDS):
            self.known.update(zip(inputs, present, strict=True))
            self.graph(body)
            grown = [state.join(self._hull(value)) for state, value in zip(present, outputs, strict=False)]
            if grown == present:
                return present
            growing = [one != other for one, other in zip(present, grown, strict=True)]
            wide = [whole(value.dtype) for value in inputs]
            present = [
                everything if number >= _ROUNDS and (grows or number == 2 * _ROUNDS - 2) else state
                for state, grows, everything in zip(grown, growing, wide, strict=True)
            ]
        present = [whole(value.dtype) for value in inputs]
        self.known.update(zip(inputs, present, strict=True))
        self.graph(body)
        return present

    def _hull(self, value: ir.Value | None) -> Interval:
        known = self.of(value)
        return UNKNOWN if known is None else hull(known)


def _tensor_of(value: ir.Value) -> ir.TensorProtocol | None:
    """A constant's tensor; by hand where it can be, because the library's accessor takes longer than all the rest."""
    if value.const_value is not None:
        return value.const_value
    node = value.producer()
    held = None if node is None or node.op_type != "Constant" else node.attributes.get("value")
    if held is not None and held.type == ir.AttributeType.TENSOR:
        tensor: ir.TensorProtocol = held.value
        return tensor
    return ir.convenience.get_const_tensor(value)


def _of_constant(value: ir.Value) -> Known:
    dtype, tensor = value.dtype, _tensor_of(value)
    if tensor is None or dtype is None or dtype == ir.DataType.STRING:
        return whole(dtype)
    # The whole of a one-byte type is near enough, and such tensors are weights.
    if tensor.size > (SMALL if dtype.itemsize <= 1 else math.inf if is_integer(dtype) else _FLOATS_LOOKED_AT):
        return whole(dtype)
    array = tensor.numpy()
    if array.dtype.kind in "OUSc":
        return whole(dtype)
    if array.size == 1:
        return settled(cells_of([of_array(array)], array.shape), dtype)
    if array.size <= SMALL:
        return settled(cells_of((of_array(item) for item in array.reshape(-1, 1)), array.shape), dtype)
    return settled(of_array(array), dtype)
