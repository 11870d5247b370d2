"""Laws of arithmetic: neutral elements, operations done twice, bounds within bounds, chains of constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from ..edit import can_take_over
from .affine import FLOATS, rounded
from .base import Action, Array, Edit, describe, given, known_shape, only_reader, producer, simplification, small_constant, static_shape

_FLOAT_LIMIT = 2.0**20
# x + 1 - 1 loses digits that x + 0 keeps; a sum may be smaller than what it is made of by no more than this.
_CANCELLATION = 8.0


def _keeps_shape(source: ir.Value, constant: Array) -> bool:
    """Whether broadcasting with a constant leaves a tensor's shape as it is."""
    before = known_shape(source)
    if before is None:
        return constant.ndim == 0
    if constant.ndim > len(before):
        return False
    tail = before[len(before) - constant.ndim :]
    return all(size in (1, dim) for size, dim in zip(constant.shape, tail, strict=True))


def _pass(node: ir.Node, source: ir.Value | None, edit: Edit) -> Action | None:
    """The action that drops a node whose result is one of its inputs."""
    if source is None or source.dtype is None or source.dtype != node.outputs[0].dtype or not isinstance(node.graph, ir.Graph):
        return None
    if not can_take_over(node.outputs[0], source):
        return None
    return lambda: edit.pass_through(node, source)


def _is(array: Array, number: float) -> bool:
    return bool((array == number).all())


def _is_negative_zero(array: Array) -> bool:
    return _is(array, 0) and array.dtype.kind == "f" and bool(np.signbit(array).all())


# What the constant has to be, and on which sides it may stand. (x + 0 is for integers: of floats it makes -0 a 0, see below.)
_NEUTRAL: dict[str, tuple[Callable[[Array], bool], tuple[int, ...]]] = {
    "Mul": (lambda array: _is(array, 1), (0, 1)),
    "Div": (lambda array: _is(array, 1), (1,)),
    "Add": (lambda array: _is(array, 0) if array.dtype.kind in "iu" else _is_negative_zero(array), (0, 1)),
    "Sub": (lambda array: _is(array, 0) and not bool(array.dtype.kind == "f" and np.signbit(array).any()), (1,)),
    "Pow": (lambda array: _is(array, 1), (1,)),
    "And": (lambda array: bool(array.all()), (0, 1)),
    "Or": (lambda array: not bool(array.any()), (0, 1)),
    "Xor": (lambda array: not bool(array.any()), (0, 1)),
}


@simplification("neutral-element", *_NEUTRAL)
def _neutral_element(node: ir.Node, edit: Edit) -> Action | None:
    """``x * 1``, ``x / 1``, ``x - 0``, ``x ** 1``, ``x and true``..."""
    if edit.opset < 7 or len(node.inputs) != 2:
        return None
    test, sides = _NEUTRAL[node.op_type]
    for side in sides:
        array, source = small_constant(node.inputs[side]), node.inputs[1 - side]
        if array is not None and source is not None and array.size and test(array) and _keeps_shape(source, array):
            return _pass(node, source, edit)
    return None


@simplification("add-zero", "Add", "Sub", exact=False)
def _add_zero(node: ir.Node, edit: Edit) -> Action | None:
    """``x + 0`` of floats: equal in value, but -0 stays -0, which a division can tell from 0."""
    if edit.opset < 7 or len(node.inputs) != 2:
        return None
    for side in (0, 1) if node.op_type == "Add" else (1,):
        array, source = small_constant(node.inputs[side]), node.inputs[1 - side]
        if array is not None and source is not None and array.size and _is(array, 0) and _keeps_shape(source, array):
            return _pass(node, source, edit)
    return None


_INVOLUTIONS = ("Neg", "Not", "BitwiseNot")


@simplification("twice-undone", *_INVOLUTIONS)
def _twice_undone(node: ir.Node, edit: Edit) -> Action | None:
    """``-(-x)``, ``not not x``."""
    inner = producer(node.inputs[0], node.op_type)
    return None if inner is None else _pass(node, inner.inputs[0], edit)


