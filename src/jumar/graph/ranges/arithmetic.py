"""Operators that compute each element from the elements at its place."""

from __future__ import annotations

import math
from functools import reduce

import onnx_ir as ir

from .interval import UNKNOWN, Interval, Known, Number, hull, is_integer, product, times, whole, widened
from .view import View, elementwise, transfer

EXACT = 2**53
"""Integers up to here are exact in a double, in which ONNX Runtime computes some operators on integers."""


def _rounded(view: View, interval: Interval) -> Interval:
    """The result of one operation in the type of the output. (An operand that may be infinite may be NaN as well: so is the result.)"""
    if any(math.isnan(bound) for bound in (interval.lo, interval.hi)):
        return view.whole()
    return widened(interval, view.result_dtype())


@transfer("Add", "Sum")
def add(view: View) -> Known:
    def combine(*items: Interval) -> Interval:
        total = items[0]
        for item in items[1:]:
            total = _rounded(view, Interval(total.lo + item.lo, total.hi + item.hi, total.nan or item.nan))
        return total

    return elementwise(view, combine)


@transfer("Sub")
def subtract(view: View) -> Known:
    return elementwise(view, lambda one, other: _rounded(view, Interval(one.lo - other.hi, one.hi - other.lo, one.nan or other.nan)))


@transfer("Mul")
def multiply(view: View) -> Known:
    return elementwise(view, lambda one, other: _rounded(view, times(one, other)))


