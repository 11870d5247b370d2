"""The gate on a model of which everything is known: each layer loses what it says, and losses add up."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.quant.curve import curve_csv, curve_svg
from jumar.quant.gate import Cost, Gate, Verdict
from jumar.quant.quality import Score, spread


@dataclass
class Known:
    """Quality is 1 minus the sum of what the chosen layers lose."""

    lost: dict[str, float]
    reference: float = 1.0
    asked: list[frozenset[str]] = field(default_factory=list)

    def score(self, chosen: frozenset[str], most: int | None = None) -> Score:
        assert most is None or most > 0
        self.asked.append(chosen)
        total = sum(self.lost[name] for name in chosen)
        return Score(self.reference - total, total)


def decide(lost: dict[str, float], max_drop: float, work: dict[str, int] | None = None, fallback: bool = True) -> tuple[Verdict, Known]:
    costs = {name: Cost((work or {}).get(name, 10), 100) for name in lost}
    judge = Known(lost)
    gate = Gate(judge, costs, Cost(sum(cost.work for cost in costs.values()), 1000), max_drop)
    return gate.decide(fallback), judge


def test_nothing_goes_back_where_it_holds() -> None:
    verdict, judge = decide({"a": 0.001, "b": 0.002}, 0.01)
    assert verdict.chosen == {"a", "b"} and not verdict.returned and verdict.held
    assert len(judge.asked) == 1


def test_the_guilty_layer_alone_goes_back() -> None:
    lost = {f"l{index}": 0.0005 for index in range(10)} | {"bad": 0.2}
    verdict, _ = decide(lost, 0.01)
    assert verdict.returned == ("bad",) and verdict.held and verdict.drop == pytest.approx(0.005)
    assert verdict.full.quality == pytest.approx(0.795)
    assert verdict.sensitivity == pytest.approx(lost)


def test_gain_per_cost_decides() -> None:
    lost = {"dear": 0.006, "cheap": 0.006, "fine": 0.0}
    verdict, _ = decide(lost, 0.01, {"dear": 1000, "cheap": 1, "fine": 1})
    assert verdict.returned == ("cheap",)


def test_a_costly_layer_that_need_not_go_back_does_not() -> None:
    # By gain per cost "small" goes first, but only "large" is enough; then "small" may come back.
    lost = {"small": 0.004, "large": 0.02}
    verdict, _ = decide(lost, 0.005, {"small": 1, "large": 1000})
    assert verdict.returned == ("large",) and verdict.chosen == {"small"}


def test_everything_goes_back_where_nothing_helps() -> None:
    verdict, _ = decide({"a": 0.5, "b": 0.5}, 0.01)
    assert not verdict.chosen and verdict.held and verdict.drop == 0.0


def test_without_fallback_it_only_reports() -> None:
    verdict, judge = decide({"a": 0.5, "b": 0.0}, 0.01, fallback=False)
    assert verdict.chosen == {"a", "b"} and not verdict.held and len(judge.asked) == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 0.05), min_size=1, max_size=30), st.floats(0, 0.1))
def test_the_gate_holds_whatever_layers_lose(losses: list[float], max_drop: float) -> None:
    lost = {f"l{index}": loss for index, loss in enumerate(losses)}
    verdict, judge = decide(lost, max_drop)
    assert verdict.held and verdict.drop <= max_drop
    assert set(verdict.returned) | verdict.chosen == set(lost)
    assert len([chosen for chosen in judge.asked if len(chosen) != 1]) < 30  # not one evaluation for each layer


def test_the_curve_as_table_and_picture() -> None:
    verdict, _ = decide({f"l{index}": 0.003 * index for index in range(8)}, 0.01)
    points = verdict.curve
    assert [point.quantised for point in points] == sorted(point.quantised for point in points)
    assert points[0].quantised == 0 and points[0].drop == 0 and points[0].speed == 1.0
    assert points[-1].work == 1.0 and points[-1].speed == 2.0 and points[-1].size == 1000 - 800
    rows = list(csv.DictReader(io.StringIO(curve_csv(points))))
    assert [float(row["drop"]) for row in rows] == [point.drop for point in points]
    picture = ElementTree.fromstring(curve_svg(points, "a < b & c", points[-1], 0.01))
    circles = picture.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == len(points) and [item.get("fill") for item in circles].count("#06c") == 1
    assert ElementTree.fromstring(curve_svg([], "m")) is not None


@pytest.mark.parametrize(("count", "most"), [(10, 3), (3, 10), (1, 1), (1000, 100)])
def test_spread(count: int, most: int) -> None:
    places = spread(count, most)
    assert len(places) == min(count, most) and places[0] == 0 and np.all(np.diff(places) > 0)
    assert places[-1] == count - 1 or most == 1
