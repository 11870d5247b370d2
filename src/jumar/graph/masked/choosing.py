"""Gather and Scatter by indices of which only some are there, or from tensors of which only some places are."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import section
from ..opset.step import Array
from ..shapes import constant_of, known_shape, static_shape
from .base import Look, Packed, Result, Sizes, masks, rank_of, refuse, shape_of
from .elements import again, attributes_of


def in_range(look: Look, item: Packed, dense: ir.Value, size: int) -> ir.Value:
    """Indices, with 0 in the places that are not there: what stands there may point anywhere."""
    known = constant_of(dense)
    if item.mask is None or item.axis is None or (known is not None and known.size and known.min() >= 0 and known.max() < size):
        return dense
    zero = look.step.const(0, (dense.dtype or ir.DataType.INT64).numpy(), "first")
    return look.step.op("Where", look.along(item.mask, item.axis, rank_of(dense)), dense, zero)


@masks("Gather")
def gather(look: Look) -> list[Result]:
    integers = look.sizes(0)
    if integers is not None and not isinstance(look.rep(1), Packed):
        return [_of_sizes(look, integers)]
    data, places = look.packed(0), look.packed(1)
    rank = rank_of(data.dense) if data is not None else rank_of(look.plain(0))
    axis = look.axis(rank)
    if data is not None and data.axis == axis:
        return [_from_masked(look, data, places, axis)]
    indices = look.values(places) if places is not None else look.plain(1)
    if places is not None and places.axis is not None:
        if data is not None and data.axis is not None:
            refuse(say("two of its dimensions depend on data", "有两个维度依赖数据"))
        size = dim_at(data.dense if data is not None else look.plain(0), axis)
        source = data.dense if data is not None else look.plain(0)
        dense = look.step.op("Gather", source, in_range(look, places, indices, size), axis=axis)
        return [Packed(dense, axis + places.axis, places.mask, data.points if data is not None else None)]
    if data is None:
        return [look.step.op("Gather", look.plain(0), indices, axis=axis)]
    moved = None if data.axis is None else data.axis + (rank_of(indices) - 1 if axis < data.axis else 0)
    return [Packed(look.step.op("Gather", data.dense, indices, axis=axis), moved, data.mask, data.points)]


def dim_at(value: ir.Value, axis: int) -> int:
    shape = known_shape(value)
    size = None if shape is None else shape[axis]
    if not isinstance(size, int):
        refuse(say("the size of `{name}` there is not fixed", "`{name}` 在该维的尺寸不固定", name=value.name))
    return size


def _of_sizes(look: Look, integers: Sizes) -> Result:
    places = look.constant(1)
    if places is None or places.ndim > 1 or integers.scalar:
        return look.step.op("Gather", look.realised(integers), look.plain(1), axis=0)
    return Sizes(tuple(integers.entries[int(place)] for place in places.reshape(-1)), places.ndim == 0, integers.dtype)


def _from_masked(look: Look, data: Packed, places: Packed | None, axis: int) -> Result:
    """From places that are there: by their ranks, or directly where the indices point to them."""
    assert data.mask is not None
    if places is not None and places.points is data.mask:
        dense = look.step.op("Gather", data.dense, in_range(look, places, places.dense, data.mask.size), axis=axis)
    else:
        indices = look.values(places) if places is not None else look.plain(1)
        if places is not None:
            indices = in_range(look, places, indices, data.mask.size)
        if look.step.range_of(look.step.needed(1)).lo < 0:
            total = look.step.cast(look.total(data.mask, 0), indices.dtype or ir.DataType.INT64)
            zero = look.step.const(0, (indices.dtype or ir.DataType.INT64).numpy(), "zero")
            indices = look.step.op("Where", look.step.op("Less", indices, zero), look.step.op("Add", indices, total), indices)
            # Of no place at all the last one is none.
            indices = look.step.op("Where", look.step.op("Less", indices, zero), zero, indices)
        dense = look.step.op("Gather", look.compact(data), indices, axis=axis)
        data = Packed(dense, None, None)
    if places is None or places.axis is None:
        return dense if data.points is None else Packed(dense, None, None, data.points)
    return Packed(dense, axis + places.axis, places.mask, data.points)


@masks("GatherND")
def gather_nd(look: Look) -> list[Result]:
    data, places = look.packed(0), look.packed(1)
    if data is not None and data.axis is not None:
        if (
            places is None
            or rank_of(places.dense) != 2
            or shape_of(places.dense)[-1] != 1
            or data.axis != 0
            or look.step.attr("batch_dims")
        ):
            refuse(say("it reads from a tensor of data-dependent shape", "它从形状依赖数据的张量中读取"))
        flat = look.step.op("Reshape", places.dense, look.step.ints([shape_of(places.dense)[0]], "shape"))
        return [_from_masked(look, data, Packed(flat, places.axis, places.mask, places.points), 0)]
    source = look.values(data) if data is not None else look.plain(0)
    if places is None or places.axis is None:
        return [look.step.op("GatherND", source, look.values(places) if places is not None else look.plain(1), **attributes_of(look))]
    indices = look.values(places)
    if places.axis == rank_of(indices) - 1 or places.axis < int(look.step.attr("batch_dims", 0)):
        refuse(say("the length of its index tuples depends on data", "其索引元组的长度依赖数据"))
    shape = static_shape(source)
    depth = dim_at(indices, -1)
    if shape is not None and not look.step.attr("batch_dims") and every_place(indices, shape[:depth]):
        dense = look.step.op("Reshape", source, look.step.ints([math.prod(shape[:depth]), *shape[depth:]], "shape"))
        return [Packed(dense, 0, places.mask)]
    return [Packed(look.step.op("GatherND", source, in_range(look, places, indices, 1), **attributes_of(look)), places.axis, places.mask)]


def every_place(indices: ir.Value, dims: tuple[int, ...]) -> bool:
    """Whether constant index tuples [count, depth] name all places of ``dims`` in order."""
    known = constant_of(indices)
    return known is not None and known.shape == (math.prod(dims), len(dims)) and bool(np.array_equal(known, grid(dims)))


def grid(dims: tuple[int, ...]) -> Array:
    return np.indices(dims).reshape(len(dims), -1).T


@masks("GatherElements")
def gather_elements(look: Look) -> list[Result]:
    data, places = look.packed(0), look.packed(1)
    rank = rank_of(data.dense if data is not None else look.plain(0))
    axis = look.axis(rank)
    aligned = (
        data is not None and places is not None and data.mask is places.mask and data.axis == places.axis and data.axis not in (None, axis)
    )
    if aligned and data is not None and places is not None:
        indices = in_range(look, places, look.values(places), dim_at(data.dense, axis))
        return [Packed(again(look, [data.dense, indices]), data.axis, data.mask, data.points)]
    if data is None and places is not None and places.axis == axis:
        indices = in_range(look, places, look.values(places), dim_at(look.plain(0), axis))
        return [Packed(again(look, [look.plain(0), indices]), axis, places.mask)]
    if data is None or data.axis is not None or places is not None:
        refuse(say("its operands are chosen by different masks", "其操作数由不同的掩码选取"))
    return [again(look, [look.values(data), look.plain(1)])]


@masks("ScatterND")
def scatter_nd(look: Look) -> list[Result]:
    """Rows that are not there go to a row of their own, which is cut off; or, to the very places of the mask, a choice."""
    step, places, updates = look.step, look.packed(1), look.packed(2)
    if isinstance(look.rep(0), Packed) and look.packed(0).axis is not None:  # type: ignore[union-attr]
        refuse(say("it writes into a tensor of data-dependent shape", "它写入形状依赖数据的张量"))
    data = look.plain(0)
    if places is None or places.axis is None or updates is None or updates.mask is not places.mask or updates.axis != places.axis:
        refuse(say("its indices and updates are chosen by different masks", "其索引与更新由不同的掩码选取"))
    mask, shape, indices, new = places.mask, shape_of(data), look.values(places), look.values(updates)
    assert mask is not None
    listed = shape_of(indices)
    depth, reduction = listed[-1], step.attr("reduction", "none")
    if places.axis == len(listed) - 1:
        refuse(say("the length of its index tuples depends on data", "其索引元组的长度依赖数据"))
    if every_place(indices, tuple(shape[:depth])) and reduction in ("none", "add"):
        there = step.op("Reshape", mask.value, step.ints([*shape[:depth], *[1] * (len(shape) - depth)], "shape"))
        moved = step.op("Reshape", new, step.ints(shape, "shape"))
        return [step.op("Where", there, moved if reduction == "none" else step.op("Add", data, moved), data)]
    rows, rest = math.prod(shape[:depth]), shape[depth:]
    if not rows:
        refuse(say("it is empty", "它是空的"))
    flat = step.op("Reshape", data, step.ints([rows, *rest], "shape"))
    spare = section(step, flat, 0, 0, 1)
    count = math.prod(listed[:-1])
    place = _linear(look, indices, shape[:depth])
    place = step.op("Where", look.along(mask, places.axis, len(listed) - 1), place, step.const(rows, np.int64, "spare"))
    result = again(look, [
        step.op("Concat", flat, spare, axis=0),
        step.op("Reshape", place, step.ints([count, 1], "shape")),
        step.op("Reshape", new, step.ints([count, *rest], "shape")),
    ])  # fmt: skip
    return [step.op("Reshape", section(step, result, 0, 0, rows), step.ints(shape, "shape"))]


def _linear(look: Look, indices: ir.Value, dims: list[int]) -> ir.Value:
    """Index tuples (last axis, counted from either end) as places in the joined dimensions, as int64."""
    step, total = look.step, None
    indices = step.cast(indices, ir.DataType.INT64)
    for number, size in enumerate(dims):
        part = step.op("Gather", indices, step.ints(number, "column"), axis=rank_of(indices) - 1)
        part = step.op("Where", step.op("Less", part, step.ints(0, "zero")), step.op("Add", part, step.ints(size, "size")), part)
        part = step.op("Mul", part, step.ints(math.prod(dims[number + 1 :]), "stride"))
        total = part if total is None else step.op("Add", total, part)
    if total is None:
        refuse(say("its index tuples are empty", "其索引元组为空"))
    return total


@masks("ScatterElements", "Scatter")
def scatter_elements(look: Look) -> list[Result]:
    """Along the masked axis: what is not there goes to a place behind the last, which is cut off."""
    step, data, places, updates = look.step, look.packed(0), look.packed(1), look.packed(2)
    if places is None or updates is None or places.mask is None or places.mask is not updates.mask or places.axis != updates.axis:
        refuse(say("its indices and updates are chosen by different masks", "其索引与更新由不同的掩码选取"))
    new, axis = look.values(updates), look.axis(rank_of(places.dense))
    # Ranks among the rows of a tensor that has not all of its own: places of it.
    own = data is not None and data.mask is places.points is not None and data.axis == places.axis == axis
    indices = places.dense if own else look.values(places)
    if data is not None and not own:
        if data.mask is not places.mask or data.axis != places.axis or axis == places.axis:
            refuse(say("it writes into a tensor of data-dependent shape", "它写入形状依赖数据的张量"))
        safe = in_range(look, places, indices, dim_at(data.dense, axis))
        return [Packed(again(look, [look.values(data), safe, new]), data.axis, data.mask)]
    if axis != places.axis:
        refuse(say("its data-dependent dimension is not the one it writes along", "数据相关的维度不是其写入的维度"))
    whole = look.plain(0) if data is None else look.values(data)
    size = dim_at(whole, axis)
    spare = section(step, whole, axis, 0, 1)
    beyond = step.const(size, (indices.dtype or ir.DataType.INT64).numpy(), "spare")
    if step.range_of(step.needed(1)).lo < 0:
        zero = step.const(0, (indices.dtype or ir.DataType.INT64).numpy(), "zero")
        extent = step.const(size, (indices.dtype or ir.DataType.INT64).numpy(), "size")
        indices = step.op("Where", step.op("Less", indices, zero), step.op("Add", indices, extent), indices)
    indices = step.op("Where", look.along(places.mask, axis, rank_of(indices)), indices, beyond)
    result = again(look, [step.op("Concat", whole, spare, axis=axis), indices, new])
    result = section(step, result, axis, 0, size)
    return [result if data is None else Packed(result, axis, data.mask)]


@masks("OneHot")
def one_hot(look: Look) -> list[Result]:
    item = look.packed(0)
    if item is None:
        refuse(say("its depth depends on data", "其 depth 依赖数据"))
    dense = again(look, [look.values(item), look.plain(1), look.plain(2)])
    if item.axis is None:
        return [dense]
    axis = look.axis(rank_of(item.dense) + 1)
    return [Packed(dense, item.axis + (axis <= item.axis), item.mask)]
