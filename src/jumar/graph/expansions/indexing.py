"""Gather and Scatter in all forms by a Gather or a ScatterND of flattened tensors, or densely."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.lower.places import spread_elements, spread_rows
from ..opset.step import Step
from .base import expands
from .common import INT32, flat_places, from_front, is_float, normal_axis, reshape, take, within

_EXACT = 1 << 24
"""Integers up to this magnitude are exact in float32."""


@expands("GatherElements")
def gather_elements(step: Step) -> None:
    """A Gather from the flattened tensor."""
    shape, wanted = step.static(0), step.static(1)
    axis = normal_axis(step, int(step.given("axis")), len(shape))
    places = flat_places(step, step.needed(1), wanted, shape, axis)
    step.finish(step.op("Gather", reshape(step, step.needed(0), [-1]), places, axis=0))


@expands("GatherND")
def gather_nd(step: Step) -> None:
    """A Gather from the tensor whose indexed dimensions are joined; batch dimensions become part of the place."""
    shape, wanted = step.static(0), step.static(1)
    batch, depth = int(step.attr("batch_dims", 0)), wanted[-1]
    rows, rest = math.prod(wanted[:-1]), list(shape[batch + depth :])
    places = linear_places(step, step.needed(1), shape[batch : batch + depth])
    places = reshape(step, places, [rows])
    if batch:
        each = math.prod(shape[batch : batch + depth])
        first = np.repeat(np.arange(math.prod(shape[:batch])), rows // max(math.prod(shape[:batch]), 1)) * each
        kind = (places.dtype or ir.DataType.INT64).numpy()
        places = step.op("Add", places, step.const(first, kind, "batch"))
    joined = reshape(step, step.needed(0), [math.prod(shape[: batch + depth]), *rest])
    step.finish(reshape(step, step.op("Gather", joined, places, axis=0), [*wanted[:-1], *rest]))


def linear_places(step: Step, indices: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    """For index tuples (last axis) into dimensions of ``shape``: the place in the joined dimension. The last axis goes away."""
    if math.prod(shape) > INT32.max:
        step.refuse(say("its places do not fit 32 bits", "其位置无法用 32 位表示"))
    negative = step.range_of(indices).lo < 0
    indices = step.cast(indices, ir.DataType.INT32)  # of an index that is valid nothing is lost
    kind, rank = np.int32, len(indices.shape or ())
    total: ir.Value | None = None
    for number, size in enumerate(shape):
        part = step.op("Gather", indices, step.ints(number, "column"), axis=rank - 1)
        part = from_front(step, part, size, negative)
        stride = math.prod(shape[number + 1 :])
        if stride != 1:
            part = step.op("Mul", part, step.const(stride, kind, "stride"))
        total = part if total is None else step.op("Add", total, part)
    if total is None:
        step.refuse(say("its indices are empty", "其索引为空"))
    return total


@expands("ScatterElements", "Scatter")
def scatter_elements(step: Step) -> None:
    """A ScatterND into the flattened tensor."""
    shape, wanted = step.static(0), step.static(1)
    axis = normal_axis(step, int(step.given("axis")), len(shape))
    reduction = step.attr("reduction", "none")
    places = reshape(step, flat_places(step, step.needed(1), wanted, shape, axis), [-1, 1])
    places = step.cast(places, ir.DataType.INT64)
    updates = reshape(step, step.needed(2), [-1])
    options = {} if reduction == "none" else {"reduction": reduction}
    if options and step.version < 16:
        step.refuse(say("a ScatterND of this opset has no reduction", "该 opset 的 ScatterND 没有 reduction"))
    result = step.op("ScatterND", reshape(step, step.needed(0), [-1]), places, updates, **options)
    step.finish(reshape(step, result, shape))


@expands("ScatterElements", "Scatter")
def scatter_elements_densely(step: Step) -> None:
    """With a comparison of each update's place with each element's."""
    reduction = step.attr("reduction", "none")
    if reduction != "none":
        spread_elements(step, reduction)
        return
    shape, wanted = step.static(0), step.static(1)
    axis = normal_axis(step, int(step.given("axis")), len(shape))
    places = reshape(step, flat_places(step, step.needed(1), wanted, shape, axis), [-1])
    data, updates = reshape(step, step.needed(0), [-1, 1]), reshape(step, step.needed(2), [-1, 1])
    step.finish(reshape(step, _put(step, data, places, updates, (math.prod(shape), math.prod(wanted), 1)), shape))


@expands("ScatterND")
def scatter_nd_densely(step: Step) -> None:
    """With a comparison of each update's place with each slice's."""
    reduction = step.attr("reduction", "none")
    if reduction != "none":
        spread_rows(step, reduction)
        return
    shape, wanted = step.static(0), step.static(1)
    depth = wanted[-1]
    rows, size, count = math.prod(shape[:depth]), math.prod(shape[depth:]), math.prod(wanted[:-1])
    places = reshape(step, linear_places(step, step.needed(1), shape[:depth]), [count])
    data, updates = reshape(step, step.needed(0), [rows, size]), reshape(step, step.needed(2), [count, size])
    step.finish(reshape(step, _put(step, data, places, updates, (rows, count, size)), shape))


def _put(step: Step, data: ir.Value, places: ir.Value, updates: ir.Value, sizes: tuple[int, int, int]) -> ir.Value:
    """``data`` [rows, size] with ``updates`` [count, size] in the rows that ``places`` [count] name.

    Of updates for one place the largest stays: ONNX does not define which does.
    """
    rows, count, size = sizes
    if not rows or not count or not size:
        return data
    within(step, rows * count * size)
    kind = (places.dtype or ir.DataType.INT64).numpy()
    hit = step.op("Equal", reshape(step, places, [count, 1, 1]), step.const(np.arange(rows).reshape(1, rows, 1), kind, "rows"))
    # Booleans have no reduction; neutral elements instead of products with zeros, since infinities and NaN must not spread.
    dtype = step.dtype(0)
    whole = ir.DataType.INT32 if dtype == ir.DataType.BOOL else dtype
    data, updates = step.cast(data, whole), step.cast(updates, whole)
    neutral = step.const(_lowest(whole), whole.numpy(), "neutral")
    gathered = reduce(step, "ReduceMax", step.op("Where", hit, reshape(step, updates, [count, 1, size]), neutral), [0], keepdims=0)
    touched = reduce(step, "ReduceMax", step.cast(hit, ir.DataType.FLOAT), [0], keepdims=0)
    return step.cast(step.op("Where", step.op("Greater", touched, step.const(0.5, np.float32, "half")), gathered, data), dtype)


def _lowest(dtype: ir.DataType) -> float | int:
    if is_float(dtype):
        return -np.inf
    return int(np.iinfo(dtype.numpy()).min)


@expands("ReverseSequence")
def reverse_sequence(step: Step) -> None:
    """Places along the time axis: those within the length turned round."""
    shape = step.static()
    time, batch = int(step.given("time_axis")), int(step.given("batch_axis"))
    steps, lanes = shape[time], shape[batch]
    lengths, kind = step.cast(step.needed(1), ir.DataType.INT32), np.int32
    order = [time, batch, *(place for place in range(len(shape)) if place not in (time, batch))]
    moved = [shape[place] for place in order]
    count = step.const(np.arange(steps).reshape(steps, 1), kind, "time")
    row = reshape(step, lengths, [1, lanes])
    turned = step.op("Sub", step.op("Sub", row, step.const(1, kind, "one")), count)
    places = step.op("Where", step.op("Less", count, row), turned, count)
    places = step.op("Add", step.op("Mul", places, step.const(lanes, kind, "lanes")), step.const(np.arange(lanes), kind, "lane"))
    data = step.op("Transpose", step.needed(0), perm=order) if order != sorted(order) else step.needed(0)
    joined = reshape(step, data, [steps * lanes, *moved[2:]])
    result = reshape(step, step.op("Gather", joined, reshape(step, places, [-1]), axis=0), moved)
    back = [order.index(place) for place in range(len(shape))]
    step.finish(step.op("Transpose", result, perm=back) if back != sorted(back) else result)


@expands("EyeLike")
def eye_like(step: Step) -> None:
    """A constant."""
    shape = step.static()
    dtype = step.attr("dtype")
    wanted = step.dtype() if dtype is None else ir.DataType(dtype)
    within(step, math.prod(shape))
    step.finish(step.const(np.eye(shape[0], shape[1], k=int(step.given("k"))), wanted.numpy(), "eye"))


@expands("Compress")
def compress(step: Step) -> None:
    """A constant condition selects constant places."""
    condition = step.constant(1, "condition")
    if condition is None:
        step.refuse(say("its condition is missing", "缺少 condition"))
    axis, data = step.attr("axis"), step.needed(0)
    if axis is None:
        axis, data = 0, reshape(step, data, [-1])
    else:
        axis = normal_axis(step, int(axis), step.rank())
    step.finish(take(step, data, axis, np.flatnonzero(condition)))


@expands("TopK")
def integer_top_k(step: Step) -> None:
    """Integers that float32 holds exactly."""
    data = step.needed(0)
    known = step.range_of(data)
    if is_float(step.dtype()) or not known.within(-_EXACT, _EXACT):
        step.refuse(
            say(
                "its values are not known to be exact in float32 ({range})",
                "其取值不能确定可由 float32 精确表示（{range}）",
                range=str(known),
            )
        )
    inputs = [step.cast(data, ir.DataType.FLOAT), *step.node.inputs[1:]]
    values, places = step.op_like(inputs)
    step.finish(step.cast(values, step.dtype()), places)
