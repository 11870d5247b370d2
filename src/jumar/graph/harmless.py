"""Which nodes may be computed on values they were not meant for: a branch not taken, a trip of a loop that had ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx_ir as ir

from ..text import Text, say
from .edit import Builder
from .ranges import Interval, is_integer
from .shapes import constant_of, static_shape

_STANDARD = ("", "ai.onnx")
# Where the shapes are fixed, these give a result for any values, the same one each time.
_HARMLESS = frozenset(
    """Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization BitwiseAnd BitwiseNot
    BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu CenterCropPad Clip Col2Im Concat Constant ConstantOfShape Conv ConvInteger
    ConvTranspose Cos Cosh DeformConv DepthToSpace DequantizeLinear Det DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand
    EyeLike Flatten Floor Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization
    HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Less
    LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul MatMulInteger Max MaxPool Mean MeanVarianceNormalization MelWeightMatrix Min
    Mish Mul Neg Not OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization Range Reciprocal ReduceL1 ReduceL2
    ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize Round STFT Selu
    Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh
    ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Upsample Where Xor""".split()  # noqa: SIM905
)
# Operand that indexes an axis (the attribute ``axis`` says which).
_INDEXING = {"Gather": 1, "GatherElements": 1, "ScatterElements": 1, "Scatter": 1}
_DIVIDING = frozenset(("Div", "Mod"))
# Operands that must be constant: lengths of sequences, an axis, whether a Dropout trains.
_CONSTANT = {"CumProd": 1, "CumSum": 1, "DFT": 2, "Dropout": 2, "GRU": 4, "LSTM": 4, "RNN": 4, "ReverseSequence": 1}
_WHERE_DIRECTLY = frozenset(
    (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8)
)
_WHERE_THROUGH = {
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
    ir.DataType.INT8: ir.DataType.INT32,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.UINT32: ir.DataType.INT64,
}
WHERE_OPSET = 9


def hazard(node: ir.Node, range_of: Callable[[ir.Value], Interval]) -> Text | None:
    """Why a node may fail, or cost without limit, on values it was not meant for; None if it may not.

    Shapes must have been inferred anew: what the file declares of inner tensors is a claim.

    Args:
        range_of: the interval of a tensor, which must hold even for values that the node was not meant for.
    """
    if node.domain not in _STANDARD:
        return say("{op} is of another domain", "{op} 属于其他算子域", op=f"{node.domain}::{node.op_type}")
    if not any(node.op_type in known for known in (_HARMLESS, _INDEXING, _CONSTANT, _DIVIDING)):
        return _may_fail(node)
    for value in node.outputs:
        if (value.uses() or value.is_graph_output()) and not _is_fixed(value):
            return say("the shape of `{name}` is not fixed", "`{name}` 的形状不固定", name=value.name)
    if node.op_type in _HARMLESS:
        return None
    if node.op_type in _DIVIDING:
        return _division(node, range_of)
    if node.op_type in _INDEXING:
        return _indices(node, range_of)
    if node.op_type in _CONSTANT:
        place = _CONSTANT[node.op_type]
        operand = node.inputs[place] if len(node.inputs) > place else None
        constant = constant_of(operand)
        if operand is None or (constant is not None and not (node.op_type == "Dropout" and constant.any())):
            return None
    return _may_fail(node)


def _may_fail(node: ir.Node) -> Text:
    return say("{op} may fail on values it was not meant for", "{op} 遇到非预期的数值可能出错", op=node.op_type)


def _is_fixed(value: ir.Value) -> bool:
    return isinstance(value.type, ir.TensorType) and value.dtype != ir.DataType.STRING and static_shape(value) is not None


def _division(node: ir.Node, range_of: Callable[[ir.Value], Interval]) -> Text | None:
    """Integers must not be divided by 0; nor by -1, which the least integer does not survive."""
    divisor = node.inputs[1]
    if divisor is None or not is_integer(divisor.dtype):
        return None
    limits = range_of(divisor)
    if limits.lo > 0 or limits.hi < -1:
        return None
    return say("{op} divides integers by what may be 0", "{op} 的整数除数可能为 0", op=node.op_type)


def _indices(node: ir.Node, range_of: Callable[[ir.Value], Interval]) -> Text | None:
    data, indices = node.inputs[0], node.inputs[_INDEXING[node.op_type]]
    shape = static_shape(data)
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    if shape is None or indices is None or not -len(shape) <= axis < len(shape):
        return say("the shape of what {op} reads is not fixed", "{op} 读取的张量形状不固定", op=node.op_type)
    limits = range_of(indices)
    if limits.within(-shape[axis], shape[axis] - 1):
        return None
    return say(
        "{op} takes places {lo} to {hi} of an axis of {size}",
        "{op} 在大小为 {size} 的维上取第 {lo} 到 {hi} 个位置",
        op=node.op_type,
        lo=limits.lo,
        hi=limits.hi,
        size=shape[axis],
    )


def can_choose(dtype: ir.DataType | None) -> bool:
    """Whether :func:`choose` works for a type."""
    return dtype == ir.DataType.BOOL or dtype in _WHERE_DIRECTLY or dtype in _WHERE_THROUGH


def choose(builder: Builder, condition: ir.Value, yes: ir.Value, no: ir.Value, dtype: ir.DataType, shape: Iterable[int]) -> ir.Value:
    """``yes`` where the condition (a scalar boolean) holds, else ``no``; nothing of the other one leaks, not even NaN.

    ONNX Runtime's Where takes few types; booleans are chosen by logic, and small types through a larger one, which keeps every value.
    """
    size = ir.Shape(list(shape))

    def made(value: ir.Value, of: ir.DataType) -> ir.Value:
        value.type, value.shape = ir.TensorType(of), size
        return value

    if dtype == ir.DataType.BOOL:
        contrary = builder.op("Not", condition)
        contrary.type, contrary.shape = ir.TensorType(dtype), ir.Shape([])
        first = made(builder.op("And", condition, yes), dtype)
        second = made(builder.op("And", contrary, no), dtype)
        return made(builder.op("Or", first, second), dtype)
    through = _WHERE_THROUGH.get(dtype)
    if through is None:
        return made(builder.op("Where", condition, yes, no), dtype)
    wide = [made(builder.op("Cast", value, to=through.value), through) for value in (yes, no)]
    chosen = made(builder.op("Where", condition, *wide), through)
    return made(builder.op("Cast", chosen, to=dtype.value), dtype)


__all__ = ["WHERE_OPSET", "can_choose", "choose", "hazard"]
