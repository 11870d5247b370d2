"""Unrolled GRU, LSTM and RNN against a numpy closed form of the standard's equations, with everything a node may say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from recurrent_cells import ACTIVATIONS, DEFAULTS, GATES, Cell, assert_equal, build, cells, closed_form, expand, run, weights

from jumar.graph import Evaluator
from jumar.graph.expansions.recurrent import NODE_LIMIT, unrolled
from jumar.graph.opset.step import Unconvertible

# Of the largest element: sums of a dozen products in float32, kept small by the cell's functions.
BOUND = 1e-5
# Functions without an upper bound let the state grow with each step, and the rounding with it.
GROWING = {"Relu", "Softplus", "Affine", "LeakyRelu", "ThresholdedRelu", "Elu"}


def sequence(kind: str, direction: str, steps: int, batch: int = 2, seed: int = 5, size: int = 2) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    sides = 2 if direction == "bidirectional" else 1
    return {"X": random.standard_normal((steps, batch, 3)).astype(np.float32)} | weights(kind, sides, 3, size, random)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cell=cells())
def test_it_is_what_the_equations_say(cell: Cell, evaluator: Evaluator) -> None:
    model = expand(build(cell), unrolled)
    assert {node.op_type for node in model.graph}.isdisjoint(GATES)
    growing = set(cell.options.get("activations", ())) & GROWING
    assert_equal(run(evaluator, model, cell), closed_form(cell), 5 * BOUND if growing else BOUND)


@pytest.mark.slow
@settings(max_examples=800, deadline=None, suppress_health_check=list(HealthCheck))
@given(cell=cells())
def test_it_is_what_the_equations_say_of_many(cell: Cell, evaluator: Evaluator) -> None:
    # Where nothing bounds the state, sums of large terms cancel; a wrong equation is off by more than a hundredth all the same.
    growing = set(cell.options.get("activations", ())) & GROWING
    wanted = closed_form(cell)
    assume(all(np.abs(array).max(initial=0) < 1e30 for array in wanted.values()))  # what float32 does not hold says nothing
    assert_equal(run(evaluator, expand(build(cell), unrolled), cell), wanted, 1e-3 if growing else BOUND)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
@pytest.mark.parametrize("kind", sorted(GATES))
def test_each_function_of_the_standard_takes_its_own_parameters(kind: str, name: str, evaluator: Evaluator) -> None:
    # Functions with parameters behind it: each takes its own out of the two lists.
    names = [name, "ScaledTanh", "HardSigmoid"][: len(DEFAULTS[kind])]
    options: dict[str, Any] = {"activations": names}
    for place, key in enumerate(("activation_alpha", "activation_beta")):
        values = [value for value in (ACTIVATIONS[item][place] for item in names) if value is not None]
        options |= {key: values} if values else {}
    cell = Cell(kind, sequence(kind, "forward", 3), options=options)
    assert_equal(run(evaluator, expand(build(cell), unrolled), cell), closed_form(cell), BOUND)


@pytest.mark.parametrize("kind", sorted(GATES))
@pytest.mark.parametrize(("direction", "steps"), [("forward", 100), ("bidirectional", 40)])
def test_many_steps_are_what_the_runtime_computes(kind: str, direction: str, steps: int, evaluator: Evaluator) -> None:
    cell = Cell(kind, sequence(kind, direction, steps, size=8), direction, opset=11)
    cell.feed["R"] *= 0.4  # so that the state forgets: one that does not makes any rounding as large as itself
    assert_equal(run(evaluator, expand(build(cell), unrolled), cell), run(evaluator, build(cell), cell), BOUND)


@pytest.mark.parametrize("kind", sorted(GATES))
def test_the_form_of_opset_seven_is_taken(kind: str, evaluator: Evaluator) -> None:
    cell = Cell(kind, sequence(kind, "bidirectional", 4), "bidirectional", {"clip": 0.5}, opset=7)
    assert_equal(run(evaluator, expand(build(cell), unrolled), cell), closed_form(cell), BOUND)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("kind", sorted(GATES))
def test_a_sequence_without_an_element_keeps_its_initial_state(kind: str, constant: bool, evaluator: Evaluator) -> None:
    feed = sequence(kind, "bidirectional", 3, batch=3)
    feed |= {"L": np.array([0, 3, 1], np.int32), "H": np.random.default_rng(1).standard_normal((2, 3, 2)).astype(np.float32)}
    cell = Cell(kind, feed, "bidirectional", constant=("W", "R", "B", "L") if constant else ("W", "R", "B"))
    assert_equal(run(evaluator, expand(build(cell), unrolled), cell), closed_form(cell), BOUND)


def test_the_other_equation_of_a_gru_would_be_noticed(evaluator: Evaluator) -> None:
    cell = Cell("GRU", sequence("GRU", "forward", 4), options={"linear_before_reset": 0})
    found = run(evaluator, expand(build(cell), unrolled), cell)
    assert np.abs(found["Y"] - closed_form(Cell("GRU", cell.feed, options={"linear_before_reset": 1}))["Y"]).max() > 1e-2


def test_a_sequence_that_is_too_long_is_refused() -> None:
    with pytest.raises(Unconvertible, match=str(NODE_LIMIT)):
        expand(build(Cell("GRU", sequence("GRU", "forward", NODE_LIMIT))), unrolled)


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("options", [{}, {"clip": 1.0}])
@pytest.mark.parametrize("kind", sorted(GATES))
def test_the_number_of_nodes_is_about_what_a_refusal_would_say(kind: str, options: dict[str, Any], lengths: bool) -> None:
    cell = Cell(kind, sequence(kind, "forward", 20), options=options)
    if lengths:
        cell.feed["L"] = np.array([7, 20], np.int32)
    made = len(expand(build(cell), unrolled).graph)
    with pytest.raises(Unconvertible) as refusal:
        expand(build(Cell(kind, sequence(kind, "forward", 2000), options=options) if not lengths else longer(cell)), unrolled)
    stated = int(str(refusal.value.bare).split("about ")[1].split()[0]) / 100
    assert 0.8 * stated <= made <= 1.1 * stated + 10


def longer(cell: Cell) -> Cell:
    feed = sequence(cell.kind, "forward", 2000)
    return Cell(cell.kind, feed | {"L": cell.feed["L"]}, options=cell.options)


def test_an_open_number_of_steps_is_refused() -> None:
    model = build(Cell("GRU", sequence("GRU", "forward", 2)))
    model.graph.inputs[0].shape = None
    with pytest.raises(Unconvertible):
        expand(model, unrolled)


def test_a_function_outside_the_standard_is_refused() -> None:
    with pytest.raises(Unconvertible, match="swish"):
        expand(build(Cell("RNN", sequence("RNN", "forward", 2), options={"activations": ["Swish"]})), unrolled)
