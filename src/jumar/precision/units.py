"""How each operator computes on the device when its tensors are stored in 16 bits: which unit, what it accumulates in, how sure that is.

The rules follow the public kernel sources and prototypes of CANN (8.1.RC1 and the sources of 2022): matrix products take 16-bit inputs and
accumulate in float32; sums and norms widen to float32 inside and narrow at the end; CumSum adds in the type of its input. Nothing here was
measured on a device, and ``confidence`` says where a rule comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import onnx_ir as ir

from ..text import Text, say

Unit = Literal["cube", "vector", "kernel", "move", "cast", "control"]
Confidence = Literal["observed", "documented", "inferred", "unknown"]


@dataclass(frozen=True)
class UnitRule:
    """What happens to one operator.

    Attributes:
        unit: ``cube`` multiplies matrices; ``vector`` computes element by element; ``kernel`` is a whole kernel with float32 inside;
            ``move`` only moves or selects values; ``cast`` says its own types; ``control`` runs bodies.
        accumulate: type of the sums: ``float32``, ``storage`` (rounded after every step), or empty where nothing is summed.
        confidence: ``observed`` in kernel sources, ``documented`` in prototypes or guides, ``inferred`` from similar kernels, ``unknown``.
        wide: indices of float inputs that stay float32 (scales, statistics): they are not stored in 16 bits.
        closed: whether the result is representable wherever the inputs are, so that rounding it again changes nothing.
        gap: what the emulation leaves out.
    """

    unit: Unit
    accumulate: Literal["float32", "storage", ""] = ""
    confidence: Confidence = "inferred"
    wide: frozenset[int] = frozenset()
    closed: bool = False
    gap: Text | None = None


_CUBE = UnitRule("cube", "float32", "documented")
_EXACT = UnitRule("vector", "", "documented")
_FUNCTION = UnitRule("vector", "", "inferred")
_REDUCE = UnitRule("kernel", "float32", "observed")
_NORM = UnitRule("kernel", "float32", "inferred")
_MOVE = UnitRule("move", "", "documented", closed=True)
_CONTROL = UnitRule("control", "", "documented")
_STEPS = say(
    "rounding between the time steps of a recurrent kernel is not modelled",
    "未模拟循环算子各时间步之间的舍入",
)
_RECURRENT = UnitRule("cube", "float32", "unknown", gap=_STEPS)

_GROUPS: tuple[tuple[UnitRule, str], ...] = (
    (_CUBE, "Conv ConvTranspose MatMul Gemm DeformConv"),
    (replace(_CUBE, confidence="inferred"), "Einsum AveragePool GlobalAveragePool"),
    (_RECURRENT, "LSTM GRU RNN"),
    (_EXACT, "Add Sub Mul Div Sqrt Reciprocal Mod Clip Pad Dropout Constant ConstantOfShape Range"),
    (
        _FUNCTION,
        (
            "Exp Log Pow Tanh Sigmoid Erf Gelu HardSigmoid HardSwish Elu Selu Celu LeakyRelu PRelu Softplus Softsign Mish Swish Sin Cos Tan Asin "
            "Acos Atan Sinh Cosh Asinh Acosh Atanh Sum Mean ThresholdedRelu Shrink"
        ),
    ),
    (_REDUCE, "ReduceSum ReduceMean ReduceSumSquare ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd"),
    (
        _NORM,
        "Softmax LogSoftmax LayerNormalization GroupNormalization RMSNormalization LpNormalization MeanVarianceNormalization LRN LpPool",
    ),
    (replace(_NORM, wide=frozenset((1, 2))), "InstanceNormalization"),
    (replace(_NORM, confidence="documented", wide=frozenset((1, 2, 3, 4))), "BatchNormalization"),
    (UnitRule("kernel", "storage", "observed"), "CumSum"),
    (UnitRule("kernel", "", "inferred", wide=frozenset((1, 2, 3))), "Resize"),
    (UnitRule("kernel", "", "inferred", wide=frozenset((1,))), "Upsample"),
    (UnitRule("kernel", "float32", "inferred"), "GridSample RoiAlign MaxRoiPool Attention RotaryEmbedding"),
    (
        _MOVE,
        (
            "Identity Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Concat Gather GatherElements GatherND Expand Tile "
            "DepthToSpace SpaceToDepth ReverseSequence Where Compress Relu Abs Neg Max Min MaxPool GlobalMaxPool TopK ReduceMax ReduceMin Sign "
            "Floor Ceil Round Trilu EyeLike Unique NonZero OneHot MaxUnpool CenterCropPad"
        ),
    ),
    (UnitRule("move", "", "documented", wide=frozenset((1,))), "QuantizeLinear DequantizeLinear"),
    (UnitRule("move", "", "documented", wide=frozenset((3, 4))), "NonMaxSuppression"),
    (UnitRule("move", "", "documented"), "ArgMax ArgMin Equal Greater GreaterOrEqual Less LessOrEqual IsNaN IsInf Shape Size"),
    (UnitRule("cast", "", "inferred"), "Cast CastLike"),
    (
        _CONTROL,
        "If Loop Scan SequenceConstruct SequenceEmpty SequenceInsert SequenceAt SequenceErase ConcatFromSequence SplitToSequence Optional OptionalGetElement",
    ),
)
_UNKNOWN = UnitRule(
    "kernel",
    "",
    "unknown",
    gap=say("its kernel is not known; it is computed in float32 and its result rounded", "其算子实现未知；按 float32 计算并对结果舍入"),
)
RULES: Mapping[str, UnitRule] = {op: rule for rule, ops in _GROUPS for op in ops.split()}
"""The rule of each operator of the standard."""
_REDUCING_SCATTERS = ("ScatterElements", "ScatterND")


def rule_of(node: ir.Node) -> UnitRule:
    """The rule of a node; one of confidence ``unknown`` for an operator that no rule knows."""
    if node.domain not in ("", "ai.onnx"):
        return _UNKNOWN
    if node.op_type in _REDUCING_SCATTERS:
        reduction = node.attributes.get("reduction")
        plain = reduction is None or reduction.as_string() == "none"
        return _MOVE if plain else UnitRule("kernel", "float32", "unknown", gap=_UNKNOWN.gap)
    return RULES.get(node.op_type, _UNKNOWN)
