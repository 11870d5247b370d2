"""Histograms by the leading bits of the numbers: every element in the bin it belongs to, and sums of histograms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jumar.child.histogram import BINS, MAGNITUDES, channel_sums, counted, edges


@settings(max_examples=100, deadline=None)
@given(arrays.arrays(np.float32, st.integers(0, 50), elements=st.floats(-1e6, 1e6, width=32)))
def test_every_element_is_in_its_bin(x: np.ndarray) -> None:
    counts, numbers = counted(x)
    limits = edges()
    right = np.zeros(BINS, np.int64)
    for value in x.astype(np.float64):
        place = np.searchsorted(limits, abs(value), side="right") - 1
        right[MAGNITUDES if place < 0 else MAGNITUDES + (1 + place if value > 0 else -1 - place)] += 1
    assert np.array_equal(counts, right)
    assert not np.array_equal(np.roll(counts, 1), right) or not x.size
    if x.size:
        assert (numbers["low"], numbers["high"]) == (x.min(), x.max())


def test_bins_are_at_most_one_128th_wide() -> None:
    limits = edges()
    assert (np.diff(limits) / limits[:-1]).max() <= 1 / 128
    assert limits[0] == 2.0**-24 and limits[-1] == 2.0**24


def test_parts_add_up_in_any_order(random: np.random.Generator) -> None:
    x = random.standard_normal(600_000).astype(np.float32)
    whole, one, other = (counted(part)[0].astype(np.int64) for part in (x, x[:1234], x[1234:]))
    assert np.array_equal(whole, other + one)


def test_what_is_not_finite_is_told_and_not_counted() -> None:
    counts, numbers = counted(np.array([np.nan, np.inf, -np.inf, 2.0, -1.0], np.float32))
    assert numbers == {"low": -1.0, "high": 2.0, "odd": 3}
    assert counts.sum() == 2


def test_huge_numbers_share_the_last_bins() -> None:
    counts, numbers = counted(np.array([3e38, -3e38, 2.0**24], np.float32))
    assert counts[-1] == 2 and counts[0] == 1 and numbers["odd"] == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(dtype: type) -> None:
    assert np.array_equal(counted(np.array([1.5, -2, 0], dtype))[0], counted(np.array([1.5, -2, 0], np.float32))[0])


def test_sums_of_channels(random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3, 4, 5)).astype(np.float32)
    assert np.allclose(channel_sums(x, 1), x.astype(np.float64).sum(axis=(0, 2, 3)))
