"""Pools by their windows: averages as sums over counts, maxima as the largest of gathered neighbours."""

from __future__ import annotations

import itertools
import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.lower.layers import Windows, average_by_sum, power_by_sum
from ..opset.step import Array, Step
from .base import expands
from .common import attributes_of, reshape, take, within

_TAPS = 64


@expands("AveragePool", "LpPool", "MaxPool")
def written_out(step: Step) -> None:
    """The same pool with its padding as numbers: what auto_pad means, and what ceil_mode reads beyond the end."""
    ceil, ordered = bool(step.attr("ceil_mode", 0)), bool(step.attr("storage_order", 0))
    if step.attr("auto_pad", "NOTSET") == "NOTSET" and not ceil and not ordered:
        step.refuse(say("its padding is written out already", "其填充已全部写出"))
    if step.used(1):
        step.refuse(say("its indices are read", "其索引输出被使用"))
    windows = Windows(step)
    if any(windows.beyond) and step.node.op_type == "AveragePool" and step.attr("count_include_pad", 0):
        step.refuse(say("what it reads beyond the padding is not counted", "超出填充的部分不计入平均"))
    after = [pad + more for pad, more in zip(windows.after, windows.beyond, strict=True)]
    reach = [(kernel - 1) * dilation + 1 for kernel, dilation in zip(windows.kernel, windows.dilations, strict=True)]
    found = [
        (size + before + end - wide) // stride + 1
        for size, before, end, wide, stride in zip(windows.size, windows.before, after, reach, windows.strides, strict=True)
    ]
    if found != list(windows.result) or any(
        pad >= kernel for pad, kernel in zip((*windows.before, *after), windows.kernel * 2, strict=True)
    ):
        step.refuse(say("its padding would not be smaller than its kernel", "其填充会不小于核的大小"))
    kept = attributes_of(step, set(step.node.attributes) - {"auto_pad", "ceil_mode", "pads", "storage_order"})
    step.finish(step.op(step.node.op_type, step.needed(0), pads=[*windows.before, *after], **kept))


@expands("AveragePool")
def average_pool(step: Step) -> None:
    """The sum of each window by a convolution with ones, divided by what the window counts."""
    average_by_sum(step)


@expands("LpPool")
def lp_pool(step: Step) -> None:
    """The root of the sum of powers."""
    power_by_sum(step)


def _taps(step: Step, windows: Windows) -> list[Array]:
    """For each axis the places [output, tap] that a window reads; what lies outside is replaced by a place of the same window inside.

    Raises:
        Unconvertible: a window lies wholly in the padding.
    """
    found = []
    for axis, size in enumerate(windows.size):
        starts = np.arange(windows.result[axis]) * windows.strides[axis] - windows.before[axis]
        places = starts[:, None] + np.arange(windows.kernel[axis]) * windows.dilations[axis]
        inside = (places >= 0) & (places < size)
        if not inside.any(axis=1).all():
            step.refuse(say("a window lies wholly in the padding", "有窗口完全落在填充区域内"))
        first = places[np.arange(len(places)), inside.argmax(axis=1)]
        found.append(np.where(inside, places, first[:, None]))
    return found


@expands("MaxPool")
def max_pool(step: Step) -> None:
    """One axis after the other: the largest of the neighbours that each window reads."""
    if step.used(1):
        step.refuse(say("its indices are read", "其索引输出被使用"))
    windows = Windows(step)
    if max(windows.kernel) > _TAPS:
        step.refuse(say("a window of more than {count} places", "窗口超过 {count} 个位置", count=_TAPS))
    result = step.needed(0)
    for axis, places in enumerate(_taps(step, windows)):
        parts = [take(step, result, axis + 2, places[:, tap]) for tap in range(places.shape[1])]
        result = parts[0] if len(parts) == 1 else step.op("Max", *parts)
    step.finish(result)


@expands("MaxPool")
def max_pool_with_indices(step: Step) -> None:
    """All windows gathered into a new last axis, whose largest element is looked up in a table of places."""
    windows, shape = Windows(step), step.static()
    taps = _taps(step, windows)
    size, outputs, count = math.prod(windows.size), math.prod(windows.result), math.prod(windows.kernel)
    planes = math.prod(shape[:2])
    within(step, planes * outputs * count)
    strides = [math.prod(windows.size[axis + 1 :]) for axis in range(len(windows.size))]
    told = list(strides)
    if step.attr("storage_order", 0):  # places are told as if columns were stored one after the other
        told = [math.prod(windows.size[:axis]) for axis in range(len(windows.size))]

    def table(factors: list[int]) -> Array:
        rows = [
            sum(factor * taps[axis][out[axis], tap[axis]] for axis, factor in enumerate(factors))
            for out in itertools.product(*map(range, windows.result))
            for tap in itertools.product(*map(range, windows.kernel))
        ]
        return np.asarray(rows, np.int64)

    flat = reshape(step, step.needed(0), [planes, size])
    gathered = reshape(step, take(step, flat, 1, table(strides)), [planes, outputs, count])
    values = reduce(step, "ReduceMax", gathered, [2], keepdims=0)
    best = step.op("ArgMax", gathered, axis=2, keepdims=0)
    place = step.op("Gather", step.ints(table(told), "places"), step.op("Add", best, step.ints(np.arange(outputs) * count, "row")), axis=0)
    place = step.op("Add", place, step.ints((np.arange(planes) * size).reshape(planes, 1), "plane"))
    wanted = [*shape[:2], *windows.result]
    step.finish(reshape(step, values, wanted), reshape(step, place, wanted))


@expands("MaxUnpool")
def max_unpool(step: Step) -> None:
    """A ScatterND of the values into zeros."""
    shape, kernel = step.static(), step.attr("kernel_shape")
    dims = len(kernel)
    strides, pads = step.attr("strides", (1,) * dims), step.attr("pads", (0,) * 2 * dims)
    spatial = [
        (size - 1) * stride + width - pads[axis] - pads[dims + axis]
        for axis, (size, stride, width) in enumerate(zip(shape[2:], strides, kernel, strict=True))
    ]
    wanted = step.constant(2, "output_shape")
    if wanted is not None and wanted.reshape(-1).tolist()[2:] != spatial:
        step.refuse(
            say(
                "the standard and ONNX Runtime read its indices differently where output_shape is not what the pads give",
                "当 output_shape 与 pads 推出的形状不同时，标准与 ONNX Runtime 对其索引的解释不同",
            )
        )
    total = math.prod([*shape[:2], *spatial])
    within(step, total, "tensor")
    places = reshape(step, step.cast(step.needed(1), ir.DataType.INT64), [-1, 1])
    zeros = step.const(np.zeros(total), step.dtype().numpy(), "zeros")
    result = step.op("ScatterND", zeros, places, reshape(step, step.needed(0), [-1]))
    step.finish(reshape(step, result, [*shape[:2], *spatial]))
