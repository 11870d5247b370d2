"""From histograms to ranges: each method by its definition, computed plainly on the elements."""

from __future__ import annotations

import numpy as np
import pytest

from jumar.child.histogram import counted
from jumar.quant.numbers import Scale, asymmetric, quantised, restored, symmetric
from jumar.quant.observe import Histogram, from_arrays, to_arrays
from jumar.quant.ranges import METHODS, SquaredError, scale_of

SHAPES = ("normal", "relu", "laplace", "swish", "uniform", "tiny", "negative")


def drawn(shape: str, random: np.random.Generator, size: int = 50_000) -> np.ndarray:
    x = random.standard_normal(size)
    found = {
        "normal": x,
        "relu": np.maximum(x, 0),
        "laplace": random.laplace(size=size),
        "swish": x / (1 + np.exp(-x)),
        "uniform": random.uniform(-1, 3, size),
        "tiny": x * 1e-4,
        "negative": -np.abs(x),
    }[shape]
    return found.astype(np.float32)


def seen(*samples: np.ndarray) -> Histogram:
    histogram = Histogram()
    for number, x in enumerate(samples):
        counts, numbers = counted(x)
        histogram.add(number, {**numbers, "size": x.size}, counts, np.zeros(0))
    return histogram


def plain_error(x: np.ndarray, scale: Scale) -> float:
    return float(np.square(restored(quantised(x, scale), scale).astype(np.float64) - x).sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_squared_error_in_closed_form(shape: str, random: np.random.Generator) -> None:
    x = drawn(shape, random)
    error = SquaredError(seen(x).bins())
    for part in (1.0, 0.7, 0.3):
        scale = asymmetric(float(x.min()) * part, float(x.max()) * part)
        assert error.of(scale) == pytest.approx(plain_error(x, scale), rel=0.03)
        assert error.of(scale) != pytest.approx(plain_error(x, Scale(scale.scale * 1.2, scale.offset)), rel=0.03)


@pytest.mark.parametrize("is_symmetric", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_least_error_is_the_least_of_all_ranges(shape: str, is_symmetric: bool, random: np.random.Generator) -> None:
    x = drawn(shape, random)
    found = plain_error(x, scale_of(seen(x), "mse", is_symmetric))
    make = symmetric if is_symmetric else asymmetric
    low, high = min(float(x.min()), 0), max(float(x.max()), 0)
    tried = min(plain_error(x, make(low * a, high * b)) for a in np.linspace(0.4, 1, 13) for b in np.linspace(0.4, 1, 13))
    assert found <= tried * 1.03
    assert found <= plain_error(x, make(low, high)) * 1.0001


@pytest.mark.parametrize("share", [99.0, 99.9, 99.99])
def test_percentile(share: float, random: np.random.Generator) -> None:
    x = drawn("laplace", random)
    scale = scale_of(seen(x), "percentile", True, share)
    assert scale.scale * 127 == pytest.approx(np.percentile(np.abs(x), share), rel=0.02)
    both = scale_of(seen(x), "percentile", False, share)
    assert (both.high, both.low) == pytest.approx((np.percentile(x, share), np.percentile(x, 100 - share)), rel=0.03)


def test_max_is_the_extremes(random: np.random.Generator) -> None:
    x = drawn("normal", random)
    assert scale_of(seen(x), "max", True).scale == pytest.approx(np.abs(x).max() / 127)
    assert scale_of(seen(x), "max", False).scale == pytest.approx((x.max() - x.min()) / 255)


def test_entropy_clips_a_long_tail_and_not_a_box(random: np.random.Generator) -> None:
    tail = np.append(drawn("normal", random), np.float32([30, -30]))
    assert scale_of(seen(tail), "entropy", True).high < 8
    box = drawn("uniform", random)
    assert scale_of(seen(box), "entropy", True).high > 2.8


def test_one_outlier_ruins_max_and_not_histogram(random: np.random.Generator) -> None:
    samples = [drawn("normal", random, 500) for _ in range(30)]
    samples[5][7] = 400
    histogram = seen(*samples)
    assert histogram.outlier == 5
    assert scale_of(histogram, "max", True).scale == pytest.approx(400 / 127)
    assert scale_of(histogram, "histogram", True).high < 6
    assert scale_of(histogram, "mse", True).high > 100  # a squared error follows the one element
    samples[9][0] = -390  # two of them are no accident
    assert seen(*samples).outlier is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.0, 2.5, -1e-3])
def test_a_constant_tensor(method: str, value: float) -> None:
    x = np.full(100, value, np.float32)
    for is_symmetric in (True, False):
        scale = scale_of(seen(x), method, is_symmetric)
        assert restored(quantised(x, scale), scale) == pytest.approx(x, rel=0.01)


def test_nothing_seen_is_a_scale_too() -> None:
    assert scale_of(Histogram(), "histogram", False) == Scale(1.0)


def test_histograms_are_stored_and_read(random: np.random.Generator) -> None:
    first = seen(drawn("normal", random), drawn("relu", random))
    first.sums, first.channel_size = np.arange(3.0), 7
    back = from_arrays(to_arrays({"a": first, "b": Histogram()}))
    assert np.array_equal(back["a"].counts, first.counts) and back["a"].peaks == first.peaks
    assert np.array_equal(back["a"].sums, first.sums) and back["a"].channel_size == 7 and back["b"].sums.size == 0
    with pytest.raises(ValueError, match="other sizes"):
        from_arrays({**to_arrays({"a": first}), "counts": np.zeros((1, 3))})
