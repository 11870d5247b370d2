"""How far a tensor is from its reference, in one pass over blocks that stay in the cache. Runs in the child, so that no tensor is sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_BLOCK = 1 << 13
"""Elements of a block: small enough for the cache, and for BLAS not to start threads for a product."""
_TINY = np.float32(2.0**-126)
"""Added in logarithms, so that zero has one."""


_BLIND = 0.99
"""Share of the mean in the sum of squares from which on the plain cosine says nothing of the deviations."""


def measured(reference: Any, found: Any, normal: float = 0.0) -> dict[str, float]:
    """Numbers of a comparison, all finite.

    ``differ`` is the share of elements that are not equal. For floats there are also:

    - ``max_abs``, ``rmse``, ``mean_abs``, ``sqnr`` in dB, and ``euclid``: norm of the difference over that of the reference.
    - ``cosine``; ``centred``: cosine of the deviations from each mean; ``similarity``: the centred one where the plain one is blind (the
      mean is 99 % of the squares), and not above ``1 - euclid**2 / 2``, so that a wrong scale shows as well.
    - ``kl``: divergence of the magnitudes, each scaled to a sum of 1.
    - ``low``, ``high`` and ``least`` (smallest magnitude above zero) of the reference.
    - the shares ``overflow`` (infinite or NaN where the reference is not), ``underflow`` (zero where it is not) and ``subnormal``
      (magnitude below ``normal`` in what was found).

    Returns:
        Nothing where the two cannot be compared (other shape or kind, sequences, strings).
    """
    if not isinstance(reference, np.ndarray) or not isinstance(found, np.ndarray):
        return {}
    if reference.shape != found.shape or reference.dtype.kind in "OUS" or found.dtype.kind in "OUS":
        return {}
    if reference.size == 0:
        return {"differ": 0.0}
    if reference.dtype.kind in "biu":
        return {"differ": float(np.count_nonzero(reference != found)) / reference.size}
    sums = _Sums(normal)
    flat, other = reference.reshape(-1), found.reshape(-1)
    with np.errstate(all="ignore"):
        if flat.dtype != np.float32 or other.dtype != np.float32:
            flat, other = flat.astype(np.float64), other.astype(np.float64)  # float16, bfloat16, double
        for start in range(0, flat.size, _BLOCK):
            sums.add(flat[start : start + _BLOCK], other[start : start + _BLOCK])
        return sums.result()


class _Sums:
    def __init__(self, normal: float) -> None:
        self.normal = max(normal, 2.0**-149)  # zero is below it
        self.count = self.finite = 0
        self.differ = self.overflow = self.underflow = self.subnormal = 0
        self.a = self.b = self.aa = self.bb = self.ab = self.dd = self.size_a = self.size_b = self.log = self.abs = 0.0
        self.largest = 0.0
        self.low, self.high, self.least = math.inf, -math.inf, math.inf

    def add(self, reference: np.ndarray, found: np.ndarray) -> None:
        self.count += reference.size
        total, other_total = float(reference.sum()), float(found.sum())
        if not math.isfinite(total) or not math.isfinite(other_total):
            known, fine = np.isfinite(reference), np.isfinite(found)
            both = known & fine
            self.overflow += int(np.count_nonzero(known & ~fine))
            same = (reference == found) | (np.isnan(reference) & np.isnan(found))
            self.differ += int(np.count_nonzero(~same & ~both))
            self._range(np.abs(reference[known]), reference[known])
            reference, found = reference[both], found[both]
            magnitude = np.abs(reference)
        else:
            magnitude = np.abs(reference)
            self._range(magnitude, reference)
        if reference.size:
            self.finite += reference.size
            self._sum(reference, found, magnitude, np.abs(found))

    def _sum(self, reference: np.ndarray, found: np.ndarray, magnitude: np.ndarray, other: np.ndarray) -> None:
        a, b = reference.astype(np.float64), found.astype(np.float64)
        self.a, self.b = self.a + float(a.sum()), self.b + float(b.sum())
        self.aa, self.bb, self.ab = self.aa + float(a @ a), self.bb + float(b @ b), self.ab + float(a @ b)
        difference = np.subtract(a, b, out=a)
        self.differ += int(np.count_nonzero(difference != 0))
        self.dd += float(difference @ difference)
        np.abs(difference, out=difference)
        self.largest, self.abs = max(self.largest, float(difference.max())), self.abs + float(difference.sum())
        small = other < self.normal
        count = int(np.count_nonzero(small))
        if count:
            zero = other == 0
            self.subnormal += count - int(np.count_nonzero(zero))
            self.underflow += int(np.count_nonzero(zero & (magnitude > 0)))
        self.size_a, self.size_b = self.size_a + float(magnitude.sum()), self.size_b + float(other.sum())
        ratio = magnitude + _TINY
        ratio /= other + _TINY
        self.log += float(magnitude @ np.log(ratio, out=ratio))

    def _range(self, magnitude: np.ndarray, reference: np.ndarray) -> None:
        if reference.size == 0:
            return
        self.low, self.high = min(self.low, float(reference.min())), max(self.high, float(reference.max()))
        if magnitude.dtype == np.float32:
            # Magnitudes are ordered like their bits; one less makes zero the largest of all.
            least = (magnitude.view(np.uint32) - np.uint32(1)).min() + np.uint32(1)
            self.least = min(self.least, float(np.uint32(least).view(np.float32)) if least else math.inf)
        else:
            self.least = min(self.least, float(magnitude.min(where=magnitude > 0, initial=np.inf)))

    def result(self) -> dict[str, float]:
        count = self.count
        shares = {
            "differ": self.differ / count,
            "overflow": self.overflow / count,
            "underflow": self.underflow / count,
            "subnormal": self.subnormal / count,
            "low": self.low if math.isfinite(self.low) else 0.0,
            "high": self.high if math.isfinite(self.high) else 0.0,
            "least": self.least if math.isfinite(self.least) else 0.0,
        }
        if self.differ == 0:
            return shares | _EQUAL
        if self.overflow or not self.finite:
            return shares | _LOST
        n = self.finite
        one, other = (math.sqrt(max(squares - total**2 / n, 0.0)) for squares, total in ((self.aa, self.a), (self.bb, self.b)))
        cosine = _ratio(self.ab, math.sqrt(self.aa) * math.sqrt(self.bb))
        blind = self.a**2 / n > _BLIND * self.aa
        # Sums of squares that cancel leave noise: deviations below a millionth are none, and a tensor without any is not judged by them.
        centred = cosine if one <= 1e-6 * math.sqrt(self.aa) else _ratio(self.ab - self.a * self.b / n, one * other)
        if other <= 1e-7 * math.sqrt(self.bb) < one:
            centred = 0.0
        euclid = min(math.sqrt(self.dd / self.aa), _LIMIT) if self.aa else _LIMIT
        return shares | {
            "max_abs": self.largest,
            "cosine": cosine,
            "centred": centred,
            "similarity": min(centred if blind else cosine, 1.0 - min(euclid**2 / 2, 1.0)),
            "euclid": euclid,
            "kl": self._divergence(),
            "rmse": math.sqrt(self.dd / n),
            "mean_abs": self.abs / n,
            "sqnr": min(10 * math.log10(self.aa / self.dd), 999.0) if self.aa and self.dd else (-999.0 if self.dd else 999.0),
        }

    def _divergence(self) -> float:
        if not self.size_a or not self.size_b:
            return _LIMIT if self.size_a != self.size_b else 0.0
        return max(self.log / self.size_a + math.log(self.size_b / self.size_a), 0.0)


_LIMIT = 1e9
_EQUAL: dict[str, float] = {
    "max_abs": 0.0,
    "cosine": 1.0,
    "centred": 1.0,
    "similarity": 1.0,
    "euclid": 0.0,
    "kl": 0.0,
    "rmse": 0.0,
    "mean_abs": 0.0,
    "sqnr": 999.0,
}
_LOST: dict[str, float] = {
    "max_abs": _LIMIT,
    "cosine": 0.0,
    "centred": 0.0,
    "similarity": 0.0,
    "euclid": _LIMIT,
    "kl": _LIMIT,
    "rmse": _LIMIT,
    "mean_abs": _LIMIT,
    "sqnr": -999.0,
}


def _ratio(top: float, bottom: float) -> float:
    return max(-1.0, min(1.0, top / bottom)) if bottom else 0.0