# After these, the operator changes no value (and NaN passes through all of them).
_NOT_NEGATIVE = ("Relu", "Abs", "Sigmoid", "Exp", "Softmax", "HardSigmoid", "Sqrt", "ReduceL1", "ReduceL2", "ReduceSumSquare")
_ABSORBED = {
    "Relu": _NOT_NEGATIVE,
    "Abs": _NOT_NEGATIVE,
    "Ceil": ("Ceil", "Floor", "Round"),
    "Floor": ("Ceil", "Floor", "Round"),
    "Round": ("Ceil", "Floor", "Round"),
    "Sign": ("Sign",),
}


@simplification("done-already", *_ABSORBED)
def _done_already(node: ir.Node, edit: Edit) -> Action | None:
    """``relu(relu(x))``, ``abs(exp(x))``, ``floor(round(x))``."""
    value = node.inputs[0]
    inner = producer(value, *_ABSORBED[node.op_type])
    if value is None or inner is None or value.dtype not in FLOATS:  # of integers, the smallest has no absolute value
        return None
    return _pass(node, value, edit)


@simplification("same-operands", "Max", "Min", "And", "Or")
def _same_operands(node: ir.Node, edit: Edit) -> Action | None:
    """``max(x, x)``, ``x and x``."""
    first = node.inputs[0] if node.inputs else None
    if first is None or len(node.inputs) < 2 or any(value is not first for value in node.inputs):
        return None
    return _pass(node, first, edit)


@simplification("constant-where", "Where")
def _constant_where(node: ir.Node, edit: Edit) -> Action | None:
    """A Where whose condition is the same everywhere, when the branch it takes has the size of the result."""
    condition = small_constant(node.inputs[0])
    if condition is None or not condition.size or not (condition.all() or not condition.any()):
        return None
    source = node.inputs[1 if condition.all() else 2]
    shape = static_shape(source)
    return _pass(node, source, edit) if shape is not None and shape == static_shape(node.outputs[0]) else None


# Bounds


def _bounds(node: ir.Node, dtype: ir.DataType, edit: Edit) -> tuple[float, float] | None:
    """The bounds of a Clip or Relu; None where they are computed, or the wrong way round.

    A bound that a Clip leaves out is the lowest or the largest finite number: infinity does not pass.
    """
    if node.op_type == "Relu":
        return 0.0, np.inf
    limits = np.finfo(dtype.numpy())
    found = [float(limits.min), float(limits.max)]
    for index, name in enumerate(("min", "max")):
        if edit.opset < 11:
            found[index] = node.attributes[name].as_float() if name in node.attributes else found[index]
        elif given(node, index + 1) is not None:
            array = small_constant(given(node, index + 1))
            if array is None or array.size != 1:
                return None
            found[index] = float(array.reshape(-1)[0])
    return (found[0], found[1]) if found[0] <= found[1] else None


@simplification("clip-clip", "Clip", "Relu")
def _clip_clip(node: ir.Node, edit: Edit) -> Action | None:
    """Relu and Clip after one another are one Clip; both keep NaN."""
    value = node.inputs[0]
    inner = producer(value, "Clip", "Relu")
    if value is None or inner is None or edit.opset < 6 or not isinstance(node.graph, ir.Graph):
        return None
    dtype = value.dtype
    if dtype is None or dtype not in FLOATS or (edit.opset < 11 and dtype != ir.DataType.FLOAT):
        return None
    first, second = _bounds(inner, dtype, edit), _bounds(node, dtype, edit)
    if first is None or second is None:
        return None
    if first[0] >= second[0] and first[1] <= second[1]:
        return _pass(node, value, edit)  # the second one never has anything to do
    if not only_reader(value) or inner.graph is not node.graph:
        return None
    low, high = (min(max(bound, second[0]), second[1]) for bound in first)
    return lambda: _one_clip(node, inner, low, high, dtype, edit)


