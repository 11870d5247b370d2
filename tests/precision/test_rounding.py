"""Rounding to 16 bits against exact arithmetic, against the casts of ONNX Runtime, and over every value of each type."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator
from jumar.precision import STORAGES, Storage, rounded

BOTH = pytest.mark.parametrize("storage", STORAGES.values(), ids=list(STORAGES))


def by_hand(value: float, storage: Storage) -> float:
    """Nearest value of the type, ties to even, in exact arithmetic."""
    if not np.isfinite(value) or value == 0.0:
        return value
    exact = Fraction(value)
    exponent = int(np.floor(np.log2(abs(value))))
    while Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(exact):
        exponent += 1
    step = max(Fraction(2) ** (exponent - storage.bits + 1), Fraction(storage.subnormal))
    near = float(round(exact / step) * step)  # Python rounds halves to even
    if abs(near) > storage.largest:
        return float(np.copysign(np.inf, value))
    return float(np.copysign(near, value))


@BOTH
@given(st.floats(width=32, allow_nan=False))
def test_the_nearest_value_is_taken(storage: Storage, value: float) -> None:
    expected = np.float32(by_hand(value, storage))
    found = rounded(np.float32(value), storage)
    assert found.tobytes() == expected.tobytes()


@BOTH
def test_limits(storage: Storage) -> None:
    half_unit = storage.largest * (1 + 2.0**-storage.bits / (2 - 2.0 ** (1 - storage.bits)))
    below = np.nextafter(np.float32(half_unit), np.float32(0))
    assert rounded(below, storage) == np.float32(storage.largest)
    assert np.isinf(rounded(np.float32(half_unit), storage))
    assert rounded(storage.subnormal, storage) == np.float32(storage.subnormal)
    assert rounded(storage.subnormal / 2, storage) == 0.0, "half the smallest value goes to even, which is zero"
    assert np.isnan(rounded(np.nan, storage))


@BOTH
def test_every_value_of_the_type_stays(storage: Storage) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(storage.numpy).astype(np.float32)
    assert np.array_equal(rounded(values, storage), values, equal_nan=True)


@BOTH
def test_a_pair_of_casts_in_onnx_runtime_rounds_alike(storage: Storage) -> None:
    """The emulator rests on this: the pair is not removed, and every bit pattern rounds like here."""
    text = f"""
    <ir_version: 9, opset_import: ["" : 16]>
    pair (float[n] x) => (float[n] y) {{
        half = Cast<to = {int(storage.onnx)}>(x)
        y = Cast<to = 1>(half)
    }}
    """
    random = np.random.default_rng(0)
    bits = random.integers(0, 1 << 32, 1 << 20, dtype=np.uint64).astype(np.uint32)
    near = np.arange(1 << 16, dtype=np.uint16).view(storage.numpy).astype(np.float32).view(np.uint32)
    middle = np.concatenate([near + np.uint32(step) for step in (0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001)])
    values = np.concatenate([bits, middle]).view(np.float32)
    with Evaluator() as evaluator:
        found = evaluator.run(ir.from_onnx_text(text), {"x": values})["y"]
    expected = rounded(values, storage)
    number = ~np.isnan(expected)
    assert np.array_equal(np.isnan(found), ~number)
    assert np.array_equal(found[number].view(np.uint32), expected[number].view(np.uint32))


@settings(max_examples=20)
@given(st.integers(0, 2**16 - 1))
def test_a_wrong_rounding_is_caught(pattern: int) -> None:
    """Truncation, which this test must tell from rounding, fails it just above the middle between two values."""
    storage = STORAGES["float16"]
    value = np.array([pattern], np.uint16).view(np.float16).astype(np.float32)[0]
    if not np.isfinite(value) or abs(value) < storage.normal or abs(value) >= 60000:
        return
    above = np.nextafter(np.float32(value * (1 + 2.0**-11)), np.float32(np.copysign(np.inf, value)))
    assert rounded(above, storage) == by_hand(float(above), storage) != value
