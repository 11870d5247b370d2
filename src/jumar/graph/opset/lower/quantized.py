"""Steps down of quantisation: what an older version lacks is written out in floats or 32-bit integers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Step, lowers
from .common import half_to_even, is_float, unsqueeze

FLOAT = ir.DataType.FLOAT


def _along(step: Step, value: ir.Value, axis: int, rank: int) -> ir.Value:
    """A scale or zero point along an axis, shaped so that it spreads over the data."""
    shape = value.shape
    if shape is None:
        step.refuse(say("the rank of a scale or zero point is not known", "缩放或零点的秩未知"))
    if len(shape) == 1 and shape[0] == 1 and rank != 1:
        return step.op("Reshape", value, step.ints([], "scalar"))
    if len(shape) != 1 or rank == 1:
        return value
    return unsqueeze(step, value, [place for place in range(rank) if place != axis % rank])


def _blocks(step: Step, value: ir.Value, axis: int, block: int) -> ir.Value:
    """A scale of blocks, repeated for each element."""
    shape, size = static_shape(value), step.dim(axis)
    if shape is None:
        step.refuse(say("the shape of a scale or zero point is not known", "缩放或零点的形状未知"))
    return step.op("Gather", value, step.ints((np.arange(size) // block).tolist(), "blocks"), axis=axis)


def _parameters(step: Step) -> tuple[ir.Value, ir.Value | None]:
    axis, rank, block = step.attr("axis", 1), step.rank(), step.attr("block_size", 0)
    found = [step.needed(1), step.input(2)]
    placed = [
        None if value is None else _blocks(step, value, axis % rank, block) if block else _along(step, value, axis, rank) for value in found
    ]
    scale, zero = placed
    if scale is None:
        step.refuse(say("its scale is missing", "缺少缩放"))
    return scale, zero


def _per_axis(step: Step) -> bool:
    shape = step.shape(1)
    return shape is None or (len(shape) > 0 and shape != (1,))


@lowers(10, "DequantizeLinear")
@lowers(13, "DequantizeLinear")
@lowers(21, "DequantizeLinear")
@lowers(23, "DequantizeLinear")
@lowers(25, "DequantizeLinear")
def _dequantize(step: Step) -> bool:
    """Written out where the older version lacks blocks, axes or the integer type: (x - zero) * scale."""
    _wider_weights(step)
    wanted = step.attr("output_dtype", 0)
    if wanted and wanted == int(step.dtype(1)):
        step.node.attributes.pop("output_dtype")
        wanted = 0
    if not step.attr("block_size", 0):
        step.node.attributes.pop("block_size", None)
    narrow = step.dtype() in (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32)
    if step.version < 13 and not _per_axis(step):
        step.node.attributes.pop("axis", None)
    if wanted or (step.version >= 10 and narrow and not step.attr("block_size", 0) and (step.version >= 13 or not _per_axis(step))):
        return False
    if step.version >= 21 or is_float(step.dtype()):
        return False  # float8 has its own rules
    dequantized(step)
    return True


def dequantized(step: Step) -> None:
    """(x - zero) * scale, in float32."""
    scale, zero = _parameters(step)
    data, dtype = step.cast(step.needed(0), FLOAT), step.dtype(1)
    if step.dtype() == ir.DataType.INT32 and zero is None:
        step.finish(step.op("Mul", step.cast(step.needed(0), dtype), scale))
        return
    if zero is not None:
        data = step.op("Sub", data, step.cast(zero, FLOAT))
    wanted = ir.DataType(step.attr("output_dtype", 0) or int(dtype))
    step.finish(step.cast(step.op("Mul", step.cast(data, dtype), scale), wanted))


@lowers(10, "QuantizeLinear")
@lowers(13, "QuantizeLinear")
@lowers(19, "QuantizeLinear")
@lowers(21, "QuantizeLinear")
@lowers(23, "QuantizeLinear")
def _quantize(step: Step) -> bool:
    """Written out where the older version lacks blocks, axes or the types: clip(round(x / scale) + zero)."""
    zero_point = step.input(2)
    wanted = zero_point.dtype if zero_point is not None else ir.DataType(step.attr("output_dtype", 0) or int(ir.DataType.UINT8))
    if wanted is None:
        step.refuse(say("the dtype of its zero point is not known", "零点的数据类型未知"))
    precision = step.attr("precision", 0)
    if precision and precision == int(step.dtype()) == int(step.dtype(1)):
        precision = 0
    for name in ("precision", "block_size"):
        if not step.attr(name, 0) or (name == "precision" and not precision):
            step.node.attributes.pop(name, None)
    if "output_dtype" in step.node.attributes and (zero_point is not None or wanted == ir.DataType.UINT8):
        del step.node.attributes["output_dtype"]
    if step.version < 13 and not _per_axis(step):
        step.node.attributes.pop("axis", None)
    narrow = wanted in (ir.DataType.INT8, ir.DataType.UINT8)
    plain = narrow and (zero_point is not None or wanted == ir.DataType.UINT8) and not step.attr("block_size", 0) and not precision
    if plain and step.version >= 10 and (step.version >= 13 or not _per_axis(step)) and (step.version >= 19 or step.dtype() == FLOAT):
        return False
    if step.version >= 23 or wanted not in LIMITS or (not precision and step.version >= 21):
        return False
    quantized(step, wanted, precision)
    return True


def quantized(step: Step, wanted: ir.DataType, precision: int) -> None:
    """clip(round(x / scale) + zero) to the limits of the type; ``precision`` is the type of the division (0: that of x)."""
    scale, zero = _parameters(step)
    kind = ir.DataType(precision) if precision else step.dtype()
    scaled = half_to_even(step, step.op("Div", step.cast(step.needed(0), kind), step.cast(scale, kind)))
    moved = step.cast(scaled, FLOAT)
    if zero is not None:
        moved = step.op("Add", moved, step.cast(zero, FLOAT))
    limits = [step.const(limit, np.float32, "limit") for limit in LIMITS[wanted]]
    step.finish(step.cast(step.op("Min", step.op("Max", moved, limits[0]), limits[1]), wanted))


def _wider_weights(step: Step) -> None:
    """Weights of 4 or 2 bits as bytes: only their values matter here."""
    for index in (0, 2):
        value = step.input(index)
        small = _SMALL.get(value.dtype) if value is not None and value.dtype is not None else None
        if value is None or small is None or step.version >= _SMALL_SINCE[value.dtype]:
            continue
        weight = step.value_of(value)
        if weight is None:
            return  # no type that Cast knows there holds it
        step.node.replace_input_with(index, step.const(weight.astype(small.numpy()), name="weight"))


_SMALL: dict[ir.DataType | None, ir.DataType] = {
    ir.DataType.INT4: ir.DataType.INT8,
    ir.DataType.UINT4: ir.DataType.UINT8,
    **{
        getattr(ir.DataType, name): getattr(ir.DataType, wide)
        for name, wide in (("INT2", "INT8"), ("UINT2", "UINT8"))
        if hasattr(ir.DataType, name)
    },
}
_SMALL_SINCE = {small: 21 if small in (ir.DataType.INT4, ir.DataType.UINT4) else 25 for small in _SMALL}
LIMITS = {
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT16: (0, 65535),
}


@lowers(10, "MatMulInteger")
def _matmul_integer(step: Step) -> bool:
    """Products of 32-bit integers, which MatMul takes at 9."""
    if step.version < 9:
        return False
    operands = []
    for index in (0, 1):
        data, zero = step.cast(step.needed(index), ir.DataType.INT32), step.input(index + 2)
        if zero is not None:
            zero = step.cast(zero, ir.DataType.INT32)
            if index == 0 and len(zero.shape or ()) == 1 and (zero.shape or (1,))[0] != 1:
                zero = unsqueeze(step, zero, [1])
            data = step.op("Sub", data, zero)
        operands.append(data)
    step.finish(step.op("MatMul", *operands))
    return True
