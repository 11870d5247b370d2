"""Operators along an axis: places that are not there are filled with what has no effect."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import is_float, reduce
from .base import Look, Packed, Result, highest, lowest, masks, rank_of, refuse
from .elements import again, attributes_of

NEUTRAL = {"ReduceSum": 0, "ReduceL1": 0, "ReduceL2": 0, "ReduceSumSquare": 0, "ReduceLogSum": 0, "ReduceMean": 0, "ReduceProd": 1}


def reduced_axes(look: Look, rank: int) -> list[int] | None:
    """The axes of a reduction, in order; None: the node does nothing."""
    axes = look.step.attr("axes")
    if axes is None and len(look.node.inputs) > 1 and look.node.inputs[1] is not None:
        axes = look.constant(1)
        if axes is None:
            refuse(say("its axes are computed", "其 axes 是计算得到的"))
        axes = axes.reshape(-1).tolist()
    if not axes:
        return None if look.step.attr("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({int(axis) % rank for axis in axes})


@masks("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduction(look: Look) -> list[Result]:
    item, op_type = look.packed(0), look.node.op_type
    if item is None or item.axis is None or item.mask is None:
        return [again(look, [look.plain(0), *look.node.inputs[1:]])]
    data = look.values(item)
    rank, keep = rank_of(data), int(look.step.given("keepdims"))
    axes = reduced_axes(look, rank)
    if axes is None:
        return [item]
    if item.axis not in axes:
        axis = item.axis if keep else item.axis - sum(axis < item.axis for axis in axes)
        return [Packed(reduce(look.step, op_type, data, axes, keep), axis, item.mask)]
    dtype = data.dtype or ir.DataType.FLOAT
    number = NEUTRAL.get(op_type, highest(dtype) if op_type == "ReduceMin" else lowest(dtype))
    filled = look.filled(item, number)
    if op_type != "ReduceMean":
        return [reduce(look.step, op_type, filled, axes, keep)]
    return [_mean(look, item, filled, axes, keep)]


def _mean(look: Look, item: Packed, filled: ir.Value, axes: Sequence[int], keep: int) -> ir.Value:
    """The sum divided by how many there are; of nothing 0, as ONNX Runtime has it (ONNX leaves it open)."""
    assert item.mask is not None
    if filled.dtype is None or not is_float(filled.dtype):
        refuse(say("the mean of integers", "整数的均值"))
    shape = filled.shape
    there = look.total(item.mask)
    one = look.int32([1], "one")
    count = look.step.cast(look.step.op("Where", look.step.op("Less", there, one), one, there), filled.dtype)
    others = [axis for axis in axes if axis != item.axis]
    if others and (shape is None or not all(isinstance(shape[axis], int) for axis in others)):
        refuse(say("the size of another reduced dimension is not fixed", "另一被归约维度的尺寸不固定"))
    # The other dimensions first: float16 holds neither their sum nor the product of all counts.
    part = reduce(look.step, "ReduceMean", filled, others, 1) if others else filled
    total = reduce(look.step, "ReduceSum", part, [item.axis or 0], 1)
    result = look.step.op("Div", total, count)
    if keep:
        return result
    from ..opset.lower.common import squeeze

    return squeeze(look.step, result, list(axes))


@masks("Softmax", "LogSoftmax")
def softmax(look: Look) -> list[Result]:
    item = look.packed(0)
    assert item is not None
    if item.axis is None:
        refuse(say("Softmax of integers", "整数的 Softmax"))
    axis = look.axis(rank_of(item.dense))
    along = item.axis == axis if look.step.version >= 13 else item.axis >= axis
    data = look.filled(item, -np.inf) if along else look.values(item)
    return [Packed(again(look, [data]), item.axis, item.mask)]


@masks("CumSum")
def cumulate(look: Look) -> list[Result]:
    item, axis = look.packed(0), look.constant(1)
    if item is None or axis is None or item.axis is None:
        refuse(say("its axis is computed", "其 axis 是计算得到的"))
    along = int(axis.reshape(-1)[0]) % rank_of(item.dense) == item.axis
    return [Packed(again(look, [look.filled(item, 0) if along else look.values(item), look.node.inputs[1]]), item.axis, item.mask)]


@masks("ArgMax", "ArgMin")
def extreme_place(look: Look) -> list[Result]:
    """Along the masked axis: the place, which stands for its rank."""
    item = look.packed(0)
    assert item is not None
    if item.axis is None or item.mask is None:
        return [again(look, [look.values(item)])]
    rank, keep = rank_of(item.dense), int(look.step.given("keepdims"))
    axis = look.axis(rank)
    if axis != item.axis:
        return [Packed(again(look, [look.values(item)]), item.axis - (axis < item.axis and not keep), item.mask)]
    largest = look.node.op_type == "ArgMax"
    data, compact = ordered_data(look, item, largest)
    if compact and look.step.attr("select_last_index", 0):
        refuse(say("the last of equals, of values that may be infinite", "取值可能为无穷，且取相等者中的最后一个"))
    result = again(look, [data])
    return [result if compact else Packed(result, None, None, item.mask)]


def ordered_data(look: Look, item: Packed, largest: bool) -> tuple[ir.Value, bool]:
    """The dense tensor so filled that no place that is not there comes before one that is, and whether it was moved together for that.

    Where a value that is there may be as low as the filling, those that are there are moved to the front: of equals the first comes first.
    """
    assert item.mask is not None
    assert item.axis is not None
    known = look.step.range_of(look.step.needed(0))
    dtype = item.dense.dtype or ir.DataType.FLOAT
    number = lowest(dtype) if largest else highest(dtype)
    end = known.lo if largest else known.hi
    if is_float(dtype) and abs(end) <= 1000:  # a small number rather than an infinity
        number = math.floor(end) - 1 if largest else math.ceil(end) + 1
    if known.lo > number if largest else known.hi < number:  # type: ignore[operator]
        return look.filled(item, number), False
    there = look.along(look.capped(item.mask, item.mask.size), item.axis, rank_of(item.dense))
    return look.step.op("Where", there, look.compact(item), look.step.const(number, dtype.numpy(), "nothing")), True


@masks("TopK")
def top_k(look: Look) -> list[Result]:
    item, wanted = look.packed(0), look.sizes(1)
    if wanted is None or len(wanted.entries) != 1:
        refuse(say("its K is computed", "其 K 是计算得到的"))
    k = wanted.entries[0]
    if item is None:
        refuse(say("its K is a count of places of another tensor", "其 K 是另一张量的计数"))
    rank = rank_of(item.dense)
    axis = look.axis(rank)
    if axis != item.axis or item.mask is None:
        if not isinstance(k, int) or item.axis is None:
            refuse(say("its K depends on data", "其 K 依赖数据"))
        values, places = _top_k(look, look.values(item), k)
        return [Packed(values, item.axis, item.mask), Packed(places, item.axis, item.mask)]
    if not isinstance(k, int) and (k.mask is not item.mask or k.factor != 1):
        refuse(say("its K is a count of places of another tensor", "其 K 是另一张量的计数"))
    data, compact = ordered_data(look, item, bool(look.step.given("largest")))
    points = None if compact else item.mask
    if isinstance(k, int):  # with fewer places the model fails
        values, places = _top_k(look, data, min(k, item.mask.size))
        return [values, places if compact else Packed(places, None, None, points)]
    size = item.mask.size if k.most is None else min(k.most, item.mask.size)
    values, places = _top_k(look, data, size)
    mask = look.capped(item.mask, size)
    return [Packed(values, axis, mask), Packed(places, axis, mask, points)]


def _top_k(look: Look, data: ir.Value, k: int) -> tuple[ir.Value, ir.Value]:
    # Unsorted, those that are not there could stand anywhere.
    first = look.step.op("TopK", data, look.step.ints([k], "k"), outputs=2, sorted=1, **attributes_of(look, "sorted"))
    return first, look.step.made[-1].outputs[1]


@masks("MatMul")
def matmul(look: Look) -> list[Result]:
    one, other = look.packed(0), look.packed(1)
    values = [look.values(item) if (item := look.packed(index)) is not None else look.plain(index) for index in (0, 1)]
    ranks = [rank_of(value) for value in values]
    if min(ranks) < 2:
        refuse(say("a product with a vector", "与向量相乘"))
    ends = [None if item is None or item.axis is None else rank - item.axis for item, rank in zip((one, other), ranks, strict=True)]
    if ends == [1, 2] and one is not None and other is not None and one.mask is other.mask:
        return [again(look, [look.filled(one, 0), look.filled(other, 0)])]
    item = one if ends[1] is None else other
    end = ends[0] if ends[1] is None else ends[1]
    if item is None or end is None or None not in ends or (item is one and end == 1) or (item is other and end == 2):
        refuse(say("it multiplies along data-dependent sizes that differ", "它沿不同的数据相关尺寸相乘"))
    if end > 2:
        rest = values[1] if item is one else values[0]
        if rank_of(rest) >= end and rest.shape is not None and rest.shape[-end] != 1:
            refuse(say("the other operand has its own size there", "另一操作数在该维有自己的尺寸"))
    return [Packed(again(look, values), max(ranks) - end, item.mask)]


@masks("Gemm")
def gemm(look: Look) -> list[Result]:
    """Rows of the first operand."""
    item = look.packed(0)
    if item is None or item.axis is None:
        refuse(say("its weights have a data-dependent shape", "其权重的形状依赖数据"))
    rows = 1 if look.step.attr("transA", 0) else 0
    bias = look.step.input(2)
    if item.axis != rows or (bias is not None and rank_of(look.plain(2)) == 2 and look.plain(2).shape[0] != 1):  # type: ignore[index]
        refuse(say("it multiplies along the data-dependent size", "它沿数据相关的尺寸相乘"))
    return [Packed(again(look, [look.values(item), look.plain(1), None if bias is None else look.plain(2)]), 0, item.mask)]
