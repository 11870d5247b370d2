"""Small integers and booleans that can be told without running anything: conditions, counters, positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from .base import Array, given, integer, known_shape, small_constant, static_shape

# Conditions and counters are scalars; a shape has a few entries.
_MAX_ELEMENTS = 64
_MAX_DEPTH = 32

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "And": np.logical_and,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}
_CASTS = {
    ir.DataType.BOOL: np.bool_,
    ir.DataType.INT32: np.int32,
    ir.DataType.INT64: np.int64,
}


def known_value(value: ir.Value | None, assumed: Mapping[ir.Value, Array] | None = None, depth: int = 0) -> Array | None:
    """The booleans or integers a tensor always holds, None where that cannot be told.

    Floating-point numbers are not followed: their rounding is the runtime's.

    Args:
        assumed: what some tensors hold in one trip of a loop. Sizes are not followed then: they may differ from trip to trip.
    """
    if value is None or depth > _MAX_DEPTH:
        return None
    if assumed and value in assumed:
        return assumed[value]
    array = small_constant(value)
    if array is None:
        array = _computed(value, assumed or {}, depth + 1)
    return array if array is not None and array.dtype.kind in "bi" and array.size <= _MAX_ELEMENTS else None


def known_scalar(value: ir.Value | None, assumed: Mapping[ir.Value, Array] | None = None) -> int | None:
    """As :func:`known_value`, for a tensor of one element (booleans are 0 and 1)."""
    array = known_value(value, assumed)
    return int(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _computed(value: ir.Value, assumed: Mapping[ir.Value, Array], depth: int) -> Array | None:
    node = value.producer()
    if node is None or node.domain not in ("", "ai.onnx") or not node.inputs:
        return None
    if node.op_type in ("Shape", "Size"):
        return None if assumed else _measured(node)
    operands = [known_value(item, assumed, depth) for item in node.inputs]
    first = operands[0]
    if first is None:
        return None
    if node.op_type in _BINARY:
        return _binary(_BINARY[node.op_type], first, operands[1])
    if node.op_type == "Not":
        return np.asarray(np.logical_not(first))
    if node.op_type == "Identity":
        return first
    if node.op_type == "Cast" and "to" in node.attributes:
        wanted = _CASTS.get(ir.DataType(node.attributes["to"].as_int()))
        return None if wanted is None else first.astype(wanted)
    if node.op_type == "Gather" and first.ndim == 1 and operands[1] is not None:
        places = operands[1].astype(np.int64)
        return np.asarray(first[places]) if bool(np.all((places >= -first.size) & (places < first.size))) else None
    if node.op_type in ("Squeeze", "Unsqueeze", "Reshape") and first.size == 1:
        shape = static_shape(value)
        return None if shape is None or set(shape) - {1} else first.reshape(shape)
    return None


def _binary(function: Callable[[Array, Array], Array], first: Array, second: Array | None) -> Array | None:
    """Integers wrap as the runtime's do."""
    if second is None or second.dtype != first.dtype or (first.shape != second.shape and 1 not in (first.size, second.size)):
        return None
    with np.errstate(over="ignore"):
        return np.asarray(function(first, second))


def _measured(node: ir.Node) -> Array | None:
    """Shape of a tensor of known shape; Size of one whose shape is known, which a shape of known length is."""
    shape = static_shape(node.inputs[0])
    if node.op_type == "Shape":
        if shape is None:
            return None
        start, end = integer(node, "start", 0), integer(node, "end", len(shape))
        return np.array(shape[slice(start, end)], np.int64)
    if shape is None:
        inner = given(node, 0)
        maker = None if inner is None else inner.producer()
        whole = maker is not None and maker.op_type == "Shape" and maker.domain in ("", "ai.onnx") and not maker.attributes
        dims = known_shape(maker.inputs[0]) if whole and maker is not None else None
        return None if dims is None else np.array(len(dims), np.int64)
    return np.array(int(np.prod(shape, dtype=object)), np.int64)


__all__ = ["known_scalar", "known_value"]
