"""Small constants computed with numpy while nodes are made: the arithmetic of shapes, axes and scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[Any]
Attributes = dict[str, Any]


def compute(op_type: str, inputs: Sequence[Array | None], attributes: Attributes, limit: int) -> Array | None:
    """The result of a node on constants; None where this is not done here (or would take more than ``limit`` bytes)."""
    function = _FUNCTIONS.get(op_type)
    if function is None or any(array is not None and array.dtype.kind not in "iufb" for array in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(function(inputs, attributes, limit))
    except (_NotHere, ValueError, IndexError, TypeError, KeyError, OverflowError, ZeroDivisionError):
        return None
    return result if result.nbytes <= limit else None


class _NotHere(Exception):  # noqa: N818 - control flow
    """Not computed here."""


def _elementwise(function: Callable[..., Any]) -> Callable[[Sequence[Any], Attributes, int], Any]:
    def run(inputs: Sequence[Any], _attributes: Attributes, _limit: int) -> Any:
        return function(*inputs)

    return run


def _fold_all(function: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any], Attributes, int], Any]:
    def run(inputs: Sequence[Any], _attributes: Attributes, _limit: int) -> Any:
        result = inputs[0]
        for other in inputs[1:]:
            result = function(result, other)
        return result

    return run


def _divide(left: Array, right: Array) -> Any:
    if left.dtype.kind == "f":
        return left / right
    if np.any(right == 0):
        raise _NotHere
    quotient = left // right
    return quotient + ((left % right != 0) & ((left < 0) != (right < 0))).astype(left.dtype)


def _modulo(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    if attributes.get("fmod") or inputs[0].dtype.kind == "f" or np.any(inputs[1] == 0):
        raise _NotHere
    return np.mod(*inputs)


def _cast(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    wanted = ir.DataType(int(attributes["to"])).numpy()
    if wanted.kind not in "iufb" or (inputs[0].dtype.kind == "f" and wanted.kind in "iu" and not np.all(np.abs(inputs[0]) < 2**31)):
        raise _NotHere
    return inputs[0].astype(wanted)


def _axes(inputs: Sequence[Any], attributes: Attributes) -> tuple[int, ...] | None:
    if "axes" in attributes:
        return tuple(attributes["axes"])
    return tuple(int(axis) for axis in inputs[1].reshape(-1)) if len(inputs) > 1 and inputs[1] is not None else None


def _squeeze(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    return np.squeeze(inputs[0], _axes(inputs, attributes))


def _unsqueeze(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    axes = _axes(inputs, attributes)
    if axes is None:
        raise _NotHere
    return np.expand_dims(inputs[0], axes)


def _slice(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    data = inputs[0]
    if len(inputs) == 1:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes", range(len(starts))), [1] * len(starts)
    else:
        starts, ends = inputs[1].tolist(), inputs[2].tolist()
        axes = inputs[3].tolist() if len(inputs) > 3 and inputs[3] is not None else range(len(starts))
        steps = inputs[4].tolist() if len(inputs) > 4 and inputs[4] is not None else [1] * len(starts)
    places: list[Any] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 0:
            raise _NotHere
        places[axis] = slice(start, end, step)
    return data[tuple(places)]


def _reshape(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    data, wanted = inputs[0], inputs[1].tolist() if len(inputs) > 1 else list(attributes["shape"])
    if 0 in wanted and attributes.get("allowzero"):
        raise _NotHere
    return data.reshape([data.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)])


def _range(inputs: Sequence[Any], _attributes: Attributes, limit: int) -> Any:
    start, stop, step = (array.reshape(-1)[0] for array in inputs)
    if inputs[0].dtype.kind != "i" or step == 0 or abs(int(stop) - int(start)) > limit:
        raise _NotHere
    return np.arange(start, stop, step, dtype=inputs[0].dtype)


def _room(shape: Sequence[int], itemsize: int, limit: int) -> None:
    if np.prod([float(size) for size in shape]) * itemsize > limit:
        raise _NotHere


def _constant_of_shape(inputs: Sequence[Any], attributes: Attributes, limit: int) -> Any:
    given = attributes.get("value")
    value = np.zeros(1, np.float32) if given is None else (given.numpy() if hasattr(given, "numpy") else np.asarray(given))
    _room(inputs[0].tolist(), value.itemsize, limit)
    return np.full(inputs[0].tolist(), value.reshape(-1)[0], value.dtype)


def _expand(inputs: Sequence[Any], _attributes: Attributes, limit: int) -> Any:
    shape = np.broadcast_shapes(inputs[0].shape, tuple(inputs[1].tolist()))
    _room(shape, inputs[0].itemsize, limit)
    return np.broadcast_to(inputs[0], shape)


def _concat(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    return np.concatenate(inputs, axis=attributes["axis"])


def _gather(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    return np.take(inputs[0], inputs[1].astype(np.int64), axis=attributes.get("axis", 0))


def _transpose(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
    return np.ascontiguousarray(np.transpose(inputs[0], attributes.get("perm")))


def _extreme(function: Callable[..., Any]) -> Callable[[Sequence[Any], Attributes, int], Any]:
    def run(inputs: Sequence[Any], attributes: Attributes, _limit: int) -> Any:
        axes = _axes(inputs, attributes)
        if not axes or not inputs[0].size:
            raise _NotHere
        return function(inputs[0], axis=axes, keepdims=bool(attributes.get("keepdims", 1)))

    return run


_FUNCTIONS: dict[str, Callable[[Sequence[Any], Attributes, int], Any]] = {
    "Identity": _elementwise(lambda data: data),
    "Add": _elementwise(np.add),
    "Sub": _elementwise(np.subtract),
    "Mul": _elementwise(np.multiply),
    "Div": _elementwise(_divide),
    "Mod": _modulo,
    "Neg": _elementwise(np.negative),
    "Sqrt": _elementwise(np.sqrt),
    "Equal": _elementwise(np.equal),
    "Greater": _elementwise(np.greater),
    "Less": _elementwise(np.less),
    "GreaterOrEqual": _elementwise(np.greater_equal),
    "LessOrEqual": _elementwise(np.less_equal),
    "And": _elementwise(np.logical_and),
    "Or": _elementwise(np.logical_or),
    "Not": _elementwise(np.logical_not),
    "Where": _elementwise(np.where),
    "Max": _fold_all(np.maximum),
    "Min": _fold_all(np.minimum),
    "ReduceMax": _extreme(np.max),
    "ReduceMin": _extreme(np.min),
    "Cast": _cast,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Reshape": _reshape,
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Concat": _concat,
    "Gather": _gather,
    "Transpose": _transpose,
}
