"""The numbers of a comparison mean what their definition says."""

from __future__ import annotations

import json
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jumar.proof.metrics import RELATIVE_FLOOR, Comparison, compare, compare_all, proof_of, worst

EXACT = Comparison(0.0, 0.0, 1.0)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
ANY_FLOATS = hnp.arrays(np.float32, SHAPES, elements=st.floats(width=32, allow_nan=True, allow_infinity=True))
ANY_ARRAYS = st.one_of(
    ANY_FLOATS,
    hnp.arrays(st.sampled_from([np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.uint8), np.dtype(bool)]), SHAPES),
    hnp.arrays(object, SHAPES, elements=st.text(max_size=3)),
)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("found", "reference", "max_abs", "max_rel", "cosine"),
    [
        ((1, 2, 2), (1, 2, 4), 2.0, 0.5, (1 + 4 + 8) / (3 * math.sqrt(21))),
        ((3, 4), (4, 3), 1.0, 1 / 3, 24 / 25),
        ((1, 0), (-1, 0), 2.0, 2.0, -1.0),
        # Below a thousandth of the largest element the floor of one thousandth of it divides.
        ((1000, 0.5), (1000, 0), 0.5, 0.5, 1000 / math.hypot(1000, 0.5)),
        ((1, 1), (0, 0), 1.0, 1.0, 0.0),
        ((0, 0), (0, 0), 0.0, 0.0, 1.0),
        ((0, 0), (1, 1), 1.0, 1.0, 0.0),
    ],
)
def test_the_metrics_are_those_of_the_formula(
    found: tuple[float, ...], reference: tuple[float, ...], max_abs: float, max_rel: float, cosine: float
) -> None:
    result = compare(f32(*found), f32(*reference))
    # Tolerance: float64 arithmetic on float32 values.
    assert (result.max_abs, result.max_rel, result.cosine) == pytest.approx((max_abs, max_rel, cosine), rel=1e-12, abs=1e-12)
    assert result.reason is None


def test_the_floor_is_a_thousandth() -> None:
    assert RELATIVE_FLOOR == 1e-3


@given(array=ANY_ARRAYS)
def test_a_tensor_equals_itself(array: np.ndarray) -> None:
    copy = array.copy()
    assert compare(copy, array) == EXACT
    assert compare(copy, array).within(0.0)


@given(
    array=hnp.arrays(np.float32, hnp.array_shapes(min_side=1, max_dims=3), elements=st.floats(2**-10, 2**20, width=32)), sign=st.booleans()
)
def test_a_tensor_that_is_one_percent_off_is_seen(array: np.ndarray, sign: bool) -> None:
    reference = -array if sign else array
    result = compare(reference * np.float32(1.01), reference)
    # Tolerance: rounding of the product to float32 (6e-8 relative), and the floor which can only lower elements below the largest.
    assert result.max_rel == pytest.approx(0.01, rel=1e-4)
    assert not result.within(1e-3) and not result.within(5e-3) and result.within(0.0101)
    assert result.cosine == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("bound", [0.0, 1e-6, 1e-4, 1e-3, 5e-3])
def test_one_element_in_a_million_that_is_one_percent_off_fails_every_bound(bound: float, random: np.random.Generator) -> None:
    reference = random.standard_normal(1_000_000).astype(np.float32)
    found = reference.copy()
    place = int(np.argmax(np.abs(reference)))
    found[place] *= np.float32(1.01)
    assert compare(reference, reference).within(bound)
    assert not compare(found, reference).within(bound)
    proof = proof_of([compare(found, reference)], 1, bound)
    assert not proof.passed and proof.reason is not None and "over the bound" in str(proof.reason)


def test_a_bound_is_allowed_itself() -> None:
    result = compare(f32(1.5), f32(1.0))
    assert result.max_rel == 0.5
    assert result.within(0.5) and not result.within(0.49)


@pytest.mark.parametrize(
    ("found", "reference"),
    [
        ((math.nan, 1), (0, 1)),
        ((0, 1), (math.nan, 1)),
        ((math.inf, 1), (0, 1)),
        ((0, 1), (math.inf, 1)),
        ((math.inf, 1), (-math.inf, 1)),
        ((math.inf, 1), (math.nan, 1)),
        ((1, math.nan), (math.nan, 1)),
    ],
)
def test_nan_and_infinity_belong_in_the_same_places(found: tuple[float, ...], reference: tuple[float, ...]) -> None:
    result = compare(f32(*found), f32(*reference))
    assert result.reason is not None and "NaN or infinity" in str(result.reason)
    assert result.max_rel == 1.0 and not result.within(10.0)


def test_equal_nan_and_infinity_leave_the_rest_to_be_compared() -> None:
    reference = f32(math.nan, math.inf, -math.inf, 2)
    assert compare(reference.copy(), reference) == EXACT
    assert compare(f32(math.nan, math.inf, -math.inf, 3), reference).max_rel == 0.5
    assert compare(f32(math.nan), f32(math.nan)) == EXACT


