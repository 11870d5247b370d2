"""Bit operations by arithmetic on int32.

Kernels that divide integers may do so in float32, which is exact for numbers of up to 24 bits; larger ones are taken apart by
comparisons before anything is divided.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import unsqueeze
from ..opset.step import Step
from ..ranges import Interval
from .base import expands
from .common import INT32, sizes, within
from .reductions import halved

_EXACT = 24
"""Bits of a number that a division may be given."""


def _wide(step: Step, index: int) -> tuple[ir.Value, Interval]:
    """An operand as int32, and its range.

    Raises:
        Unconvertible: 32 bits are not known to hold it.
    """
    value = step.needed(index)
    known = step.range_of(value)
    if not known.fits(ir.DataType.INT32):
        step.refuse(say("operand {index} is not known to fit 32 bits", "操作数 {index} 不能确定可用 32 位表示", index=index))
    return step.cast(value, ir.DataType.INT32), known


def _int(step: Step, number: int) -> ir.Value:
    return step.const(number, np.int32, "number")


def _mirrored(step: Step, value: ir.Value, negative: ir.Value | None) -> ir.Value:
    """The number with the opposite bits, -1 - x, where ``negative``."""
    return value if negative is None else step.op("Where", negative, step.op("Sub", _int(step, -1), value), value)


def _sign(step: Step, value: ir.Value, known: Interval) -> ir.Value | None:
    """Whether it is negative; None if it never is."""
    return None if known.lo >= 0 else step.op("Less", value, _int(step, 0))


def _length(known: Interval) -> int:
    """Bits of the number, or of its mirror image if it is negative."""
    return max(int(known.hi), -1 - int(known.lo), 1).bit_length()


def _top_bits(step: Step, value: ir.Value, length: int) -> tuple[list[ir.Value], ir.Value]:
    """The bits above the lowest 24, from above, each true or false, and the rest of the number."""
    bits = []
    for place in range(length - 1, _EXACT - 1, -1):
        weight = _int(step, 1 << place)
        unset = step.op("Less", value, weight)
        value = step.op("Where", unset, value, step.op("Sub", value, weight))
        bits.append(step.op("Not", unset))
    return bits, value


def _shifted_right(step: Step, value: ir.Value, length: int, amount: ir.Value, places: int) -> ir.Value:
    """A number that is not negative, without its ``amount`` lowest bits. ``places``: the largest amount."""
    bits, low = _top_bits(step, value, length)
    powers = [1 << min(place, _EXACT) for place in range(places + 1)]
    result = step.op("Div", low, step.op("Gather", step.const(powers, np.int32, "powers"), amount, axis=0))
    if not bits:
        return result
    high = None
    for place, bit in enumerate(reversed(bits)):
        term = step.op("Mul", step.cast(bit, ir.DataType.INT32), _int(step, 1 << place))
        high = term if high is None else step.op("Add", high, term)
    factors = step.const([1 << max(_EXACT - place, 0) for place in range(places + 1)], np.int32, "factors")
    result = step.op("Add", result, step.op("Mul", high, step.op("Gather", factors, amount, axis=0)))
    if places <= _EXACT:
        return result
    divisors = step.const([1 << max(place - _EXACT, 0) for place in range(places + 1)], np.int32, "divisors")
    far = step.op("Greater", amount, _int(step, _EXACT))
    return step.op("Where", far, step.op("Div", high, step.op("Gather", divisors, amount, axis=0)), result)


@expands("BitShift")
def bit_shift(step: Step) -> None:
    """To the right the floor of a quotient by a power of two; to the left a product with one, of the bits that stay."""
    data, known = _wide(step, 0)
    amount, shift = _wide(step, 1)
    width = _bits(step)
    negative = _sign(step, data, known)
    # Beyond the width, and of a count that is negative, nothing is left but copies of the sign.
    last = min(width - 1, 30 if step.given("direction") == "RIGHT" else 31)
    beyond = None
    if shift.lo < 0 or shift.hi > last:
        beyond = step.op("Or", step.op("Less", amount, _int(step, 0)), step.op("Greater", amount, _int(step, last)))
        amount = step.op("Where", beyond, _int(step, 0), amount)
    places = int(min(max(shift.hi, 0), last))
    if step.given("direction") == "RIGHT":
        moved = _shifted_right(step, _mirrored(step, data, negative), _length(known), amount, places)
        result = _mirrored(step, moved, negative)
        nothing = _int(step, 0) if negative is None else step.op("Where", negative, _int(step, -1), _int(step, 0))
    else:
        result, nothing = _shifted_left(step, data, amount, places, known, negative), _int(step, 0)
    if beyond is not None:
        result = step.op("Where", beyond, nothing, result)
    step.finish(step.cast(result, step.dtype()))


def _bits(step: Step) -> int:
    return int(step.dtype().itemsize * 8)


def _shifted_left(step: Step, data: ir.Value, amount: ir.Value, places: int, known: Interval, negative: ir.Value | None) -> ir.Value:
    width = _bits(step)
    limits = np.iinfo(step.dtype().numpy())
    low, high = max(limits.min, INT32.min), min(limits.max, INT32.max)
    powers = step.const([1 << min(place, 30) for place in range(places + 1)], np.int32, "powers")
    if places <= 30 and low <= int(known.lo) << places and int(known.hi) << places <= high:
        return step.op("Mul", data, step.op("Gather", powers, amount, axis=0))
    if limits.max > INT32.max or _length(known) > _EXACT:
        step.refuse(say("bits may be shifted out of a number of more than 24 bits", "超过 24 位的数可能有比特移出"))
    # What stays below the top bit, and the top bit itself, which is the parity of the rest.
    top = width - 1
    far = step.op("Sub", _int(step, top), amount)
    rest = _mirrored(step, _shifted_right(step, _mirrored(step, data, negative), _length(known), far, top), negative)
    weights = step.const([1 << min(top - place, 30) for place in range(places + 1)], np.int32, "weights")
    below = step.op("Sub", data, step.op("Mul", rest, step.op("Gather", weights, amount, axis=0)))
    kept = step.op("Mul", below, step.op("Gather", powers, amount, axis=0))
    if places > 30:  # of a shift by all places but one the last bit stays, as the top
        kept = step.op("Where", step.op("Equal", amount, _int(step, 31)), _int(step, 0), kept)
    half = step.op("Div", rest, _int(step, 2))
    even = step.op("Equal", step.op("Sub", rest, step.op("Mul", half, _int(step, 2))), _int(step, 0))
    weight = 1 << top if limits.min == 0 else -(1 << top)
    result = step.op("Where", even, kept, step.op("Add", kept, _int(step, weight)))
    return step.op("Where", step.op("Equal", amount, _int(step, 0)), data, result) if top > 30 else result


@expands("BitwiseAnd")
def low_bits(step: Step) -> None:
    """The lowest bits are the remainder by a power of two."""
    for mask, index in ((1, 0), (0, 1)):
        constant = step.value_of(step.input(mask))
        if constant is None or constant.size == 0 or constant.min() != constant.max():
            continue
        number = int(constant.reshape(-1)[0]) + 1
        if 1 <= number <= 1 << 30 and number & (number - 1) == 0 and _same_shape(step, index):
            data, known = _wide(step, index)
            if _length(known) > _EXACT:
                step.refuse(say("a remainder of a number of more than 24 bits", "超过 24 位的数的余数"))
            step.finish(step.cast(step.op("Mod", data, _int(step, number)), step.dtype()))
            return
    step.refuse(say("it is not with a constant of low bits", "它不是与低位常量相与"))


def _same_shape(step: Step, index: int) -> bool:
    return np.broadcast_shapes(step.static(0), step.static(1)) == step.static(index)


@expands("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(step: Step) -> None:
    """On digits of base two in a new last axis; of a negative number on those of -1 - x, which are the opposite ones."""
    name = step.node.op_type
    (one, first), (other, second) = _wide(step, 0), _wide(step, 1)
    lengths = [_length(known) for known in (first, second)]
    plain = [length for length, known in zip(lengths, (first, second), strict=True) if known.lo >= 0]
    # Where one number has only zeros, so has the result of And.
    count = min(plain) if name == "BitwiseAnd" and plain else max(lengths)
    within(step, int(np.prod(np.broadcast_shapes(step.static(0), step.static(1)), dtype=np.int64)) * count, "table of bits")
    signs = [_sign(step, one, first), _sign(step, other, second)]
    digits = [_digits(step, value, sign, length, count) for value, sign, length in zip((one, other), signs, lengths, strict=True)]
    joined = _combined(step, name, digits)
    sign = _joined_sign(step, name, signs)
    if sign is not None:
        joined = step.op("Where", _column(step, sign), step.op("Sub", _int(step, 1), joined), joined)
    weighted = step.op("Mul", joined, step.const([1 << place for place in range(count)], np.int32, "powers"))
    axis = len(sizes(step, weighted)) - 1
    total = step.op("Reshape", halved(step, weighted, axis, count, "Add"), step.ints(sizes(step, weighted)[:-1], "shape"))
    step.finish(step.cast(_mirrored(step, total, sign), step.dtype()))


def _combined(step: Step, name: str, digits: list[ir.Value]) -> ir.Value:
    if name == "BitwiseXor":
        return step.op("Sub", step.op("Max", *digits), step.op("Min", *digits))
    return step.op("Mul" if name == "BitwiseAnd" else "Max", *digits)


def _joined_sign(step: Step, name: str, signs: list[ir.Value | None]) -> ir.Value | None:
    """Whether the result is negative; None if it never is."""
    given = [sign for sign in signs if sign is not None]
    if len(given) == 2:
        return step.op(name.removeprefix("Bitwise"), *given)
    return None if not given or name == "BitwiseAnd" else given[0]


def _column(step: Step, value: ir.Value) -> ir.Value:
    return unsqueeze(step, value, [len(sizes(step, value))])


def _digits(step: Step, value: ir.Value, negative: ir.Value | None, length: int, count: int) -> ir.Value:
    """The lowest ``count`` digits, 0 and 1, in base two along a new last axis."""
    bits, low = _top_bits(step, _mirrored(step, value, negative), length)
    powers = step.const([1 << place for place in range(min(count, _EXACT))], np.int32, "powers")
    shifted = step.op("Div", _column(step, low), powers)
    half = step.op("Div", shifted, _int(step, 2))
    digits = step.op("Sub", shifted, step.op("Mul", half, _int(step, 2)))
    if count > _EXACT:
        top = [_column(step, step.cast(bit, ir.DataType.INT32)) for bit in reversed(bits)][: count - _EXACT]
        missing = count - _EXACT - len(top)
        if missing:
            shape = sizes(step, digits)[:-1]
            top.append(step.const(np.zeros([*shape, missing]), np.int32, "zeros"))
        digits = step.op("Concat", digits, *top, axis=len(sizes(step, digits)) - 1)
    return digits if negative is None else step.op("Where", _column(step, negative), step.op("Sub", _int(step, 1), digits), digits)


@expands("BitwiseNot")
def bitwise_not(step: Step) -> None:
    """The complement is -1 - x for signed integers, and the largest number minus x for unsigned ones; of narrow types in int32."""
    limits = np.iinfo(step.dtype().numpy())
    top = -1 if limits.min < 0 else limits.max
    if _bits(step) < 32:
        step.finish(step.cast(step.op("Sub", _int(step, top), _wide(step, 0)[0]), step.dtype()))
        return
    step.finish(step.op("Sub", step.like(top), step.needed(0)))
