"""What is known of the values of a tensor: one interval for all elements, or one for each of a few."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Number = int | float
Cells = npt.NDArray[Any]
"""An :class:`Interval` for each element of a small tensor, in the tensor's shape."""

SMALL = 64
"""Elements up to which a tensor has an interval for each (shapes, sizes, axes, the parameters of a Slice)."""

LARGEST_EXTENT = 2**31 - 1
"""The largest size of an axis. What a model does not say of an axis lies between 0 and this; ``--shape`` takes no larger size."""

_INTEGERS = {
    ir.DataType.INT64: (-(2**63), 2**63 - 1),
    ir.DataType.INT32: (-(2**31), 2**31 - 1),
    ir.DataType.INT16: (-(2**15), 2**15 - 1),
    ir.DataType.INT8: (-128, 127),
    ir.DataType.INT4: (-8, 7),
    ir.DataType.UINT64: (0, 2**64 - 1),
    ir.DataType.UINT32: (0, 2**32 - 1),
    ir.DataType.UINT16: (0, 2**16 - 1),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.UINT4: (0, 15),
    ir.DataType.BOOL: (0, 1),
}
# Relative error of one operation, generously: several units in the last place, so that a fused or reordered sum is still inside.
_FLOATS = {ir.DataType.DOUBLE: 2.0**-48, ir.DataType.FLOAT: 2.0**-20, ir.DataType.FLOAT16: 2.0**-8, ir.DataType.BFLOAT16: 2.0**-5}
_OVERFLOW = {ir.DataType.DOUBLE: math.inf, ir.DataType.FLOAT: 3.4e38, ir.DataType.FLOAT16: 65504.0, ir.DataType.BFLOAT16: 3.3e38}
_TINY = {ir.DataType.DOUBLE: 1e-300, ir.DataType.FLOAT: 1e-37, ir.DataType.FLOAT16: 1e-4, ir.DataType.BFLOAT16: 1e-37}


@dataclass(frozen=True, slots=True)
class Interval:
    """Every element lies between ``lo`` and ``hi``, both included.

    Attributes:
        lo, hi: exact Python integers for integer and boolean tensors; floats for float tensors, infinite where nothing is known.
        nan: whether an element may be NaN besides (floats only).
    """

    lo: Number
    hi: Number
    nan: bool = False

    def __str__(self) -> str:
        return f"{self.lo} to {self.hi}" + (" or NaN" if self.nan else "")

    def within(self, lo: Number, hi: Number) -> bool:
        """Whether all values lie between ``lo`` and ``hi``."""
        return not self.nan and lo <= self.lo and self.hi <= hi

    def fits(self, dtype: ir.DataType) -> bool:
        """Whether an integer type holds all values."""
        return dtype in _INTEGERS and self.within(*_INTEGERS[dtype])

    @property
    def is_point(self) -> bool:
        """Whether there is only one possible value."""
        return self.lo == self.hi and not self.nan

    def join(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi), self.nan or other.nan)


Known = Interval | Cells
"""One interval for all elements, or one for each."""

UNKNOWN = Interval(-math.inf, math.inf, True)


def is_integer(dtype: ir.DataType | None) -> bool:
    """Whether values of this type are integers (or booleans, as 0 and 1)."""
    return dtype in _INTEGERS


def whole(dtype: ir.DataType | None) -> Interval:
    """All that the type holds."""
    return Interval(*_INTEGERS[dtype]) if dtype in _INTEGERS else UNKNOWN


def hull(known: Known | Iterable[Interval]) -> Interval:
    """One interval for all elements. A tensor without elements has no value at all: the interval of 0."""
    if isinstance(known, Interval):
        return known
    cells = list(known.flat) if isinstance(known, np.ndarray) else list(known)
    if not cells:
        return Interval(0, 0)
    return Interval(min(cell.lo for cell in cells), max(cell.hi for cell in cells), any(cell.nan for cell in cells))


def cells_of(items: Iterable[Interval], shape: tuple[int, ...]) -> Cells:
    """An array of intervals in the given shape."""
    flat = list(items)
    array = np.empty(len(flat), dtype=object)
    for index, item in enumerate(flat):
        array[index] = item
    return array.reshape(shape)


def settled(known: Known | None, dtype: ir.DataType | None) -> Known:
    """What remains of computed bounds in the tensor's own type: an integer that may leave the type may be anything (it wraps around)."""
    if known is None:
        return whole(dtype)
    if isinstance(known, np.ndarray):
        return cells_of((_settled(cell, dtype) for cell in known.flat), known.shape)
    return _settled(known, dtype)


def _settled(interval: Interval, dtype: ir.DataType | None) -> Interval:
    if dtype in _INTEGERS:
        return interval if interval.fits(dtype) else Interval(*_INTEGERS[dtype])
    if dtype not in _FLOATS:
        return UNKNOWN
    largest, lo, hi = _OVERFLOW[dtype], interval.lo, interval.hi
    if math.isnan(lo) or math.isnan(hi):
        return UNKNOWN
    lo, hi = -math.inf if lo < -largest else lo, math.inf if hi > largest else hi
    # What may be infinite may be NaN after the next operation (infinity less infinity): that is said once, here.
    return Interval(lo, hi, interval.nan or math.isinf(lo) or math.isinf(hi))


def widened(interval: Interval, dtype: ir.DataType | None, terms: int = 1) -> Interval:
    """Room for rounding: a float result lies this far around the exact bounds after ``terms`` operations."""
    error = _FLOATS.get(dtype) if dtype is not None else None
    if error is None:
        return interval if dtype in _INTEGERS else UNKNOWN
    share, tiny = min(error * terms, 1.0), _TINY[dtype] if dtype is not None else 0.0

    def room(bound: Number) -> float:
        return 0.0 if bound == 0 and terms == 1 else abs(_as_float(bound)) * share + tiny

    return Interval(_as_float(interval.lo) - room(interval.lo), _as_float(interval.hi) + room(interval.hi), interval.nan)


def _as_float(number: Number) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def product(first: Number, second: Number) -> Number:
    """A product in which 0 times an infinite bound is 0 (an infinite bound stands for a number that is not known)."""
    return 0 if first == 0 or second == 0 else first * second


def times(first: Interval, second: Interval) -> Interval:
    """All products of one value of each."""
    ends = [product(one, other) for one in (first.lo, first.hi) for other in (second.lo, second.hi)]
    return Interval(min(ends), max(ends), first.nan or second.nan)
