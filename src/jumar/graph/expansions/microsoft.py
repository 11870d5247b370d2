"""Operators of ONNX Runtime's own domain, which its optimiser writes, by the standard operators they stand for."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.step import Step
from ..shapes import known_shape
from .base import expands
from .common import attributes_of

DOMAIN = "com.microsoft::"


def needs(step: Step, **expected: object) -> None:
    """Refuse options that are not written out here.

    Raises:
        Unconvertible: an attribute has another value than the expected one.
    """
    for name, value in expected.items():
        if step.attr(name, value) != value:
            step.refuse(say("{name} is {value}", "{name} 为 {value}", name=name, value=step.attr(name)))


def only(step: Step, *indices: int) -> None:
    """Refuse inputs that are not written out here."""
    for index in range(len(step.node.inputs)):
        if index not in indices and step.input(index) is not None:
            step.refuse(say("input {index} is given", "给出了第 {index} 个输入", index=index))


def gelu_of(step: Step, data: ir.Value) -> ir.Value:
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
    step.finish(_fast_gelu(step, data) if step.node.op_type == "FastGelu" else gelu_of(step, data))


@expands(DOMAIN + "QuickGelu")
def quick_gelu(step: Step) -> None:
    """x * sigmoid(alpha x)."""
    data = step.needed(0)
    alpha = float(step.attr("alpha", 1.702))
    step.finish(step.op("Mul", data, step.op("Sigmoid", step.op("Mul", data, step.like(alpha)))))


def _product(step: Step) -> ir.Value:
    """Operands that may be transposed, and a factor."""
    needs(step, transBatchA=0, transBatchB=0)
    operands = []
    for index, name in ((0, "transA"), (1, "transB")):
        value, rank = step.needed(index), step.rank(index)
        if step.attr(name, 0) and rank > 1:
            value = step.op("Transpose", value, perm=[*range(rank - 2), rank - 1, rank - 2])
        operands.append(value)
    product, alpha = step.op("MatMul", *operands), float(step.attr("alpha", 1.0))
    return product if alpha == 1 else step.op("Mul", product, step.like(alpha))


@expands(DOMAIN + "FusedMatMul", DOMAIN + "TransposeMatMul")
def fused_matmul(step: Step) -> None:
    """Transposed operands and a factor."""
    step.finish(_product(step))


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


@expands(DOMAIN + "FusedMatMulActivation")
def fused_matmul_activation(step: Step) -> None:
    """A FusedMatMul and an activation."""
    step.finish(_activated(step, _product(step)))


@expands(DOMAIN + "GemmFastGelu")
def gemm_fast_gelu(step: Step) -> None:
    """A product, its bias, and the Gelu that tanh approximates."""
    product = step.op("MatMul", step.needed(0), step.needed(1))
    step.finish(_fast_gelu(step, product if step.input(2) is None else step.op("Add", product, step.needed(2))))


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


def normalized(step: Step, data: ir.Value, scale: ir.Value, bias: ir.Value | None, simplified: bool, axis: int = -1) -> ir.Value:
    """Over the axes from ``axis`` on, with the node's epsilon. ``simplified``: divided by the root of the mean square, not centred."""
    epsilon = float(step.attr("epsilon", 1e-5 if simplified or step.node.domain == "" else 1e-12))
    if not simplified and step.version >= 17:
        return step.op("LayerNormalization", data, scale, *([] if bias is None else [bias]), axis=axis, epsilon=epsilon)
    axes = [axis] if axis == -1 else list(range(axis, len(sizes_or_refuse(step, data))))
    dtype = (scale.dtype or ir.DataType.FLOAT).numpy()
    centred = data if simplified else step.op("Sub", data, reduce(step, "ReduceMean", data, axes))
    square = reduce(step, "ReduceMean", step.op("Mul", centred, centred), axes)
    spread = step.op("Sqrt", step.op("Add", square, step.const(epsilon, dtype, "epsilon")))
    result = step.op("Mul", step.op("Div", centred, spread), scale)
    return result if bias is None else step.op("Add", result, bias)


def sizes_or_refuse(step: Step, data: ir.Value) -> tuple[int | str | None, ...]:
    """The shape of a tensor, of which only the rank need be known.

    Raises:
        Unconvertible: it is not known.
    """
    shape = known_shape(data)
    if shape is None:
        step.refuse(say("the rank of `{name}` is not known", "`{name}` 的秩未知", name=data.name))
    return shape


@expands(DOMAIN + "SkipLayerNormalization", DOMAIN + "SkipSimplifiedLayerNormalization")
def skip_normalization(step: Step) -> None:
    """A sum with what was skipped, then the normalisation; the sum is the fourth output."""
    simplified = "Simplified" in step.node.op_type
    bias_index = 3 if simplified else 4
    total, bias = step.op("Add", step.needed(0), step.needed(1)), step.input(bias_index)
    total = total if bias is None else step.op("Add", total, bias)
    result = normalized(step, total, step.needed(2), None if simplified else step.input(3), simplified)
    step.finish(result, None, None, total)


@expands(DOMAIN + "SimplifiedLayerNormalization", "SimplifiedLayerNormalization")
def simplified_normalization(step: Step) -> None:
    """Divided by the root of the mean square. ONNX Runtime's optimiser writes it into the standard's domain, too."""
    rank = step.rank()
    axis = int(step.attr("axis", -1)) % rank
    step.finish(normalized(step, step.needed(0), step.needed(1), None, True, -1 if axis == rank - 1 else axis))


@expands("LayerNormalization")
def early_normalization(step: Step) -> None:
    """LayerNormalization before opset 17, where the standard does not have it and ONNX Runtime does."""
    if step.version >= 17:
        step.refuse(say("the standard has it at this opset", "标准在该 opset 已有此算子"))
    rank = step.rank()
    axis = int(step.attr("axis", -1)) % rank
    step.finish(normalized(step, step.needed(0), step.needed(1), step.input(2), False, -1 if axis == rank - 1 else axis))


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
    step.finish(normalized(step, total, scale, step.input(6), False), counted, total)
