"""Operators that move elements and change none: of shapes, and of elements where these are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .expr import Element, Unknowable, bounds, product
from .known import (
    MAX_ELEMENTS,
    UNKNOWN,
    Array,
    Known,
    Shape,
    Walk,
    attribute,
    axes_of,
    constant,
    element_count,
    first_input,
    of_elements,
    proper_axis,
    rule,
    shape_of,
)
from .operations import ceil_div, floor_div, is_nonzero, maximum, minimum, nonzero_or

_HUGE = 2**31 - 1


def moved(walk: Walk, data: Array, *sources: Array, dtype: np.dtype[Any] | None = None) -> Known:
    """What an operator made of known elements by moving them."""
    if data.dtype == object:
        return of_elements(data, dtype)
    if not walk.fits(data.size, data.dtype, *sources):
        return Known(data.shape)
    return constant(data)


def _same_elements(walk: Walk, node: ir.Node, shape: Shape) -> Known:
    """The first input under another shape."""
    data = walk.data(node.inputs[0])
    if data is not None and all(isinstance(dim, int) for dim in shape):
        sizes = tuple(int(dim) for dim in shape if isinstance(dim, int))
        return moved(walk, data.reshape(sizes), data, dtype=walk.get(node.inputs[0]).dtype)
    return Known(shape)


@rule("Identity")
def _identity(walk: Walk, node: ir.Node) -> Known:
    walk.data(node.inputs[0])
    return walk.get(node.inputs[0])


@rule("Shape")
def _shape(walk: Walk, node: ir.Node) -> Known:
    dims = walk.get(node.inputs[0]).shape
    if dims is None:
        return Known((walk.fresh(node.outputs[0], 0),))
    return of_elements(list(dims[slice(attribute(node, "start"), attribute(node, "end"))]), np.int64)


@rule("Size")
def _size(walk: Walk, node: ir.Node) -> Known:
    dims = walk.get(node.inputs[0]).shape
    return Known(()) if dims is None else of_elements(element_count(dims), np.int64)


# ---- the same elements under another shape --------------------------------------------------------------------------------------------


@rule("Reshape")
def _reshape(walk: Walk, node: ir.Node) -> Known:
    source, target_value = walk.get(node.inputs[0]), first_input(node, 1)
    target = walk.data(target_value)
    if target is None:
        shape = walk.get(target_value).shape
        if shape is None or len(shape) != 1 or not isinstance(shape[0], int):
            return UNKNOWN
        items: list[Element | None] = [None] * shape[0]
    else:
        items = list(target.ravel().tolist())
    found = reshaped(source.shape, items, allow_zero=bool(attribute(node, "allowzero", 0)))
    return _same_elements(walk, node, _filled(walk, node.outputs[0], found))


def _filled(walk: Walk, value: ir.Value, dims: Sequence[Element | None]) -> Shape:
    return tuple(walk.fresh(value, axis) if dim is None else dim for axis, dim in enumerate(dims))


def reshaped(source: Shape | None, target: Sequence[Element | None], *, allow_zero: bool) -> list[Element | None]:
    """The dimensions Reshape gives, exactly as ONNX Runtime does; None for those that do not follow.

    A target that may be 0 means "the input's dimension" where it is; one that may be -1 means "what remains".
    """
    dims: list[Element | None] = []
    rest: int | None = None
    for axis, item in enumerate(target):
        dim = None if item is None else _target_dim(source, axis, item, allow_zero)
        if item == -1:
            rest = axis
        dims.append(dim)
    open_axes = [axis for axis, dim in enumerate(dims) if dim is None]
    if source is None or len(open_axes) > 1 or not all(bounds(item)[0] > -1 for item in target if item is not None and item != -1):
        return dims
    if open_axes:
        others = [dim for dim in dims if dim is not None]
        # A -1 beside a dimension of 0 is an error in ONNX Runtime, so that division is safe where the target says -1.
        if rest is not None or all(is_nonzero(dim) for dim in others):
            dims[open_axes[0]] = _remaining(source, others)
        return dims
    uncertain = [axis for axis, dim in enumerate(dims) if isinstance(target[axis], int) is False and dim != target[axis]]
    if len(uncertain) == 1:
        # All others are certain and the number of elements is kept.
        others = [dim for axis, dim in enumerate(dims) if axis != uncertain[0] and dim is not None]
        if all(is_nonzero(dim) for dim in others):
            dims[uncertain[0]] = _remaining(source, others)
    return dims


def _target_dim(source: Shape | None, axis: int, item: Element, allow_zero: bool) -> Element | None:
    copied = source[axis] if source is not None and axis < len(source) else None
    if item == 0 and isinstance(item, int):
        return 0 if allow_zero else copied
    if isinstance(item, int):
        return item if item > 0 else None
    if bounds(item)[0] < 0:
        return None
    if allow_zero or is_nonzero(item) or (source is not None and axis >= len(source)):
        return item  # a zero beyond the input's rank is an error
    return None if copied is None else nonzero_or(item, copied)


def _remaining(source: Shape, others: Sequence[Element]) -> Element:
    """What is left of the elements of ``source`` for one dimension; the others' product is not zero."""
    left, right = list(source), []
    for dim in others:
        if dim in left:
            left.remove(dim)
        else:
            right.append(dim)
    return floor_div(product(left), product(right))


