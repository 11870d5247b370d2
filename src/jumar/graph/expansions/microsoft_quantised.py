"""Quantised operators of ONNX Runtime's own domain, in the order of rounding that its kernels have."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import half_to_even, reduce
from ..opset.lower.quantized import LIMITS, dequantized, quantized
from ..opset.step import Array, Step
from .base import expands
from .common import attributes_of, normal_axis
from .microsoft import DOMAIN, needs
from .quantised import FLOAT, centred, dynamically_quantised, integer_product, largest_product, requantised, spread, unpacked_convolution

MOST_ELEMENTS = 1 << 26
"""Elements of a weight that is stored in 4 bits and written out in float32 (256 MB)."""


def _float(step: Step, data: int, scale: int, zero: int) -> ir.Value:
    point = step.input(zero)
    return step.op("DequantizeLinear", step.needed(data), step.needed(scale), *([] if point is None else [point]))


def _back(step: Step, data: ir.Value, scale: int, zero: int, dtype: ir.DataType) -> ir.Value:
    point = step.input(zero)
    if point is None:
        point = step.const(0, dtype.numpy(), "zero")
    return step.op("QuantizeLinear", data, step.needed(scale), point)


@expands(DOMAIN + "QLinearMul")
def quantised_product(step: Step) -> None:
    """The product of the integers, which is exact, times one factor; the zero point is added before the one rounding."""
    product = step.op("Mul", centred(step, 0, 2), centred(step, 3, 5))
    factor = step.op("Div", step.op("Mul", step.needed(1), step.needed(4)), step.needed(6))
    step.finish(_rounded(step, step.op("Mul", product, factor), _point(step, 7)))


@expands(DOMAIN + "QLinearAdd")
def quantised_sum(step: Step) -> None:
    """Each operand times its scale over that of the result, added; one rounding.

    ONNX Runtime multiplies and adds in one instruction where the processor has it, so that a sum that lies between two integers may go the
    other way: by one step, and differently on different machines.
    """
    terms, offset = [], step.cast(_point(step, 7), FLOAT)
    for data, scale, zero in ((0, 1, 2), (3, 4, 5)):
        share = step.op("Div", step.needed(scale), step.needed(6))
        terms.append(step.op("Mul", step.cast(step.needed(data), FLOAT), share))
        if step.input(zero) is not None:
            offset = step.op("Sub", offset, step.op("Mul", share, step.cast(step.needed(zero), FLOAT)))
    total = step.op("Add", step.op("Add", terms[0], offset), terms[1])
    step.finish(_clipped(step, half_to_even(step, total), step.dtype()))


def _point(step: Step, index: int) -> ir.Value:
    """A zero point, or the zero it stands for."""
    given = step.input(index)
    return step.const(0, step.dtype().numpy(), "zero") if given is None else given


def _rounded(step: Step, data: ir.Value, point: ir.Value) -> ir.Value:
    """round(data + zero point), clipped."""
    moved = step.op("Add", data, step.cast(point, FLOAT))
    return _clipped(step, half_to_even(step, moved), point.dtype or ir.DataType.UINT8)


def _clipped(step: Step, data: ir.Value, dtype: ir.DataType) -> ir.Value:
    low, high = (step.const(limit, np.float32, "limit") for limit in LIMITS[dtype])
    return step.cast(step.op("Min", step.op("Max", data, low), high), dtype)


@expands(DOMAIN + "QLinearSigmoid", DOMAIN + "QLinearLeakyRelu", DOMAIN + "QLinearSoftmax")
def quantised_activation(step: Step) -> None:
    """The operand dequantised, the function, and quantised again."""
    data, kind = _float(step, 0, 1, 2), step.node.op_type
    if kind == "QLinearSigmoid":
        data = step.op("Sigmoid", data)
    elif kind == "QLinearLeakyRelu":
        data = step.op("LeakyRelu", data, alpha=float(step.attr("alpha", 0.01)))
    else:
        axis, rank = normal_axis(step, int(step.attr("axis", -1)), step.rank()), step.rank()
        if int(step.attr("opset", 13)) < 13 and axis != rank - 1:
            step.refuse(say("a softmax over several axes", "在多个轴上的 softmax"))
        if step.version < 13 and axis != rank - 1:
            step.refuse(say("a softmax on axis {axis} before opset 13", "opset 13 之前在第 {axis} 轴上的 softmax", axis=axis))
        data = step.op("Softmax", data, axis=axis)
    step.finish(_back(step, data, 3, 4, step.dtype()))


@expands(DOMAIN + "QLinearConcat")
def quantised_concat(step: Step) -> None:
    """Every operand dequantised, put together, and quantised once."""
    count = (len(step.node.inputs) - 2) // 3
    parts = [_float(step, 2 + 3 * place, 3 + 3 * place, 4 + 3 * place) for place in range(count)]
    step.finish(_back(step, step.op("Concat", *parts, axis=int(step.attr("axis"))), 0, 1, step.dtype(2)))


@expands(DOMAIN + "QLinearWhere")
def quantised_where(step: Step) -> None:
    """Both choices dequantised, chosen from, and quantised again."""
    chosen = step.op("Where", step.needed(0), _float(step, 1, 2, 3), _float(step, 4, 5, 6))
    step.finish(_back(step, chosen, 7, 8, step.dtype(1)))


@expands(DOMAIN + "QLinearAveragePool")
def quantised_average(step: Step) -> None:
    """The operand dequantised, averaged, divided by the scale; the zero point is added before the one rounding.

    The order of a sum of floats is the runtime's own, so that an average that lies between two integers may go the other way.
    """
    kept = attributes_of(step, ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"))
    if step.attr("ceil_mode", 0) and step.attr("count_include_pad", 0):
        step.refuse(
            say(
                "ceil_mode with count_include_pad, which the runtime counts in its own way",
                "ceil_mode 与 count_include_pad 并用，运行时有自己的计数方式",
            )
        )
    data, rank, last = _float(step, 0, 1, 2), step.rank(), bool(step.attr("channels_last", 0))
    data = step.op("Transpose", data, perm=[0, rank - 1, *range(1, rank - 1)]) if last else data
    data = step.op("AveragePool", data, **kept)
    data = step.op("Transpose", data, perm=[0, *range(2, rank), 1]) if last else data
    step.finish(_rounded(step, step.op("Div", data, step.needed(3)), _point(step, 4)))


@expands(DOMAIN + "QLinearGlobalAveragePool", DOMAIN + "QLinearReduceMean")
def quantised_mean(step: Step) -> None:
    """The sum of the integers, which is exact, times one factor, rounded once."""
    data, rank, shape = centred(step, 0, 2), step.rank(), step.static()
    keep = 1
    if step.node.op_type == "QLinearReduceMean":
        axes, keep = [axis % rank for axis in step.attr("axes")], int(step.attr("keepdims"))
    else:
        axes = list(range(1, rank - 1)) if step.attr("channels_last", 0) else list(range(2, rank))
    count = math.prod(shape[axis] for axis in axes)
    if count * 255 > 1 << 24:
        step.refuse(say("a mean over {count} elements", "对 {count} 个元素求平均", count=count))
    total = reduce(step, "ReduceSum", data, axes, keepdims=keep)
    factor = step.op("Div", step.needed(1), step.op("Mul", step.needed(3), step.const(count, np.float32, "count")))
    step.finish(requantised(step, total, factor, _point(step, 4)))


@expands(DOMAIN + "QLinearConv")
def quantised_convolution(step: Step) -> None:
    """As the standard's QLinearConv, channels last if the node says so."""
    unpacked_convolution(step, bool(step.attr("channels_last", 0)))


