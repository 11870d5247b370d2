"""Reshape and Flatten of a tensor with a masked axis: it stays an axis, or others are joined with it."""

from __future__ import annotations

import math

from ...text import say
from ..shapes import known_shape
from .base import Count, Look, Packed, Result, Sizes, masks, refuse
from .moving import masked, spread


@masks("Reshape")
def reshape(look: Look) -> list[Result]:
    wanted, integers = look.sizes(1), look.sizes(0)
    if wanted is None:
        refuse(say("its shape is computed", "其形状是计算得到的"))
    if integers is not None and all(isinstance(entry, int) for entry in wanted.entries):
        if len(wanted.entries) <= 1:
            return [Sizes(integers.entries, not wanted.entries, integers.dtype)]
        return [look.step.op("Reshape", look.realised(integers), look.plain(1))]
    item = look.packed(0)
    if item is not None and item.axis is None:
        return [Packed(look.step.op("Reshape", item.dense, look.plain(1)), None, None, item.points)]
    return [regrouped(look, masked(look), wanted.entries)]


@masks("Flatten")
def flatten(look: Look) -> list[Result]:
    item = masked(look)
    dims = known_shape(item.dense) or ()
    axis = int(look.step.given("axis"))
    axis = axis + len(dims) if axis < 0 else axis
    front, back = (math.prod(dim for dim in part if isinstance(dim, int)) for part in (dims[:axis], dims[axis:]))
    return [regrouped(look, item, (-1, back) if (item.axis or 0) < axis else (front, -1))]


def regrouped(look: Look, item: Packed, wanted: tuple[int | Count, ...]) -> Packed:
    """The tensor in another shape, one of whose sizes is the count, or a multiple of it, or -1.

    Raises:
        Unmaskable: the masked axis does not end up in one dimension.
    """
    dims, axis, mask = known_shape(item.dense), item.axis, item.mask
    assert axis is not None
    assert mask is not None
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        refuse(say("another dimension of it is not fixed", "它的另一维度不固定"))
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if 0 in sizes:
        refuse(say("it is empty", "它是空的"))
    target: list[int | Count] = []
    for place, entry in enumerate(wanted):
        if entry == 0:  # as in the input
            entry = Count(mask) if place == axis else sizes[place]
        target.append(entry)
    open_ = [place for place, entry in enumerate(target) if isinstance(entry, Count)] or [
        place for place, entry in enumerate(target) if entry == -1
    ]
    if len(open_) != 1:
        refuse(say("its data-dependent dimension is not one dimension afterwards", "数据相关的维度在变换后不是单独一维"))
    new = open_[0]
    rest = sizes[:axis] + sizes[axis + 1 :]
    fixed = [entry for place, entry in enumerate(target) if place != new and isinstance(entry, int)]
    if -1 in fixed:  # what is left for it beside a count
        entry = target[new]
        assert isinstance(entry, Count)
        known = math.prod(item for item in fixed if item != -1) * entry.factor
        if not known or math.prod(rest) % known or entry.mask is not mask or entry.most is not None:
            refuse(say("its data-dependent dimension is not one dimension afterwards", "数据相关的维度在变换后不是单独一维"))
        place = next(place for place, value in enumerate(target) if value == -1)
        target[place] = math.prod(rest) // known
    front = math.prod(entry for entry in target[:new] if isinstance(entry, int))
    back = math.prod(entry for entry in target[new + 1 :] if isinstance(entry, int))
    first = _cut(sizes[:axis], front)
    last = _cut(sizes[axis + 1 :][::-1], back)
    if first is None or last is None:
        refuse(say("it mixes the data-dependent dimension with others", "它把数据相关的维度与其他维度混合"))
    entry = target[new]
    if isinstance(entry, Count) and (entry.mask is not mask or entry.factor != first * last or entry.most is not None):
        refuse(say("it gives the data-dependent dimension another size", "它为数据相关的维度指定了其他尺寸"))
    grown = spread(look, mask, first, last)
    shape = [grown.size if place == new else value for place, value in enumerate(target)]
    dense = look.step.op("Reshape", item.dense, look.step.ints([value for value in shape if isinstance(value, int)], "shape"))
    return Packed(dense, new, grown, item.points)


def _cut(dims: list[int], product: int) -> int | None:
    """How much is left of dimensions after as many of the first as make ``product``; None if there is no such place."""
    for count in range(len(dims) + 1):
        if math.prod(dims[:count]) == product:
            return math.prod(dims[count:])
    return None
