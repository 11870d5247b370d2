"""Operators that make one of many (reductions, running sums), and tensors made from sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from .arithmetic import strict
from .known import MAX_ELEMENTS, UNKNOWN, Array, Known, Shape, Walk, attribute, axes_of, constant, of_elements, proper_axis, rule, shape_of
from .layout import listed
from .operations import ceil_div, maximum, minimum


def reduced_shape(walk: Walk, node: ir.Node) -> tuple[Shape, list[int]]:
    """The shape of a reduction's result, and the axes it reduces."""
    shape = shape_of(walk.get(node.inputs[0]))
    axes = axes_of(walk, node)
    if not axes:  # left out or empty
        axes = [] if attribute(node, "noop_with_empty_axes", 0) else list(range(len(shape)))
    gone = sorted({proper_axis(axis, len(shape)) for axis in axes})
    if attribute(node, "keepdims", 1):
        return tuple(1 if axis in gone else dim for axis, dim in enumerate(shape)), gone
    return tuple(dim for axis, dim in enumerate(shape) if axis not in gone), gone


@rule("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
def _reduce(walk: Walk, node: ir.Node) -> Known:
    shape, axes = reduced_shape(walk, node)
    known, data = walk.get(node.inputs[0]), walk.data(node.inputs[0])
    if data is None or known.dtype is None or known.dtype.kind not in "iu" or data.size > MAX_ELEMENTS:
        return Known(shape)
    if not data.size and node.op_type in ("ReduceMax", "ReduceMin"):
        return Known(shape)
    steps: dict[str, tuple[Callable[[Any, Any], Any], int | None]] = {
        "ReduceProd": (lambda a, b: a * b, 1),
        "ReduceSum": (lambda a, b: a + b, 0),
        "ReduceMax": (maximum, None),
        "ReduceMin": (minimum, None),
    }
    step, start = steps[node.op_type]
    result = data.astype(object)
    for axis in reversed(axes):
        result = _fold_axis(result, axis, strict(step), start)
    return of_elements(result.reshape(tuple(int(dim) for dim in shape if isinstance(dim, int))), known.dtype)


def _fold_axis(data: Array, axis: int, step: Callable[[Any, Any], Any], start: int | None) -> Array:
    moved = np.moveaxis(data, axis, 0)
    result = np.full(moved.shape[1:], start, dtype=object) if start is not None else moved[0]
    for part in moved if start is not None else moved[1:]:
        result = np.asarray(np.frompyfunc(step, 2, 1)(result, part), dtype=object)
    return np.asarray(result, dtype=object)


@rule("CumSum")
def _cumsum(walk: Walk, node: ir.Node) -> Known:
    data, axis = walk.numbers(node.inputs[0]), walk.integers(node.inputs[1])
    shape = walk.get(node.inputs[0]).shape
    if data is None or axis is None or data.dtype.kind not in "iu" or data.dtype.itemsize < 4 or not data.ndim or data.nbytes > walk.limit:
        return Known(shape)
    place = proper_axis(axis[0], data.ndim)
    exclusive, reverse = bool(attribute(node, "exclusive", 0)), bool(attribute(node, "reverse", 0))
    turned = np.flip(data, place) if reverse else data
    total = np.cumsum(turned, axis=place, dtype=data.dtype)
    total = total - turned if exclusive else total
    return constant(np.array(np.flip(total, place) if reverse else total))


# ---- made from sizes ------------------------------------------------------------------------------------------------------------------


@rule("ConstantOfShape")
def _constant_of_shape(walk: Walk, node: ir.Node) -> Known:
    dims = listed(walk, node.inputs[0])
    if dims is None:
        return UNKNOWN
    tensor = attribute(node, "value")
    filler = np.zeros(1, dtype=np.float32) if tensor is None else tensor.numpy().ravel()
    shape = tuple(walk.fresh(node.outputs[0], axis) if dim is None else dim for axis, dim in enumerate(dims))
    if not all(isinstance(dim, int) for dim in shape):
        return Known(shape)
    sizes = tuple(int(dim) for dim in shape if isinstance(dim, int))
    if min(sizes, default=0) < 0 or filler.size != 1 or not walk.fits(math.prod(sizes), filler.dtype):
        return Known(shape)
    return constant(np.full(sizes, filler[0], dtype=filler.dtype))


@rule("Range")
def _range(walk: Walk, node: ir.Node) -> Known:
    data = [walk.data(value) for value in node.inputs]
    kind = walk.get(node.inputs[0]).dtype
    if kind is None or kind.kind != "i" or any(array is None or array.size != 1 for array in data):
        return Known((walk.fresh(node.outputs[0], 0),))
    start, limit, delta = (None if array is None else array.ravel().tolist()[0] for array in data)
    if start is None or limit is None or not isinstance(delta, int) or delta == 0:
        return Known((walk.fresh(node.outputs[0], 0),))
    count = maximum(0, ceil_div(limit - start, delta) if delta > 0 else ceil_div(start - limit, -delta))
    if not isinstance(count, int):
        return Known((count,))
    if isinstance(start, int):
        return constant(np.arange(start, start + count * delta, delta, dtype=kind)) if walk.fits(count, kind) else Known((count,))
    return of_elements([start + index * delta for index in range(count)], kind) if count <= MAX_ELEMENTS else Known((count,))