def _one_clip(node: ir.Node, inner: ir.Node, low: float, high: float, dtype: ir.DataType, edit: Edit) -> None:
    builder, limits = edit.at(node, "clip-clip"), np.finfo(dtype.numpy())
    lower, upper = None if low == limits.min else low, None if high == limits.max else high
    if edit.opset < 11:
        new = builder.op("Clip", inner.inputs[0], min=lower, max=upper)
    else:
        bounds = [None if bound is None else builder.const(bound, dtype.numpy(), name="bound") for bound in (lower, upper)]
        while bounds and bounds[-1] is None:
            bounds.pop()
        new = builder.op("Clip", inner.inputs[0], *bounds)
    describe(new, known_shape(node.outputs[0]), dtype)
    builder.replace(node.outputs[0], new)
    edit.discard(node)


# Chains of constants


def _step(node: ir.Node, index: int) -> tuple[str, Any] | None:
    """A node as ``x * c`` or ``x + c``."""
    array: Any = small_constant(node.inputs[1 - index]) if len(node.inputs) == 2 else None
    if array is None or array.dtype.kind not in "fiu" or not array.size or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return None
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    if node.op_type in ("Mul", "Add"):
        return node.op_type, array
    if node.op_type == "Sub" and index == 0:
        return "Add", np.negative(array)
    if node.op_type == "Div" and index == 0 and array.dtype.kind == "f" and bool(array.all()):
        return "Mul", 1.0 / array
    return None


def _together(kind: str, first: Any, second: Any) -> Any:
    """The constant that does the work of two; None where intermediate results could round or overflow in another way."""
    if np.broadcast_shapes(first.shape, second.shape) not in (first.shape, second.shape):
        return None  # as large as the product of both
    if first.dtype.kind in "iu":
        return np.multiply(first, second) if kind == "Mul" else np.add(first, second)
    largest = max(float(np.abs(first).max()), float(np.abs(second).max()))
    if kind == "Mul":
        sizes = np.abs(np.concatenate([first.reshape(-1), second.reshape(-1)]))
        smallest = float(np.min(sizes[sizes > 0], initial=1.0))
        return first * second if largest <= _FLOAT_LIMIT and smallest >= 1 / _FLOAT_LIMIT else None
    total = first + second
    return total if largest <= _CANCELLATION * float(np.abs(total).min()) else None


@simplification("constant-chain", "Mul", "Div", "Add", "Sub", exact=False)
def _constant_chain(node: ir.Node, edit: Edit) -> Action | None:
    """``(x * 2) / 3``, ``(x + 1) - 2``: one operation with one constant. Half precision rounds too coarsely for it."""
    if edit.opset < 7 or len(node.inputs) != 2:
        return None
    dtype = node.outputs[0].dtype
    for index in (0, 1):
        value, second = node.inputs[index], _step(node, index)
        inner = producer(value, "Mul", "Div", "Add", "Sub")
        if value is None or second is None or inner is None or not only_reader(value) or inner.graph is not node.graph:
            continue
        for place in range(len(inner.inputs)):
            first = _step(inner, place)
            if first is None or first[0] != second[0] or first[1].dtype != second[1].dtype or dtype is None:
                continue
            total = _together(first[0], first[1], second[1])
            kept = total if total is None or dtype not in FLOATS else rounded(total.astype(np.float64), dtype)
            if kept is not None and dtype != ir.DataType.FLOAT16:
                return lambda: _one_step(node, inner.inputs[place], first[0], kept, edit)
    return None


def _one_step(node: ir.Node, source: ir.Value | None, op_type: str, constant: Array, edit: Edit) -> None:
    builder = edit.at(node, "constant-chain")
    new = builder.op(op_type, source, builder.const(constant))
    describe(new, known_shape(node.outputs[0]), node.outputs[0].dtype)
    builder.replace(node.outputs[0], new)
    edit.discard(node)
