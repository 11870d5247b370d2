"""The arithmetic of int8 against its documented formulas, on every value that matters; each with an error that is noticed."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.quant.numbers import (
    BIAS_LIMIT,
    Scale,
    asymmetric,
    least_scales,
    pack_scales,
    product_scales,
    quantise_bias,
    quantise_weight,
    quantised,
    restored,
    symmetric,
    unpack_scales,
)


def by_hand(x: float, scale: Scale) -> int:
    """clip(round half to even(x * reciprocal + offset)) with the float32 product in exact decimal arithmetic."""
    product = np.float32(np.float32(x) * scale.reciprocal)
    moved = np.float32(product + np.float32(scale.offset))
    return int(min(max(Decimal(float(moved)).to_integral_value(ROUND_HALF_EVEN), Decimal(-128)), Decimal(127)))


@pytest.mark.parametrize("offset", [-128, -5, 0, 3, 127])
@pytest.mark.parametrize("scale", [0.5, 0.1, 3.0, 1 / 3])
def test_quantised_on_all_steps_and_ties(scale: float, offset: int) -> None:
    made = Scale(float(np.float32(scale)), offset)
    x = np.arange(-600, 601, dtype=np.float32) * np.float32(made.scale) / 2  # every step, every tie, and what is clipped
    found = quantised(x, made)
    assert found.tolist() == [by_hand(value, made) for value in x]
    with np.errstate(over="ignore"):
        away = np.clip(np.floor(np.abs(x * made.reciprocal) + 0.5) * np.sign(x) + offset, -128, 127).astype(np.int8)
    assert scale != 0.5 or not np.array_equal(found, away)  # half away from zero would be noticed
    assert not np.array_equal(found, np.clip(np.trunc(x * made.reciprocal) + offset, -128, 127).astype(np.int8))
    assert not np.array_equal(found, np.clip(np.rint(x * np.float32(made.scale)) + offset, -128, 127).astype(np.int8))  # no reciprocal


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e6, 1e6, width=32), st.floats(1e-6, 1e4), st.integers(-128, 127))
def test_quantised_at_random(x: float, scale: float, offset: int) -> None:
    made = Scale(float(np.float32(scale)), offset)
    assert int(quantised(np.float32(x), made)) == by_hand(x, made)


def test_every_integer_comes_back() -> None:
    every = np.arange(-128, 128).astype(np.int8)
    for scale in (Scale(0.1), Scale(7.3, -128), Scale(1e-5, 127), Scale(1e20, 3)):
        assert np.array_equal(quantised(restored(every, scale), scale), every)


def test_infinity_is_clipped_and_nan_is_zero() -> None:
    assert quantised(np.array([np.inf, -np.inf, np.nan], np.float32), Scale(1.0)).tolist() == [127, -128, 0]


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_ranges_hold_zero_and_both_ends(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    for scale in (asymmetric(low, high), symmetric(low, high)):
        zero = restored(quantised(np.zeros(1), scale), scale)
        assert zero == 0.0
        assert scale.low <= low + scale.scale / 2 + 1e-9 and scale.high >= high - scale.scale / 2 - abs(high) * 1e-6 - 1e-9
    assert symmetric(low, high).offset == 0


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("search", [False, True])
def test_weights_are_rounded_to_the_nearest(axis: int | None, search: bool, random: np.random.Generator) -> None:
    weight = random.standard_normal((4, 6, 40, 40)).astype(np.float32)
    weight[2] = 0
    made = quantise_weight(weight, axis, search=search)
    assert np.abs(made.data.astype(int)).max() <= 127 and made.scales.size == (1 if axis is None else weight.shape[axis])
    wide, step = made.wide(), made.scales if axis is None else made.scales.reshape([-1 if place == axis else 1 for place in range(4)])
    inside = np.abs(made.data.astype(int)) < 127
    assert (np.abs(wide - weight) <= step * 0.5001)[inside].all()
    if search:
        assert np.square(wide - weight).sum() < np.square(quantise_weight(weight, axis).wide() - weight).sum()
    else:
        assert (np.abs(wide - weight) <= step * 0.5001).all()


def test_a_bias_in_steps_of_the_sum(random: np.random.Generator) -> None:
    activation = Scale(float(np.float32(0.037)), -12)
    weight = quantise_weight(random.standard_normal((5, 3, 3, 3)).astype(np.float32), 0)
    bias = random.standard_normal(5).astype(np.float32) * 10
    steps = quantise_bias(bias, weight, activation)
    assert steps.dtype == np.int32
    assert (
        np.abs(steps * product_scales(weight, activation).astype(np.float64) - bias) <= product_scales(weight, activation) * 0.5001
    ).all()


def test_a_bias_that_would_not_fit_gets_a_wider_scale() -> None:
    activation = Scale(1e-3)
    weight = np.full((2, 1, 1, 1), 1e-12, np.float32)
    bias = np.array([5.0, 1e-9], np.float32)
    with pytest.raises(OverflowError):
        quantise_bias(bias, quantise_weight(weight, 0), activation)
    wide = quantise_weight(weight, 0, least_scales(bias, activation, 2))
    steps = quantise_bias(bias, wide, activation)
    assert abs(int(steps[0])) <= BIAS_LIMIT * 1.01
    assert steps * product_scales(wide, activation).astype(np.float64) == pytest.approx(bias, rel=1e-6)


def test_the_64_bits_of_a_scale() -> None:
    scales = np.array([1.0, 0.1, 3e-38, 1e38, 2.0**-126], np.float32)
    packed = pack_scales(scales)
    assert packed.dtype == np.uint64
    assert int(packed[0]) == 0x3F800000 and (packed >> np.uint64(32) == 0).all()
    assert np.array_equal(unpack_scales(packed), scales)
    assert not np.array_equal(pack_scales(scales * np.float32(1 + 2**-23)), packed)
    for bit in (32, 39, 47, 63):
        with pytest.raises(ValueError, match="bits above"):
            unpack_scales(packed | np.uint64(1 << bit))