def test_signed_zeros_are_equal() -> None:
    assert compare(f32(-0.0), f32(0.0)) == EXACT


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64, bool, ml_dtypes.int4, ml_dtypes.uint4])
def test_integers_must_be_equal(dtype: Any) -> None:
    reference = np.array([1] * 99 + [0], dtype)
    found = np.array([1] * 100, dtype)
    assert compare(reference.copy(), reference) == EXACT
    result = compare(found, reference)
    assert (result.max_abs, result.max_rel) == (1.0, 1.0)
    assert str(result.reason) == "1 of 100 integers differ" and not result.within(2.0)


def test_large_integers_that_float64_cannot_tell_apart_differ() -> None:
    assert not compare(np.array([2**60]), np.array([2**60 + 1])).within(1.0)


@pytest.mark.parametrize(
    ("found", "reference", "says"),
    [
        (np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32), "shape (2, 3) instead of (3, 2)"),
        (np.zeros(1, np.float32), np.zeros((), np.float32), "shape (1,) instead of ()"),
        (np.zeros(2, np.float32), np.zeros(2, np.float64), "dtype float32 instead of float64"),
        (np.zeros(2, np.int32), np.zeros(2, np.int64), "dtype int32 instead of int64"),
        (np.array(["a"], dtype=object), np.array(["b"], dtype=object), "strings differ"),
        ([np.zeros(1)], np.zeros(1), "sequence"),
        ([np.zeros(1)], [np.zeros(1), np.zeros(1)], "sequence"),
        (None, np.zeros(1), "sequence"),
        ([], None, "sequence"),
    ],
)
def test_what_cannot_be_compared_says_why(found: Any, reference: Any, says: str) -> None:
    result = compare(found, reference)
    assert result.max_rel == 1.0 and result.max_abs == math.inf and result.cosine == 0.0
    assert says in str(result.reason) and not result.within(1e9)


def test_sequences_are_compared_item_by_item() -> None:
    assert compare([f32(1), None, []], [f32(1), None, []]) == EXACT
    assert compare([f32(1), f32(3)], [f32(1), f32(2)]).max_rel == 0.5
    assert compare([f32(1), [f32(3)]], [f32(1), [f32(2)]]).max_rel == 0.5


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_compared_as_numbers(dtype: Any) -> None:
    result = compare(np.array([1.5, 1.0], dtype), np.array([1.0, 1.0], dtype))
    assert (result.max_abs, result.max_rel, result.reason) == (0.5, 0.5, None)


def test_numbers_at_the_limits_of_float64_are_compared_without_a_warning() -> None:
    largest = np.finfo(np.float64).max
    result = compare(np.array([largest]), np.array([-largest]))
    assert result.max_abs == math.inf and not result.within(1e300)
    assert result.cosine == pytest.approx(-1.0)
    tiny = np.finfo(np.float64).smallest_subnormal
    assert not compare(np.array([2 * tiny]), np.array([tiny])).within(0.5)


def test_the_worst_of_several_counts() -> None:
    one, other = Comparison(1.0, 0.5, 0.9), Comparison(2.0, 0.25, 0.8)
    assert worst([one, other]) == worst([other, one]) == Comparison(2.0, 0.5, 0.8)
    assert worst([]) == EXACT


def test_outputs_are_compared_by_name_and_a_missing_one_differs() -> None:
    result = compare_all({"a": f32(1), "c": f32(9)}, {"a": f32(1), "b": f32(2)})
    assert list(result) == ["a", "b"]
    assert result["a"] == EXACT
    assert "output `b` is missing" in str(result["b"].reason)


def test_a_proof_judges_the_worst_output() -> None:
    good, bad = Comparison(0.0, 1e-4, 1.0), Comparison(3.0, 1e-2, 0.9)
    assert proof_of([good, good], 2, 1e-3).passed
    proof = proof_of([good, bad], 2, 1e-3)
    assert not proof.passed
    assert (proof.cases, proof.max_abs, proof.max_rel, proof.cosine, proof.bound) == (2, 3.0, 1e-2, 0.9, 1e-3)
    assert str(proof.reason) == "max_rel 0.01 is over the bound 0.001"


def test_nothing_compared_proves_nothing() -> None:
    proof = proof_of([], 0, 1.0)
    assert not proof.passed and "nothing could be compared" in str(proof.reason)


@pytest.mark.parametrize("pair", [(f32(1), f32(1, 2)), (np.array([1.7e308]), np.array([-1.7e308])), (f32(1), f32(math.nan))])
def test_a_proof_is_strict_json(pair: tuple[np.ndarray, np.ndarray]) -> None:
    proof = proof_of([compare(*pair)], 1, 1e-3)
    assert not proof.passed
    json.dumps(proof.to_dict(), allow_nan=False)
