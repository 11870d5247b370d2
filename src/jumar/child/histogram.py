"""Histograms of tensors whose bins are the leading bits of the numbers themselves. Made in the child, so that no tensor is sent.

A bin is a sign, an exponent and seven bits of the mantissa, so that its width is at most 1/128 of what is in it. No range has to be known
beforehand and none has to grow: histograms of the same tensor on two samples are added, in any order, with the same result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MANTISSA_BITS = 7
LEAST_EXPONENT, LARGEST_EXPONENT = -24, 24
"""Magnitudes below 2 to the first count as zero; those from 2 to the second on share the last bin, whose limit is the largest value."""
MAGNITUDES = (LARGEST_EXPONENT - LEAST_EXPONENT) << MANTISSA_BITS
BINS = 2 * MAGNITUDES + 1
"""Negative magnitudes from the largest to the smallest, zero, positive ones from the smallest to the largest."""

_BLOCK = 1 << 18
_CODES = 1 << 15
_FIRST = (127 + LEAST_EXPONENT) << MANTISSA_BITS
_LAST = _FIRST + MAGNITUDES
_INFINITE = 255 << MANTISSA_BITS


def edges() -> np.ndarray:
    """Lower limits of all positive bins, and the upper limit of the last one (float64)."""
    codes = np.arange(MAGNITUDES + 1)
    fraction = 1.0 + (codes & ((1 << MANTISSA_BITS) - 1)) / (1 << MANTISSA_BITS)
    return np.asarray(fraction * np.exp2((codes >> MANTISSA_BITS) + float(LEAST_EXPONENT)))


def counted(array: Any) -> tuple[np.ndarray, dict[str, float]]:
    """How many elements are in each bin (uint32), and the least and the largest finite value with the number of those that are not finite."""
    flat = np.ascontiguousarray(array).reshape(-1)
    table = np.zeros(2 * _CODES, np.int64)
    low, high = np.inf, -np.inf
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(np.float32, copy=False)
        table += np.bincount(block.view(np.uint32) >> (23 - MANTISSA_BITS), minlength=2 * _CODES)
        least, largest = float(block.min()), float(block.max())
        if not np.isfinite(least) or not np.isfinite(largest):
            finite = block[np.isfinite(block)]
            least, largest = (float(finite.min()), float(finite.max())) if finite.size else (np.inf, -np.inf)
        low, high = min(low, least), max(high, largest)
    positive, negative = table[:_CODES], table[_CODES:]
    odd = int(positive[_INFINITE:].sum() + negative[_INFINITE:].sum())
    counts = np.empty(BINS, np.uint32)
    counts[:MAGNITUDES] = _window(negative)[::-1]
    counts[MAGNITUDES] = positive[:_FIRST].sum() + negative[:_FIRST].sum()
    counts[MAGNITUDES + 1 :] = _window(positive)
    return counts, {"low": low if low <= high else 0.0, "high": high if low <= high else 0.0, "odd": odd}


def _window(half: np.ndarray) -> np.ndarray:
    window = half[_FIRST:_LAST].copy()
    window[-1] += half[_LAST:_INFINITE].sum()
    return window


def channel_sums(array: Any, axis: int) -> np.ndarray:
    """Sum of each channel in float64."""
    moved = np.moveaxis(array, axis, 0)
    return np.asarray(moved.reshape(moved.shape[0], -1).sum(axis=1, dtype=np.float64))
