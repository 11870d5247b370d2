"""Operators of ONNX Runtime's own domain, which its optimiser writes, by the standard operators they stand for."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.step import Step
from .base import expands
from .common import attributes_of, reshape

DOMAIN = "com.microsoft::"


def _needs(step: Step, **expected: object) -> None:
    """Refuse options that are not written out here.

    Raises:
        Unconvertible: an attribute has another value than the expected one.
    """
    for name, value in expected.items():
        if step.attr(name, value) != value:
            step.refuse(say("{name} is {value}", "{name} 为 {value}", name=name, value=step.attr(name)))


def _only(step: Step, *indices: int) -> None:
    """Refuse inputs that are not written out here."""
    for index in range(len(step.node.inputs)):
        if index not in indices and step.input(index) is not None:
            step.refuse(say("input {index} is given", "给出了第 {index} 个输入", index=index))


def gelu(step: Step, data: ir.Value) -> ir.Value:
    """x * (1 + erf(x / sqrt 2)) / 2."""
    spread = step.op("Erf", step.op("Mul", data, step.like(math.sqrt(0.5))))
    return step.op("Mul", step.op("Mul", data, step.like(0.5)), step.op("Add", spread, step.like(1)))


def _fast_gelu(step: Step, data: ir.Value) -> ir.Value:
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2."""
    cube = step.op("Mul", step.op("Mul", data, data), step.op("Mul", data, step.like(0.044715)))
    bent = step.op("Tanh", step.op("Mul", step.op("Add", data, cube), step.like(math.sqrt(2 / math.pi))))
    return step.op("Mul", step.op("Mul", data, step.like(0.5)), step.op("Add", bent, step.like(1)))


@expands(DOMAIN + "Gelu", DOMAIN + "BiasGelu", DOMAIN + "FastGelu")
def gelu_family(step: Step) -> None:
    """With its bias added first."""
    data, bias = step.needed(0), step.input(1)
    data = data if bias is None else step.op("Add", data, bias)
    step.finish(_fast_gelu(step, data) if step.node.op_type == "FastGelu" else gelu(step, data))


@expands(DOMAIN + "QuickGelu")
def quick_gelu(step: Step) -> None:
    """x * sigmoid(alpha x)."""
    data = step.needed(0)
    alpha = float(step.attr("alpha", 1.702))
    step.finish(step.op("Mul", data, step.op("Sigmoid", step.op("Mul", data, step.like(alpha)))))


@expands(DOMAIN + "FusedMatMul", DOMAIN + "TransposeMatMul")
def fused_matmul(step: Step) -> None:
    """Transposed operands and a factor."""
    _needs(step, transBatchA=0, transBatchB=0)
    operands = []
    for index, name in ((0, "transA"), (1, "transB")):
        value, rank = step.needed(index), step.rank(index)
        if step.attr(name, 0) and rank > 1:
            value = step.op("Transpose", value, perm=[*range(rank - 2), rank - 1, rank - 2])
        operands.append(value)
    product, alpha = step.op("MatMul", *operands), float(step.attr("alpha", 1.0))
    step.finish(product if alpha == 1 else step.op("Mul", product, step.like(alpha)))


def _activated(step: Step, data: ir.Value) -> ir.Value:
    name = step.attr("activation")
    values = [float(value) for value in step.attr("activation_params", ())]
    if name in (None, ""):
        return data
    if name in ("Relu", "Tanh", "Sigmoid"):
        return step.op(name, data)
    if name == "LeakyRelu":
        return step.op("LeakyRelu", data, alpha=values[0] if values else float(step.attr("activation_alpha", 0.01)))
    if name == "HardSigmoid" and len(values) == 2:
        return step.op("HardSigmoid", data, alpha=values[0], beta=values[1])
    if name != "Clip" or len(values) != 2 or step.version < 11:
        step.refuse(say("activation {name}", "激活函数 {name}", name=name))
    return step.op("Clip", data, step.like(values[0]), step.like(values[1]))


