"""Which gears a request runs on."""

from __future__ import annotations

import json
import math
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.atc.gear_choice import choose_gears
from jumar.errors import UsageError


def test_the_ocr_recogniser_with_three_gears(shared: Path) -> None:
    """A public report: width 200 is between gears, and two rows only fit a gear forty times as large, unless they run one by one."""
    scenario = json.loads((shared / "cases" / "rt-shape-outside-gears" / "scenario.json").read_text())
    name = scenario["input"]
    gears = [{name: (batch, 3, 48, width)} for batch, width in scenario["gears"]]
    requests = [{name: (batch, 3, 48, width)} for batch, width in scenario["requests"]]
    first = choose_gears(gears, requests[0], split=True)
    assert [run.gear[name] for run in first.runs] == [(1, 3, 48, 320)]
    assert first.padding == pytest.approx(120 / 320)
    second = choose_gears(gears, requests[1], split=True)
    assert [(run.gear[name], run.first, run.rows) for run in second.runs] == [((1, 3, 48, 320), 0, 1), ((1, 3, 48, 320), 1, 1)]
    assert second.padding == 0
    whole = choose_gears(gears, requests[1])
    assert [run.gear[name] for run in whole.runs] == [(8, 3, 48, 3200)]
    assert whole.padding == pytest.approx(1 - 1 / 40)
    assert choose_gears(gears, requests[2], split=True).padding == 0
    for split in (False, True):
        with pytest.raises(UsageError, match="no gear holds x:1,3,48,4000"):
            choose_gears(gears, requests[3], split=split)


SIZES = st.integers(1, 5)
GEARS = st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=3, unique=True)


@given(GEARS, st.integers(1, 6), SIZES)
def test_nothing_cheaper_takes_all_rows(gears: list[tuple[int, int]], rows: int, width: int) -> None:
    """Against all combinations of gears."""
    able = [gear for gear in gears if gear[1] >= width]
    shapes = [{"x": gear} for gear in gears]
    if not able:
        with pytest.raises(UsageError):
            choose_gears(shapes, {"x": (rows, width)}, split=True)
        return
    found = choose_gears(shapes, {"x": (rows, width)}, split=True)
    taken = [row for run in found.runs for row in range(run.first, run.first + (run.rows or 0))]
    assert taken == list(range(rows))
    assert all((run.rows or 0) <= run.gear["x"][0] and width <= run.gear["x"][1] for run in found.runs)
    every = [
        combination
        for count in range(1, rows + 1)
        for combination in combinations_with_replacement(able, count)
        if sum(gear[0] for gear in combination) >= rows
    ]
    cost = sum(math.prod(run.gear["x"]) for run in found.runs)
    assert cost == min(sum(math.prod(gear) for gear in combination) for combination in every)
    assert found.padding == pytest.approx(1 - rows * width / cost)


def test_inputs_of_other_ranks_are_refused() -> None:
    with pytest.raises(UsageError, match="expected the inputs and ranks of"):
        choose_gears([{"x": (1, 3)}], {"x": (1, 3, 4)})
    with pytest.raises(UsageError, match="expected the inputs and ranks of"):
        choose_gears([{"x": (1, 3)}], {"y": (1, 3)})


def test_inputs_without_common_rows_run_whole() -> None:
    choice = choose_gears([{"x": (4, 2), "k": ()}, {"x": (8, 2), "k": ()}], {"x": (3, 2), "k": ()}, split=True)
    assert [(dict(run.gear), run.rows) for run in choice.runs] == [({"x": (4, 2), "k": ()}, None)]
    assert "1 x gear" in str(choice.note())
