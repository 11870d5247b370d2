"""Exact integer expressions over dimensions whose size is not known yet.

An element is an ``int`` or an :class:`Expr`: a polynomial with integer coefficients over atoms. An atom is a symbol (the size of one
dimension) or an operation that a polynomial cannot say (floor division, maximum, broadcasting...). Expressions are canonical: two that
were made in different ways and are found equal have the same terms, so that ``==`` compares structure. Unequal terms prove nothing.

What is assumed of the sizes: each is at least 0 (at least 1 only where the symbol says so) and below 2**31, and shape arithmetic over
symbols does not overflow its integer type. Coefficients of 2**31 and more, with which it easily could, are given up (``Unknowable``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Union

import numpy as np

MAX_DIMENSION = 2**31 - 1
"""The largest size a dimension is assumed to have."""

_MAX_TERMS = 48
_MAX_DEGREE = 12
_MAX_KEY = 4000

Element = Union[int, "Expr"]


class Unknowable(Exception):  # noqa: N818 - not an error: the value is simply not known before the model runs
    """What was asked for cannot be said exactly."""


class Atom:
    """A symbol (``kind`` "symbol", named by ``key``) or an operation on elements; equal when the keys are."""

    __slots__ = ("arguments", "high", "key", "kind", "low")

    def __init__(self, kind: str, key: str, arguments: tuple[Element, ...], low: float, high: float) -> None:
        if len(key) > _MAX_KEY:
            raise Unknowable("an expression grew too long")
        self.kind, self.key, self.arguments, self.low, self.high = kind, key, arguments, low, high

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


Monomial = tuple[Atom, ...]
Terms = dict[Monomial, int]


class Expr:
    """A polynomial that is not constant (constants are plain ``int``). Immutable; made by :func:`symbol` and arithmetic."""

    __slots__ = ("_bounds", "_hash", "_key", "terms")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._key: str | None = None
        self._hash: int | None = None
        self._bounds: tuple[float, float] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Expr) and self.terms == other.terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __add__(self, other: Element) -> Element:
        terms = dict(self.terms)
        for monomial, factor in terms_of(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return made(terms)

    __radd__ = __add__

    def __neg__(self) -> Element:
        return Expr({monomial: -factor for monomial, factor in self.terms.items()})

    def __sub__(self, other: Element) -> Element:
        return self + (-other)

    def __rsub__(self, other: Element) -> Element:
        return (-self) + other

    def __mul__(self, other: Element) -> Element:
        if isinstance(other, int):
            return made({monomial: factor * other for monomial, factor in self.terms.items()})
        terms: Terms = {}
        for left, first in self.terms.items():
            for right, second in other.terms.items():
                monomial = tuple(sorted(left + right, key=_atom_key))
                terms[monomial] = terms.get(monomial, 0) + first * second
        return made(terms)

    __rmul__ = __mul__

    @property
    def key(self) -> str:
        """The expression as text; equal texts are equal expressions."""
        if self._key is None:
            parts = sorted((tuple(atom.key for atom in monomial), factor) for monomial, factor in self.terms.items())
            self._key = " + ".join("*".join(([str(factor)] if factor != 1 or not names else []) + list(names)) for names, factor in parts)
        return self._key

    def __repr__(self) -> str:
        return self.key

    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value it can have (an infinity where none is known)."""
        if self._bounds is None:
            self._bounds = _bounds(self.terms)
        return self._bounds

    def symbols(self) -> set[str]:
        """Names of the symbols in it, at any depth."""
        names: set[str] = set()
        for monomial in self.terms:
            for atom in monomial:
                if atom.kind == "symbol":
                    names.add(atom.key)
                for argument in atom.arguments:
                    if isinstance(argument, Expr):
                        names |= argument.symbols()
        return names

    def evaluate(self, sizes: Mapping[str, int]) -> int | None:
        """Its value when the symbols have these sizes; None when one is missing or the model itself would divide by zero."""
        return evaluate(self, sizes)


def symbol(name: str, low: int = 0, high: float = MAX_DIMENSION) -> Expr:
    """The size of a dimension, from ``low`` to ``high``."""
    return Expr({(Atom("symbol", name, (), low, high),): 1})


def text_of(element: Element) -> str:
    return str(element) if isinstance(element, int) else element.key


def bounds(element: Element) -> tuple[float, float]:
    """The least and the greatest value of an element."""
    return (element, element) if isinstance(element, int) else element.bounds()


def product(elements: Iterable[Element]) -> Element:
    total: Element = 1
    for element in elements:
        total = total * element
    return total


def _atom_key(atom: Atom) -> str:
    return atom.key


