"""From a histogram to the range that int8 shall cover: max, percentile, least squared error, or least divergence."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .numbers import INT8_HIGH, INT8_LOW, Scale, asymmetric, symmetric
from .observe import Histogram

Bins = tuple[np.ndarray, np.ndarray, np.ndarray]
Range = tuple[float, float]

PERCENTILE = 99.99
_SMALLEST = 2.0**-10
"""Ranges are sought down to this part of the largest magnitude: enough for an outlier a thousand times too large."""
_BINS, _MOST_BINS = 1024, 1 << 15
_LEVELS = 256


def scale_of(histogram: Histogram, method: str, is_symmetric: bool, percentile: float = PERCENTILE) -> Scale:
    """The scale that ``method`` (one of :data:`METHODS`) chooses."""
    make = symmetric if is_symmetric else asymmetric
    full = (min(histogram.low, 0.0), max(histogram.high, 0.0))
    if full == (0.0, 0.0):
        return Scale(1.0)
    bins = histogram.bins()
    if method == "histogram" and histogram.outlier is not None:
        # One sample of many shall not decide; a squared error would follow it.
        reach = histogram.peaks[1]
        full = (max(full[0], -reach), min(full[1], reach))
        bins = _within(bins, *full)
    if method == "max":
        return make(*full)
    if method == "percentile":
        return make(*_percentile(bins, full, percentile, is_symmetric))
    loss: Callable[[float, float], float]
    if method == "entropy":
        loss = _Divergence(bins, is_symmetric).of
    else:
        error = SquaredError(bins)

        def loss(low: float, high: float) -> float:
            return error.of(make(low, high))

    return make(*_search(full, is_symmetric, loss))


METHODS = ("histogram", "max", "mse", "entropy", "percentile")
"""``histogram``: least squared error, a sample that alone sets the range left out; ``mse``: the same with it; ``entropy``: KL divergence."""


def _within(bins: Bins, low: float, high: float) -> Bins:
    lower, upper, counts = bins
    held = (upper >= low) & (lower <= high)
    return np.maximum(lower[held], low), np.minimum(upper[held], high), counts[held]


def _percentile(bins: Bins, full: Range, percentile: float, is_symmetric: bool) -> Range:
    lower, upper, counts = bins
    share = percentile / 100
    if is_symmetric:
        reach = _quantile(*_magnitudes(bins), share)
        return (-reach, reach)
    low = _quantile(-upper[::-1], -lower[::-1], counts[::-1], share)
    return max(-low, full[0]), min(_quantile(lower, upper, counts, share), full[1])


def _magnitudes(bins: Bins) -> Bins:
    lower, upper, counts = bins
    least, largest = np.minimum(np.abs(lower), np.abs(upper)), np.maximum(np.abs(lower), np.abs(upper))
    order = np.argsort(largest, kind="stable")
    return least[order], largest[order], counts[order]


def _quantile(lower: np.ndarray, upper: np.ndarray, counts: np.ndarray, share: float) -> float:
    """The value below which a share of the elements is, taken as spread evenly within each bin."""
    total = np.cumsum(counts)
    wanted = share * total[-1]
    index = int(np.searchsorted(total, wanted))
    index = min(index, len(counts) - 1)
    inside = 1.0 - (total[index] - wanted) / counts[index]
    return float(lower[index] + (upper[index] - lower[index]) * min(max(inside, 0.0), 1.0))


class SquaredError:
    """Sum of squared errors of rounding and clipping, the elements of a bin taken as spread evenly over it.

    In closed form: with an antiderivative F of the squared error, a bin gives ``count / width * (F(upper) - F(lower))``; neighbours share a
    limit, so that the sum over all bins is one product of F at the limits with weights that do not depend on the scale.
    """

    def __init__(self, bins: Bins) -> None:
        lower, upper, counts = bins
        spread = upper > lower
        self._points, self._masses = lower[~spread], counts[~spread]
        lower, upper = lower[spread], upper[spread]
        density = counts[spread] / (upper - lower)
        self._limits, where = np.unique(np.concatenate([lower, upper]), return_inverse=True)
        self._weights = np.bincount(where, np.concatenate([-density, density]), minlength=len(self._limits))

    def of(self, scale: Scale) -> float:
        levels = np.clip(np.rint(self._points / scale.scale), *_levels(scale)) * scale.scale
        return float(self._masses @ np.square(self._points - levels) + self._weights @ _integral(self._limits, scale))


def _levels(scale: Scale) -> tuple[int, int]:
    return INT8_LOW - scale.offset, INT8_HIGH - scale.offset


def _integral(x: np.ndarray, scale: Scale) -> np.ndarray:
    """An antiderivative of the squared error at ``x``: a full step adds ``s**3 / 12``, what is clipped grows as a cube."""
    step = scale.scale
    level = np.clip(np.rint(x / step), *_levels(scale))
    rest = x - level * step
    # Beyond the ends the level stays, and the cube of the distance is what the clipped part adds.
    return np.asarray(level * step**3 / 12 + rest**3 / 3)


class _Divergence:
    """Divergence between the histogram, what is clipped in its outer bins, and the same in the steps of int8.

    Bins are 1024 to the magnitude that 99.9 % stay below, whatever the largest is, so that an outlier does not make them coarse. Merging more
    of them into a step loses more, clipping more loses more as well; the least of both is wanted.
    """

    def __init__(self, bins: Bins, is_symmetric: bool) -> None:
        self._symmetric = is_symmetric
        lower, upper, counts = bins
        inexact = (lower != 0) | (upper != 0)  # zero is a step of its own: a Relu's spike of them says nothing of the range
        bins = lower[inexact], upper[inexact], counts[inexact]
        magnitudes = _magnitudes(bins)
        lower, upper, counts = magnitudes if is_symmetric else bins
        self._width = _quantile(*magnitudes, 0.999) / _BINS
        # Masses within bins are spread evenly, so that the cumulative distribution is linear between limits; points get a little width.
        place = np.stack([lower, np.maximum(upper, np.nextafter(lower, np.inf))], axis=1).reshape(-1)
        mass = np.stack([np.zeros_like(counts), counts], axis=1).reshape(-1)
        self._place, self._mass = np.maximum.accumulate(place), np.cumsum(mass)

    def of(self, low: float, high: float) -> float:
        levels = _LEVELS // 2 if self._symmetric else _LEVELS
        if self._symmetric:
            low, high = 0.0, max(-low, high)
        if high - low > _MOST_BINS * self._width or self._width <= 0:
            return math.inf  # steps this wide lose all that is inside
        number = max(round((high - low) / self._width), levels)
        limits = np.linspace(low, high, number + 1)
        cumulative = np.interp(limits, self._place, self._mass, left=0.0, right=self._mass[-1])
        inner, total = np.diff(cumulative), self._mass[-1]
        clipped = inner.copy()
        clipped[0] += cumulative[0]
        clipped[-1] += total - cumulative[-1]
        step, held = np.arange(number) * levels // number, clipped > 0
        shares = np.bincount(step, inner, minlength=levels) / np.maximum(np.bincount(step, held, minlength=levels), 1)
        spread = np.where(held, shares[step], 0.0)
        right, found = clipped / total, spread / max(float(spread.sum()), 1e-300)
        some = right > 0
        return float((right[some] * np.log(right[some] / np.maximum(found[some], 1e-12))).sum())


def _search(full: Range, is_symmetric: bool, loss: Callable[[float, float], float]) -> Range:
    """The range with the least loss: a coarse grid of ratios, then finer ones around the best; each end in turn if they are free."""
    if is_symmetric:
        reach = max(-full[0], full[1])
        part = _best_part(lambda fraction: loss(-reach * fraction, reach * fraction))
        return -reach * part, reach * part
    low, high = full
    for _ in range(2):
        if full[1] > 0:
            high = full[1] * _best_part(lambda fraction: loss(low, full[1] * fraction))  # noqa: B023 - called at once
        if full[0] < 0:
            low = full[0] * _best_part(lambda fraction: loss(full[0] * fraction, high))  # noqa: B023
        if full[0] >= 0 or full[1] <= 0:
            break
    return low, high


def _best_part(loss: Callable[[float], float]) -> float:
    """The part of the full range with the least loss."""
    grid = np.geomspace(1.0, _SMALLEST, 21)
    for count in (9, 7):
        losses = [loss(float(fraction)) for fraction in grid]
        best = int(np.argmin(losses))
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], count)
    losses = [loss(float(fraction)) for fraction in grid]
    return float(grid[int(np.argmin(losses))])
