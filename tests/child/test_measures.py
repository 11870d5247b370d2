"""The one-pass measures against plain numpy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.child.measures import measured

NORMAL = 2.0**-14


def plainly(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    d = x - y
    p, q = np.abs(x) / np.abs(x).sum(), np.abs(y) / np.abs(y).sum()
    held = p > 0
    return {
        "cosine": float(x @ y / np.linalg.norm(x) / np.linalg.norm(y)),
        "centred": float(np.corrcoef(x, y)[0, 1]),
        "max_abs": float(np.abs(d).max()),
        "euclid": float(np.linalg.norm(d) / np.linalg.norm(x)),
        "rmse": float(np.sqrt((d**2).mean())),
        "mean_abs": float(np.abs(d).mean()),
        "kl": float((p[held] * np.log(p[held] / q[held])).sum()),
        "underflow": float(((x != 0) & (y == 0)).mean()),
        "subnormal": float(((y != 0) & (np.abs(y) < NORMAL)).mean()),
        "differ": float((x != y).mean()),
        "low": float(x.min()),
        "high": float(x.max()),
        "least": float(np.abs(x)[x != 0].min()),
    }


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(3, 20000), st.floats(-6, 6))
def test_numbers_equal_those_of_numpy(seed: int, size: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    a = (random.standard_normal(size) * 10**scale).astype(np.float32)
    b = (a + random.standard_normal(size) * 10**scale * 0.1).astype(np.float32)
    found = measured(a, b, NORMAL)
    for key, value in plainly(a, b).items():
        # The divergence takes logarithms in float32; the centred cosine of three elements may cancel.
        loose = 1e-6 if key in ("kl", "centred") else 0.0
        assert math.isclose(found[key], value, rel_tol=1e-5, abs_tol=loose), key


def test_zeros_and_integers() -> None:
    assert measured(np.zeros(3, np.float32), np.zeros(3, np.float32))["cosine"] == 1.0
    assert measured(np.array([1, 2, 3]), np.array([1, 2, 4])) == {"differ": 1 / 3}
    assert measured(np.zeros(0, np.float32), np.zeros(0, np.float32)) == {"differ": 0.0}
    assert measured(np.zeros(3), np.zeros(4)) == {}
    assert measured([np.zeros(3)], [np.zeros(3)]) == {}
    relu = measured(np.array([0, 0, 2], np.float32), np.array([0, 1, 2], np.float32))
    assert relu["least"] == 2.0
    assert measured(np.array([0, 5], np.float32), np.array([0, 0], np.float32))["underflow"] == 0.5


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_became_infinite_is_lost_and_counted(bad: float) -> None:
    a = np.arange(1, 5, dtype=np.float32)
    b = a.copy()
    b[1] = bad
    found = measured(a, b)
    assert found["overflow"] == 0.25
    assert found["cosine"] == 0.0
    assert all(math.isfinite(value) for value in found.values())


def test_infinity_in_both_is_no_difference() -> None:
    a = np.array([1, np.inf, -np.inf, np.nan], np.float32)
    assert measured(a, a)["differ"] == 0.0
    assert measured(a, a)["overflow"] == 0.0


def test_a_constant_offset_shows_in_the_centred_cosine() -> None:
    """Values around 2048 that lose their deviations: plain cosine is blind to it."""
    random = np.random.default_rng(0)
    a = (2048 + random.standard_normal(1000)).astype(np.float32)
    b = (2048 + random.standard_normal(1000)).astype(np.float32)
    found = measured(a, b)
    assert found["cosine"] > 0.999999
    assert abs(found["centred"]) < 0.1


def test_a_wrong_scale_shows_in_the_similarity() -> None:
    a = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    found = measured(a, a * np.float32(1.5))
    assert found["cosine"] > 0.999999
    assert found["similarity"] < 0.9


def test_deviations_that_vanish_are_a_loss() -> None:
    a = (4096 + np.random.default_rng(0).random(1000)).astype(np.float32)
    found = measured(a, np.full_like(a, 4096))
    assert found["cosine"] > 0.999999
    assert found["similarity"] == 0.0
