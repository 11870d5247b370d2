"""Reductions by others, and reductions of integers by halves: exact in any type that Add, Mul, Max or Min have a kernel for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce, section, squeeze
from ..opset.step import Step
from .base import expands
from .common import is_float, normal_axis, reshape, transposed

_HALVINGS = 24
"""Halvings that an axis may take: nodes grow with the logarithm of its length."""
_COMBINES = {"ReduceSum": "Add", "ReduceMean": "Add", "ReduceProd": "Mul", "ReduceMax": "Max", "ReduceMin": "Min", "ReduceSumSquare": "Add", "ReduceL1": "Add"}  # fmt: skip


def reduced_axes(step: Step) -> list[int]:
    """The axes that a reduction works on, counted from the front.

    Raises:
        Unconvertible: they are computed, or there are none.
    """
    rank = step.rank()
    given = step.constant(1, "axes") if step.version >= (13 if step.node.op_type == "ReduceSum" else 18) else step.attr("axes")
    if given is None or not len(given):
        if step.attr("noop_with_empty_axes", 0):
            step.refuse(say("it has no axes and does nothing", "它没有 axes，不做任何归约"))
        return list(range(rank))
    return sorted({normal_axis(step, int(axis), rank) for axis in np.asarray(given).reshape(-1)})


def _shape_after(step: Step, axes: list[int]) -> list[int]:
    shape, keep = step.static(), bool(step.given("keepdims"))
    return [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]


@expands("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceSumSquare", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")  # fmt: skip
def nothing_reduced(step: Step) -> None:
    """Over axes of one element a reduction does nothing but drop them; without axes it may do nothing at all; over none it is a constant."""
    name, dtype = step.node.op_type, step.dtype()
    given = step.constant(1, "axes") if step.version >= (13 if name == "ReduceSum" else 18) else step.attr("axes")
    if (given is None or not len(given)) and step.attr("noop_with_empty_axes", 0):
        step.finish(_of_each(step, step.needed(0)))
        return
    axes = reduced_axes(step)
    shape = step.static()
    if 0 in shape:
        neutral = _of_nothing(step, name, dtype)
        step.finish(step.const(np.full(_shape_after(step, axes), neutral), dtype.numpy(), "nothing"))
        return
    if any(shape[axis] != 1 for axis in axes):
        step.refuse(say("it reduces more than one element", "它归约多于一个元素"))
    step.finish(reshape(step, _of_each(step, step.needed(0)), _shape_after(step, axes)))


def _of_each(step: Step, data: ir.Value) -> ir.Value:
    """What the reduction of one element is."""
    name = step.node.op_type
    if name in ("ReduceL1", "ReduceL2"):
        return step.op("Abs", data)
    if name == "ReduceSumSquare":
        return step.op("Mul", data, data)
    if name != "ReduceLogSum":
        return data
    if not is_float(step.dtype()):
        step.refuse(say("a root or logarithm of integers", "整数的平方根或对数"))
    return step.op("Log", data)


def _of_nothing(step: Step, name: str, dtype: ir.DataType) -> Any:
    """The reduction of no element, as the ONNX standard has it."""
    kind = dtype.numpy()
    if name in ("ReduceMax", "ReduceMin"):
        lowest = name == "ReduceMax"
        if kind.kind == "b":
            return not lowest
        if is_float(dtype):
            return -np.inf if lowest else np.inf
        limits = np.iinfo(kind)
        return limits.min if lowest else limits.max
    if name in ("ReduceLogSum", "ReduceLogSumExp"):
        if not is_float(dtype):
            step.refuse(say("a root or logarithm of integers", "整数的平方根或对数"))
        return -np.inf
    if name == "ReduceMean":
        step.refuse(say("the mean of nothing", "空集的均值"))
    return 1 if name == "ReduceProd" else 0


@expands("ReduceLogSumExp")
def log_sum_exp(step: Step) -> None:
    """The largest element is taken out before the exponential and added back, so that nothing overflows."""
    data, axes, keep = step.needed(0), reduced_axes(step), int(step.given("keepdims"))
    shape = step.shape()
    if shape is None or 0 in shape:
        step.refuse(say("it may be empty", "它可能为空"))
    if not is_float(step.dtype()):
        step.refuse(say("a root or logarithm of integers", "整数的平方根或对数"))
    largest = reduce(step, "ReduceMax", data, axes)
    # Of infinities nothing is taken out: the difference would be NaN.
    bound = step.like(float(np.finfo(step.dtype().numpy()).max))
    finite = step.op("Less", step.op("Abs", largest), bound)
    base = step.op("Where", finite, largest, step.like(0))
    total = reduce(step, "ReduceSum", step.op("Exp", step.op("Sub", data, base)), axes)
    result = step.op("Add", step.op("Log", total), base)
    step.finish(result if keep else squeeze(step, result, axes))


@expands("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
def reduced(step: Step) -> None:
    """A ReduceSum of magnitudes or squares, and what comes after it."""
    data, axes, keep, name = step.needed(0), reduced_axes(step), int(step.given("keepdims")), step.node.op_type
    if name in ("ReduceL2", "ReduceLogSum") and not is_float(step.dtype()):
        step.refuse(say("a root or logarithm of integers", "整数的平方根或对数"))
    if name in ("ReduceL2", "ReduceSumSquare"):
        data = step.op("Mul", data, data)
    elif name == "ReduceL1":
        data = step.op("Abs", data)
    total = reduce(step, "ReduceSum", data, axes, keep)
    if name == "ReduceL2":
        total = step.op("Sqrt", total)
    step.finish(step.op("Log", total) if name == "ReduceLogSum" else total)


@expands("ReduceMax", "ReduceMin")
def extreme_of_narrow(step: Step) -> None:
    """Integers of 8 bits, and booleans, through a type that has a kernel."""
    if step.dtype() not in (ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8):
        step.refuse(say("its values are wider than 8 bits", "其取值超过 8 位"))
    if 0 in step.static():
        step.refuse(say("it may be empty", "它可能为空"))  # the extreme of nothing is that of the type
    wide = step.cast(step.needed(0), ir.DataType.FLOAT16)
    result = reduce(step, step.node.op_type, wide, reduced_axes(step), int(step.given("keepdims")))
    step.finish(step.cast(result, step.dtype()))


@expands("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceSumSquare", "ReduceL1")
def by_halves(step: Step) -> None:
    """Integers: one half of the axis is combined with the other until one element is left; sums wrap around as they would one by one."""
    name, dtype = step.node.op_type, step.dtype()
    if is_float(dtype) or dtype == ir.DataType.BOOL:
        step.refuse(say("its elements are not integers", "其元素不是整数"))
    axes, shape = reduced_axes(step), step.static()
    count = math.prod(shape[axis] for axis in axes)
    if not count or 0 in shape:
        step.refuse(say("it may be empty", "它可能为空"))
    if count.bit_length() > _HALVINGS:
        step.refuse(say("it reduces {count} elements to one", "它把 {count} 个元素归约为一个", count=count))
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    data = step.needed(0)
    if name == "ReduceSumSquare":
        data = step.op("Mul", data, data)
    elif name == "ReduceL1":
        data = step.op("Abs", data)
    data = reshape(step, transposed(step, data, [*rest, *axes]), [*[shape[axis] for axis in rest], count])
    result = halved(step, data, len(rest), count, _COMBINES[name])
    if name == "ReduceMean":
        result = step.op("Div", result, step.const(count, dtype.numpy(), "count"))
    step.finish(reshape(step, result, _shape_after(step, axes)))


def halved(step: Step, data: ir.Value, axis: int, count: int, combine: str) -> ir.Value:
    """The elements of an axis combined into one by an associative operator, in as many steps as ``count`` has digits in base two."""
    odd: ir.Value | None = None
    while count > 1:
        half = count // 2
        if count % 2:
            last = section(step, data, axis, count - 1, count)
            odd = last if odd is None else combined(step, combine, odd, last)
        data = combined(step, combine, section(step, data, axis, 0, half), section(step, data, axis, half, 2 * half))
        count = half
    return data if odd is None else combined(step, combine, data, odd)


def combined(step: Step, op: str, one: ir.Value, other: ir.Value) -> ir.Value:
    """Two integers combined; Max and Min know integers only from opset 12 on."""
    if op not in ("Max", "Min") or step.version >= 12:
        return step.op(op, one, other)
    return step.op("Where", step.op("Greater" if op == "Max" else "Less", one, other), one, other)
