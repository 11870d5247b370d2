"""Operators that compute elements: exactly on numbers (as ONNX Runtime does, wrapping around), and symbolically on sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from .expr import Element, Expr, Unknowable, bounds
from .known import (
    MAX_ELEMENTS,
    UNKNOWN,
    Array,
    Known,
    Shape,
    Walk,
    attribute,
    constant,
    of_elements,
    rule,
)
from .operations import broadcast, gap, maximum, minimum, modulo, truncated_div

_EXACT_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def broadcast_shapes(*shapes: Shape | None) -> Shape | None:
    """The shape of tensors broadcast together; None when a rank is not known."""
    first, *others = shapes
    for other in others:
        if first is None or other is None:
            return None
        if first == other:
            continue
        rank = max(len(first), len(other))
        left = (1,) * (rank - len(first)) + first
        right = (1,) * (rank - len(other)) + other
        first = tuple(broadcast(a, b) for a, b in zip(left, right, strict=True))
    return first


def _apply(function: Callable[..., Any], arrays: list[Array], dtype: Any) -> Known:
    """Element by element over objects, broadcast; None where an operand is None or nothing can be said."""

    def one(*items: Any) -> Any:
        try:
            return function(*items)
        except Unknowable:
            return None

    found = np.frompyfunc(one, len(arrays), 1)(*(array.astype(object) for array in arrays))
    return of_elements(found, dtype)


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *items: None if any(item is None for item in items) else function(*items)


def elementwise(
    walk: Walk, node: ir.Node, exact: Callable[..., Array | None], symbolic: Callable[..., Any] | None, dtype: Any = None, skip: int = 0
) -> Known:
    """An operator that broadcasts its inputs.

    Args:
        exact: on arrays of numbers of one dtype; None where it would not be certain to equal ONNX Runtime.
        symbolic: on elements, for integers and booleans.
        dtype: of the result (that of the operands unless given).
        skip: inputs before the operands that count for ``dtype`` only.
    """
    shape = broadcast_shapes(*(walk.get(value).shape for value in node.inputs))
    arrays = [walk.data(value) for value in node.inputs]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays) or shape is None or not all(isinstance(dim, int) for dim in shape):
        return UNKNOWN if shape is None else Known(shape)
    count = math.prod(int(dim) for dim in shape if isinstance(dim, int))
    kind = walk.get(node.inputs[skip]).dtype
    if kind is None or not is_plain(kind) or any(walk.get(value).dtype != kind for value in node.inputs[skip:]):
        return Known(shape)
    if all(array.dtype != object for array in known):
        if not walk.fits(count, kind, *known):
            return Known(shape)
        with np.errstate(all="ignore"):
            result = exact(*known)
        return Known(shape) if result is None else constant(np.asarray(result))
    if symbolic is None or kind.kind not in "iub" or count > MAX_ELEMENTS:
        return Known(shape)
    return _apply(symbolic, known, kind if dtype is None else dtype)


def _numeric(function: Callable[..., Any]) -> Callable[..., Array | None]:
    """Exact on integers (wrapping around) and on floats whose operations IEEE defines to the last bit."""

    def run(*arrays: Array) -> Array | None:
        kind = arrays[0].dtype
        if kind.kind not in "iu" and kind not in _EXACT_FLOATS:
            return None
        return np.asarray(function(*arrays), dtype=kind)

    return run


def _divide(a: Array, b: Array) -> Array | None:
    if a.dtype in _EXACT_FLOATS:
        return np.asarray(a / b)
    if a.dtype.kind not in "iu" or not b.all():
        return None  # an integer division by zero ends the process
    if a.dtype.kind == "u":
        return np.asarray(a // b)
    if ((a == np.iinfo(a.dtype).min) & (b == -1)).any():
        return None
    quotient = a // b
    return np.asarray(quotient + ((quotient * b != a) & ((a < 0) != (b < 0))), dtype=a.dtype)


@rule("Add", "Sub", "Mul", "Div", "Mod")
def _binary(walk: Walk, node: ir.Node) -> Known:
    if node.op_type == "Div":
        return elementwise(walk, node, _divide, strict(truncated_div))
    if node.op_type == "Mod":
        truncated = bool(attribute(node, "fmod", 0))
        return elementwise(walk, node, lambda a, b: _remainder(a, b, truncated), strict(lambda a, b: modulo(a, b, truncated)))
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[node.op_type]
    symbolic = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b}[node.op_type]
    return elementwise(walk, node, _numeric(function), strict(symbolic))


def _remainder(a: Array, b: Array, truncated: bool) -> Array | None:
    if a.dtype.kind not in "iu" or not b.all() or (a.dtype.kind == "i" and (a == np.iinfo(a.dtype).min).any()):
        return None
    return np.asarray(np.fmod(a, b) if truncated else np.mod(a, b))


@rule("Pow")
def _pow(walk: Walk, node: ir.Node) -> Known:
    shape = broadcast_shapes(*(walk.get(value).shape for value in node.inputs))
    base, exponent = (walk.numbers(value) for value in node.inputs)
    small = base is not None and exponent is not None and base.dtype.kind == exponent.dtype.kind == "i"
    if base is None or exponent is None or not small or max(base.size, exponent.size) > MAX_ELEMENTS:
        return UNKNOWN if shape is None else Known(shape)
    if (exponent < 0).any() or (exponent > 31).any() or (np.abs(base) > 1 << 15).any():
        return Known(np.broadcast(base, exponent).shape)
    # ONNX Runtime computes in double precision, exact for small results.
    return _apply(lambda a, b: a**b if abs(a**b) < 1 << 31 else None, [base, exponent], base.dtype)


@rule("Min", "Max", "Sum", "Mean")
def _variadic(walk: Walk, node: ir.Node) -> Known:
    def numbers(*arrays: Array) -> Array | None:
        if arrays[0].dtype.kind not in "iu" or node.op_type in ("Sum", "Mean"):
            return None
        result = arrays[0]
        for array in arrays[1:]:
            result = (np.minimum if node.op_type == "Min" else np.maximum)(result, array)
        return result

    symbolic = {"Min": strict(minimum), "Max": strict(maximum)}.get(node.op_type)
    return elementwise(walk, node, numbers, symbolic)


@rule("Neg", "Abs", "Floor", "Ceil", "Sign")
def _unary(walk: Walk, node: ir.Node) -> Known:
    def exact(array: Array) -> Array | None:
        if node.op_type in ("Floor", "Ceil") and array.dtype not in _EXACT_FLOATS:
            return None
        functions: dict[str, Callable[[Array], Array]] = {
            "Neg": np.negative,
            "Abs": np.abs,
            "Floor": np.floor,
            "Ceil": np.ceil,
            "Sign": np.sign,
        }
        return _numeric(functions[node.op_type])(array)

    symbolic = {"Neg": lambda a: -a, "Abs": lambda a: maximum(a, -a), "Sign": lambda a: 1 if bounds(a)[0] > 0 else None}
    function = symbolic.get(node.op_type)
    return elementwise(walk, node, exact, None if function is None else strict(function))


# ---- comparing and choosing -----------------------------------------------------------------------------------------------------------


def is_equal(a: Element, b: Element) -> bool | None:
    """Whether two elements are equal; None where that depends on the sizes."""
    if a == b:
        return True
    low, high = gap(a, b)
    return False if low > 0 or high < 0 else (True if low == high == 0 else None)


def is_less(a: Element, b: Element) -> bool | None:
    """Whether one element is less than another; None where that depends on the sizes."""
    low, high = gap(a, b)
    return True if high < 0 else (False if low >= 0 else None)


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


@rule("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def _compare(walk: Walk, node: ir.Node) -> Known:
    exact: dict[str, Callable[..., Any]] = {
        "Equal": np.equal,
        "Less": np.less,
        "Greater": np.greater,
        "LessOrEqual": np.less_equal,
        "GreaterOrEqual": np.greater_equal,
    }
    symbolic: dict[str, Callable[..., Any]] = {
        "Equal": is_equal,
        "Less": is_less,
        "Greater": lambda a, b: is_less(b, a),
        "LessOrEqual": lambda a, b: _not(is_less(b, a)),
        "GreaterOrEqual": lambda a, b: _not(is_less(a, b)),
    }
    function = symbolic[node.op_type]
    undecided = walk.get(node.inputs[0]).dtype is not None and walk.get(node.inputs[0]).dtype == np.bool_
    return elementwise(walk, node, exact[node.op_type], None if undecided else strict(function), np.bool_)


@rule("Not", "And", "Or", "Xor")
def _logic(walk: Walk, node: ir.Node) -> Known:
    exact: dict[str, Callable[..., Any]] = {"Not": np.logical_not, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
    symbolic: dict[str, Callable[..., Any]] = {
        "Not": _not,
        "And": lambda a, b: False if a is False or b is False else (True if a is True and b is True else None),
        "Or": lambda a, b: True if a is True or b is True else (False if a is False and b is False else None),
        "Xor": lambda a, b: None if a is None or b is None else a != b,
    }
    return elementwise(walk, node, exact[node.op_type], symbolic[node.op_type])


@rule("Where")
def _where(walk: Walk, node: ir.Node) -> Known:
    def choose(condition: bool | None, a: Any, b: Any) -> Any:
        if condition is None:
            return a if a == b else None
        return a if condition else b

    shape = broadcast_shapes(*(walk.get(value).shape for value in node.inputs))
    condition, a, b = (walk.data(value) for value in node.inputs)
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return UNKNOWN if shape is None else Known(shape)
    if condition is not None and condition.dtype != object and condition.size and (condition.all() or not condition.any()):
        # One side is taken as a whole, whatever is known of the other.
        return _one_side(walk, node, 1 if condition.all() else 2, shape)
    kinds = [walk.get(value).dtype for value in node.inputs[1:]]
    if condition is None or a is None or b is None:
        # Equal sides: the condition does not matter.
        return Known(shape)
    if object not in (condition.dtype, a.dtype, b.dtype):
        return elementwise(walk, node, lambda c, x, y: np.asarray(np.where(c, x, y)), None, skip=1)
    count = math.prod(int(dim) for dim in shape if isinstance(dim, int))
    if kinds[0] != kinds[1] or kinds[0] is None or kinds[0].kind not in "iub" or count > MAX_ELEMENTS:
        return Known(shape)
    return _apply(choose, [condition, a, b], kinds[0])


def _one_side(walk: Walk, node: ir.Node, position: int, shape: Shape) -> Known:
    data, known = walk.data(node.inputs[position]), walk.get(node.inputs[position])
    if data is None or known.dtype is None:
        return Known(shape)
    sizes = tuple(int(dim) for dim in shape if isinstance(dim, int))
    if data.dtype == object:
        return of_elements(np.broadcast_to(data, sizes), known.dtype)
    return constant(np.array(np.broadcast_to(data, sizes))) if walk.fits(math.prod(sizes), data.dtype, data) else Known(shape)


# ---- conversions ----------------------------------------------------------------------------------------------------------------------

_CASTS = frozenset("iubf")


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether it is a type of numpy's own (bfloat16 and the like are guests in numpy)."""
    return issubclass(dtype.type, (np.number, np.bool_))