def terms_of(element: Element) -> Terms:
    return element.terms if isinstance(element, Expr) else {(): int(element)}


def made(terms: Terms) -> Element:
    terms = {monomial: factor for monomial, factor in terms.items() if factor}
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    if len(terms) > _MAX_TERMS or max(map(len, terms)) > _MAX_DEGREE or max(map(abs, terms.values())) > MAX_DIMENSION:
        raise Unknowable("an expression grew too large")
    return Expr(terms)


def _times(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    corners = [0 if 0 in (a, b) else a * b for a in left for b in right]  # 0 * infinity is 0 here: no size is infinite
    return min(corners), max(corners)


def _range(terms: Mapping[Monomial, int | Fraction]) -> tuple[float, float]:
    low: float = 0
    high: float = 0
    for monomial, factor in terms.items():
        span: tuple[float, float] = (1, 1)
        for atom in monomial:
            span = _times(span, (atom.low, atom.high))
        # Fractions and integers stay exact; floats appear as infinities only.
        span = _times(span, (factor, factor))  # type: ignore[arg-type]
        low, high = low + span[0], high + span[1]
    return low, high


def _bounds(terms: Terms) -> tuple[float, float]:
    """Interval arithmetic, and once more with each floor(a/b) replaced by what it lies between: a/b - (b-1)/b and a/b."""
    low, high = _range(terms)
    if any(len(monomial) == 1 and monomial[0].kind == "floor" and isinstance(monomial[0].arguments[1], int) for monomial in terms):
        other_low, other_high = _range_without_floors(terms)
        low, high = max(low, other_low), min(high, other_high)
    return (math.ceil(low) if abs(low) != math.inf else low), (math.floor(high) if abs(high) != math.inf else high)


def _range_without_floors(terms: Terms) -> tuple[float, float]:
    linear: dict[Monomial, int | Fraction] = {}
    slack_low = slack_high = Fraction(0)
    for monomial, factor in terms.items():
        atom = monomial[0] if len(monomial) == 1 else None
        divisor = atom.arguments[1] if atom is not None and atom.kind == "floor" else None
        if atom is None or not isinstance(divisor, int):
            linear[monomial] = linear.get(monomial, 0) + factor
            continue
        scale = Fraction(factor, divisor)
        for inner, inner_factor in terms_of(atom.arguments[0]).items():
            linear[inner] = linear.get(inner, 0) + scale * inner_factor
        slack_low += min(-scale * (divisor - 1), Fraction(0))
        slack_high += max(-scale * (divisor - 1), Fraction(0))
    low, high = _range(linear)
    return low + slack_low, high + slack_high


def operation(kind: str, arguments: tuple[Element, ...], low: float, high: float) -> Expr:
    key = f"{kind}({', '.join(text_of(argument) for argument in arguments)})"
    return Expr({(Atom(kind, key, arguments, low, high),): 1})


# ---- values ---------------------------------------------------------------------------------------------------------------------------


def evaluate(element: Element, sizes: Mapping[str, int]) -> int | None:
    """See :meth:`Expr.evaluate`."""
    try:
        return _value(element, sizes, {})
    except (KeyError, Unknowable):
        return None


def _value(element: Element, sizes: Mapping[str, int], memo: dict[str, int]) -> int:
    if isinstance(element, int):
        return element
    total = 0
    for monomial, factor in element.terms.items():
        for atom in monomial:
            factor *= _atom_value(atom, sizes, memo)
        total += factor
    return total


def _atom_value(atom: Atom, sizes: Mapping[str, int], memo: dict[str, int]) -> int:
    if atom.kind == "symbol":
        return sizes[atom.key]
    if atom.key not in memo:
        first, *rest = (_value(argument, sizes, memo) for argument in atom.arguments)
        memo[atom.key] = _operate(atom.kind, first, *rest)
    return memo[atom.key]


def _operate(kind: str, first: int, *rest: int) -> int:
    if kind == "max":
        return max(first, *rest)
    if kind == "min":
        return min(first, *rest)
    (second,) = rest
    if kind == "broadcast":
        return second if first == 1 else first
    if kind == "nonzero_or":
        return first or second
    if kind == "scaled":
        return scale_number(first, float(np.int32(second).view(np.float32)))
    if second == 0:
        raise Unknowable("the model divides by zero")
    return first // second if kind == "floor" else truncate(first, second)


def truncate(a: int, b: int) -> int:
    """The quotient rounded towards zero; ``b`` is not 0."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def scale_number(size: int, scale: float) -> int:
    """A size times a scale as Resize computes it, in single precision."""
    return int(np.float32(size) * np.float32(scale))
