"""Operators whose output has as many places as their input has chosen ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import section
from .base import Look, Mask, Packed, Result, masks, rank_of, refuse, shape_of


def true_where(look: Look, value: ir.Value) -> ir.Value:
    """Which elements are not zero (NaN is not)."""
    if value.dtype == ir.DataType.BOOL:
        return value
    if value.dtype is None:
        refuse(say("its type is not known", "其类型未知"))
    return look.step.op("Not", look.step.op("Equal", value, look.step.const(0, value.dtype.numpy(), "zero")))


def of_size(size: int) -> int:
    if size < 1:
        refuse(say("it chooses from nothing", "可选的位置为空"))
    return size


@masks("NonZero")
def non_zero(look: Look) -> list[Result]:
    step, held = look.step, look.rep(0)
    if held is not None:
        return [_among_masked(look, held)]
    data = step.needed(0)
    shape = shape_of(data)
    size = of_size(math.prod(shape))
    if not shape:
        refuse(say("of a scalar", "输入是标量"))
    mask = look.mask(data, size, lambda: step.op("Reshape", true_where(look, data), step.ints([size], "shape")))
    grid = np.indices(shape).reshape(len(shape), size)
    return [Packed(step.place(step.const(grid, np.int64, "places")), 1, mask)]


def _among_masked(look: Look, held: object) -> Packed:
    """Of places that are there only some times: the ranks of those that are chosen."""
    if not isinstance(held, Packed) or held.mask is None or rank_of(held.dense) != 1:
        refuse(say("it chooses from a tensor of data-dependent shape and several dimensions", "它从多维且形状依赖数据的张量中选取"))
    mask = among(look, held.mask, held.dense, lambda: true_where(look, look.values(held)))
    places = look.step.const(np.arange(mask.size).reshape(1, -1), np.int64, "places")
    return Packed(look.step.place(places), 1, mask, held.mask)


@masks("Compress")
def compress(look: Look) -> list[Result]:
    step, held, flags = look.step, look.rep(0), look.rep(1)
    axis = step.attr("axis")
    if held is not None:
        return [_compress_masked(look, held, flags, axis)]
    data, condition = step.needed(0), look.plain(1)
    if axis is None:
        data = step.op("Reshape", data, step.ints([math.prod(shape_of(data))], "shape"))
        axis = 0
    rank = rank_of(data)
    if not -rank <= int(axis) < rank:
        refuse(say("its axis does not exist", "axis 不存在"))
    axis = int(axis) % rank
    size = of_size(shape_of(condition)[0])
    extent = shape_of(data)[axis]
    if size > extent:
        refuse(say("its condition is longer than the axis", "condition 比该轴更长"))
    kept = data if size == extent else section(step, data, axis, 0, size)
    return [Packed(kept, axis, look.mask(condition, size, lambda: condition))]


def _compress_masked(look: Look, held: object, flags: object, axis: int | None) -> Packed:
    fits = isinstance(held, Packed) and isinstance(flags, Packed) and held.mask is flags.mask and held.mask is not None
    if not fits:
        refuse(say("it chooses from a tensor of data-dependent shape by another one", "它用另一个张量从形状依赖数据的张量中选取"))
    assert isinstance(held, Packed)
    assert isinstance(flags, Packed)
    assert held.mask is not None
    rank = rank_of(held.dense)
    if (axis is None and rank != 1) or (axis is not None and axis % rank != held.axis):
        refuse(say("it chooses along another axis", "它沿另一条轴选取"))
    return Packed(held.dense, held.axis, among(look, held.mask, flags.dense, lambda: flags.dense), held.points)


def among(look: Look, mask: Mask, key: ir.Value, make: Callable[[], ir.Value]) -> Mask:
    """Those places of a mask that are chosen again."""
    found = look.derive(("among", key), mask, lambda: look.step.op("And", mask.value, make()), mask.size)
    found.sources.add(look.node.outputs[0].name or "")
    return found
