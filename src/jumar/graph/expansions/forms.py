"""The same operator in the form that a parser takes: attributes spelled out, axes counted from the front."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import declare, squeeze, unsqueeze
from ..opset.step import Step
from .base import expands
from .common import attributes_of, is_float, normal_axis, reshape, take, transposed


@expands("Flatten")
def flatten(step: Step) -> None:
    """A negative axis counts from the front."""
    axis, rank = int(step.given("axis")), step.rank()
    if axis >= 0:
        step.refuse(say("its axis is not negative", "其 axis 不是负数"))
    step.finish(step.op("Flatten", step.needed(0), axis=axis + rank))


@expands("ConvTranspose")
def dilated_transpose(step: Step) -> None:
    """Dilations become zeros in the kernel."""
    shape, dilations = list(step.static(1)), step.attr("dilations")
    if dilations is None or set(dilations) == {1}:
        step.refuse(say("it has no dilations", "它没有 dilations"))
    spans = [(size - 1) * gap + 1 for size, gap in zip(shape[2:], dilations, strict=True)]
    wide = step.needed(1)
    for axis, gap in enumerate(dilations, 2):
        if gap == 1:
            continue
        split = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
        zeros = [gap - 1 if place == axis + 1 else size for place, size in enumerate(split)]
        parts = (reshape(step, wide, split), step.const(np.zeros(zeros), step.dtype(1).numpy(), "zeros"))
        shape[axis] *= gap
        wide = reshape(step, step.op("Concat", *parts, axis=axis + 1), shape)
        shape[axis] = spans[axis - 2]
        wide = step.op("Slice", wide, step.ints([0], "start"), step.ints([shape[axis]], "end"), step.ints([axis], "axis"))
    inputs = [step.needed(0), wide, *step.node.inputs[2:]]
    kept = attributes_of(step, set(step.node.attributes) - {"dilations", "kernel_shape"})
    step.finish(step.op("ConvTranspose", *inputs, **kept, kernel_shape=spans))


@expands("Conv", "ConvTranspose")
def convolution(step: Step) -> None:
    """kernel_shape, strides, dilations, group and pads as attributes of the node; auto_pad and output_shape become pads."""
    node, weight = step.node, step.static(1)
    spatial = len(weight) - 2
    strides, dilations = (list(step.attr(name, (1,) * spatial)) for name in ("strides", "dilations"))
    if node.op_type == "Conv":
        pads, extra = conv_pads(step, weight, strides, dilations), None
    else:
        pads, extra = transposed_pads(step, weight, strides, dilations)
        declare_transposed(step, weight, (strides, dilations, pads, extra))
    written: dict[str, Any] = {
        "kernel_shape": list(weight[2:]),
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": int(step.given("group")),
        "output_padding": extra,
    }
    given = {
        name: _plain(step.attr(name)) for name in ("kernel_shape", "strides", "dilations", "pads", "group", "auto_pad", "output_shape")
    }
    if given == {name: written.get(name) for name in given} or all(given[name] is not None for name in ("kernel_shape", "strides", "pads")):
        step.refuse(say("its attributes are spelled out already", "其属性已全部写出"))
    step.finish(step.op(node.op_type, *node.inputs, **written))


@expands("Conv", "ConvTranspose")
def line(step: Step) -> None:
    """A convolution along one axis is one over an image of one row."""
    if step.rank() != 3:
        step.refuse(say("it is not 1-D", "它不是一维"))
    weight = step.static(1)
    node, doubled = step.node, dict[str, Any]()
    for name, first in (("strides", 1), ("dilations", 1), ("output_padding", 0), ("kernel_shape", 1), ("output_shape", 1)):
        given = step.attr(name)
        if given is not None:
            doubled[name] = [first, *given[-1:]]
    pads = step.attr("pads")
    if pads is not None:
        doubled["pads"] = [0, pads[0], 0, pads[1]]
    doubled["kernel_shape"] = [1, weight[2]]
    kept = attributes_of(step, set(node.attributes) - set(doubled))
    image, kernel = unsqueeze(step, step.needed(0), [2]), unsqueeze(step, step.needed(1), [2])
    step.finish(squeeze(step, step.op(node.op_type, image, kernel, *node.inputs[2:], **kept, **doubled), [2]))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _same_pads(total: list[int], mode: str) -> list[int]:
    small, large = [item // 2 for item in total], [item - item // 2 for item in total]
    return [*small, *large] if mode == "SAME_UPPER" else [*large, *small]


def conv_pads(step: Step, weight: tuple[int, ...], strides: list[int], dilations: list[int]) -> list[int]:
    """Pads of a Conv that give the same result without auto_pad."""
    mode, spatial = step.given("auto_pad"), len(weight) - 2
    if mode in ("NOTSET", "VALID"):
        return list(step.attr("pads", (0,) * 2 * spatial)) if mode == "NOTSET" else [0] * 2 * spatial
    sizes = [step.dim(place + 2) for place in range(spatial)]
    spans = [(kernel - 1) * dilation + 1 for kernel, dilation in zip(weight[2:], dilations, strict=True)]
    total = [
        max((math.ceil(size / stride) - 1) * stride + span - size, 0) for size, stride, span in zip(sizes, strides, spans, strict=True)
    ]
    return _same_pads(total, mode)


def transposed_pads(step: Step, weight: tuple[int, ...], strides: list[int], dilations: list[int]) -> tuple[list[int], list[int]]:
    """Pads and output_padding that give the same result without auto_pad and output_shape."""
    spatial = len(weight) - 2
    extra = list(step.attr("output_padding", (0,) * spatial))
    mode, wanted = step.given("auto_pad"), step.attr("output_shape")
    if wanted is None and mode in ("NOTSET", "VALID"):
        return (list(step.attr("pads", (0,) * 2 * spatial)) if mode == "NOTSET" else [0] * 2 * spatial), extra
    sizes = [step.dim(place + 2) for place in range(spatial)]
    targets = list(wanted)[-spatial:] if wanted is not None else [size * stride for size, stride in zip(sizes, strides, strict=True)]
    total = [
        stride * (size - 1) + more + (kernel - 1) * dilation + 1 - target
        for stride, size, more, kernel, dilation, target in zip(strides, sizes, extra, weight[2:], dilations, targets, strict=True)
    ]
    # A larger result than the operator would give is more padding at the end of the output.
    extra = [more + max(-item, 0) for more, item in zip(extra, total, strict=True)]
    if any(more >= max(stride, dilation) for more, stride, dilation in zip(extra, strides, dilations, strict=True)):
        step.refuse(say("output_shape is larger than strides and dilations reach", "output_shape 超出步长与膨胀所能达到的大小"))
    total = [max(item, 0) for item in total]
    return _same_pads(total, mode if mode != "NOTSET" else "SAME_LOWER"), extra


def declare_transposed(step: Step, weight: tuple[int, ...], form: tuple[list[int], list[int], list[int], list[int]]) -> None:
    """The shape of the result, which shape inference takes to be larger where auto_pad and output_padding are given."""
    shape, count = step.shape(), len(weight) - 2
    if shape is None or not all(isinstance(size, int) for size in shape):
        return
    strides, dilations, pads, extra = form
    sizes = [
        strides[axis] * (step.dim(axis + 2) - 1)
        + extra[axis]
        + (weight[axis + 2] - 1) * dilations[axis]
        + 1
        - pads[axis]
        - pads[axis + count]
        for axis in range(count)
    ]
    declare(step, [step.dim(0), weight[1] * int(step.given("group")), *sizes])


@expands("Hardmax")
def hardmax(step: Step) -> None:
    """On a matrix, whose last axis it works on."""
    shape = step.static()
    axis = int(step.attr("axis", -1 if step.version >= 13 else 1))
    axis = normal_axis(step, axis, len(shape))
    if len(shape) == 2 and axis == 1:
        step.refuse(say("it is a matrix already", "它已是矩阵"))
    data = step.needed(0)
    if step.version < 13:  # everything from the axis on is one axis
        rows = reshape(step, data, [math.prod(shape[:axis]), math.prod(shape[axis:])])
        step.finish(reshape(step, step.op("Hardmax", rows, axis=1), shape))
        return
    order = [*(place for place in range(len(shape)) if place != axis), axis]
    moved = [shape[place] for place in order]
    rows = reshape(step, transposed(step, data, order), [math.prod(moved[:-1]), moved[-1]])
    back = reshape(step, step.op("Hardmax", rows, axis=1), moved)
    step.finish(transposed(step, back, [order.index(place) for place in range(len(shape))]))


@expands("ArgMax", "ArgMin")
def last_of_equals(step: Step) -> None:
    """The last of equal elements is the first of them from behind."""
    if not step.attr("select_last_index", 0):
        step.refuse(say("it selects the first of equal elements already", "它已选取相等元素中的第一个"))
    rank = step.rank()
    axis = normal_axis(step, int(step.given("axis")), rank)
    size = step.dim(axis)
    turned = take(step, step.needed(0), axis, np.arange(size - 1, -1, -1))
    place = step.op(step.node.op_type, turned, axis=axis, keepdims=int(step.given("keepdims")))
    step.finish(step.op("Sub", step.ints(size - 1, "last"), place))


@expands("OneHot")
def one_hot_axis(step: Step) -> None:
    """An axis counted from the front."""
    axis, rank = int(step.given("axis")), step.rank()
    if axis >= -1:
        step.refuse(say("its axis is not under -1", "其 axis 不小于 -1"))
    step.finish(step.op("OneHot", *step.node.inputs, axis=normal_axis(step, axis, rank + 1)))


@expands("Slice")
def strided_slice(step: Step) -> None:
    """Steps other than 1 select constant places."""
    shape = step.static()
    if step.version < 10:
        step.refuse(say("a Slice of this opset has no steps", "该 opset 的 Slice 没有 steps"))
    starts, ends = (step.constant(index, name) for index, name in ((1, "starts"), (2, "ends")))
    if starts is None or ends is None:
        step.refuse(say("starts or ends are missing", "缺少 starts 或 ends"))
    axes, steps = step.constant(3, "axes"), step.constant(4, "steps")
    axes = np.arange(starts.size) if axes is None else axes
    steps = np.ones(starts.size, np.int64) if steps is None else steps
    result = step.needed(0)
    if all(item == 1 for item in steps):
        step.refuse(say("all its steps are 1", "其 steps 均为 1"))
    for start, end, axis, pace in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True):
        place = normal_axis(step, axis, len(shape))
        places = list(range(shape[place]))[slice(*_bounds(start, end, pace, shape[place]))]
        if pace == 1:
            low, high = (places[0], places[-1] + 1) if places else (0, 0)
            bounds = (step.ints([low], "start"), step.ints([high], "end"), step.ints([place], "axis"))
            result = step.op("Slice", result, *bounds)
        else:
            result = take(step, result, place, places)
    step.finish(result)


def _bounds(start: int, end: int, pace: int, size: int) -> tuple[int | None, int | None, int]:
    """Of ONNX, as Python writes them: beyond the beginning is no bound going backwards."""
    start, end = (item + size if item < 0 else item for item in (start, end))
    if pace > 0:
        return min(max(start, 0), size), min(max(end, 0), size), pace
    start = min(max(start, -1), size - 1)
    end = min(max(end, -1), size - 1)
    return (start if start >= 0 else None), (end if end >= 0 else None), pace


@expands("IsInf")
def is_inf(step: Step) -> None:
    """One sign or both, by comparison with infinity."""
    data, dtype = step.needed(0), step.dtype()
    signs = [sign for sign, name in ((1.0, "detect_positive"), (-1.0, "detect_negative")) if step.given(name)]
    if not signs:
        never = step.op("Less", data, data)  # the shape of the operand, and never true
        step.finish(never)
        return
    hits = [step.op("Equal", data, step.const(sign * np.inf, dtype.numpy(), "infinity")) for sign in signs]
    step.finish(hits[0] if len(hits) == 1 else step.op("Or", *hits))


@expands("IsNaN")
def is_nan(step: Step) -> None:
    """NaN alone is not equal to itself."""
    data = step.needed(0)
    step.finish(step.op("Not", step.op("Equal", data, data)))


@expands("Mod")
def float_remainder(step: Step) -> None:
    """fmod by magnitudes, with the sign of the dividend."""
    if not step.attr("fmod", 0):
        step.refuse(say("fmod is not set", "没有设置 fmod"))
    one, other = step.needed(0), step.needed(1)
    if not is_float(step.dtype()):
        _integer_remainder(step, one, other)
        return
    top, bottom, zero = step.op("Abs", one), step.op("Abs", other), step.like(0)
    rest = step.op("Sub", top, step.op("Mul", step.op("Floor", step.op("Div", top, bottom)), bottom))
    rest = step.op("Where", step.op("Less", top, bottom), top, rest)  # also of an infinite divisor
    # The quotient may have been rounded up to an integer, or below one.
    rest = step.op("Where", step.op("Less", rest, zero), step.op("Add", rest, bottom), rest)
    rest = step.op("Where", step.op("Less", rest, bottom), rest, step.op("Sub", rest, bottom))
    step.finish(step.op("Where", step.op("Less", one, zero), step.op("Neg", rest), rest))


def _integer_remainder(step: Step, one: ir.Value, other: ir.Value) -> None:
    """a - trunc(a / b) * b, which cannot leave the type."""
    step.finish(step.op("Sub", one, step.op("Mul", step.op("Div", one, other), other)))
