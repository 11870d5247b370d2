"""Quantised operators in floats that hold their integers exactly."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import half_to_even, reduce, unsqueeze
from ..opset.lower.quantized import LIMITS, dequantized, quantized
from ..opset.step import Array, Step
from .base import expands
from .common import attributes_of

FLOAT = ir.DataType.FLOAT
EXACT = 1 << 24
"""Sums of integers up to this magnitude are exact in float32, in any order."""
_CHUNKS = 64


@expands("DequantizeLinear")
def dequantize(step: Step) -> None:
    """(x - zero point) * scale."""
    if step.dtype().name.startswith("FLOAT"):
        step.refuse(say("a float8 or float4 tensor", "float8 或 float4 张量"))
    dequantized(step)


@expands("QuantizeLinear")
def quantize(step: Step) -> None:
    """Divided by the scale, rounded to the nearest even integer, moved by the zero point, clipped."""
    zero = step.input(2)
    wanted = zero.dtype if zero is not None else ir.DataType(step.attr("output_dtype", 0) or int(ir.DataType.UINT8))
    if wanted is None or wanted not in LIMITS:
        step.refuse(say("it does not quantise to integers of 8 or 16 bits", "它不是量化为 8 位或 16 位整数"))
    # ONNX Runtime divides in float32 also where scale and data are half.
    quantized(step, wanted, int(step.attr("precision", 0)) or int(FLOAT))


@expands("DynamicQuantizeLinear")
def dynamic_quantize(step: Step) -> None:
    """The range of the tensor, widened to hold 0, spread over 0 to 255."""
    step.finish(*dynamically_quantised(step))


def dynamically_quantised(step: Step) -> tuple[ir.Value, ir.Value, ir.Value]:
    """What a DynamicQuantizeLinear of the first input gives: integers, scale and zero point."""
    data, axes, zero = step.needed(0), list(range(step.rank())), step.like(0)
    low = step.op("Min", reduce(step, "ReduceMin", data, axes, keepdims=0), zero)
    high = step.op("Max", reduce(step, "ReduceMax", data, axes, keepdims=0), zero)
    scale = step.op("Div", step.op("Sub", high, low), step.like(255))
    # Zeros alone have no range; ONNX Runtime scales them by 1, where 0 would give 0 / 0.
    scale = step.op("Add", scale, step.op("Sub", step.like(1), step.op("Sign", scale)))
    first = half_to_even(step, step.op("Div", step.op("Sub", zero, low), scale))
    point = step.cast(step.op("Min", step.op("Max", first, zero), step.like(255)), ir.DataType.UINT8)
    return step.op("QuantizeLinear", data, scale, point), scale, point


def centred(step: Step, index: int, zero: int, axis: int | None = None, rank: int = 0) -> ir.Value:
    """An operand less its zero point, in float32. ``axis``: along which zero points of an axis lie."""
    data, point = step.cast(step.needed(index), FLOAT), step.input(zero)
    return data if point is None else step.op("Sub", data, step.cast(spread(step, point, axis, rank), FLOAT))


def spread(step: Step, value: ir.Value, axis: int | None, rank: int) -> ir.Value:
    shape = value.shape
    if shape is None:
        step.refuse(say("the rank of a scale or zero point is not known", "缩放或零点的秩未知"))
    if len(shape) == 1 and shape[0] == 1:
        return step.op("Reshape", value, step.ints([], "scalar"))
    if len(shape) != 1 or axis is None:
        return value
    return unsqueeze(step, value, [place for place in range(rank) if place != axis])


def largest_product(step: Step, *indices: int) -> int:
    """The largest product of 8-bit operands less any zero point.

    Raises:
        Unconvertible: one has more bits.
    """
    for index in indices:
        if step.dtype(index) not in (ir.DataType.INT8, ir.DataType.UINT8):
            step.refuse(say("operands of more than 8 bits", "操作数超过 8 位"))
    largest: int = 255 ** len(indices)
    return largest


def integer_product(step: Step, left: ir.Value, right: ir.Value, inner: int, largest: int, ranks: tuple[int, int]) -> ir.Value:
    """A MatMul of integers held in floats, as floats where every sum is exact, otherwise in parts that are added as int32."""
    each = max(EXACT // largest, 1)
    if inner <= each:
        return step.op("MatMul", left, right)
    if math.ceil(inner / each) > _CHUNKS or inner * largest > np.iinfo(np.int32).max:
        step.refuse(say("sums of {count} products", "{count} 个乘积之和", count=inner))
    total: ir.Value | None = None
    for start in range(0, inner, each):
        bounds = (step.ints([start], "start"), step.ints([min(start + each, inner)], "end"))
        parts = (
            step.op("Slice", left, *bounds, step.ints([ranks[0] - 1], "axis")),
            step.op("Slice", right, *bounds, step.ints([max(ranks[1] - 2, 0)], "axis")),
        )
        part = step.cast(step.op("MatMul", *parts), ir.DataType.INT32)
        total = part if total is None else step.op("Add", total, part)
    if total is None:
        step.refuse(say("an empty product", "空乘积"))
    return total


@expands("MatMulInteger")
def matmul_integer(step: Step) -> None:
    """In float32, whose sums are exact up to 2^24, and as int32 beyond."""
    rank = step.rank(0)
    left = centred(step, 0, 2, rank - 2 if rank > 1 else None, rank)
    right = centred(step, 1, 3, step.rank(1) - 1, step.rank(1))
    total = integer_product(step, left, right, step.dim(-1, 0), largest_product(step, 0, 1), (step.rank(0), step.rank(1)))
    step.finish(step.cast(total, ir.DataType.INT32))


def _bound(weight: Array | None, zero: Array | None, inner: int, axis: int) -> int:
    """The largest sum of a convolution: of known weights what they can give, otherwise the worst case."""
    if weight is None:
        return inner * 255 * 255
    centred = weight.astype(np.int64)
    if zero is not None:
        shape = [-1 if place == axis else 1 for place in range(weight.ndim)] if zero.size > 1 else [1] * weight.ndim
        centred = centred - zero.astype(np.int64).reshape(shape)
    return int(np.abs(centred).sum(axis=tuple(range(1, weight.ndim))).max(initial=0)) * 255


def _convolved(step: Step, weight_index: int, zeros: tuple[int, int], last: bool = False) -> ir.Value:
    """A convolution of integers held in floats, all of whose sums are exact.

    Raises:
        Unconvertible: they might not be.
    """
    shape = step.static(weight_index)
    zero = step.input(zeros[1])
    known = None if zero is None else step.value_of(zero)
    weight = step.value_of(step.input(weight_index)) if zero is None or known is not None else None
    bound = _bound(weight, known, math.prod(shape[1:]), 0)
    if bound > EXACT:
        step.refuse(
            say(
                "its sums may reach {bound}, and float32 is exact up to {exact}",
                "其和可达 {bound}，而 float32 只精确到 {exact}",
                bound=bound,
                exact=EXACT,
            )
        )
    data = centred(step, 0, zeros[0])
    data = step.op("Transpose", data, perm=[0, len(shape) - 1, *range(1, len(shape) - 1)]) if last else data
    kernel = centred(step, weight_index, zeros[1], 0, len(shape))
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return step.op("Conv", data, kernel, **attributes_of(step, names))


@expands("ConvInteger")
def conv_integer(step: Step) -> None:
    """A convolution in float32, whose sums are exact."""
    step.finish(step.cast(_convolved(step, 1, (2, 3)), ir.DataType.INT32))


def requantised(step: Step, total: ir.Value, factor: ir.Value, zero: ir.Value) -> ir.Value:
    """round(total * factor) + zero, clipped to the type of the zero point; one rounding of the product in float32, as ONNX Runtime has it."""
    dtype = zero.dtype or ir.DataType.UINT8
    if dtype not in LIMITS:
        step.refuse(say("it does not quantise to integers of 8 or 16 bits", "它不是量化为 8 位或 16 位整数"))
    moved = step.op("Add", half_to_even(step, step.op("Mul", step.cast(total, FLOAT), factor)), step.cast(zero, FLOAT))
    low, high = (step.const(limit, np.float32, "limit") for limit in LIMITS[dtype])
    return step.cast(step.op("Min", step.op("Max", moved, low), high), dtype)


def _factor(step: Step, one: ir.Value, other: ir.Value, out: ir.Value) -> ir.Value:
    """one * other / out, in float32."""
    scales = [step.cast(item, FLOAT) for item in (one, other, out)]
    return step.op("Div", step.op("Mul", scales[0], scales[1]), scales[2])


@expands("QLinearMatMul")
def qlinear_matmul(step: Step) -> None:
    """A product of integers in float32, and one rounding at the end."""
    ranks = (step.rank(0), step.rank(3))
    left = centred(step, 0, 2, ranks[0] - 2, ranks[0])
    right = centred(step, 3, 5, ranks[1] - 1, ranks[1])
    total = integer_product(step, left, right, step.dim(-1, 0), largest_product(step, 0, 3), ranks)
    factor = _factor(
        step,
        spread(step, step.needed(1), ranks[0] - 2, ranks[0]),
        spread(step, step.needed(4), ranks[1] - 1, ranks[1]),
        spread(step, step.needed(6), ranks[0] - 2, ranks[0]),
    )
    step.finish(requantised(step, total, factor, spread(step, step.needed(7), ranks[0] - 2, ranks[0])))


@expands("QLinearConv")
def qlinear_conv(step: Step) -> None:
    """A convolution of integers in float32, the bias added to its exact sums, and one rounding at the end."""
    unpacked_convolution(step, False)


def unpacked_convolution(step: Step, last: bool) -> None:
    """A QLinearConv. ``last``: the channels of its data lie last; those of its weight never do."""
    total, rank = _convolved(step, 3, (2, 5), last), step.rank(0)
    bias = step.input(8)
    if bias is not None:
        total = step.op("Add", total, step.cast(spread(step, bias, 1, rank), FLOAT))
    scales = [spread(step, step.needed(index), 1 if index == 4 else None, rank) for index in (1, 4, 6)]
    result = requantised(step, total, _factor(step, scales[0], scales[1], scales[2]), spread(step, step.needed(7), None, 0))
    step.finish(step.op("Transpose", result, perm=[0, *range(2, rank), 1]) if last else result)
