"""Bit operations by arithmetic on integers that 32 bits hold."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.step import Step
from .base import expands
from .common import sizes

_WIDTHS = {
    ir.DataType.UINT8: 8,
    ir.DataType.INT8: 8,
    ir.DataType.UINT16: 16,
    ir.DataType.INT16: 16,
    ir.DataType.INT32: 32,
    ir.DataType.INT64: 64,
}


@expands("BitShift")
def bit_shift(step: Step) -> None:
    """Multiplication with, or division by, a power of two from a table, where ranges show that no bit is lost at the top.

    A shift by the width or more gives 0 to the left; what it gives to the right is 0 for numbers that are not negative.
    """
    data, amount = step.needed(0), step.needed(1)
    value, shift = step.range_of(data), step.range_of(amount)
    limit = np.iinfo(np.int32).max
    if value.lo < 0 or shift.lo < 0 or value.hi > limit:
        step.refuse(say("operands are not known to lie between 0 and 2147483647", "操作数不能确定在 0 到 2147483647 之间"))
    width = _bits(step)
    places = int(min(shift.hi, width))
    left = step.given("direction") == "LEFT"
    if left and (int(value.hi) << places > limit or (int(value.hi) << places) >> width):
        step.refuse(say("bits may be shifted out at the top", "高位可能被移出"))
    if places > 30:
        step.refuse(say("shifts of more than 30 places", "移位超过 30 位"))
    table = step.const([1 << place for place in range(places + 1)], np.int32, "powers")
    count = step.cast(amount, ir.DataType.INT32)
    if shift.hi > places:  # beyond the width nothing is left, as at the width
        count = step.op(
            "Where", step.op("Less", count, step.const(places, np.int32, "width")), count, step.const(places, np.int32, "width")
        )
    power = step.op("Gather", table, count, axis=0)
    wide = step.cast(data, ir.DataType.INT32)
    step.finish(step.cast(step.op("Mul" if left else "Div", wide, power), step.dtype()))


def _bits(step: Step) -> int:
    return int(step.dtype().itemsize * 8)


@expands("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(step: Step) -> None:
    """On digits of base two in a new last axis, for numbers from 0 to 65535: sums of floats are exact there."""
    one, other = step.needed(0), step.needed(1)
    high = max(int(step.range_of(item).hi) for item in (one, other))
    if any(step.range_of(item).lo < 0 for item in (one, other)) or high >= 1 << 24:
        step.refuse(say("operands are not known to lie between 0 and 16777215", "操作数不能确定在 0 到 16777215 之间"))
    shape = step.static(0) if len(step.static(0)) >= len(step.static(1)) else step.static(1)
    powers = step.const([1 << place for place in range(max(high.bit_length(), 1))], np.float32, "powers")
    digits = [_digits(step, item, powers, len(shape)) for item in (one, other)]
    name = step.node.op_type
    joined = step.op({"BitwiseXor": "Sub", "BitwiseAnd": "Min", "BitwiseOr": "Max"}[name], *digits)
    joined = step.op("Abs", joined) if name == "BitwiseXor" else joined
    total = step.op("MatMul", joined, step.op("Reshape", powers, step.ints([-1, 1], "column")))
    out = np.broadcast_shapes(step.static(0), step.static(1))
    step.finish(step.cast(step.op("Reshape", total, step.ints(out, "shape")), step.dtype()))


def _digits(step: Step, value: ir.Value, powers: ir.Value, rank: int) -> ir.Value:
    """Digits 0 and 1 in base two along a new last axis, as floats."""
    shape = [*([1] * (rank - len(value.shape or ()))), *sizes(step, value), 1]
    column = step.op("Reshape", step.cast(value, ir.DataType.FLOAT), step.ints(shape, "shape"))
    shifted = step.op("Floor", step.op("Div", column, powers))
    half = step.op("Floor", step.op("Mul", shifted, step.const(0.5, np.float32, "half")))
    return step.op("Sub", shifted, step.op("Mul", half, step.const(2.0, np.float32, "two")))


@expands("BitwiseNot")
def bitwise_not(step: Step) -> None:
    """The complement is -1 - x for signed integers, and the largest number minus x for unsigned ones."""
    limits = np.iinfo(step.dtype().numpy())
    top = -1 if limits.min < 0 else limits.max
    step.finish(step.op("Sub", step.like(top), step.needed(0)))
