"""Operators that compute: the shapes of what they give. Nothing is said of elements."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from .arithmetic import broadcast_shapes
from .counting import reduced_shape
from .expr import Element, Unknowable
from .known import UNKNOWN, Known, Shape, Walk, attribute, first_input, proper_axis, rank_of, rule, shape_of
from .layout import listed
from .operations import broadcast, ceil_div, floor_div, scaled, truncated_div

_SAME = """
    Acos Acosh Asin Asinh Atan Atanh BatchNormalization Bernoulli BitwiseNot CastLike Celu Clip Cos Cosh DequantizeLinear Dropout Elu Erf
    Exp Gelu GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log
    LogSoftmax LpNormalization MeanVarianceNormalization Mish QuantizeLinear RMSNormalization RandomNormalLike RandomUniformLike Reciprocal
    Relu ReverseSequence Round RotaryEmbedding Selu Shrink Sigmoid Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu
    EyeLike com.microsoft:BiasGelu com.microsoft:FastGelu com.microsoft:Gelu com.microsoft:QLinearLeakyRelu com.microsoft:QLinearSigmoid
    com.microsoft:QuickGelu com.microsoft:SkipLayerNormalization com.microsoft:SkipSimplifiedLayerNormalization
"""
# Outputs after the first that have the shape of the first input too.
_SAME_OUTPUTS = {"Dropout": 2}


@rule(*_SAME.split())
def _same(walk: Walk, node: ir.Node) -> list[Known]:
    known = Known(walk.get(node.inputs[0]).shape)
    alike = _SAME_OUTPUTS.get(node.op_type, 1)
    return [known if index < alike else UNKNOWN for index in range(len(node.outputs))]


@rule("PRelu", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _broadcast(walk: Walk, node: ir.Node) -> Known:
    shape = broadcast_shapes(*(walk.get(value).shape for value in node.inputs))
    return UNKNOWN if shape is None else Known(shape)


@rule("ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def _reduce(walk: Walk, node: ir.Node) -> Known:
    return Known(reduced_shape(walk, node)[0])


@rule("ArgMax", "ArgMin")
def _arg(walk: Walk, node: ir.Node) -> Known:
    shape = shape_of(walk.get(node.inputs[0]))
    axis = proper_axis(int(attribute(node, "axis", 0)), len(shape))
    return Known((*shape[:axis], *((1,) if attribute(node, "keepdims", 1) else ()), *shape[axis + 1 :]))


# ---- products -------------------------------------------------------------------------------------------------------------------------


@rule("MatMul", "MatMulInteger", "QLinearMatMul")
def _matmul(walk: Walk, node: ir.Node) -> Known:
    second = 3 if node.op_type == "QLinearMatMul" else 1
    a, b = shape_of(walk.get(node.inputs[0])), shape_of(walk.get(node.inputs[second]))
    if not a or not b:
        return UNKNOWN
    batch = broadcast_shapes(a[:-2], b[:-2]) or ()
    return Known((*batch, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ())))


@rule("Gemm")
def _gemm(walk: Walk, node: ir.Node) -> Known:
    a, b = walk.get(node.inputs[0]).shape, walk.get(node.inputs[1]).shape
    if any(shape is not None and len(shape) != 2 for shape in (a, b)):
        return walk.unknown(node.outputs[0], 2)  # ONNX Runtime takes vectors too, in ways of its own
    rows = walk.fresh(node.outputs[0], 0) if a is None else a[1 if attribute(node, "transA", 0) else 0]
    columns = walk.fresh(node.outputs[0], 1) if b is None else b[0 if attribute(node, "transB", 0) else 1]
    return Known((rows, columns))


@rule("Einsum")
def _einsum(walk: Walk, node: ir.Node) -> Known:
    equation = str(attribute(node, "equation", "")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    if not arrow or "." in equation:
        return UNKNOWN
    sizes: dict[str, Element] = {}
    for letters, value in zip(left.split(","), node.inputs, strict=True):
        shape = walk.get(value).shape
        if shape is None:
            continue
        for letter, dim in zip(letters, shape, strict=True):
            sizes[letter] = broadcast(sizes.get(letter, 1), dim)
    return Known(tuple(sizes[letter] if letter in sizes else walk.fresh(node.outputs[0], axis) for axis, letter in enumerate(right)))


# ---- windows --------------------------------------------------------------------------------------------------------------------------


def _window(node: ir.Node, size: Element, axis: int, rank: int, kernel: int, pool: bool) -> Element:
    """How many windows fit into one dimension."""
    stride = int(attribute(node, "strides", (1,) * rank)[axis])
    dilation = int(attribute(node, "dilations", (1,) * rank)[axis])
    mode = attribute(node, "auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        return ceil_div(size, stride)
    pads = attribute(node, "pads", (0,) * (2 * rank)) if mode == "NOTSET" else (0,) * (2 * rank)
    room = size + (int(pads[axis]) + int(pads[axis + rank]) - dilation * (kernel - 1) - 1)
    if not pool:
        return floor_div(room, stride) + 1  # a kernel that does not fit is an error
    if attribute(node, "ceil_mode", 0):
        count = -(-room // stride) + 1 if isinstance(room, int) else 0
        # A last window that starts in the padding after the input counts in some versions and is dropped in others.
        if not isinstance(size, int) or (count - 1) * stride >= size + int(pads[axis]):
            raise Unknowable("the runtimes do not agree")
        return count
    if isinstance(room, int) and room < 0:  # a kernel that does not fit: ONNX Runtime rounds towards zero, the reference down
        raise Unknowable("the runtimes do not agree")
    return truncated_div(room, stride) + 1


@rule("Conv", "ConvInteger", "QLinearConv")
def _conv(walk: Walk, node: ir.Node) -> Known:
    shape, weight = shape_of(walk.get(node.inputs[0])), walk.get(node.inputs[3 if node.op_type == "QLinearConv" else 1]).shape
    rank = len(shape) - 2
    kernel = attribute(node, "kernel_shape") or (weight[2:] if weight is not None else None)
    channels = walk.fresh(node.outputs[0], 1) if weight is None else weight[0]
    return Known((shape[0], channels, *_windows(walk, node, shape, rank, kernel, pool=False)))


def _windows(walk: Walk, node: ir.Node, shape: Shape, rank: int, kernel: Any, *, pool: bool) -> Shape:
    def size(axis: int) -> Element:
        try:
            if kernel is not None and isinstance(kernel[axis], int):
                return _window(node, shape[axis + 2], axis, rank, kernel[axis], pool)
        except Unknowable:
            pass
        return walk.fresh(node.outputs[0], axis + 2)

    return tuple(size(axis) for axis in range(rank))


@rule("MaxPool", "AveragePool", "LpPool")
def _pool(walk: Walk, node: ir.Node) -> list[Known]:
    shape = shape_of(walk.get(node.inputs[0]))
    windows = _windows(walk, node, shape, len(shape) - 2, attribute(node, "kernel_shape"), pool=True)
    return [Known((*shape[:2], *windows)) for _ in node.outputs]


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(walk: Walk, node: ir.Node) -> Known:
    shape = shape_of(walk.get(node.inputs[0]))
    return Known((*shape[:2], *(1,) * (len(shape) - 2)))


@rule("ConvTranspose")
def _conv_transpose(walk: Walk, node: ir.Node) -> Known:
    shape, weight = shape_of(walk.get(node.inputs[0])), walk.get(node.inputs[1]).shape
    rank = len(shape) - 2
    if weight is None:
        return walk.unknown(node.outputs[0], len(shape))
    channels = weight[1] * int(attribute(node, "group", 1))
    given, mode = attribute(node, "output_shape"), attribute(node, "auto_pad", "NOTSET")
    if given is not None:
        return Known((shape[0], channels, *(int(size) for size in given[-rank:])))
    if mode not in ("NOTSET", "VALID"):
        return Known((shape[0], channels, *(walk.fresh(node.outputs[0], axis + 2) for axis in range(rank))))
    kernel = attribute(node, "kernel_shape") or weight[2:]
    ones, zeros = (1,) * rank, (0,) * (2 * rank)
    strides, dilations, extra = (
        attribute(node, name, default) for name, default in (("strides", ones), ("dilations", ones), ("output_padding", zeros))
    )
    pads = attribute(node, "pads", zeros) if mode == "NOTSET" else zeros
    sizes = tuple(
        (shape[axis + 2] + -1) * int(strides[axis])
        + (kernel[axis] - 1) * int(dilations[axis])
        + (1 + extra[axis] - pads[axis] - pads[axis + rank])
        for axis in range(rank)
    )
    return Known((shape[0], channels, *sizes))


@rule("DepthToSpace", "SpaceToDepth")
def _depth_space(walk: Walk, node: ir.Node) -> Known:
    batch, channels, height, width = shape_of(walk.get(node.inputs[0]))
    block = int(attribute(node, "blocksize"))
    if node.op_type == "DepthToSpace":
        return Known((batch, floor_div(channels, block * block), height * block, width * block))
    return Known((batch, channels * (block * block), floor_div(height, block), floor_div(width, block)))


# ---- resizing -------------------------------------------------------------------------------------------------------------------------


@rule("Resize", "Upsample")
def _resize(walk: Walk, node: ir.Node) -> Known:
    shape, out = shape_of(walk.get(node.inputs[0])), node.outputs[0]
    axes = [proper_axis(int(axis), len(shape)) for axis in attribute(node, "axes", range(len(shape)))]
    if (
        attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch"
        or attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize"
    ):
        return walk.unknown(out, len(shape))
    scales, sizes = _scales(walk, node), listed(walk, first_input(node, 3)) if walk.opset > 10 else None
    dims = list(shape)
    for place, axis in enumerate(axes):
        if scales is not None and len(scales) == len(axes):
            dims[axis] = scaled(shape[axis], float(scales[place]))
        elif sizes is not None and len(sizes) == len(axes) and sizes[place] is not None:
            dims[axis] = sizes[place]
        else:
            dims[axis] = walk.fresh(out, axis)
    return Known(tuple(dims))


def _scales(walk: Walk, node: ir.Node) -> list[float] | None:
    if node.op_type == "Upsample" and walk.opset < 9:
        return [float(scale) for scale in attribute(node, "scales", ())]
    found = walk.numbers(first_input(node, 1 if node.op_type == "Upsample" or walk.opset < 11 else 2))
    if found is None or not found.size or not all(math.isfinite(scale) and scale > 0 for scale in found.ravel().tolist()):
        return None
    return [float(scale) for scale in found.ravel()]


# ---- recurrent, and the rest ----------------------------------------------------------------------------------------------------------


@rule("LSTM", "GRU", "RNN", "com.microsoft:DynamicQuantizeLSTM")
def _recurrent(walk: Walk, node: ir.Node) -> list[Known]:
    shape, recurrence = shape_of(walk.get(node.inputs[0])), walk.get(node.inputs[2]).shape
    length, batch = (shape[1], shape[0]) if attribute(node, "layout", 0) else (shape[0], shape[1])
    directions = 2 if attribute(node, "direction", "forward") == "bidirectional" else 1
    hidden = attribute(node, "hidden_size") or (recurrence[-1] if recurrence is not None else walk.fresh(node.outputs[0], 3))
    if attribute(node, "layout", 0):
        states: tuple[Shape, ...] = ((batch, length, directions, hidden), (batch, directions, hidden), (batch, directions, hidden))
    else:
        states = ((length, directions, batch, hidden), (directions, batch, hidden), (directions, batch, hidden))
    return [Known(state) for state in states[: len(node.outputs)]]


@rule("TopK")
def _topk(walk: Walk, node: ir.Node) -> list[Known]:
    shape = shape_of(walk.get(node.inputs[0]))
    axis = proper_axis(int(attribute(node, "axis", -1)), len(shape))
    counts = [attribute(node, "k")] if walk.opset < 10 else listed(walk, node.inputs[1])
    count = counts[0] if counts is not None and len(counts) == 1 and counts[0] is not None else walk.fresh(node.outputs[0], axis)
    return [Known((*shape[:axis], count, *shape[axis + 1 :])) for _ in node.outputs]


@rule("OneHot")
def _one_hot(walk: Walk, node: ir.Node) -> Known:
    shape, depth = list(shape_of(walk.get(node.inputs[0]))), walk.integers(node.inputs[1])
    axis = int(attribute(node, "axis", -1))
    axis = axis + len(shape) + 1 if axis < 0 else axis
    shape.insert(axis, walk.fresh(node.outputs[0], axis) if depth is None else depth[0])
    return Known(tuple(shape))


@rule("DynamicQuantizeLinear")
def _dynamic_quantize(walk: Walk, node: ir.Node) -> list[Known]:
    return [Known(walk.get(node.inputs[0]).shape), Known(()), Known(())]


@rule("GridSample")
def _grid_sample(walk: Walk, node: ir.Node) -> Known:
    shape, grid = shape_of(walk.get(node.inputs[0])), shape_of(walk.get(node.inputs[1]))
    return Known((shape[0], shape[1], *grid[1:-1]))


@rule("NonMaxSuppression")
def _non_max_suppression(walk: Walk, node: ir.Node) -> Known:
    return Known((walk.fresh(node.outputs[0], 0), 3))


@rule("RandomNormal", "RandomUniform")
def _random(_: Walk, node: ir.Node) -> Known:
    return Known(tuple(int(size) for size in attribute(node, "shape")))


@rule("Unique", "Compress")
def _rank_one(walk: Walk, node: ir.Node) -> list[Known]:
    if attribute(node, "axis") is None:
        return [Known((walk.fresh(value, 0),)) for value in node.outputs]
    if node.op_type == "Unique":
        return [UNKNOWN for _ in node.outputs]
    rank = rank_of(walk.get(node.inputs[0]))
    axis = proper_axis(int(attribute(node, "axis")), rank)
    shape = list(shape_of(walk.get(node.inputs[0])))
    shape[axis] = walk.fresh(node.outputs[0], axis)
    return [Known(tuple(shape))]
