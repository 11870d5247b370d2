"""Operators that count, find positions, or sum up."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from .arithmetic import EXACT, magnitude, scaled
from .interval import LARGEST_EXTENT, SMALL, Cells, Interval, Known, Number, cells_of, hull, is_integer, product, times, widened
from .view import Dims, Result, View, extent_of, transfer


@transfer("Shape")
def shape(view: View) -> Known:
    dims: Dims | None = view.shape(0)
    if dims is None:
        return Interval(0, LARGEST_EXTENT)
    end = view.node.attributes.get("end")
    part = dims[view.integer("start", 0) : None if end is None else end.as_int()]
    return cells_of((extent_of(dim) for dim in part), (len(part),))


@transfer("Size")
def size(view: View) -> Known:
    return cells_of([view.size(0)], ())


def _positions(extent: Interval) -> Interval:
    return Interval(0, max(int(extent.hi) - 1, 0))


@transfer("ArgMax", "ArgMin")
def position(view: View) -> Known:
    return _positions(view.extent(0, view.integer("axis", 0)))


@transfer("TopK")
def largest(view: View) -> list[Result]:
    return [view.hull(0), _positions(view.extent(0, view.integer("axis", -1)))]


@transfer("NonZero")
def nonzero(view: View) -> Known:
    dims = view.shape(0)
    if dims is None:
        return _positions(Interval(0, LARGEST_EXTENT))
    return hull(_positions(extent_of(dim)) for dim in dims)


@transfer("NonMaxSuppression")
def suppressed(view: View) -> Known:
    return hull(_positions(view.extent(index, axis)) for index, axis in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2)))


@transfer("MaxPool")
def pooled(view: View) -> list[Result]:
    # A window without a number (padding, NaN) has a position before the first.
    count = view.size(0).hi
    results: list[Result] = [None, Interval(-(2 * count + 1), count)]
    return results[: len(view.node.outputs)]


@transfer("Multinomial")
def drawn(view: View) -> Known:
    return _positions(view.extent(0, 1))


@transfer("EyeLike", "Bernoulli")
def zero_or_one(_view: View) -> Known:
    return Interval(0, 1)


@transfer("Range")
def counted(view: View) -> Known | None:
    start, limit, step = view.hull(0), view.hull(1), view.hull(2)
    if start.nan or limit.nan or step.nan or not all(math.isfinite(b) for item in (start, limit, step) for b in (item.lo, item.hi)):
        return None
    if not is_integer(view.result_dtype()):
        ends = Interval(min(start.lo, limit.lo), max(start.hi, limit.hi))
        room = max(abs(step.lo), abs(step.hi))
        return widened(Interval(ends.lo - room, ends.hi + room), view.result_dtype(), SMALL)
    if max(abs(bound) for item in (start, limit, step) for bound in (item.lo, item.hi)) >= 2**52:
        return None  # the number of elements is computed in floating point
    if start.is_point and limit.is_point and step.is_point and step.lo != 0:
        numbers = range(int(start.lo), int(limit.lo), int(step.lo))
        if len(numbers) <= SMALL and view.result_shape() in (None, (len(numbers),)):
            return cells_of((Interval(number, number) for number in numbers), (len(numbers),))
    up = Interval(start.lo, max(start.lo, limit.hi - 1))
    down = Interval(min(start.hi, limit.lo + 1), start.hi)
    return up if step.lo > 0 else down if step.hi < 0 else up.join(down)


@transfer("CumSum")
def running_sum(view: View) -> Known:
    shape_, axes = view.shape(0), view.constants(1)
    if shape_ is None:
        extent = Interval(0, LARGEST_EXTENT)
    elif axes is not None and len(axes) == 1:
        extent = view.extent(0, axes[0])
    else:
        extent = hull(extent_of(dim) for dim in shape_)
    least = 0 if view.integer("exclusive", 0) else 1
    terms = Interval(least, max(int(extent.hi) - 1 + least, least))
    return widened(scaled(view.hull(0), terms), view.result_dtype(), int(terms.hi))


def _axes(view: View) -> tuple[int, ...] | None:
    """The axes a reduction goes over; None where they are not known. An empty tuple: none at all."""
    rank = None if view.shape(0) is None else len(view.shape(0) or ())
    given = view.integers("axes")
    if given is None and view.present(1):
        given = view.constants(1)
        if given is None:
            return None
    if given:
        return given if rank is None else tuple(axis % rank if rank else axis for axis in given)
    if view.integer("noop_with_empty_axes", 0):
        return ()
    return None if rank is None else tuple(range(rank))


def _terms(view: View, axes: tuple[int, ...] | None) -> Interval:
    """How many elements become one."""
    if axes is None:
        return Interval(0, view.size(0).hi)
    extents = [view.extent(0, axis) for axis in axes]
    return Interval(math.prod(int(item.lo) for item in extents), min(math.prod(int(item.hi) for item in extents), 2**63 - 1))


def _reduced(view: View, all_cells: Callable[[list[Interval]], Interval], one: Callable[[Interval, Interval], Interval]) -> Known:
    """Over the elements where each is known, else from the hull and the number of elements."""
    known, axes, wanted = view.inputs[0], _axes(view), view.result_shape()
    if isinstance(known, np.ndarray) and axes and wanted is not None and known.size and known.ndim:
        gone = sorted({axis % known.ndim for axis in axes})
        kept = [axis for axis in range(known.ndim) if axis not in gone]
        rows: Cells = known.transpose([*kept, *gone])
        rows = rows.reshape(math.prod(known.shape[axis] for axis in kept), -1)
        if rows.shape[0] == math.prod(wanted):
            return cells_of((all_cells(list(row)) for row in rows), wanted)
    return one(view.hull(0), _terms(view, axes))


def _total(view: View, each: Callable[[Interval], Interval]) -> Known:
    """A sum over what ``each`` makes of the elements."""

    def exact(total: Interval, largest: Number, terms: int) -> Interval:
        # ONNX Runtime adds some integers as doubles: beyond what those hold, also on the way, the sum may be off.
        return view.whole() if is_integer(view.result_dtype()) and largest >= EXACT else widened(total, view.result_dtype(), terms)

    def together(items: list[Interval]) -> Interval:
        terms = [each(item) for item in items]
        total = Interval(sum(item.lo for item in terms), sum(item.hi for item in terms), any(item.nan for item in terms))
        return exact(total, sum(magnitude(item).hi for item in terms), len(terms))

    def one(data: Interval, count: Interval) -> Interval:
        return exact(scaled(each(data), count), product(magnitude(each(data)).hi, count.hi), int(count.hi))

    return _reduced(view, together, one)


@transfer("ReduceSum")
def summed(view: View) -> Known:
    return _total(view, lambda item: item)


@transfer("ReduceL1", "ReduceSumSquare")
def summed_sizes(view: View) -> Known:
    if _axes(view) == ():  # what no axes at all mean differs between versions
        return view.whole()
    return _total(view, magnitude if view.node.op_type == "ReduceL1" else lambda item: times(magnitude(item), magnitude(item)))


@transfer("ReduceMax", "ReduceMin")
def extreme(view: View) -> Known:
    best = max if view.node.op_type == "ReduceMax" else min

    def together(items: list[Interval]) -> Interval:
        return Interval(best(item.lo for item in items), best(item.hi for item in items), any(item.nan for item in items))

    # Of no elements at all it is the least or the largest number of the type.
    return _reduced(view, together, lambda one, count: one if count.lo > 0 else view.whole())


def _sum_limits(view: View) -> tuple[Number, Number]:
    limits = view.whole()
    return max(limits.lo, -EXACT), min(limits.hi, EXACT)


@transfer("ReduceMean")
def averaged(view: View) -> Known:
    def one(data: Interval, count: Interval) -> Interval:
        total = scaled(data, count)
        if count.lo <= 0 or (is_integer(view.result_dtype()) and not total.within(*_sum_limits(view))):
            return view.whole()
        return widened(data, view.result_dtype(), int(count.hi) + 1)

    return one(view.hull(0), _terms(view, _axes(view)))


@transfer("ReduceProd")
def multiplied(view: View) -> Known:
    def together(items: list[Interval]) -> Interval:
        largest = math.prod(max(magnitude(item).hi, 1) for item in items)
        return reduce(times, items) if is_integer(view.result_dtype()) and largest < EXACT else view.whole()

    def one(data: Interval, count: Interval) -> Interval:
        if not is_integer(view.result_dtype()) or (count.hi > SMALL and not data.within(-1, 1)):
            return view.whole()
        most = max(abs(int(data.lo)), abs(int(data.hi)), 1) ** min(int(count.hi), SMALL)
        return Interval(0 if data.lo >= 0 else -most, most) if most < EXACT else view.whole()

    return _reduced(view, together, one)


@transfer("MatMul", "MatMulInteger")
def matrix_product(view: View) -> Known | None:
    if not is_integer(view.result_dtype()):
        return None
    one, other = view.hull(0), view.hull(1)
    if view.node.op_type == "MatMulInteger":
        one, other = _shifted(view, one, 2), _shifted(view, other, 3)
    depth = view.extent(0, -1)
    return scaled(times(one, other), depth)


@transfer("ConvInteger")
def convolution(view: View) -> Known | None:
    weights = view.static_shape(1)
    if weights is None:
        return None
    # Padding adds terms of the value 0 (the zero point of x), so that fewer terms may count.
    return scaled(times(_shifted(view, view.hull(0), 2), _shifted(view, view.hull(1), 3)), Interval(0, math.prod(weights[1:])))


def _shifted(view: View, data: Interval, index: int) -> Interval:
    """The data of an integer product less its zero point."""
    zero = view.hull(index) if view.present(index) else Interval(0, 0)
    return Interval(data.lo - zero.hi, data.hi - zero.lo)
