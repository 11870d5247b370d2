"""What is remembered of a tensor over all samples: a histogram, the extremes, and which sample was the largest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..child.histogram import BINS, MAGNITUDES, edges

OUTLIER = 8.0
"""A sample whose largest magnitude is this many times that of all others is told as an outlier."""


@dataclass
class Histogram:
    """A tensor over the samples seen so far. Its size does not depend on their number.

    Attributes:
        low, high: least and largest finite value; ``odd``: how many were not finite.
        peaks: largest magnitude of the largest sample and of the second, and the number of the largest.
        sums: of the channels, where asked for; ``channel_size``: elements of each channel.
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))
    low: float = 0.0
    high: float = 0.0
    odd: int = 0
    samples: int = 0
    peaks: tuple[float, float] = (0.0, 0.0)
    largest_sample: int = -1
    sums: np.ndarray = field(default_factory=lambda: np.zeros(0))
    channel_size: int = 0

    def add(self, sample: int, numbers: dict[str, Any], counts: np.ndarray, sums: np.ndarray) -> None:
        """Add what the child says of the tensor on one sample."""
        low, high = float(numbers["low"]), float(numbers["high"])
        self.counts += counts
        self.low, self.high = (low, high) if self.samples == 0 else (min(self.low, low), max(self.high, high))
        self.odd += int(numbers["odd"])
        self.samples += 1
        peak = max(-low, high, 0.0)
        if peak > self.peaks[0] or self.largest_sample < 0:
            self.peaks, self.largest_sample = (peak, self.peaks[0]), sample
        elif peak > self.peaks[1]:
            self.peaks = (self.peaks[0], peak)
        if sums.size:
            self.sums = sums.copy() if not self.sums.size else self.sums + sums
            self.channel_size += int(numbers["size"]) // sums.size

    @property
    def outlier(self) -> int | None:
        """The sample that alone sets the range, if there is one."""
        return self.largest_sample if self.samples > 1 and self.peaks[1] > 0 and self.peaks[0] > OUTLIER * self.peaks[1] else None

    def means(self) -> np.ndarray:
        """Mean of each channel."""
        return self.sums / max(self.channel_size, 1)

    def bins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lower and upper limits and counts of the bins that hold something, ascending; the outermost limits are the extremes."""
        held = np.flatnonzero(self.counts)
        if not held.size:
            return np.zeros(1), np.zeros(1), np.zeros(1)
        limits = edges()
        below = np.concatenate([-limits[:0:-1], [0.0], limits[:-1]])
        above = np.concatenate([-limits[-2::-1], [0.0], limits[1:]])
        lower, upper = below[held], above[held]
        # The least and the largest value lie within the outermost bins; the last bin of all is open.
        lower[0], upper[-1] = (self.low if held[0] != MAGNITUDES else 0.0), (self.high if held[-1] != MAGNITUDES else 0.0)
        return np.minimum(lower, upper), np.maximum(lower, upper), self.counts[held].astype(np.float64)


_NUMBERS = ("low", "high", "odd", "samples", "largest_sample", "channel_size")


def to_arrays(histograms: dict[str, Histogram]) -> dict[str, np.ndarray]:
    """Plain arrays, to be stored as an ``.npz``."""
    items = list(histograms.values())
    return {
        "names": np.array(list(histograms), dtype=str),
        "counts": np.stack([item.counts for item in items]) if items else np.zeros((0, BINS), np.int64),
        "numbers": np.array([[getattr(item, name) for name in _NUMBERS] + list(item.peaks) for item in items], np.float64),
        "sums": np.concatenate([item.sums for item in items]) if items else np.zeros(0),
        "sum_sizes": np.array([item.sums.size for item in items], np.int64),
    }


def from_arrays(arrays: dict[str, np.ndarray]) -> dict[str, Histogram]:
    """What :func:`to_arrays` wrote.

    Raises:
        ValueError, KeyError, IndexError: it is something else.
    """
    names, counts, numbers = arrays["names"], arrays["counts"], arrays["numbers"]
    if counts.shape != (len(names), BINS) or numbers.shape != (len(names), len(_NUMBERS) + 2):
        raise ValueError("arrays of other sizes")
    ends = np.cumsum(arrays["sum_sizes"])
    found = {}
    for index, name in enumerate(names):
        row, start = numbers[index], int(ends[index] - arrays["sum_sizes"][index])
        found[str(name)] = Histogram(
            counts=counts[index].astype(np.int64),
            low=float(row[0]),
            high=float(row[1]),
            odd=int(row[2]),
            samples=int(row[3]),
            largest_sample=int(row[4]),
            channel_size=int(row[5]),
            peaks=(float(row[6]), float(row[7])),
            sums=arrays["sums"][start : int(ends[index])].copy(),
        )
    return found
