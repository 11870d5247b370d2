"""Metrics of outputs against what they are by definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.errors import UsageError
from jumar.precision.metrics import METRICS, edit_distance, make_goal, segment_overlap, text_agreement, top_agreement

WORDS = st.lists(st.integers(0, 3), max_size=7)


def slow_distance(one: list[int], other: list[int]) -> int:
    if not one or not other:
        return len(one) + len(other)
    return min(
        slow_distance(one[1:], other) + 1, slow_distance(one, other[1:]) + 1, slow_distance(one[1:], other[1:]) + (one[0] != other[0])
    )


@settings(deadline=None)
@given(WORDS, WORDS)
def test_edit_distance(one: list[int], other: list[int]) -> None:
    assert edit_distance(one, other) == slow_distance(one, other)


def test_top_agreement_takes_ties_for_either() -> None:
    right = np.array([[3.0, 3.0, 1.0], [1.0, 2.0, 3.0]])
    assert top_agreement(right, np.array([[2.9, 3.0, 1.0], [1.0, 2.0, 3.0]]), 1) == 1.0
    assert top_agreement(right, np.array([[2.9, 3.0, 4.0], [1.0, 2.0, 3.0]]), 1) == 0.5
    assert top_agreement(right, right[:, ::-1].copy(), 3) == 1.0


def test_segments_and_texts() -> None:
    scores = np.zeros((1, 2, 2, 2))
    scores[0, 1, 0] = 1
    other = scores.copy()
    other[0, 1, 0, 0] = -1
    assert segment_overlap(scores, scores) == 1.0
    assert segment_overlap(scores, other) == pytest.approx((2 / 3 + 1 / 2) / 2)
    steps = np.eye(4)[[1, 1, 0, 2, 3]][None]
    assert text_agreement(steps, steps) == 1.0
    assert text_agreement(steps, np.eye(4)[[1, 1, 0, 2, 2]][None]) == pytest.approx(2 / 3)


def test_goals() -> None:
    right, device = (
        [{"z": np.array([1.0, 2.0], np.float32), "n": np.array([1])}],
        [{"z": np.array([1.0, 2.1], np.float32), "n": np.array([2])}],
    )
    goal = make_goal("max_abs", 0.05)
    assert goal.values(right, device) == {"z": pytest.approx(0.1, abs=1e-6)}
    assert goal.missed(goal.values(right, device)) == ["z"]
    assert not make_goal("max_abs", 0.2).missed(goal.values(right, device))
    own = make_goal(lambda one, other: -float(np.abs(one["n"] - other["n"]).max()), -0.5)
    assert own.values(right, device) == {"-": -1.0}
    assert own.missed({"-": -1.0}) == ["-"]
    with pytest.raises(UsageError, match="no metric"):
        make_goal("nothing")


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_is_met_by_equal_outputs(name: str) -> None:
    right = [{"z": np.random.default_rng(0).random((2, 6, 8)).astype(np.float32)}]
    goal = make_goal(name)
    assert not goal.missed(goal.values(right, right))


def test_not_a_number_is_never_good_enough() -> None:
    goal = make_goal(lambda _one, _other: float("nan"), 0.0)
    assert goal.missed(goal.values([{}], [{}])) == ["-"]


@pytest.mark.parametrize("last", [1, 4, 8])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_new_nan_in_any_case_is_never_good_enough(name: str, first: bool, last: int) -> None:
    """Ranks of fewer than five classes are always the same set, and a NaN sorts like any value."""
    right = np.random.default_rng(0).random((2, 6, last)).astype(np.float32)
    spoilt = right.copy()
    spoilt[0, 2, 0] = np.nan
    goal = make_goal(name)
    device = [spoilt, right] if first else [right, spoilt]
    assert goal.missed(goal.values([{"z": right}] * 2, [{"z": array} for array in device])) == ["z"]


@pytest.mark.parametrize("numbers", [(float("nan"), 1.0), (1.0, float("nan"))])
def test_not_a_number_of_ones_own_metric_is_seen_in_any_case(numbers: tuple[float, float]) -> None:
    left = iter(numbers)
    goal = make_goal(lambda _one, _other: next(left), 0.5)
    assert goal.missed(goal.values([{}, {}], [{}, {}])) == ["-"]


@pytest.mark.parametrize("name", sorted(METRICS))
def test_another_shape_is_never_good_enough(name: str) -> None:
    goal = make_goal(name)
    right, device = [{"z": np.zeros((2, 6, 8), np.float32)}], [{"z": np.zeros((2, 5, 8), np.float32)}]
    assert goal.missed(goal.values(right, device)) == ["z"]


@pytest.mark.parametrize("number", [float("nan"), float("-inf"), float("inf")])
def test_what_a_function_gives_can_be_written_down(number: float) -> None:
    """JSON has neither NaN nor infinities."""
    goal = make_goal(lambda _one, _other: number, 0.5)
    values = goal.values([{"y": np.zeros(2, np.float32)}], [{"y": np.zeros(2, np.float32)}])
    assert np.isfinite(values["-"])
    assert bool(goal.missed(values)) is (number != float("inf"))
