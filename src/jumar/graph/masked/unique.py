"""Unique, by comparing all elements (or slices) with all."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import is_float, reduce
from .base import DENSE_LIMIT, Look, Mask, Packed, Result, masks, refuse, shape_of


@masks("Unique")
def unique(look: Look) -> list[Result]:
    """Slots hold the elements in their order (sorted, or as they come); a slot is there if no earlier one holds the same."""
    step, data = look.step, look.plain(0)
    shape, axis = shape_of(data), step.attr("axis")
    axis = None if axis is None else int(axis) % len(shape)
    count = math.prod(shape) if axis is None else shape[axis]
    width = 1 if axis is None else math.prod(shape) // max(count, 1)
    if count < 1 or width < 1:
        refuse(say("it chooses from nothing", "可选的位置为空"))
    if count * count * width > DENSE_LIMIT:
        refuse(
            say(
                "comparing {size} elements with each other needs {count} comparisons; {limit} are allowed",
                "{size} 个元素两两比较需要 {count} 次，上限为 {limit}",
                size=count,
                count=count * count * width,
                limit=DENSE_LIMIT,
            )
        )
    if data.dtype is None or (is_float(data.dtype) and step.range_of(step.needed(0)).nan and not look.lenient):
        refuse(say("its values may be NaN, which equals nothing", "其取值可能含 NaN，而 NaN 不等于任何值"))
    front = [] if axis is None else [axis, *(place for place in range(len(shape)) if place != axis)]
    moved = step.op("Transpose", data, perm=front) if front != sorted(front) else data
    rows = step.op("Reshape", moved, step.ints([count, width], "shape"))
    same, ordered = _same(look, rows, count, width), rows  # [slots, elements]
    slots = same
    if step.given("sorted"):
        order = _order(look, rows, same, count, width)
        ordered, same = step.op("Gather", rows, order, axis=0), step.op("Gather", same, order, axis=0)
        slots = step.op("Gather", same, order, axis=1)
    earliest = reduce(step, "ReduceMin", step.op("Where", slots, look.int32(np.arange(count)), look.int32(count, "size")), [1], keepdims=0)
    mask = look.mask(look.node.outputs[0], count, lambda: step.op("Equal", earliest, look.int32(np.arange(count))))
    if axis is None:
        return [Packed(step.op("Reshape", ordered, step.ints([count], "shape")), 0, mask), *_places(look, mask, same)]
    whole = step.op("Reshape", ordered, step.ints([shape[place] for place in front], "shape"))
    back = [front.index(place) for place in range(len(shape))]
    return [Packed(step.op("Transpose", whole, perm=back) if back != sorted(back) else whole, axis, mask), *_places(look, mask, same)]


def _pairs(look: Look, rows: ir.Value, count: int, width: int) -> tuple[ir.Value, ir.Value]:
    """The rows along the first and along the second dimension of a comparison of all with all."""
    shapes = [[count, 1], [1, count]] if width == 1 else [[count, 1, width], [1, count, width]]
    one, other = (look.step.op("Reshape", rows, look.step.ints(shape, "shape")) for shape in shapes)
    return one, other


def _same(look: Look, rows: ir.Value, count: int, width: int) -> ir.Value:
    equal = look.step.op("Equal", *_pairs(look, rows, count, width))
    return equal if width == 1 else _every(look, equal)


def _every(look: Look, flags: ir.Value) -> ir.Value:
    least = reduce(look.step, "ReduceMin", look.step.cast(flags, ir.DataType.INT32), [2], keepdims=0)
    return look.step.op("Equal", least, look.int32(1, "one"))


def _order(look: Look, rows: ir.Value, same: ir.Value, count: int, width: int) -> ir.Value:
    """Where each sorted element stands; of equal ones the first first."""
    step = look.step
    own, other = _pairs(look, rows, count, width)
    less = step.op("Less", other, own)
    if width > 1:  # the first difference decides
        differs = step.cast(step.op("Not", step.op("Equal", own, other)), ir.DataType.INT32)
        before = step.op("CumSum", differs, step.const(2, np.int64, "axis"), exclusive=1)
        first = step.op("And", less, step.op("Equal", before, look.int32(0, "zero")))
        decided = reduce(step, "ReduceMax", step.cast(first, ir.DataType.INT32), [2], keepdims=0)
        less = step.op("Equal", decided, look.int32(1, "one"))
    earlier = step.const(np.tri(count, count, -1, dtype=np.bool_), np.bool_, "earlier")
    smaller = step.op("Or", less, step.op("And", same, earlier))
    # A sum of at most 2048 ones is exact also where it is computed in float16.
    rank = step.cast(reduce(step, "ReduceSum", step.cast(smaller, ir.DataType.FLOAT), [1], keepdims=0), ir.DataType.INT32)
    here = step.op("Equal", rank, look.int32(np.arange(count).reshape(count, 1), "ranks"))
    place = step.op("Where", here, look.int32(np.arange(count)), look.int32(count - 1, "last"))
    return reduce(step, "ReduceMin", place, [1], keepdims=0)


def _places(look: Look, mask: Mask, same: ir.Value) -> list[Result]:
    """First places, ranks of all elements, and counts, as far as somebody reads them."""
    step, size, found = look.step, mask.size, list[Result]([None, None, None])
    wanted = [index for index, value in enumerate(look.node.outputs) if value.uses() or value.is_graph_output()]
    if 1 in wanted:
        place = step.op("Where", same, look.int32(np.arange(size)), look.int32(size, "size"))
        found[0] = Packed(step.cast(reduce(step, "ReduceMin", place, [1], keepdims=0), ir.DataType.INT64), 0, mask)
    if 2 in wanted:
        rank = step.op("Reshape", step.op("Sub", look.counted(mask), look.int32(1, "one")), step.ints([size, 1], "shape"))
        chosen = step.op("And", same, step.op("Reshape", mask.value, step.ints([size, 1], "shape")))
        place = step.op("Where", chosen, rank, look.int32(0, "zero"))
        found[1] = step.cast(reduce(step, "ReduceMax", place, [0], keepdims=0), ir.DataType.INT64)
    if 3 in wanted:
        ones = step.cast(same, ir.DataType.FLOAT)
        found[2] = Packed(step.cast(reduce(step, "ReduceSum", ones, [1], keepdims=0), ir.DataType.INT64), 0, mask)
    return found
