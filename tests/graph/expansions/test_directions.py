"""GRU and LSTM that stay operators, with ends, directions, layout and lengths written out, against the standard's equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from recurrent_cells import Cell, assert_equal, build, cells, closed_form, expand, run, weights

from jumar.graph import Evaluator
from jumar.graph.expansions.directions import ends_of_the_output, forward_only
from jumar.graph.opset.step import Unconvertible

# Of the largest element or of one: the runtime's own GRU and LSTM approximate sigmoid and tanh, to 1e-6 wherever their results lie.
BOUND, FLOOR = 1e-5, 1.0


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cell=cells(kinds=("GRU", "LSTM"), plain=True))
def test_what_stays_an_operator_is_what_the_equations_say(cell: Cell, evaluator: Evaluator) -> None:
    wanted = closed_form(cell)
    for expansion in (ends_of_the_output, forward_only):
        try:
            model = expand(build(cell), expansion)
        except Unconvertible:
            continue
        assert cell.kind in {node.op_type for node in model.graph}
        assert all("layout" not in node.attributes for node in model.graph)
        assert_equal(run(evaluator, model, cell), wanted, BOUND, FLOOR)


def sequence(kind: str, direction: str, lengths: bool = False, **more: Any) -> Cell:
    random = np.random.default_rng(1)
    sides = 2 if direction == "bidirectional" else 1
    feed = {"X": random.standard_normal((4, 2, 3)).astype(np.float32)} | weights(kind, sides, 3, 2, random)
    if lengths:
        feed["L"] = np.array([3, 4], np.int32)
    return Cell(kind, feed, direction, {"linear_before_reset": 1} if kind == "GRU" else {}, **more)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_ends_of_both_directions_are_taken_from_one_operator(kind: str, evaluator: Evaluator) -> None:
    cell = sequence(kind, "bidirectional", used=(0, 1))
    model = expand(build(cell), ends_of_the_output)
    assert [node.op_type for node in model.graph].count(kind) == 1
    assert len(next(node for node in model.graph if node.op_type == kind).outputs) == 1
    found, original = run(evaluator, model, cell), run(evaluator, build(cell), cell)
    assert all(np.array_equal(found[name], original[name]) for name in ("Y", "Y_h"))


def test_the_wrong_end_would_be_noticed(evaluator: Evaluator) -> None:
    cell = sequence("LSTM", "bidirectional", used=(0, 1))
    found = run(evaluator, expand(build(cell), ends_of_the_output), cell)
    swapped = np.stack([found["Y"][0, 0], found["Y"][-1, 1]])
    assert np.abs(swapped - closed_form(cell)["Y_h"]).max() > 1e-2


def test_the_cell_state_needs_a_forward_operator() -> None:
    cell = sequence("LSTM", "reverse")
    with pytest.raises(Unconvertible):
        expand(build(cell), ends_of_the_output)
    model = expand(build(cell), forward_only)
    assert [node.op_type for node in model.graph] == ["Gather", "LSTM", "Gather"]
    assert model.graph[1].attributes["direction"].as_string() == "forward"


@pytest.mark.parametrize(
    "cell",
    [
        sequence("GRU", "forward"),
        sequence("LSTM", "forward", True),
        sequence("GRU", "bidirectional", True),
        Cell("GRU", sequence("GRU", "reverse").feed, "reverse"),
        Cell("LSTM", sequence("LSTM", "reverse").feed, "reverse", {"clip": 1.0}),
    ],
    ids=["plain", "plain with lengths", "backwards from where a sequence ends", "reset before", "clipped"],
)
def test_what_gains_nothing_is_refused(cell: Cell) -> None:
    for expansion in (ends_of_the_output, forward_only):
        with pytest.raises(Unconvertible):
            expand(build(cell), expansion)


def test_a_sequence_that_may_be_empty_has_no_end_in_the_output() -> None:
    with pytest.raises(Unconvertible, match="no element"):
        expand(build(sequence("GRU", "forward", True)), ends_of_the_output)


def test_lengths_that_are_whole_are_left_out(evaluator: Evaluator) -> None:
    cell = sequence("GRU", "forward")
    cell.feed["L"], cell.constant = np.array([4, 4], np.int32), ("W", "R", "B", "L")
    model = expand(build(cell), ends_of_the_output)
    assert [len(node.inputs) for node in model.graph] == [4]
    assert_equal(run(evaluator, model, cell), closed_form(cell), BOUND, FLOOR)
