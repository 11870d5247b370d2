"""Operators that move elements and tell or set shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import INT_MAX, section, squeeze, unsqueeze
from ..shapes import known_shape
from .base import Count, Look, Mask, Packed, Result, Sizes, dim_of, masks, rank_of, refuse
from .elements import again, attributes_of
from .filling import filled_up


def masked(look: Look, index: int = 0) -> Packed:
    """The operand with its masked axis.

    Raises:
        Unmaskable: every place of it is there, but it points into another tensor.
    """
    item = look.packed(index)
    if item is None or item.axis is None or item.mask is None:
        refuse(say("it moves ranks of another tensor", "它移动的是另一张量中的序号"))
    return item


def listed(look: Look, name: str, index: int) -> list[int] | None:
    """Axes or the like, which are an attribute or an input depending on the version."""
    found = look.step.attr(name)
    if found is None and look.step.input(index) is not None:
        constant = look.constant(index)
        if constant is None:
            refuse(say("{name} is computed", "{name} 是计算得到的", name=name))
        found = constant.reshape(-1).tolist()
    return None if found is None else [int(item) for item in found]


@masks("Transpose")
def transpose(look: Look) -> list[Result]:
    item = masked(look)
    rank = rank_of(item.dense)
    perm = [int(place) for place in look.step.attr("perm") or range(rank - 1, -1, -1)]
    return [Packed(look.step.op("Transpose", item.dense, perm=perm), perm.index(item.axis or 0), item.mask, item.points)]


@masks("Squeeze")
def squeezed(look: Look) -> list[Result]:
    integers, axes = look.sizes(0), listed(look, "axes", 1)
    if integers is not None:
        return [Sizes(integers.entries, True, integers.dtype) if len(integers.entries) == 1 else integers]
    item = look.packed(0)
    assert item is not None
    if axes is None:
        refuse(say("it squeezes whatever dimension happens to be 1", "它会压缩任何恰好为 1 的维度"))
    rank = rank_of(item.dense)
    wanted = sorted(axis % rank for axis in axes)
    if item.axis in wanted:
        refuse(say("it squeezes the data-dependent dimension", "它压缩了数据相关的维度"))
    axis = None if item.axis is None else item.axis - sum(place < item.axis for place in wanted)
    return [Packed(squeeze(look.step, item.dense, wanted), axis, item.mask, item.points)]


@masks("Unsqueeze")
def unsqueezed(look: Look) -> list[Result]:
    integers, axes = look.sizes(0), listed(look, "axes", 1)
    if integers is not None:
        if not integers.scalar or axes is None or len(axes) != 1:
            return [again(look, [look.plain(0), *look.node.inputs[1:]])]
        return [Sizes(integers.entries, False, integers.dtype)]
    item = look.packed(0)
    if item is None or axes is None:
        refuse(say("its axes are computed", "其 axes 是计算得到的"))
    rank = rank_of(item.dense) + len(axes)
    new = sorted(axis % rank for axis in axes)
    old = [place for place in range(rank) if place not in new]
    axis = None if item.axis is None else old[item.axis]
    return [Packed(unsqueeze(look.step, item.dense, new), axis, item.mask, item.points)]


@masks("Shape")
def shape(look: Look) -> list[Result]:
    item = look.packed(0)
    if item is None or item.axis is None or item.mask is None:
        return [again(look, [look.plain(0)])]
    dims: list[int | Count] = []
    for place, size in enumerate(known_shape(item.dense) or ()):
        if place == item.axis:
            dims.append(Count(item.mask))
        elif isinstance(size, int):
            dims.append(size)
        else:
            refuse(say("another dimension of it is not fixed", "它的另一维度不固定"))
    return [Sizes(tuple(dims[slice(look.step.attr("start", 0), look.step.attr("end"))]))]


@masks("Size")
def size(look: Look) -> list[Result]:
    item = look.packed(0)
    if item is None or item.axis is None or item.mask is None:
        return [again(look, [look.plain(0)])]
    others = [dim for place, dim in enumerate(known_shape(item.dense) or ()) if place != item.axis]
    if not all(isinstance(dim, int) for dim in others):
        refuse(say("another dimension of it is not fixed", "它的另一维度不固定"))
    factor = math.prod(dim for dim in others if isinstance(dim, int))
    return [Sizes((Count(item.mask, factor),) if factor else (0,), True)]


def mask_of(look: Look, entry: Count) -> Mask:
    """The mask of a tensor made with so many places."""
    mask = entry.mask
    if entry.factor != 1:
        mask = spread(look, mask, 1, entry.factor)
    if entry.most is not None:
        mask = look.capped(mask, min(entry.most, mask.size))
    return mask


def spread(look: Look, mask: Mask, before: int, after: int) -> Mask:
    """The mask of an axis in which others are joined: ``before`` in front of it, ``after`` behind it."""
    if before == after == 1:
        return mask

    def make() -> ir.Value:
        column = look.step.op("Reshape", mask.value, look.step.ints([1, mask.size, 1], "shape"))
        whole = look.step.op("Expand", column, look.step.ints([before, mask.size, after], "shape"))
        return look.step.op("Reshape", whole, look.step.ints([-1], "shape"))

    return look.derive(("spread", before, after), mask, make, before * mask.size * after)


@masks("ConstantOfShape")
def constant_of_shape(look: Look) -> list[Result]:
    wanted = look.sizes(0)
    if wanted is None:
        return [again(look, [look.plain(0)])]
    axis, mask, dims = dimensions(look, wanted.entries)
    return [Packed(again(look, [look.step.ints(dims, "shape")]), axis, mask)]


def dimensions(look: Look, entries: Sequence[int | Count]) -> tuple[int, Mask, list[int]]:
    """Which axis of a shape is a count, its mask, and the shape with all places of it."""
    places = [place for place, entry in enumerate(entries) if isinstance(entry, Count)]
    if len(places) != 1:
        refuse(say("several of its dimensions depend on data", "有多个维度依赖数据"))
    entry = entries[places[0]]
    assert isinstance(entry, Count)
    mask = mask_of(look, entry)
    return places[0], mask, [item if isinstance(item, int) else mask.size for item in entries]


@masks("Expand")
def expand(look: Look) -> list[Result]:
    wanted, item = look.sizes(1), look.packed(0)
    if wanted is None:
        refuse(say("its shape is computed", "其形状是计算得到的"))
    if not any(isinstance(entry, Count) for entry in wanted.entries):
        if item is None or item.axis is None:
            return [again(look, [look.plain(0), look.plain(1)])]
        rank = max(rank_of(item.dense), len(wanted.entries))
        axis = item.axis + rank - rank_of(item.dense)
        own = axis - (rank - len(wanted.entries))
        if own >= 0 and wanted.entries[own] != 1:
            refuse(say("it gives the data-dependent dimension a size", "它为数据相关的维度指定了尺寸"))
        shape_in = [entry for entry in wanted.entries if isinstance(entry, int)]
        return [Packed(look.step.op("Expand", item.dense, look.step.ints(shape_in, "shape")), axis, item.mask, item.points)]
    axis, mask, dims = dimensions(look, wanted.entries)
    data, points = (item.dense, item.points) if item is not None else (look.plain(0), None)
    rank = max(len(dims), rank_of(data))
    axis += rank - len(dims)
    if item is not None and item.axis is not None:
        if item.mask is not mask or item.axis + rank - rank_of(data) != axis:
            refuse(say("its operands are chosen by different masks", "其操作数由不同的掩码选取"))
    elif rank_of(data) >= rank - axis and dim_of(data, axis - (rank - rank_of(data))) != 1:
        refuse(say("the operand has its own size there", "操作数在该维有自己的尺寸"))
    return [Packed(look.step.op("Expand", data, look.step.ints(dims, "shape")), axis, mask, points)]


@masks("Range")
def counting(look: Look) -> list[Result]:
    """From 0 to a count: the ranks of the places that are there."""
    bounds = [look.sizes(index) for index in range(3)]
    start, end, pace = [item.entries[0] if item is not None and len(item.entries) == 1 else None for item in bounds]
    if not isinstance(end, Count) or start != 0 or pace != 1:
        refuse(say("a Range that is not from 0 to a count", "不是从 0 到计数的 Range"))
    mask = mask_of(look, end)
    return [Packed(look.step.place(look.step.const(np.arange(mask.size), np.int64, "places")), 0, mask, mask)]


@masks("Concat")
def concat(look: Look) -> list[Result]:
    found = [look.sizes(index) for index in range(len(look.node.inputs))]
    if all(item is not None and not item.scalar for item in found):
        entries = [entry for item in found if item is not None for entry in item.entries]
        return [Sizes(tuple(entries), False, found[0].dtype if found[0] is not None else ir.DataType.INT64)]
    items = [look.packed(index) for index in range(len(look.node.inputs))]
    masked_ones = [item for item in items if item is not None and item.mask is not None]
    values = [look.values(item) if item is not None else look.plain(index) for index, item in enumerate(items)]
    if not masked_ones:
        return [again(look, values)]
    axis = look.axis(rank_of(values[0]))
    if any(item.axis != axis for item in masked_ones):
        if len({(item.axis, item.mask) for item in masked_ones}) > 1 or len(masked_ones) < len(items):
            refuse(say("its operands are chosen by different masks", "其操作数由不同的掩码选取"))
        return [Packed(again(look, values), masked_ones[0].axis, masked_ones[0].mask)]
    points = _common_points(items)
    dense = look.step.op("Concat", *[item.dense for item in items if item is not None], axis=axis) if points else again(look, values)
    return [Packed(dense, axis, joined(look, items, values, axis), points)]


def _common_points(items: Sequence[Packed | None]) -> Mask | None:
    found = {None if item is None else item.points for item in items}
    return found.pop() if len(found) == 1 else None


def joined(look: Look, items: Sequence[Packed | None], values: Sequence[ir.Value], axis: int) -> Mask:
    """The masks of tensors one after the other; where one has none, all is there. As int32: Concat takes no booleans."""
    parts: list[Mask | int] = []
    for item, value in zip(items, values, strict=True):
        if item is not None and item.mask is not None:
            parts.append(item.mask)
            continue
        extent = dim_of(value, axis)
        if extent is None:
            refuse(say("the size of another operand is not fixed", "另一操作数的尺寸不固定"))
        parts.append(extent)
    found = [part for part in parts if isinstance(part, Mask)]
    if len(parts) == 1:
        return found[0]

    def make() -> ir.Value:
        ones = [look.step.cast(part.value, ir.DataType.INT32) if isinstance(part, Mask) else look.int32([1] * part) for part in parts]
        return look.step.op("Equal", look.step.op("Concat", *ones, axis=0), look.int32(1, "one"))

    size = sum(part.size if isinstance(part, Mask) else part for part in parts)
    return look.derive(("joined", *parts), found[0], make, size, found)


@masks("Split")
def split(look: Look) -> list[Result]:
    integers = look.sizes(0)
    if integers is not None:
        refuse(say("it splits a shape", "它切分形状"))
    item = masked(look)
    if look.axis(rank_of(item.dense)) == item.axis:
        refuse(say("it splits the data-dependent dimension", "它切分数据相关的维度"))
    others = [None if value is None else look.plain(index) for index, value in enumerate(look.node.inputs) if index]
    look.step.op("Split", item.dense, *others, outputs=len(look.node.outputs), **attributes_of(look))
    return [Packed(value, item.axis, item.mask, item.points) for value in look.step.made[-1].outputs]


@masks("Slice")
def sliced(look: Look) -> list[Result]:
    starts, ends = listed(look, "starts", 1), listed(look, "ends", 2)
    if starts is None or ends is None:
        refuse(say("its bounds are missing", "缺少切片边界"))
    axes, steps = listed(look, "axes", 3) or list(range(len(starts))), listed(look, "steps", 4) or [1] * len(starts)
    integers = look.sizes(0)
    if integers is not None:
        return [Sizes(integers.entries[starts[0] : ends[0] : steps[0]], False, integers.dtype)]
    item = look.packed(0)
    if item is not None and item.axis is None:
        bound = [look.plain(index) if look.step.input(index) is not None else None for index in range(1, len(look.node.inputs))]
        return [Packed(look.step.op("Slice", item.dense, *bound), None, None, item.points)]
    item = masked(look)
    rank = rank_of(item.dense)
    bounds = {axis % rank: (start, end, pace) for axis, start, end, pace in zip(axes, starts, ends, steps, strict=True)}
    start, end, pace = bounds.pop(item.axis or 0, (0, INT_MAX, 1))
    if bounds:
        parts = [[bound[place] for bound in bounds.values()] for place in range(3)]
        inputs = [look.step.ints(parts[0], "starts"), look.step.ints(parts[1], "ends"), look.step.ints(list(bounds), "axes")]
        dense = look.step.op("Slice", item.dense, *inputs, look.step.ints(parts[2], "steps"))
        item = Packed(dense, item.axis, item.mask, item.points)
    assert item.mask is not None
    if (start, pace) == (0, 1) and end >= np.iinfo(np.int32).max:
        return [item]
    return [_first(look, item, start, end, pace)]


def _first(look: Look, item: Packed, start: int, end: int, pace: int) -> Packed:
    """Places of the masked axis counted from the front: after they are moved there."""
    assert item.mask is not None
    assert item.axis is not None
    if pace != 1 or start < 0 or end < 0:
        refuse(say("a Slice that counts from the end of the data-dependent dimension", "从数据相关维度的末尾计数的 Slice"))
    size = item.mask.size
    start, end = min(start, size - 1), min(end, size)
    if end <= start:
        refuse(say("it chooses from nothing", "可选的位置为空"))
    whole = look.capped(item.mask, size)

    def make() -> ir.Value:
        return section(look.step, whole.value, 0, start, end)

    mask = look.derive(("section", start, end), whole, make, end - start)
    return Packed(section(look.step, look.compact(item), item.axis, start, end), item.axis, mask)


@masks("Pad")
def pad(look: Look) -> list[Result]:
    item = masked(look)
    if look.step.attr("pads") is None and look.constant(1) is None:
        whole = filled_up(look, item)
        if whole is not None:
            return [whole]
    pads = listed(look, "pads", 1)
    if pads is None or len(look.node.inputs) > 3:
        refuse(say("its amounts are computed", "其填充量是计算得到的"))
    rank = rank_of(item.dense)
    if pads[item.axis or 0] or pads[(item.axis or 0) + rank]:
        refuse(say("it pads the data-dependent dimension", "它填充数据相关的维度"))
    others = [None if value is None else look.plain(index) for index, value in enumerate(look.node.inputs) if index]
    return [Packed(again(look, [look.values(item), *others]), item.axis, item.mask)]


@masks("Tile")
def tile(look: Look) -> list[Result]:
    item, counts = masked(look), look.constant(1)
    if counts is None or counts.reshape(-1)[item.axis or 0] != 1:
        refuse(say("it repeats the data-dependent dimension", "它重复数据相关的维度"))
    return [Packed(again(look, [item.dense, look.node.inputs[1]]), item.axis, item.mask, item.points)]