@rule("Flatten")
def _flatten(walk: Walk, node: ir.Node) -> Known:
    shape = walk.get(node.inputs[0]).shape
    if shape is None:
        return walk.unknown(node.outputs[0], 2)
    axis = int(attribute(node, "axis", 1))
    axis = axis + len(shape) if axis < 0 else axis
    return _same_elements(walk, node, (element_count(shape[:axis]), element_count(shape[axis:])))


@rule("Squeeze")
def _squeeze(walk: Walk, node: ir.Node) -> Known:
    shape = shape_of(walk.get(node.inputs[0]))
    axes = axes_of(walk, node)
    if axes is None:
        if not all(isinstance(dim, int) or dim.bounds()[0] > 1 for dim in shape):
            return UNKNOWN
        return _same_elements(walk, node, tuple(dim for dim in shape if dim != 1))
    gone = {proper_axis(axis, len(shape)) for axis in axes}
    return _same_elements(walk, node, tuple(dim for axis, dim in enumerate(shape) if axis not in gone))


@rule("Unsqueeze")
def _unsqueeze(walk: Walk, node: ir.Node) -> Known:
    shape, axes = shape_of(walk.get(node.inputs[0])), axes_of(walk, node) or []
    rank = len(shape) + len(axes)
    new = {proper_axis(axis, rank) for axis in axes}
    old = iter(shape)
    return _same_elements(walk, node, tuple(1 if axis in new else next(old) for axis in range(rank)))


@rule("Transpose")
def _transpose(walk: Walk, node: ir.Node) -> Known:
    source = walk.get(node.inputs[0])
    shape = shape_of(source)
    order = [int(axis) for axis in attribute(node, "perm", range(len(shape))[::-1])]
    data = walk.data(node.inputs[0])
    if data is not None:
        return moved(walk, data.transpose(order), data, dtype=source.dtype)
    return Known(tuple(shape[axis] for axis in order))


# ---- parts ----------------------------------------------------------------------------------------------------------------------------


@rule("Gather")
def _gather(walk: Walk, node: ir.Node) -> Known:
    source, indices = walk.get(node.inputs[0]), walk.get(node.inputs[1])
    shape, chosen = shape_of(source), shape_of(indices)
    axis = proper_axis(int(attribute(node, "axis", 0)), len(shape))
    result = (*shape[:axis], *chosen, *shape[axis + 1 :])
    places = walk.numbers(node.inputs[1])
    if places is None or not all(isinstance(dim, int) for dim in result):
        return Known(result)
    data = walk.data(node.inputs[0]) if places.size <= MAX_ELEMENTS else None
    if data is None:
        return Known(result)
    size = data.shape[axis]
    if places.size and (places.min() < -size or places.max() >= size):
        return Known(result)
    taken = np.take(data, places, axis=axis)
    if places.ndim == 0 and data.ndim == 1:  # of a single element numpy makes a bare object
        taken = np.array(taken, dtype=data.dtype)
    return moved(walk, taken, data, dtype=source.dtype)


@rule("GatherElements")
def _gather_elements(walk: Walk, node: ir.Node) -> Known:
    places, data = walk.numbers(node.inputs[1]), walk.numbers(node.inputs[0])
    if places is None or data is None or places.ndim != data.ndim:
        return Known(walk.get(node.inputs[1]).shape)
    axis = proper_axis(int(attribute(node, "axis", 0)), data.ndim)
    size = data.shape[axis]
    if places.size > MAX_ELEMENTS or (places.size and (places.min() < -size or places.max() >= size)):
        return Known(places.shape)
    where: list[Any] = list(np.indices(places.shape))
    where[axis] = places
    return moved(walk, data[tuple(where)], data)


@rule("GatherND")
def _gather_nd(walk: Walk, node: ir.Node) -> Known:
    shape, chosen = shape_of(walk.get(node.inputs[0])), shape_of(walk.get(node.inputs[1]))
    depth, batch = chosen[-1], int(attribute(node, "batch_dims", 0))
    if not isinstance(depth, int):
        return UNKNOWN
    return Known((*chosen[:-1], *shape[batch + depth :]))