@rule("Cast")
def _cast(walk: Walk, node: ir.Node) -> Known:
    known, data = walk.get(node.inputs[0]), walk.data(node.inputs[0])
    wanted = ir.DataType(attribute(node, "to"))
    if data is None or known.dtype is None or wanted in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return Known(known.shape)
    dtype = np.dtype(wanted.numpy())
    if data.dtype == object:
        return _cast_elements(data, dtype)
    supported = is_plain(dtype) and is_plain(data.dtype) and dtype.kind in _CASTS and data.dtype.kind in _CASTS and dtype != np.float16
    if not supported or not walk.fits(data.size, dtype, data):
        return Known(known.shape)
    if data.dtype.kind == "f" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # The largest integers are no floats: stay strictly inside, where truncation is the same everywhere.
        if not np.isfinite(data).all() or (data <= float(limits.min) - (dtype.kind == "u")).any() or (data >= float(limits.max)).any():
            return Known(known.shape)
    with np.errstate(all="ignore"):
        return constant(data.astype(dtype))


def _cast_elements(data: Array, dtype: np.dtype[Any]) -> Known:
    if dtype.kind == "b":
        return _apply(lambda item: None if item is None else (item if isinstance(item, bool) else _not(is_equal(item, 0))), [data], dtype)
    if dtype.kind in "iu" and dtype.itemsize >= 4:
        # (Sizes are assumed not to overflow 32 bits either.)
        return _apply(
            lambda item: None if isinstance(item, Expr) and dtype.kind == "u" and item.bounds()[0] < 0 else _number(item), [data], dtype
        )
    return Known(data.shape)


def _number(item: Any) -> Any:
    return int(item) if isinstance(item, bool) else item
