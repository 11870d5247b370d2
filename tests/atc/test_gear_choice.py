"""Requests on the gears of an .om."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.atc.gear_choice import serve
from jumar.errors import ShapeError

OCR = [(1, 160), (1, 320), (8, 3200)]
"""Batch and width of a text recogniser, from a public report: batch and width are paired."""


def test_the_reported_requests() -> None:
    one = serve((1, 200), OCR, batch=0)
    assert one.runs == ((1, 320),)
    assert one.padding == pytest.approx(0.375)
    two = serve((2, 320), OCR, batch=0)
    assert two.runs == ((1, 320), (1, 320)), "not one run of (8, 3200), 40 times as large"
    assert two.padding == 0
    assert "2 runs" in str(two.note())
    assert serve((8, 3200), OCR, batch=0).runs == ((8, 3200),)
    with pytest.raises(ShapeError, match=r"no gear holds \[1, 4000\]; expected sizes within one of: \[1, 160\], \[1, 320\], \[8, 3200\]"):
        serve((1, 4000), OCR, batch=0)


def test_a_request_that_must_not_be_split_is_padded_and_told() -> None:
    service = serve((2, 320), [(8, 3200)], batch=None)
    assert service.runs == ((8, 3200),)
    assert "98% of the run is padding" in str(service.note())
    with pytest.raises(ShapeError):
        serve((9, 320), [(8, 3200)], batch=None)
    for wrong in ((), (0, 3), (1, 2, 3)):
        with pytest.raises(ShapeError):
            serve(wrong, OCR, batch=0)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 9)),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=4, unique=True),
)
def test_no_other_runs_are_cheaper(request_: tuple[int, int], gears: list[tuple[int, int]]) -> None:
    count, width = request_
    fitting = [gear for gear in gears if gear[1] >= width]
    if not fitting:
        return
    best = min(
        sum(prod(gear) for gear in runs)
        for number in range(1, count + 1)
        for runs in combinations_with_replacement(fitting, number)
        if sum(gear[0] for gear in runs) >= count
    )
    service = serve(request_, gears, batch=0)
    assert sum(prod(gear) for gear in service.runs) == best
    assert sum(gear[0] for gear in service.runs) >= count