def _towards_zero(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


@transfer("Div")
def divide(view: View) -> Known:
    def combine(one: Interval, other: Interval) -> Interval:
        if other.lo <= 0 <= other.hi:  # what a division of an integer by zero gives is not defined
            return view.whole()
        if is_integer(view.result_dtype()):
            ends = [_towards_zero(int(dividend), int(divisor)) for dividend in (one.lo, one.hi) for divisor in (other.lo, other.hi)]
            return Interval(min(ends), max(ends))
        if not all(map(math.isfinite, (one.lo, one.hi, other.lo, other.hi))):
            return UNKNOWN
        quotients = [float(dividend) / float(divisor) for dividend in (one.lo, one.hi) for divisor in (other.lo, other.hi)]
        return widened(Interval(min(quotients), max(quotients), one.nan or other.nan), view.result_dtype())

    return elementwise(view, combine)


@transfer("Mod")
def modulo(view: View) -> Known:
    like_c = view.integer("fmod", 0) == 1

    def combine(one: Interval, other: Interval) -> Interval:
        if other.lo <= 0 <= other.hi or not is_integer(view.result_dtype()):
            return view.whole()
        most = max(abs(int(other.lo)), abs(int(other.hi))) - 1
        if like_c:  # the sign of the dividend
            return Interval(max(-most, min(one.lo, 0)), min(most, max(one.hi, 0)))
        if other.lo > 0:
            return one if one.lo >= 0 and one.hi < other.lo else Interval(0, min(most, one.hi) if one.lo >= 0 else most)
        return Interval(-most, 0)

    return elementwise(view, combine)


@transfer("Neg")
def negate(view: View) -> Known:
    return elementwise(view, lambda one: Interval(-one.hi, -one.lo, one.nan))


def magnitude(one: Interval) -> Interval:
    """Of absolute values."""
    ends = (abs(one.lo), abs(one.hi))
    return Interval(0 if one.lo <= 0 <= one.hi else min(ends), max(ends), one.nan)


@transfer("Abs")
def absolute(view: View) -> Known:
    return elementwise(view, magnitude)


@transfer("Sign")
def sign(view: View) -> Known:
    return elementwise(view, lambda one: Interval((one.lo > 0) - (one.lo < 0), (one.hi > 0) - (one.hi < 0), one.nan))


@transfer("Min")
def minimum(view: View) -> Known:
    return elementwise(
        view, lambda *items: Interval(min(item.lo for item in items), min(item.hi for item in items), any(item.nan for item in items))
    )


@transfer("Max")
def maximum(view: View) -> Known:
    return elementwise(
        view, lambda *items: Interval(max(item.lo for item in items), max(item.hi for item in items), any(item.nan for item in items))
    )


@transfer("Clip")
def clip(view: View) -> Known:
    def bound(index: int, name: str, default: Number) -> Interval:
        if view.present(index):
            return view.hull(index)
        attribute = view.node.attributes.get(name)
        number = attribute.as_float() if attribute is not None and attribute.type == ir.AttributeType.FLOAT else default
        return Interval(number, number)

    # Bounds of a Clip that are NaN are not defined: then nothing is known.
    low, high = bound(1, "min", -math.inf), bound(2, "max", math.inf)
    if low.nan or high.nan:
        return view.whole()
    operands = [known for known in view.inputs[:1] if known is not None]
    return elementwise(view, lambda one: Interval(min(max(one.lo, low.lo), high.lo), min(max(one.hi, low.hi), high.hi), one.nan), operands)


@transfer("Relu")
def relu(view: View) -> Known:
    return elementwise(view, lambda one: Interval(max(one.lo, 0), max(one.hi, 0), one.nan))


@transfer("Floor")
def floor(view: View) -> Known:
    return elementwise(view, lambda one: Interval(_step(math.floor, one.lo), _step(math.floor, one.hi), one.nan))


@transfer("Ceil")
def ceil(view: View) -> Known:
    return elementwise(view, lambda one: Interval(_step(math.ceil, one.lo), _step(math.ceil, one.hi), one.nan))


@transfer("Round")
def nearest(view: View) -> Known:
    return elementwise(view, lambda one: Interval(_step(round, one.lo), _step(round, one.hi), one.nan))


def _step(function: object, bound: Number) -> Number:
    return bound if math.isinf(bound) else float(function(bound))  # type: ignore[operator]


@transfer("Sigmoid", "HardSigmoid", "Softmax", "Hardmax")
def share(_view: View) -> Known:
    return Interval(0.0, 1.0 + 2.0**-8, True)


@transfer("Tanh", "Sin", "Cos", "Erf", "Softsign")
def sine(_view: View) -> Known:
    return Interval(-1.0 - 2.0**-8, 1.0 + 2.0**-8, True)


@transfer("Sqrt")
def square_root(view: View) -> Known:
    def combine(one: Interval) -> Interval:
        if one.lo < 0:
            return Interval(0.0, math.inf, True)
        return widened(Interval(math.sqrt(one.lo), math.sqrt(one.hi), one.nan), view.result_dtype())

    return elementwise(view, combine)


@transfer("Pow")
def power(view: View) -> Known:
    def combine(base: Interval, exponent: Interval) -> Interval:
        whole_numbers = is_integer(view.dtype(0)) and not exponent.nan and exponent.lo == exponent.hi and float(exponent.lo).is_integer()
        if not whole_numbers or not 0 <= exponent.lo <= 63:
            return view.whole()
        count = int(exponent.lo)
        ends = [int(base.lo) ** count, int(base.hi) ** count]
        if count % 2 == 0 and base.lo < 0 < base.hi and count:
            ends.append(0)
        # It is computed in floating point: beyond what that holds exactly the result may be off, or saturate.
        return Interval(min(ends), max(ends)) if max(map(abs, ends)) < EXACT else view.whole()

    return elementwise(view, combine)


@transfer("Where")
def where(view: View) -> Known:
    def combine(condition: Interval, yes: Interval, no: Interval) -> Interval:
        return yes if condition.lo == 1 else no if condition.hi == 0 else yes.join(no)

    return elementwise(view, combine)


@transfer("BitShift")
def shift(view: View) -> Known:
    attribute = view.node.attributes.get("direction")
    left = attribute is not None and attribute.as_string() == "LEFT"

    def combine(one: Interval, count: Interval) -> Interval:
        if not 0 <= count.lo <= count.hi < int(whole(view.result_dtype()).hi).bit_length() or one.lo < 0:
            return view.whole()  # a shift by the width or more is not defined
        least, most = int(count.lo), int(count.hi)
        return Interval(int(one.lo) << least, int(one.hi) << most) if left else Interval(int(one.lo) >> most, int(one.hi) >> least)

    return elementwise(view, combine)


@transfer("BitwiseAnd")
def bitwise_and(view: View) -> Known:
    def combine(one: Interval, other: Interval) -> Interval:
        tops = [item.hi for item in (one, other) if item.lo >= 0]
        return Interval(0, min(tops)) if tops else view.whole()

    return elementwise(view, combine)


@transfer("BitwiseOr", "BitwiseXor")
def bitwise_or(view: View) -> Known:
    def combine(one: Interval, other: Interval) -> Interval:
        if one.lo < 0 or other.lo < 0:
            return view.whole()
        return Interval(0, (1 << max(int(one.hi).bit_length(), int(other.hi).bit_length())) - 1)

    return elementwise(view, combine)


@transfer("BitwiseNot")
def bitwise_not(view: View) -> Known:
    top = 0 if view.whole().lo < 0 else int(view.whole().hi) + 1
    return elementwise(view, lambda one: Interval(top - 1 - int(one.hi), top - 1 - int(one.lo)))


@transfer("Cast", "CastLike")
def cast(view: View) -> Known | None:
    source, wanted = view.dtype(0), view.result_dtype()
    if source is None or source == ir.DataType.STRING:
        return None

    def combine(one: Interval) -> Interval:
        if wanted == ir.DataType.BOOL:  # NaN is true
            return Interval(0, 0) if one.is_point and one.lo == 0 else Interval(1, 1) if one.lo > 0 or one.hi < 0 else Interval(0, 1)
        if is_integer(wanted):
            if is_integer(source):
                return one
            # Outside of the integer type, and of NaN, the result is not defined.
            return view.whole() if one.nan or math.isinf(one.lo) or math.isinf(one.hi) else Interval(math.trunc(one.lo), math.trunc(one.hi))
        exact = is_integer(source) and max(abs(one.lo), abs(one.hi)) <= _MANTISSA.get(wanted, 0) if wanted is not None else False
        return Interval(float(one.lo), float(one.hi)) if exact else widened(one, wanted)

    return elementwise(view, combine, [known for known in view.inputs[:1] if known is not None])


_MANTISSA = {ir.DataType.DOUBLE: 2**53, ir.DataType.FLOAT: 2**24, ir.DataType.FLOAT16: 2**11, ir.DataType.BFLOAT16: 2**8}


@transfer("Mean")
def mean(view: View) -> Known | None:
    joined = reduce(Interval.join, (hull(known) for known in view.inputs if known is not None))
    return None if is_integer(view.result_dtype()) else widened(joined, view.result_dtype(), len(view.inputs) + 1)


def scaled(one: Interval, count: Interval) -> Interval:
    """A sum of ``count`` values of an interval (a number of terms that is not known is an interval too)."""
    ends = [product(bound, times_) for bound in (one.lo, one.hi) for times_ in (count.lo, count.hi)]
    return Interval(min(ends), max(ends), one.nan)
