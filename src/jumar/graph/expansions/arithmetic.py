"""Arithmetic of types and forms without kernel."""

from __future__ import annotations

import itertools
import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.step import Step
from ..ranges import Interval
from .base import expands
from .common import is_float, normal_axis, reshape

_EXACT = 1 << 24


@expands("Pow")
def power(step: Step) -> None:
    """An integer exponent, and an integer base of exact results, in floats."""
    base, exponent, dtype = step.needed(0), step.needed(1), step.dtype()
    if exponent.dtype is None or (is_float(dtype) and exponent.dtype == dtype):
        step.refuse(say("both operands are floats of one type", "两个操作数为同一浮点类型"))
    kind = dtype if is_float(dtype) else ir.DataType.FLOAT
    known, raised = step.range_of(base), step.range_of(exponent)
    if not is_float(exponent.dtype) and not raised.within(-_EXACT, _EXACT):
        step.refuse(say("its exponent is not known to be exact in float32", "其指数不能确定可由 float32 精确表示"))
    if not is_float(dtype):
        if is_float(exponent.dtype) or raised.lo < 0 or not known.within(-_EXACT, _EXACT) or raised.hi > 24:
            step.refuse(say("its results are not known to be exact in float32", "其结果不能确定可由 float32 精确表示"))
        if max(abs(int(known.lo)), abs(int(known.hi)), 1) ** int(raised.hi) > _EXACT:
            step.refuse(say("its results are not known to be exact in float32", "其结果不能确定可由 float32 精确表示"))
    result = step.op("Pow", step.cast(base, kind), step.cast(exponent, kind))
    if not is_float(dtype):
        result = step.op("Floor", step.op("Add", result, step.const(0.5, np.float32, "half")))  # the device's power may be a little off
    step.finish(step.cast(result, dtype))


@expands("Softmax", "LogSoftmax")
def softmax_of_joined_axes(step: Step) -> None:
    """Before opset 13 everything from the axis on is one axis: it is made one, and the last."""
    if step.version >= 13:
        step.refuse(say("it works on one axis", "它只作用于一个轴"))
    shape = step.static()
    axis = normal_axis(step, int(step.given("axis")), len(shape))
    if axis == len(shape) - 1:
        step.refuse(say("its axis is the last already", "其 axis 已是最后一维"))
    if 0 in shape:
        step.refuse(say("it may be empty", "它可能为空"))
    rows = reshape(step, step.needed(0), [math.prod(shape[:axis]), math.prod(shape[axis:])])
    step.finish(reshape(step, step.op(step.node.op_type, rows, axis=1), shape))


@expands("Hardmax")
def hardmax_of_places(step: Step) -> None:
    """One at the place of the largest element, the first of equal ones."""
    shape = step.static()
    axis = normal_axis(step, int(step.given("axis")), len(shape))
    data = step.needed(0)
    if step.version < 13 and axis != len(shape) - 1:
        step.refuse(say("it works on several axes as one", "它把多个轴作为一个轴处理"))
    if 0 in shape:
        step.refuse(say("it may be empty", "它可能为空"))
    place = step.cast(step.op("ArgMax", data, axis=axis, keepdims=1), ir.DataType.INT32)
    numbers = np.arange(shape[axis]).reshape([-1 if item == axis else 1 for item in range(len(shape))])
    step.finish(step.cast(step.op("Equal", place, step.const(numbers, np.int32, "places")), step.dtype()))


_NARROW = {
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT16: (0, 65535),
}


@expands("Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs")
def narrow_arithmetic(step: Step) -> None:
    """Integers of up to 16 bits in int32, wrapped around to their width where ranges do not show that they fit."""
    dtype, name = step.dtype(), step.node.op_type
    if dtype not in _NARROW:
        step.refuse(say("its integers are not of 8 or 16 bits", "其整数不是 8 位或 16 位"))
    if name == "Mod" and step.attr("fmod", 0):
        step.refuse(say("fmod is set", "设置了 fmod"))
    operands = [value for value in step.node.inputs if value is not None]
    wide = [step.cast(value, ir.DataType.INT32) for value in operands]
    low, high = _result_range(name, [step.range_of(value) for value in operands])
    bottom, top = _NARROW[dtype]
    if high > _INT32_MAX or low < -_INT32_MAX:
        step.refuse(say("a product may not fit 32 bits", "乘积可能超出 32 位"))
    result = step.op(name, *wide)
    if low < bottom or high > top:
        if max(high - bottom, -low + bottom) > _EXACT:
            step.refuse(say("a product may have more than 24 bits", "乘积可能超过 24 位"))
        # Modulo the number of values, into their range.
        moved = step.op("Sub", result, step.const(bottom, np.int32, "least")) if bottom else result
        rest = step.op("Mod", moved, step.const(top - bottom + 1, np.int32, "count"))
        result = step.op("Add", rest, step.const(bottom, np.int32, "least")) if bottom else rest
    step.finish(step.cast(result, dtype))


_INT32_MAX = np.iinfo(np.int32).max


def _result_range(name: str, ranges: list[Interval]) -> tuple[int, int]:
    """Between which numbers the result lies, without wrapping around."""
    (low, high), *others = [(int(item.lo), int(item.hi)) for item in ranges]
    if name == "Neg":
        return -high, -low
    if name == "Abs":
        return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if name == "Div":
        if min(low, int(ranges[1].lo)) >= 0:
            return 0, high
        return -max(abs(low), abs(high)), max(abs(low), abs(high))
    bottom, top = others[0]
    if name == "Mod":
        return min(bottom, 0), max(top, 0)
    if name == "Add":
        return low + bottom, high + top
    if name == "Sub":
        return low - top, high - bottom
    corners = [one * other for one in (low, high) for other in (bottom, top)]
    return min(corners), max(corners)


@expands("Det")
def determinant(step: Step) -> None:
    """The sum over permutations, for matrices of up to four rows."""
    shape = step.static()
    size = shape[-1]
    if size > 4:
        step.refuse(say("a matrix of more than four rows", "矩阵超过四行"))
    data, axis = reshape(step, step.needed(0), [*shape[:-2], size * size]), len(shape) - 2
    total: ir.Value | None = None
    for order in itertools.permutations(range(size)):
        term: ir.Value | None = None
        for row, column in enumerate(order):
            item = step.op("Gather", data, step.ints(row * size + column), axis=axis)
            term = item if term is None else step.op("Mul", term, item)
        even = sum(order[one] > order[other] for one in range(size) for other in range(one + 1, size)) % 2 == 0
        if term is None:
            step.refuse(say("an empty matrix", "空矩阵"))
        total = (term if even else step.op("Neg", term)) if total is None else step.op("Add" if even else "Sub", total, term)
    if total is None:
        step.refuse(say("an empty matrix", "空矩阵"))
    step.finish(total)
