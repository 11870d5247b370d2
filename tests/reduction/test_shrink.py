"""Delta debugging: what is left fails, none of it can be left out, and one guilty item is found in few tests."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.reduction import Spent, shrink


@settings(deadline=None)
@given(st.integers(1, 60), st.data())
def test_what_is_left_is_what_must_come_together(count: int, data: st.DataObject) -> None:
    guilty = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=4))
    assert shrink(range(count), lambda part: guilty <= set(part)) == sorted(guilty)


@settings(deadline=None)
@given(st.integers(1, 40), st.data())
def test_nothing_that_is_left_can_be_left_out(count: int, data: st.DataObject) -> None:
    """Also where the test is not monotone: a part may pass though a smaller one fails."""
    bits = data.draw(st.integers(0, 2**32))

    def fails(part: Sequence[int]) -> bool:
        return len(part) == count or hash((bits, *part)) % 3 == 0

    left = shrink(range(count), fails)
    assert fails(left)
    assert len(left) == 1 or not any(fails(left[:place] + left[place + 1 :]) for place in range(len(left)))


def test_one_among_many_takes_few_tests() -> None:
    for guilty in (0, 1, 449, 450, 898, 899):
        tests = []

        def fails(part: Sequence[int], tests: list[int] = tests, guilty: int = guilty) -> bool:
            tests.append(len(part))
            return guilty in part

        assert shrink(range(900), fails) == [guilty]
        assert len(tests) <= 22


def test_when_the_tests_are_spent_the_smallest_so_far_is_the_result() -> None:
    left = 3

    def fails(part: Sequence[int]) -> bool:
        nonlocal left
        if not left:
            raise Spent
        left -= 1
        return 7 in part

    assert shrink(range(16), fails) == [4, 5, 6, 7]
