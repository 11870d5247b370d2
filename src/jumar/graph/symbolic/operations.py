"""Operations on elements that polynomials cannot say: divisions, extremes, and what broadcasting, Reshape and Resize make of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .expr import Atom, Element, Expr, Terms, Unknowable, bounds, made, operation, scale_number, terms_of, text_of, truncate

# ---- division -------------------------------------------------------------------------------------------------------------------------


def floor_div(a: Element, b: Element) -> Element:
    """Division that rounds down. Where the divisor is zero the model itself fails, so that nothing is claimed of it."""
    if b == 0:
        raise Unknowable("division by zero")
    if isinstance(b, Expr):
        exact = _quotient(a, b)
        if exact is not None:
            return exact
        if isinstance(a, int) and a == 0:
            return 0
        (low_a, high_a), (low_b, _) = bounds(a), b.bounds()
        known = low_a >= 0 and low_b >= 0
        return operation("floor", (a, b), 0 if known else -math.inf, high_a if known else math.inf)
    if isinstance(a, int):
        return a // b
    return _floor_by_number(a, b) if b > 0 else _floor_by_number(-a, -b)  # type: ignore[arg-type]


def _floor_by_number(a: Expr, b: int) -> Element:
    """Whole multiples leave the division: floor((7n + 6) / 3) = 2n + 2 + floor(n / 3)."""
    whole: Terms = {}
    rest: Terms = {}
    for monomial, factor in a.terms.items():
        count, remainder = divmod(factor, b)
        if monomial and remainder > b - remainder:  # -n stays -n, rather than 6n - 7n
            count, remainder = count + 1, remainder - b
        whole[monomial] = count
        if remainder:
            rest[monomial] = remainder
    constant = rest.pop((), 0)
    if not rest:
        return made(whole)
    shared = math.gcd(b, *rest.values())
    rest = {monomial: factor // shared for monomial, factor in rest.items()}
    constant, b = constant // shared, b // shared
    if b == 1:
        return made(whole) + made(rest) + constant
    ((monomial, factor),) = rest.items() if len(rest) == 1 else (((), 0),)
    if factor == 1 and len(monomial) == 1 and monomial[0].kind == "floor" and isinstance(monomial[0].arguments[1], int):
        inner, divisor = monomial[0].arguments  # floor((floor(x / 2) + 1) / 3) = floor((x + 2) / 6)
        assert isinstance(divisor, int)
        return made(whole) + floor_div(inner + constant * divisor, b * divisor)
    if constant:
        rest[()] = constant
    numerator = made(rest)
    low, high = bounds(numerator)
    low, high = (value if abs(value) == math.inf else int(value) // b for value in (low, high))
    if low == high:
        return made(whole) + int(low)
    return made(whole) + operation("floor", (numerator, b), low, high)


def _quotient(a: Element, b: Expr) -> Element | None:
    """``a / b`` where ``b`` divides it as a polynomial (the model fails where ``b`` is zero)."""
    if a == b:
        return 1
    if len(b.terms) != 1:
        if isinstance(a, Expr) and len(a.terms) == len(b.terms):
            first = next(iter(b.terms))
            factor = a.terms.get(first, 0) // b.terms[first]
            if factor and b * factor == a:
                return factor
        return None
    ((divisor, scale),) = b.terms.items()
    terms: Terms = {}
    for monomial, factor in terms_of(a).items():
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if factor % scale:
            return None
        terms[tuple(left)] = factor // scale
    return made(terms)


def truncated_div(a: Element, b: Element) -> Element:
    """ONNX's integer division, which rounds towards zero."""
    if b == 0:
        raise Unknowable("division by zero")
    if isinstance(a, int) and isinstance(b, int):
        return truncate(a, b)
    (low_a, high_a), (low_b, _) = bounds(a), bounds(b)
    if low_a >= 0 and low_b >= 0:
        return floor_div(a, b)
    exact = _quotient(a, b) if isinstance(b, Expr) else None
    if exact is not None:
        return exact
    if isinstance(b, int) and isinstance(a, Expr):
        if all(factor % b == 0 for factor in a.terms.values()):
            return made({monomial: factor // b for monomial, factor in a.terms.items()})
        if b > 0 and high_a <= 0:
            return -floor_div(-a, b)
        if b > 0 and low_a > -b:
            return maximum(0, floor_div(a, b))  # it differs from floor division between -b and 0 only
    return operation("trunc", (a, b), -math.inf, math.inf)


def ceil_div(a: Element, b: Element) -> Element:
    return -floor_div(-a, b)


def modulo(a: Element, b: Element, truncated: bool = False) -> Element:
    """The remainder: of floor division (sign of the divisor), or of truncated division (sign of the dividend)."""
    return a - b * (truncated_div(a, b) if truncated else floor_div(a, b))


# ---- choices --------------------------------------------------------------------------------------------------------------------------


def maximum(*elements: Element) -> Element:
    return _extreme("max", elements)


def minimum(*elements: Element) -> Element:
    return _extreme("min", elements)


def _extreme(kind: str, elements: Iterable[Element]) -> Element:
    """Flattened, without those that another one always beats."""
    flat: list[Element] = []
    for element in elements:
        atom = _only_atom(element)
        flat += atom.arguments if atom is not None and atom.kind == kind else (element,)
    kept: list[Element] = []
    for element in flat:
        if any(_beats(kind, other, element) for other in kept):
            continue
        kept = [other for other in kept if not _beats(kind, element, other)]
        kept.append(element)
    if len(kept) == 1:
        return kept[0]
    kept.sort(key=text_of)
    spans = [bounds(element) for element in kept]
    pick = max if kind == "max" else min
    return operation(kind, tuple(kept), pick(low for low, _ in spans), pick(high for _, high in spans))


def gap(a: Element, b: Element) -> tuple[float, float]:
    """The least and the greatest that ``a - b`` can be."""
    (low_a, high_a), (low_b, high_b) = bounds(a), bounds(b)
    low, high = low_a - high_b, high_a - low_b
    try:
        narrow_low, narrow_high = bounds(a - b)
    except Unknowable:
        return low, high
    return max(low, narrow_low), min(high, narrow_high)


def _beats(kind: str, a: Element, b: Element) -> bool:
    """Whether ``b`` can be left out beside ``a``."""
    low, high = gap(a, b)
    return low >= 0 if kind == "max" else high <= 0


def _only_atom(element: Element) -> Atom | None:
    if isinstance(element, int) or len(element.terms) != 1:
        return None
    ((monomial, factor),) = element.terms.items()
    return monomial[0] if factor == 1 and len(monomial) == 1 else None


def broadcast(a: Element, b: Element) -> Element:
    """The size of two dimensions broadcast together, given that they can be: equal, or one of them 1."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    for one, other in ((a, b), (b, a)):
        if isinstance(one, int):
            return one  # not 1, so that the other is 1 or the same
        if one.bounds()[0] > 1:
            return one
        atom = _only_atom(one)
        if atom is not None and atom.kind == "broadcast" and other in atom.arguments:
            return one
    first, second = sorted((a, b), key=text_of)
    spans = bounds(first), bounds(second)
    return operation("broadcast", (first, second), min(low for low, _ in spans), max(high for _, high in spans))


def nonzero_or(a: Element, b: Element) -> Element:
    """``a``, or ``b`` where ``a`` is zero (what Reshape makes of a target of zero)."""
    if a == 0 or a == b:
        return b
    if is_nonzero(a) or b == 0 or (isinstance(a, Expr) and _zero_together(a, b)):
        return a
    spans = bounds(a), bounds(b)
    return operation("nonzero_or", (a, b), min(low for low, _ in spans), max(high for _, high in spans))


def _zero_together(a: Expr, b: Element) -> bool:
    """Whether ``b`` is zero wherever ``a`` is: ``a`` is one product, all of whose factors divide ``b``."""
    if isinstance(b, int) or len(a.terms) != 1:
        return False
    factors = set(next(iter(a.terms)))
    return all(factors <= set(monomial) for monomial in b.terms)


def is_nonzero(element: Element) -> bool:
    """Whether it is certainly not zero."""
    low, high = bounds(element)
    return low > 0 or high < 0


def scaled(size: Element, scale: float) -> Element:
    """What Resize makes of a size: both are multiplied in single precision, and the fraction dropped.

    Resized dimensions are assumed to be at most 2**24, so that powers of two scale them exactly.
    """
    if isinstance(size, int):
        return scale_number(size, scale)
    mantissa, _ = math.frexp(scale)
    if mantissa == 0.5:
        return size * int(scale) if scale >= 1 else floor_div(size, int(1 / scale))
    return operation("scaled", (size, _bits(scale)), 0, math.inf)


def _bits(scale: float) -> int:
    return int(np.float32(scale).view(np.int32))
