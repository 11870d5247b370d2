"""A dtype that a version does not take: cast around, where a type that it takes holds every value."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from ...text import say
from ..shapes import constant_of
from .schemas import Schema, type_names
from .step import Step

FLOATS = {
    "bfloat16": ("float",),
    "float16": ("float",),
    "float8e4m3fn": ("float16", "float"),
    "float8e4m3fnuz": ("float16", "float"),
    "float8e5m2": ("float16", "float"),
    "float8e5m2fnuz": ("float16", "float"),
}
"""Types that hold every value of a narrower float."""
INTEGERS = {
    "int8": ("int32", "int64"),
    "uint8": ("int32", "int64"),
    "int16": ("int32", "int64"),
    "uint16": ("int64", "int32"),
    "int32": ("int64",),
    "uint32": ("int64",),
    "bool": ("int32",),
}
"""Types that hold every value of a narrower integer. Sums, differences and products wrap to the same value when cast back."""
INTEGERS_AS_FLOATS = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), ("float", "double")),
    **dict.fromkeys(("int32", "uint32"), ("double",)),
}
MOVES = frozenset(
    [
        *("ArgMax", "ArgMin", "Clip", "Compress", "Concat", "DepthToSpace", "Equal", "Expand", "EyeLike", "Flatten", "Gather"),
        *("GatherElements", "GatherND", "Greater", "Identity", "IsInf", "IsNaN", "Less", "Max", "MaxPool", "Min", "NonZero", "OneHot"),
        *("Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND", "Shape"),
        *("Size", "Slice", "SpaceToDepth", "Split", "SplitToSequence", "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unique"),
        *("Unsqueeze", "Upsample", "Where"),
    ]
)
"""Operators that choose, move or compare and never compute: any type that holds the values will do."""
WRAPS = frozenset(
    {
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Neg",
        "Abs",
        "Sum",
        "MatMul",
        "Gemm",
        "ReduceSum",
        "ReduceProd",
        "ReduceSumSquare",
        "CumSum",
        "Sign",
        "Mod",
    }
)
"""Integer arithmetic whose low bits do not depend on the width."""
NEVER_CAST = frozenset(
    [
        *("Cast", "CastLike", "BitCast", "QuantizeLinear", "DequantizeLinear", "QLinearConv", "ConvInteger", "MatMulInteger"),
        *("If", "Loop", "Scan", "Constant", "ConstantOfShape", "Optional", "OptionalGetElement", "OptionalHasElement"),
        *("SequenceMap", "SequenceAt", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceLength", "ConcatFromSequence"),
    ]
)


def fit_types(step: Step, schema: Schema) -> bool:
    """Cast around a node whose dtype its version does not take, where a type it takes holds every value; says whether it did.

    Raises:
        Unconvertible: there is no such type.
    """
    node = step.node
    carriers: dict[str, str] = {}
    for type_str, values in _bound(node, schema).items():
        allowed = type_names(schema, type_str)
        if not allowed:
            continue
        for value in values:
            name = onnx_type_name(value.type)
            if name is not None and name not in allowed:
                carriers[type_str] = _carrier(step, schema, value, allowed)
    if not carriers:
        return False
    inputs: list[ir.Value | None] = []
    for index, operand in enumerate(node.inputs):
        carrier = carriers.get(_formal(schema.inputs, index))
        inputs.append(operand if carrier is None or operand is None else _carried(step, operand, _dtype(carrier)))
    changed: dict[str, ir.Attr] = {}
    results = [_formal(schema.outputs, index) for index in range(len(node.outputs))]
    if "dtype" in node.attributes and results[0] in carriers:
        changed["dtype"] = ir.AttrInt64("dtype", int(_dtype(carriers[results[0]])))
    outputs = step.op_like(inputs, (), **changed)
    for index, (old, new) in enumerate(zip(node.outputs, outputs, strict=True)):
        carrier = carriers.get(results[index])
        new.type = new.type or (ir.TensorType(_dtype(carrier)) if carrier is not None else old.type)
        if carrier is not None and step.used(index):
            if old.dtype is None:
                step.refuse(say("the dtype of output {index} is not known", "输出 {index} 的数据类型未知", index=index))
            new.shape = new.shape or old.shape
            outputs[index] = step.cast(new, old.dtype)
    step.finish(*outputs)
    return True


def _carried(step: Step, value: ir.Value, dtype: ir.DataType) -> ir.Value:
    constant = constant_of(value)
    if constant is not None and constant.nbytes <= 1 << 20:
        return step.const(constant.astype(dtype.numpy()), name="cast")
    return step.op("Cast", value, to=int(dtype))


def _bound(node: ir.Node, schema: Schema) -> dict[str, list[ir.Value]]:
    """The tensors of a node by the type variable of the schema that they are bound to."""
    bound: dict[str, list[ir.Value]] = {}
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for index, value in enumerate(values):
            if value is not None and formals:
                bound.setdefault(_formal(formals, index), []).append(value)
    return bound


def _formal(formals: object, index: int) -> str:
    listed: list[onnx.defs.OpSchema.FormalParameter] = list(formals)  # type: ignore[call-overload]
    return str(listed[min(index, len(listed) - 1)].type_str) if listed else ""


def onnx_type_name(kind: ir.TypeProtocol | None) -> str | None:
    """A type as schemas write it (``seq(tensor(float))``); None where it is unknown."""
    if isinstance(kind, ir.TensorType):
        return f"tensor({dtype_name(kind.dtype)})"
    for outer, name in ((ir.SequenceType, "seq"), (ir.OptionalType, "optional")):
        if isinstance(kind, outer):
            inner = onnx_type_name(kind.elem_type)
            return None if inner is None else f"{name}({inner})"
    return None


def dtype_name(dtype: ir.DataType) -> str:
    return dtype.name.lower()


def _dtype(name: str) -> ir.DataType:
    return ir.DataType[name.upper()]


def _carrier(step: Step, schema: Schema, value: ir.Value, allowed: frozenset[str]) -> str:
    op, dtype = step.node.op_type, dtype_name(value.dtype or ir.DataType.UNDEFINED)
    choices: tuple[str, ...] = ()
    if op not in NEVER_CAST:
        choices = FLOATS.get(dtype, ()) if not dtype.startswith("float8") or op in MOVES else ()
        if op in MOVES or op in WRAPS:
            choices += INTEGERS.get(dtype, ())
        if op in MOVES:
            choices += INTEGERS_AS_FLOATS.get(dtype, ())
    for choice in choices:
        if f"tensor({choice})" in allowed and castable(dtype, step.version):
            return choice
    return step.refuse(
        say(
            "opset {version} does not take {dtype} for {name}",
            "opset {version} 的 {name} 不支持 {dtype}",
            version=step.version,
            dtype=onnx_type_name(value.type),
            name=_formal_name(step.node, schema, value),
        )
    )


def castable(dtype: str, version: int) -> bool:
    """Whether Cast of an opset knows a dtype."""
    first = {"bfloat16": 13, "float8e4m3fn": 19, "float8e4m3fnuz": 19, "float8e5m2": 19, "float8e5m2fnuz": 19}
    return version >= first.get(dtype, 0)


def _formal_name(node: ir.Node, schema: Schema, value: ir.Value) -> str:
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for index, other in enumerate(values):
            if other is value:
                return str(formals[min(index, len(formals) - 1)].name)
    return ""