@expands(DOMAIN + "FusedConv")
def fused_conv(step: Step) -> None:
    """A Conv, a sum and an activation."""
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    kept = attributes_of(step, names)
    bias, other = step.input(2), step.input(3)
    result = step.op("Conv", step.needed(0), step.needed(1), *([] if bias is None else [bias]), **kept)
    result = result if other is None else step.op("Add", result, other)
    step.finish(_activated(step, result))


@expands(DOMAIN + "FusedGemm")
def fused_gemm(step: Step) -> None:
    """A Gemm and an activation."""
    kept = attributes_of(step, ("alpha", "beta", "transA", "transB"))
    inputs = [step.needed(0), step.needed(1)] + ([] if step.input(2) is None else [step.needed(2)])
    step.finish(_activated(step, step.op("Gemm", *inputs, **kept)))


def _normalized(step: Step, data: ir.Value, scale: ir.Value, bias: ir.Value | None, simplified: bool) -> ir.Value:
    """Over the last axis, with the node's epsilon."""
    epsilon = float(step.attr("epsilon", 1e-5 if simplified else 1e-12))
    if not simplified and step.version >= 17:
        return step.op("LayerNormalization", data, scale, *([] if bias is None else [bias]), axis=-1, epsilon=epsilon)
    centred = data if simplified else step.op("Sub", data, reduce(step, "ReduceMean", data, [-1]))
    spread = step.op("Sqrt", step.op("Add", reduce(step, "ReduceMean", step.op("Mul", centred, centred), [-1]), step.like(epsilon)))
    result = step.op("Mul", step.op("Div", centred, spread), scale)
    return result if bias is None else step.op("Add", result, bias)


@expands(DOMAIN + "SkipLayerNormalization", DOMAIN + "SkipSimplifiedLayerNormalization")
def skip_normalization(step: Step) -> None:
    """A sum with what was skipped, then the normalisation; the sum is the fourth output."""
    simplified = "Simplified" in step.node.op_type
    bias_index = 3 if simplified else 4
    total, bias = step.op("Add", step.needed(0), step.needed(1)), step.input(bias_index)
    total = total if bias is None else step.op("Add", total, bias)
    result = _normalized(step, total, step.needed(2), None if simplified else step.input(3), simplified)
    step.finish(result, None, None, total)


@expands(DOMAIN + "SimplifiedLayerNormalization", "SimplifiedLayerNormalization")
def simplified_normalization(step: Step) -> None:
    """Divided by the root of the mean square."""
    _needs(step, axis=-1)
    step.finish(_normalized(step, step.needed(0), step.needed(1), None, True))


@expands(DOMAIN + "EmbedLayerNormalization")
def embeddings(step: Step) -> None:
    """Words, places and segments looked up, added, normalised. A mask gives the number of valid words too."""
    ids, segments, mask = step.needed(0), step.input(1), step.input(7)
    total = step.op("Gather", step.needed(2), ids, axis=0)
    length = step.dim(1, 0)
    if step.input(8) is None:
        places = step.op("Slice", step.needed(3), step.ints([0], "start"), step.ints([length], "end"), step.ints([0], "axis"))
    else:
        places = step.op("Gather", step.needed(3), step.needed(8), axis=0)
    total = step.op("Add", total, places)
    if segments is not None and step.input(4) is not None:
        total = step.op("Add", total, step.op("Gather", step.needed(4), segments, axis=0))
    counted = step.const(np.zeros(step.dim(0, 0)), np.int32, "none")
    if mask is not None:
        counted = reduce(step, "ReduceSum", step.cast(mask, ir.DataType.INT32), [1], keepdims=0)
    scale = step.needed(5)
    step.finish(_normalized_like(step, total, scale, step.input(6)), counted, total)


def _normalized_like(step: Step, data: ir.Value, scale: ir.Value, bias: ir.Value | None) -> ir.Value:
    epsilon = float(step.attr("epsilon", 1e-12))
    if step.version >= 17:
        return step.op("LayerNormalization", data, scale, *([] if bias is None else [bias]), axis=-1, epsilon=epsilon)
    dtype = (scale.dtype or ir.DataType.FLOAT).numpy()
    centred = step.op("Sub", data, reduce(step, "ReduceMean", data, [-1]))
    square = reduce(step, "ReduceMean", step.op("Mul", centred, centred), [-1])
    spread = step.op("Sqrt", step.op("Add", square, step.const(epsilon, dtype, "epsilon")))
    result = step.op("Mul", step.op("Div", centred, spread), scale)
    return result if bias is None else step.op("Add", result, bias)