@rule("Slice")
def _slice(walk: Walk, node: ir.Node) -> Known:
    source, out = walk.get(node.inputs[0]), node.outputs[0]
    shape = list(shape_of(source))
    if walk.opset < 10:
        starts, ends = (list(attribute(node, name, ())) for name in ("starts", "ends"))
        axes, steps = attribute(node, "axes"), None
    else:
        limits = [listed(walk, first_input(node, position)) for position in (1, 2)]
        axes, steps = (listed(walk, first_input(node, position)) for position in (3, 4))
        count = next((len(item) for item in (*limits, axes) if item is not None), None)
        if count is None or (axes is None and first_input(node, 3) is not None) or (axes is not None and None in axes):
            return walk.unknown(out, len(shape))
        starts, ends = ([None] * count if item is None else item for item in limits)
        if steps is None and first_input(node, 4) is not None:
            steps = [None] * count
    steps = [1] * len(starts) if steps is None else steps
    places = [proper_axis(int(axis), len(shape)) for axis in (range(len(starts)) if axes is None else axes)]
    sliced = walk.data(node.inputs[0])
    whole: list[slice] | None = None if sliced is None else [slice(None)] * len(shape)
    for axis, start, end, step in zip(places, starts, ends, steps, strict=True):
        length = slice_length(shape[axis], start, end, step)
        shape[axis] = walk.fresh(out, axis) if length is None else length
        if whole is not None and sliced is not None and all(isinstance(item, int) for item in (start, end, step)) and _is_agreed(end, step):
            whole[axis] = _as_slice(start, end, step, sliced.shape[axis])
        else:
            whole = None
    if sliced is not None and whole is not None:
        return moved(walk, sliced[tuple(whole)], sliced, dtype=source.dtype)
    return Known(tuple(shape))


def listed(walk: Walk, value: ir.Value | None) -> list[Any] | None:
    data = walk.data(value)
    if data is not None and data.size <= MAX_ELEMENTS:
        return list(data.ravel().tolist())
    shape = walk.get(value).shape
    return [None] * shape[0] if shape is not None and len(shape) == 1 and isinstance(shape[0], int) else None


def _as_slice(start: int, end: int, step: int, size: int) -> slice:
    """Python's slice of the elements that ONNX takes. (Backwards they differ: ONNX clamps a start before the first element to it.)"""
    first, last = (
        _clamped(start, size, 0, size if step > 0 else size - 1),
        _clamped(end, size, *((0, size) if step > 0 else (-1, size - 1))),
    )
    assert isinstance(first, int)
    assert isinstance(last, int)
    if (last - first) * step <= 0:
        return slice(0, 0)
    return slice(first, None if last < 0 else last, step)


def _is_agreed(end: Element, step: int) -> bool:
    """Whether all runtimes mean the same: backwards, ONNX Runtime takes the largest integers as "to the first element", numpy does not."""
    return step > 0 or (step < 0 and not (isinstance(end, int) and end >= _HUGE))


def slice_length(size: Element, start: Element | None, end: Element | None, step: Element | None) -> Element | None:
    """How many elements a slice takes of ``size``; None when that cannot be said."""
    if start is None or end is None or not isinstance(step, int) or not _is_agreed(end, step):
        return None
    # Bounds are clamped to the ends: forwards to [0, size], backwards to [0, size - 1] and [-1, size - 1].
    high = size if step > 0 else size + -1
    first, last = _clamped(start, size, 0, high), _clamped(end, size, 0 if step > 0 else -1, high)
    if first is None or last is None:
        return None
    if step == 1:
        return maximum(0, last - first)
    distance = last - first if step > 0 else first - last
    return maximum(0, ceil_div(distance, abs(step)))


def _clamped(bound: Element, size: Element, low: Element, high: Element) -> Element | None:
    if isinstance(bound, int) and bound >= _HUGE:
        return high
    if isinstance(bound, int) and bound <= -_HUGE:
        return minimum(low, high)
    least, most = bounds(bound)
    if most < 0:
        bound = bound + size
    elif least < 0:
        return None  # it may count from either end
    return minimum(maximum(bound, low), high)


@rule("Split")
def _split(walk: Walk, node: ir.Node) -> list[Known]:
    source, count = walk.get(node.inputs[0]), len(node.outputs)
    shape = shape_of(source)
    axis = proper_axis(int(attribute(node, "axis", 0)), len(shape))
    sizes: Sequence[Element | None] | None = attribute(node, "split")
    if sizes is None and first_input(node, 1) is not None:
        sizes = listed(walk, node.inputs[1])
        sizes = [None] * count if sizes is None else sizes
    if sizes is None:
        sizes = _even_parts(shape[axis], count)
    if len(sizes) != count:
        raise Unknowable("the sizes do not match the outputs")
    data = (
        walk.data(source_value) if (source_value := node.inputs[0]) is not None and all(isinstance(size, int) for size in sizes) else None
    )
    results, begin = [], 0
    for value, size in zip(node.outputs, sizes, strict=True):
        if data is not None and isinstance(size, int):
            part = data[(slice(None),) * axis + (slice(begin, begin + size),)]
            begin += size
            results.append(moved(walk, part, data, dtype=source.dtype))
        else:
            results.append(Known((*shape[:axis], walk.fresh(value, axis) if size is None else size, *shape[axis + 1 :])))
    return results


def _even_parts(size: Element, count: int) -> list[Element | None]:
    """Equal parts; where they are not, versions differ and the last may be smaller."""
    part: Element = floor_div(size, count)
    if part * count == size:
        return [part for _ in range(count)]
    if not isinstance(size, int):
        return [None] * count
    part = -(-size // count)
    last = size - part * (count - 1)
    return [None] * count if last < 0 else [*([part] * (count - 1)), last]