@expands(DOMAIN + "QuantizeLinear")
def quantise(step: Step) -> None:
    """As the standard's QuantizeLinear."""
    point = step.input(2)
    wanted = ir.DataType.UINT8 if point is None else point.dtype
    if wanted not in LIMITS:
        step.refuse(say("it does not quantise to integers of 8 or 16 bits", "它不是量化为 8 位或 16 位整数"))
    quantized(step, wanted, int(FLOAT))


@expands(DOMAIN + "DequantizeLinear")
def dequantise(step: Step) -> None:
    """As the standard's DequantizeLinear."""
    if step.dtype().bitwidth < 8:
        step.refuse(say("integers of less than 8 bits", "不足 8 位的整数"))
    dequantized(step)


@expands(DOMAIN + "QGemm")
def quantised_gemm(step: Step) -> None:
    """A product of integers, its bias added as an integer, times one factor; rounded once if the result is quantised."""
    ranks = (step.rank(0), step.rank(3))
    left = centred(step, 0, 2)
    right = centred(step, 3, 5, None if step.attr("transB", 0) else 1, 2)
    point = step.input(5)
    if step.attr("transB", 0) and point is not None and tuple(point.shape or ()) not in ((), (1,)):
        step.refuse(say("zero points of columns with transB", "transB 时按列的零点"))
    left = step.op("Transpose", left, perm=[1, 0]) if step.attr("transA", 0) else left
    right = step.op("Transpose", right, perm=[1, 0]) if step.attr("transB", 0) else right
    inner = step.dim(0 if step.attr("transA", 0) else 1)
    total = step.cast(integer_product(step, left, right, inner, largest_product(step, 0, 3), ranks), ir.DataType.INT32)
    bias = step.input(6)
    total = total if bias is None else step.op("Add", total, bias)
    factor = spread(step, step.needed(1), None, 0)
    alpha = float(step.attr("alpha", 1.0))
    factor = factor if alpha == 1 else step.op("Mul", step.const(alpha, np.float32, "alpha"), factor)
    factor = step.op("Mul", factor, spread(step, step.needed(4), 1, 2))
    out = step.input(7)
    if out is None:
        step.finish(step.op("Mul", step.cast(total, FLOAT), factor))
        return
    step.finish(requantised(step, total, step.op("Div", factor, spread(step, out, None, 0)), spread(step, step.needed(8), None, 0)))