def _heads(step: Step, data: ir.Value, shape: tuple[int, int, int], heads: int) -> ir.Value:
    """[batch, length, width] -> [batch, heads, length, width / heads]."""
    batch, length, width = shape
    return step.op("Transpose", reshape(step, data, [batch, length, heads, width // heads]), perm=[0, 2, 1, 3])


def _attend(step: Step, parts: tuple[ir.Value, ir.Value, ir.Value], size: int, bias: ir.Value | None, lengths: tuple[int, int]) -> ir.Value:
    """softmax(q k' * scale + bias) v on [batch, heads, length, size]."""
    query, key, value = parts
    scale = float(step.attr("scale", 0.0)) or 1 / math.sqrt(size)
    scores = step.op("MatMul", step.op("Mul", query, step.like(scale)), step.op("Transpose", key, perm=[0, 1, 3, 2]))
    if bias is not None:
        scores = step.op("Add", scores, bias)
    if step.attr("unidirectional", 0):
        rows, columns = lengths
        seen = np.tril(np.ones((rows, columns), bool), columns - rows)
        # Finite in half precision, and far below every score.
        scores = step.op("Where", step.const(seen, name="seen"), scores, step.like(-1e4))
    return step.op("MatMul", step.op("Softmax", scores, axis=-1 if step.version >= 13 else 3), value)


def _mask_bias(step: Step, mask: ir.Value, shape: tuple[int, int]) -> ir.Value:
    """A mask of valid keys [batch, length] as a bias [batch, 1, 1, length]."""
    rank = len(mask.shape or ())
    if rank != 2 or tuple(mask.shape or ()) != shape:
        step.refuse(say("a mask that is not [batch, keys]", "掩码不是 [batch, keys] 的形式"))
    lost = float(step.attr("mask_filter_value", -10000.0))
    valid = step.op(
        "Greater", step.cast(reshape(step, mask, [shape[0], 1, 1, shape[1]]), ir.DataType.FLOAT), step.const(0.5, np.float32, "half")
    )
    return step.op("Where", valid, step.like(0), step.like(lost))


@expands(DOMAIN + "Attention")
def attention(step: Step) -> None:
    """One product for queries, keys and values, heads apart, scores, and heads together again."""
    _needs(step, do_rotary=0, past_present_share_buffer=0)
    _only(step, 0, 1, 2, 3, 5)
    if step.attr("qkv_hidden_sizes") is not None:
        step.refuse(say("queries, keys and values of different sizes", "查询、键、值的大小不同"))
    batch, length, _ = step.static(0)
    heads, width = int(step.attr("num_heads")), step.static(1)[1] // 3
    product = step.op("MatMul", step.needed(0), step.needed(1))
    product = product if step.input(2) is None else step.op("Add", product, step.needed(2))
    parts = []
    for place in range(3):
        bounds = (step.ints([place * width], "start"), step.ints([(place + 1) * width], "end"), step.ints([2], "axis"))
        parts.append(_heads(step, step.op("Slice", product, *bounds), (batch, length, width), heads))
    bias = None if step.input(3) is None else _mask_bias(step, step.needed(3), (batch, length))
    extra = step.input(5)
    bias = extra if bias is None else bias if extra is None else step.op("Add", bias, extra)
    result = _attend(step, (parts[0], parts[1], parts[2]), width // heads, bias, (length, length))
    step.finish(reshape(step, step.op("Transpose", result, perm=[0, 2, 1, 3]), [batch, length, width]))


@expands(DOMAIN + "MultiHeadAttention")
def multi_head_attention(step: Step) -> None:
    """Heads apart, scores, and heads together again."""
    _only(step, 0, 1, 2, 3, 4, 5)
    if any(len(step.static(index)) != 3 for index in (0, 1, 2)):
        step.refuse(say("queries, keys and values that are packed or split already", "查询、键、值已打包或已分头"))
    heads = int(step.attr("num_heads"))
    shapes = [step.static(index) for index in (0, 1, 2)]
    parts, bias = [step.needed(index) for index in (0, 1, 2)], step.input(3)
    if bias is not None:
        start = 0
        for place, shape in enumerate(shapes):
            bounds = (step.ints([start], "start"), step.ints([start + shape[2]], "end"), step.ints([0], "axis"))
            parts[place] = step.op("Add", parts[place], step.op("Slice", bias, *bounds))
            start += shape[2]
    apart = [_heads(step, part, (shape[0], shape[1], shape[2]), heads) for part, shape in zip(parts, shapes, strict=True)]
    mask = None if step.input(4) is None else _mask_bias(step, step.needed(4), (shapes[1][0], shapes[1][1]))
    extra = step.input(5)
    mask = extra if mask is None else mask if extra is None else step.op("Add", mask, extra)
    result = _attend(step, (apart[0], apart[1], apart[2]), shapes[0][2] // heads, mask, (shapes[0][1], shapes[1][1]))
    step.finish(reshape(step, step.op("Transpose", result, perm=[0, 2, 1, 3]), [shapes[0][0], shapes[0][1], shapes[2][2]]))


@expands(DOMAIN + "QLinearAdd", DOMAIN + "QLinearMul")
def quantised_pair(step: Step) -> None:
    """The operands dequantised, added or multiplied, and quantised again."""
    operands = [_float(step, 0, 1, 2), _float(step, 3, 4, 5)]
    result = step.op("Add" if step.node.op_type == "QLinearAdd" else "Mul", *operands)
    step.finish(_back(step, result, 6, 7))


@expands(DOMAIN + "QLinearSigmoid", DOMAIN + "QLinearLeakyRelu")
def quantised_activation(step: Step) -> None:
    """The operand dequantised, the function, and quantised again."""
    data = _float(step, 0, 1, 2)
    if step.node.op_type == "QLinearSigmoid":
        data = step.op("Sigmoid", data)
    else:
        data = step.op("LeakyRelu", data, alpha=float(step.attr("alpha", 0.01)))
    step.finish(_back(step, data, 3, 4))


def _float(step: Step, data: int, scale: int, zero: int) -> ir.Value:
    point = step.input(zero)
    return step.op("DequantizeLinear", step.needed(data), step.needed(scale), *([] if point is None else [point]))


def _back(step: Step, data: ir.Value, scale: int, zero: int) -> ir.Value:
    point = step.input(zero)
    kind = step.dtype()
    if point is None:
        point = step.const(0, kind.numpy(), "zero")
    return step.op("QuantizeLinear", data, step.needed(scale), point)


@expands(DOMAIN + "MatMulIntegerToFloat")
def matmul_integer_to_float(step: Step) -> None:
    """A MatMulInteger and its scale."""
    zeros = [step.input(4), step.input(5)]
    inputs = [step.needed(0), step.needed(1), *zeros]
    while inputs and inputs[-1] is None:
        inputs.pop()
    total = step.cast(step.op("MatMulInteger", *inputs), ir.DataType.FLOAT)
    result = step.op("Mul", total, step.op("Mul", step.needed(2), step.needed(3)))
    bias = step.input(6)
    step.finish(result if bias is None else step.op("Add", result, bias))


@expands(DOMAIN + "DynamicQuantizeMatMul")
def dynamic_quantize_matmul(step: Step) -> None:
    """The operand quantised by its own range, a product of integers, and its scale."""
    step.op("DynamicQuantizeLinear", step.needed(0), outputs=3)
    data, scale, zero = step.made[-1].outputs
    weight_zero = step.input(3)
    inputs = [data, step.needed(1), zero, *([] if weight_zero is None else [weight_zero])]
    total = step.cast(step.op("MatMulInteger", *inputs), ir.DataType.FLOAT)
    result = step.op("Mul", total, step.op("Mul", scale, step.needed(2)))
    bias = step.input(4)
    step.finish(result if bias is None else step.op("Add", result, bias))
