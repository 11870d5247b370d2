"""Operators that join, repeat, pad and scatter: of shapes, and of elements where these are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from .expr import Element, Unknowable, bounds
from .known import (
    MAX_ELEMENTS,
    UNKNOWN,
    Array,
    Known,
    Shape,
    Walk,
    attribute,
    first_input,
    of_elements,
    proper_axis,
    rank_of,
    rule,
    shape_of,
)
from .layout import listed, moved
from .operations import broadcast, is_nonzero


@rule("Concat")
def _concat(walk: Walk, node: ir.Node) -> Known:
    out = node.outputs[0]
    known = [walk.get(value) for value in node.inputs]
    shapes = [item.shape for item in known if item.shape is not None]
    if not shapes:
        return UNKNOWN
    rank = len(shapes[0])
    axis = proper_axis(int(attribute(node, "axis", 0)), rank)
    if any(len(shape) != rank for shape in shapes):
        return UNKNOWN  # ONNX Runtime leaves out empty tensors of another rank
    arrays = [walk.data(value) for value in node.inputs]
    if len(shapes) < len(known):
        return walk.unknown(out, rank)
    dims = list(_reference(walk, out, shapes, axis))
    try:
        dims[axis] = sum((shape[axis] for shape in shapes), 0)
    except Unknowable:
        dims[axis] = walk.fresh(out, axis)
    if not any(array is not None for array in arrays) or not all(isinstance(dim, int) for dim in dims):
        return Known(tuple(dims))
    count = math.prod(int(dim) for dim in dims if isinstance(dim, int))
    filled = [array for array in arrays if array is not None]
    if len(filled) == len(arrays) and all(array.dtype == filled[0].dtype and array.dtype != object for array in filled):
        if any(array.shape[:axis] + array.shape[axis + 1 :] != filled[0].shape[:axis] + filled[0].shape[axis + 1 :] for array in filled):
            return Known(tuple(dims))
        return moved(walk, np.concatenate(filled, axis=axis), *filled) if walk.fits(count, filled[0].dtype, *filled) else Known(tuple(dims))
    dtype = next((item.dtype for item in known if item.dtype is not None), None)
    if count > MAX_ELEMENTS or dtype is None or dtype.kind not in "iub":
        return Known(tuple(dims))
    parts = [_object_array(array, shape) for array, shape in zip(arrays, shapes, strict=True)]
    return of_elements(np.concatenate(parts, axis=axis), dtype)


def _object_array(array: Array | None, shape: Shape) -> Array:
    return np.full(tuple(int(dim) for dim in shape), None, dtype=object) if array is None else array.astype(object)  # type: ignore[arg-type]


def _reference(walk: Walk, out: ir.Value, shapes: list[Shape], axis: int) -> Shape:
    """The dimensions beside the axis. ONNX Runtime takes them of the first input that is not empty and leaves empty ones unchecked."""
    others = [(*shape[:axis], *shape[axis + 1 :]) for shape in shapes]
    if all(other == others[0] for other in others):
        return shapes[0]
    full = [shape for shape in shapes if all(is_nonzero(dim) for dim in shape)]
    if full:
        return min(full, key=lambda shape: sum(not isinstance(dim, int) for dim in shape))
    if all(0 in shape for shape in shapes):
        return shapes[0]
    same = (len({dims[place] for dims in others}) == 1 for place in range(len(others[0])))
    flags = list(same)
    flags.insert(axis, True)
    return tuple(dim if flags[place] else walk.fresh(out, place) for place, dim in enumerate(shapes[0]))


@rule("Expand")
def _expand(walk: Walk, node: ir.Node) -> Known:
    source, out = walk.get(node.inputs[0]), node.outputs[0]
    shape, target = source.shape, listed(walk, node.inputs[1])
    if shape is None or target is None:
        return UNKNOWN
    rank = max(len(shape), len(target))
    left = (1,) * (rank - len(shape)) + shape
    right = [1] * (rank - len(target)) + target
    dims = tuple(_expanded(walk, out, axis, a, b) for axis, (a, b) in enumerate(zip(left, right, strict=True)))
    return repeated(walk, node, dims, lambda data, shape: np.broadcast_to(data, shape))


def _expanded(walk: Walk, out: ir.Value, axis: int, size: Element, target: Element | None) -> Element:
    if target is None or (not isinstance(target, int) and bounds(target)[0] < 0):
        return size if isinstance(size, int) and size > 1 else walk.fresh(out, axis)
    return broadcast(size, target)


def repeated(walk: Walk, node: ir.Node, dims: Shape, make: Any) -> Known:
    """A result that repeats the elements of the first input, under the limit."""
    data = walk.data(node.inputs[0])
    if data is None or not all(isinstance(dim, int) for dim in dims):
        return Known(dims)
    shape = tuple(int(dim) for dim in dims if isinstance(dim, int))
    count = math.prod(shape)
    if (data.dtype == object and count > MAX_ELEMENTS) or (data.dtype != object and not walk.fits(count, data.dtype, data)):
        return Known(dims)
    return moved(walk, np.array(make(data, shape)), data, dtype=walk.get(node.inputs[0]).dtype)


@rule("Tile")
def _tile(walk: Walk, node: ir.Node) -> Known:
    shape, counts = shape_of(walk.get(node.inputs[0])), listed(walk, node.inputs[1])
    if counts is None or len(counts) != len(shape):
        return walk.unknown(node.outputs[0], len(shape))
    dims = tuple(
        walk.fresh(node.outputs[0], axis) if count is None else dim * count
        for axis, (dim, count) in enumerate(zip(shape, counts, strict=True))
    )
    return repeated(walk, node, dims, lambda data, _: np.tile(data, counts))


@rule("Pad")
def _pad(walk: Walk, node: ir.Node) -> Known:
    shape = list(shape_of(walk.get(node.inputs[0])))
    out = node.outputs[0]
    amounts = list(attribute(node, "pads", ())) if walk.opset < 11 else listed(walk, node.inputs[1])
    axes_value = first_input(node, 3)
    axes = list(range(len(shape))) if axes_value is None else walk.integers(axes_value)
    if amounts is None or axes is None or len(amounts) != 2 * len(axes):
        return walk.unknown(out, len(shape))
    for place, axis in enumerate(axes):
        before, after = amounts[place], amounts[place + len(axes)]
        where = proper_axis(axis, len(shape))
        shape[where] = walk.fresh(out, where) if before is None or after is None else shape[where] + before + after
    data = walk.numbers(node.inputs[0])
    if data is None or data.size > MAX_ELEMENTS or not all(isinstance(dim, int) for dim in (*shape, *amounts)):
        return Known(tuple(shape))
    return _padded(walk, node, data, tuple(shape), amounts, [proper_axis(axis, data.ndim) for axis in axes])


def _padded(walk: Walk, node: ir.Node, data: Array, shape: Shape, amounts: list[int], axes: list[int]) -> Known:
    value = first_input(node, 2)
    filler = np.array(0, dtype=data.dtype) if value is None else walk.numbers(value)
    if (
        attribute(node, "mode", "constant") != "constant"
        or walk.opset < 11
        or filler is None
        or filler.size != 1
        or min(amounts, default=0) < 0
    ):
        return Known(shape)
    widths = [(0, 0)] * data.ndim
    for place, axis in enumerate(axes):
        widths[axis] = (amounts[place], amounts[place + len(axes)])
    if not walk.fits(math.prod(int(dim) for dim in shape if isinstance(dim, int)), data.dtype, data):
        return Known(shape)
    return moved(walk, np.pad(data, widths, constant_values=filler.ravel()[0]), data)


@rule("Trilu")
def _trilu(walk: Walk, node: ir.Node) -> Known:
    data, offset = walk.numbers(node.inputs[0]), first_input(node, 1)
    shift = [0] if offset is None else walk.integers(offset)
    if data is None or shift is None or data.ndim < 2 or not walk.fits(data.size, data.dtype, data):
        return Known(walk.get(node.inputs[0]).shape)
    keep = np.triu if attribute(node, "upper", 1) else np.tril
    return moved(walk, keep(data, shift[0]), data)


@rule("ScatterND", "ScatterElements", "Scatter")
def _scatter(walk: Walk, node: ir.Node) -> Known:
    source = walk.get(node.inputs[0])
    data, places, updates = walk.data(node.inputs[0]), walk.numbers(node.inputs[1]), walk.data(node.inputs[2])
    if (
        data is None
        or places is None
        or updates is None
        or max(data.size, places.size) > MAX_ELEMENTS
        or attribute(node, "reduction", "none") != "none"
    ):
        return Known(source.shape)
    result = data.astype(object)
    chosen = _scattered_places(node, places, data)
    if chosen is None:
        return Known(source.shape)
    result[chosen] = updates
    kind = source.dtype if source.dtype is not None else data.dtype
    if kind.kind in "iub":
        return of_elements(result, kind)
    return moved(walk, result.astype(kind), data) if data.dtype != object and updates.dtype == data.dtype else Known(source.shape)


def _scattered_places(node: ir.Node, places: Array, data: Array) -> Any:
    """The places written, as numpy's index; None when one is out of range or written twice (then the order counts)."""
    if node.op_type == "ScatterND":
        chosen = [places[..., part] for part in range(places.shape[-1])]
    else:
        axis = proper_axis(int(attribute(node, "axis", 0)), data.ndim)
        chosen = list(np.indices(places.shape))
        chosen[axis] = places
    sizes = data.shape[: len(chosen)]
    if any(item.size and (item.min() < -size or item.max() >= size) for item, size in zip(chosen, sizes, strict=True)):
        return None
    positive = np.stack([np.where(item < 0, item + size, item).ravel() for item, size in zip(chosen, sizes, strict=True)])
    if len({tuple(column) for column in positive.T.tolist()}) != positive.shape[1]:
        return None
    return tuple(chosen)


@rule("NonZero")
def _nonzero(walk: Walk, node: ir.Node) -> Known:
    data, rank = walk.numbers(node.inputs[0]), rank_of(walk.get(node.inputs[0]))
    if data is None or data.ndim == 0 or data.size > walk.limit:
        return Known((max(rank, 1), walk.fresh(node.outputs[0], 1)))
    return moved(walk, np.array(np.nonzero(data), dtype=np.int64), data)
