"""Steps down of operators on elements: comparisons, integers, bits, remainders, rounding."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ..step import Step, lowers
from .common import half_to_even, is_float


@lowers(12, "GreaterOrEqual", "LessOrEqual")
def _ordered_comparison(step: Step) -> bool:
    """Greater or Equal (not Not(Less), which says yes to NaN)."""
    strict = step.op("Greater" if step.node.op_type == "GreaterOrEqual" else "Less", *step.node.inputs)
    step.finish(step.op("Or", strict, step.op("Equal", *step.node.inputs)))
    return True


@lowers(11, "Equal")
def _equal_floats(step: Step) -> bool:
    """Before 11 Equal knows no floats: neither less nor greater, and both are numbers."""
    dtype = step.dtype()
    if not is_float(dtype):
        return False
    left, right = step.needed(0), step.needed(1)
    differ = step.op("Or", step.op("Less", left, right), step.op("Greater", left, right))
    numbers = [_is_number(step, value) for value in (left, right)]
    step.finish(step.op("And", step.op("Not", differ), step.op("And", *numbers)))
    return True


def _is_number(step: Step, value: ir.Value) -> ir.Value:
    """Every number is above -1 or below 1; NaN is neither."""
    return step.op("Or", step.op("Greater", value, step.like(-1)), step.op("Less", value, step.like(1)))


@lowers(9, "IsNaN")
def _is_nan(step: Step) -> bool:
    step.finish(step.op("Not", _is_number(step, step.needed(0))))
    return True


@lowers(10, "IsInf")
def _is_inf(step: Step) -> bool:
    data, largest = step.needed(0), np.finfo(step.dtype().numpy()).max
    found = []
    if step.attr("detect_positive", 1):
        found.append(step.op("Greater", data, step.like(largest)))
    if step.attr("detect_negative", 1):
        found.append(step.op("Less", data, step.like(-largest)))
    if not found:
        found.append(step.op("Less", data, data))  # of no element
    step.finish(found[0] if len(found) == 1 else step.op("Or", *found))
    return True


@lowers(12, "Max", "Min")
def _extreme_of_integers(step: Step) -> bool:
    """Max and Min of integers, which came at 12, are comparisons and choices."""
    if is_float(step.dtype()):
        return False
    data = step.needed(0)
    for other in step.node.inputs[1:]:
        data = _choose(step, step.node.op_type, data, other)
    step.finish(data if data is not step.needed(0) else step.op("Identity", data))
    return True


def _choose(step: Step, op: str, left: ir.Value, right: ir.Value | None) -> ir.Value:
    comparison = step.op("Greater" if op == "Max" else "Less", left, right)
    return step.op("Where", comparison, left, right)


@lowers(12, "Clip")
def _clip_of_integers(step: Step) -> bool:
    if is_float(step.dtype()):
        return False
    data = step.needed(0)
    for op, index in (("Max", 1), ("Min", 2)):
        bound = step.input(index)
        if bound is not None:
            data = _choose(step, op, data, bound)
    step.finish(data if data is not step.needed(0) else step.op("Identity", data))
    return True


@lowers(14, "Relu")
def _relu_of_integers(step: Step) -> bool:
    if is_float(step.dtype()):
        return False
    step.finish(step.op("Max", step.needed(0), step.like(0)))
    return True


@lowers(12, "Pow")
def _pow_of_integers(step: Step) -> bool:
    """Before 12 both sides were floats of one type."""
    base, exponent = step.dtype(0), step.dtype(1)
    if base == exponent and is_float(base):
        return False
    constant = step.value_of(step.input(1))
    if constant is not None and constant.size == 1 and float(constant.reshape(-1)[0]) in (1.0, 2.0, 3.0, 4.0):
        data = result = step.needed(0)
        for _ in range(int(constant.reshape(-1)[0]) - 1):
            result = step.op("Mul", result, data)
        step.finish(result if result is not data else step.op("Identity", data))
        return True
    wide = {ir.DataType.INT64, ir.DataType.UINT64}
    if base in wide or (exponent in wide and (constant is None or bool(np.any(np.abs(constant.astype(np.float64)) >= 2**53)))):
        step.refuse(say("64-bit integers do not fit a double", "64 位整数无法用 double 精确表示"))
    operands = [step.cast(step.needed(index), ir.DataType.DOUBLE) for index in (0, 1)]
    step.finish(step.cast(step.op("Pow", *operands), base))
    return True


@lowers(18, "BitwiseNot")
def _bitwise_not(step: Step) -> bool:
    dtype = step.dtype()
    all_ones = np.iinfo(dtype.numpy()).max if dtype.name.startswith("U") else -1
    step.finish(step.op("Sub", step.like(all_ones), step.needed(0)))
    return True


@lowers(18, "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _bitwise(step: Step) -> bool:
    """Bit by bit: each is shifted down, combined, and the bits are summed up with their weights."""
    dtype = step.dtype()
    width = dtype.itemsize * 8
    bits = []
    for index in (0, 1):
        raw = step.cast(step.needed(index), ir.DataType.UINT64)
        column = step.op("Unsqueeze", raw, step.ints([-1], "last")) if step.version >= 13 else step.op("Unsqueeze", raw, axes=[-1])
        shifted = step.op("BitShift", column, step.const(np.arange(width), np.uint64, "places"), direction="RIGHT")
        bits.append(step.cast(step.op("Mod", shifted, step.const(2, np.uint64, "two")), ir.DataType.INT64))
    if step.node.op_type == "BitwiseAnd":
        result = step.op("Mul", *bits)
    else:
        result = step.op("Add", *bits)
        if step.node.op_type == "BitwiseOr":
            result = step.op("Sub", result, step.op("Mul", *bits))
        else:
            result = step.op("Mod", result, step.ints(2, "two"))
    # The weight of bit 63 is negative in 64 bits, as in two's complement.
    weights = np.left_shift(np.uint64(1), np.arange(width, dtype=np.uint64)).view(np.int64)
    weighted = step.op("Mul", result, step.const(weights, np.int64, "weights"))
    step.finish(step.cast(step.op("ReduceSum", weighted, step.ints([-1], "last"), keepdims=0), dtype))
    return True


@lowers(28, "BitShift")
def _shift_of_signed(step: Step) -> bool:
    """Signed integers came at 28: the shift to the right keeps the sign."""
    dtype = step.dtype()
    if dtype.name.startswith("U"):
        return False
    unsigned = ir.DataType[f"U{dtype.name}"]
    data, count = step.needed(0), step.cast(step.needed(1), unsigned)
    if step.attr("direction") == "LEFT":
        step.finish(step.cast(step.op("BitShift", step.cast(data, unsigned), count, direction="LEFT"), dtype))
        return True
    negative = step.op("Less", data, step.like(0))
    mirrored = step.op("Where", negative, step.op("Sub", step.like(-1), data), data)
    shifted = step.cast(step.op("BitShift", step.cast(mirrored, unsigned), count, direction="RIGHT"), dtype)
    step.finish(step.op("Where", negative, step.op("Sub", step.like(-1), shifted), shifted))
    return True


@lowers(11, "BitShift")
def _shift_by_constant(step: Step) -> bool:
    """Before 11 a shift by a constant is a product or a quotient."""
    count = step.constant(1, "the shift")
    dtype = step.dtype()
    if count is None or np.any(count.astype(np.int64) >= dtype.itemsize * 8):
        step.refuse(say("it shifts by more than the width", "移位超过位宽"))
    powers = np.left_shift(np.ones_like(count), count)
    step.finish(step.op("Mul" if step.attr("direction") == "LEFT" else "Div", step.needed(0), step.const(powers, name="powers")))
    return True


@lowers(28, "Mod")
def _mod_of_floats(step: Step) -> bool:
    """Before 28 fmod 0 was for integers and 1 for floats."""
    real, truncated = is_float(step.dtype()), step.attr("fmod", 0) == 1
    if real == truncated:
        return False
    if not real:
        step.finish(_truncated_remainder(step))
        return True
    data, divisor = step.needed(0), step.needed(1)
    rest = step.op("Mod", data, divisor, fmod=1)
    zero = step.like(0)
    opposite = step.op("Xor", step.op("Less", rest, zero), step.op("Less", divisor, zero))
    nonzero = step.op("Not", step.op("Equal", rest, zero))
    moved = step.op("Where", step.op("And", opposite, nonzero), step.op("Add", rest, divisor), rest)
    signed_zero = step.op("Mul", step.op("Sign", divisor), zero)
    step.finish(step.op("Where", nonzero, moved, signed_zero))
    return True


def _truncated_remainder(step: Step) -> ir.Value:
    """The remainder with the sign of the dividend: a - (a / b) * b, as Div of integers truncates."""
    data, divisor = step.needed(0), step.needed(1)
    return step.op("Sub", data, step.op("Mul", step.op("Div", data, divisor), divisor))


@lowers(10, "Mod")
def _mod_by_division(step: Step) -> bool:
    if is_float(step.dtype()):
        step.refuse(say("the remainder of floats is not exact by division", "浮点取余无法用除法精确表示"))
    rest = _truncated_remainder(step)
    if step.attr("fmod", 0) == 0 and not step.dtype().name.startswith("U"):
        divisor = step.needed(1)
        again = step.op("Add", rest, divisor)
        rest = step.op("Sub", again, step.op("Mul", step.op("Div", again, divisor), divisor))
    step.finish(rest)
    return True


@lowers(11, "Round")
def _round(step: Step) -> bool:
    step.finish(half_to_even(step, step.needed(0)))
    return True


@lowers(26, "BitCast")
def _bit_cast(step: Step) -> bool:
    """Between integers of one width the bits are what Cast keeps; a boolean is a byte of 0 or 1."""
    before, after = step.dtype(), ir.DataType(step.attr("to"))
    integer = all(kind.name.startswith(("INT", "UINT")) for kind in (before, after))
    same = (integer and before.itemsize == after.itemsize) or (before, after) == (ir.DataType.BOOL, ir.DataType.UINT8)
    if before != after and not same:
        step.refuse(
            say(
                "the bits of {before} as {after} cannot be had by arithmetic",
                "{before} 的比特无法通过算术得到 {after}",
                before=before.name.lower(),
                after=after.name.lower(),
            )
        )
    step.finish(step.op("Identity", step.needed(0)) if before == after else step.cast(step.needed(0), after))
    return True