def _integer_matmul(step: Step, data: ir.Value, zero: ir.Value | None, weight_zero: ir.Value | None) -> ir.Value:
    """A MatMulInteger with the node's weight, as floats."""
    inputs: list[ir.Value | None] = [data, step.needed(1), zero, weight_zero]
    while inputs[-1] is None:
        inputs.pop()
    return step.cast(step.op("MatMulInteger", *inputs), FLOAT)


@expands(DOMAIN + "MatMulIntegerToFloat")
def matmul_integer_to_float(step: Step) -> None:
    """A MatMulInteger and its scale."""
    total = _integer_matmul(step, step.needed(0), step.input(4), step.input(5))
    result = step.op("Mul", total, step.op("Mul", step.needed(2), step.needed(3)))
    bias = step.input(6)
    step.finish(result if bias is None else step.op("Add", result, bias))


@expands(DOMAIN + "DynamicQuantizeMatMul")
def dynamic_quantize_matmul(step: Step) -> None:
    """The operand quantised by its own range, a product of integers, and its scale."""
    data, scale, zero = dynamically_quantised(step)
    total = _integer_matmul(step, data, zero, step.input(3))
    result = step.op("Mul", total, step.op("Mul", scale, step.needed(2)))
    bias = step.input(4)
    step.finish(result if bias is None else step.op("Add", result, bias))


def _nibbles(packed: Array, bits: int) -> Array:
    """Integers of 2, 4 or 8 bits packed into bytes along the last axis, the lowest bits first."""
    each = 8 // bits
    parts = [(packed >> (bits * place)) & ((1 << bits) - 1) for place in range(each)]
    return np.stack(parts, axis=-1).reshape([*packed.shape[:-1], packed.shape[-1] * each])


@expands(DOMAIN + "MatMulNBits")
def matmul_of_few_bits(step: Step) -> None:
    """A MatMul with a weight stored in blocks of 2, 4 or 8 bits: (integer - zero point) * scale of its block."""
    needs(step, weight_prepacked=0)
    if int(step.attr("accuracy_level", 0)) >= 4:
        step.refuse(
            say(
                "accuracy_level 4 lets ONNX Runtime round the data to int8, so there is no exact result to prove against; export with level 0",
                "accuracy_level 4 允许 ONNX Runtime 将数据舍入为 int8，没有可供证明的精确结果；请以级别 0 导出",
            )
        )
    if step.input(4) is not None:
        step.refuse(say("groups in an order of their own (g_idx)", "自定义的分组顺序（g_idx）"))
    weight = _unpacked_weight(step)
    result = step.op("MatMul", step.needed(0), step.const(weight, name="weight"))
    bias = step.input(5)
    step.finish(result if bias is None else step.op("Add", result, bias))


def _unpacked_weight(step: Step) -> Array:
    """The weight of a MatMulNBits as [K, N], in the dtype of its scales."""
    inner, outer, block, bits = (int(step.attr(name, default)) for name, default in (("K", 0), ("N", 0), ("block_size", 32), ("bits", 4)))
    if inner * outer > MOST_ELEMENTS:
        step.refuse(say("a weight of {count} elements; {limit} are allowed", "{count} 个元素的权重，上限为 {limit}", count=inner * outer, limit=MOST_ELEMENTS))  # fmt: skip
    packed, scales, zeros = step.constant(1, "B"), step.constant(2, "scales"), step.constant(3, "zero_points")
    if packed is None or scales is None:
        step.refuse(say("its weight is missing", "缺少权重"))
    blocks = -(-inner // block)
    integers = _nibbles(packed.view(np.uint8).reshape(outer, blocks, -1), bits).astype(np.float32)
    factors = scales.reshape(outer, blocks, 1).astype(np.float32)
    middle: Array = np.full((outer, blocks, 1), 1 << (bits - 1), np.float32)
    if zeros is not None and zeros.dtype == np.uint8:
        middle = _nibbles(zeros.reshape(outer, -1), bits)[:, :blocks].reshape(outer, blocks, 1).astype(np.float32)
    elif zeros is not None:
        middle = zeros.reshape(outer, blocks, 1).astype(np.float32)
    whole: Array = ((integers - middle) * factors).reshape(outer, -1)[:, :inner]
    return np.ascontiguousarray(whole.T).astype(scales.dtype)
