"""A model of one step, run step by step, is the model of the whole sequence; what is not is refused with the place."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar import UsageError
from jumar.graph import Evaluator, step_model
from jumar.graph.surgery.streaming import TOLERANCE


def cell_weights(kind: str, sides: int = 1, size: int = 2) -> str:
    rows = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind] * size
    random = np.random.default_rng(4)

    def numbers(count: int) -> str:
        return ", ".join(f"{number:.3f}" for number in random.uniform(-1, 1, count))

    return f"""float[{sides},{rows},2] w = {{{numbers(sides * rows * 2)}}}, float[{sides},{rows},{size}] r = {{{numbers(sides * rows * size)}}}"""


def model_of(text: str, opset: int = 16) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


STACKED = f"""agraph (float[5,1,2] x) => (float[5,1,2] y, float[1,1,2] end) <{cell_weights("GRU")}, int64[1] one = {{1}}> {{
    a = Tanh(x) b = GRU<hidden_size = 2, linear_before_reset = 1>(a, w, r) c = Squeeze(b, one) d, end = GRU<hidden_size = 2>(c, w, r)
    y = Squeeze(d, one) }}"""


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("layout", [0, 1])
def test_the_steps_are_the_sequence(kind: str, layout: int, evaluator: Evaluator) -> None:
    shapes = ("N,T,2", "N,T,1,2") if layout else ("T,N,2", "T,1,N,2")
    model = model_of(
        f"""agraph (float[{shapes[0]}] x) => (float[{shapes[1]}] y) <{cell_weights(kind)}> {{
        y = {kind}<hidden_size = 2, layout = {layout}>(x, w, r) }}"""
    )
    # The runtime has no layout 1: what it cannot run cannot be proven.
    made = step_model(model, {"x": layout}, sizes={"N": 3}, verify=not layout, evaluator=evaluator)
    assert set(made.states) == ({"LSTM_state_in", "LSTM_cell_in"} if kind == "LSTM" else {f"{kind}_state_in"})
    assert {value.name for value in made.model.graph.inputs} == {"x", *made.states}
    assert {value.name for value in made.model.graph.outputs} == {"y", *made.states.values()}
    assert all(array.shape == ((3, 1, 2) if layout else (1, 3, 2)) for array in made.initial.values())
    if layout:
        return
    x = np.random.default_rng(0).standard_normal((6, 3, 2)).astype(np.float32)
    whole, state, found = evaluator.run(model, {"x": x})["y"], dict(made.initial), []
    for row in x:
        now = evaluator.run(made.model, {"x": row[None]} | state)
        state = {name: now[output] for name, output in made.states.items()}
        found.append(now["y"])
    np.testing.assert_allclose(np.concatenate(found), whole, rtol=0, atol=TOLERANCE * np.abs(whole).max())


def test_each_layer_has_a_state_and_an_end_state_is_the_last(evaluator: Evaluator) -> None:
    model = model_of(STACKED)
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    made = step_model(model, {"x": 0}, evaluator=evaluator)
    assert len(made.states) == 2 and "end" in made.states.values()
    assert [value.name for value in made.model.graph.outputs][:2] == ["y", "end"]
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


def test_an_initial_state_that_is_given_is_kept(evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[4,1,2] x, float[1,1,2] c0) => (float[4,1,1,2] y) <{cell_weights("LSTM")}, float[1,1,2] h0 = {{0.5, -1}}> {{
        y = LSTM<hidden_size = 2>(x, w, r, , , h0, c0) }}"""
    )
    made = step_model(model, {"x": 0}, evaluator=evaluator)
    assert [array.reshape(-1).tolist() for array in made.initial.values()] == [[0.5, -1], [0, 0]]
    assert "c0" in made.states and len(made.model.graph.inputs) == 3


def test_states_that_one_input_holds_for_two_layers_stay(evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[T,1,2] x, float[2,1,2] h) => (float[T,1,2] y, float[2,1,2] hn) <{cell_weights("GRU")}, int64[1] one = {{1}}> {{
        h1, h2 = Split(h) a, e1 = GRU<hidden_size = 2>(x, w, r, , , h1) b = Squeeze(a, one)
        c, e2 = GRU<hidden_size = 2>(b, w, r, , , h2) y = Squeeze(c, one) hn = Concat<axis = 0>(e1, e2) }}"""
    )
    made = step_model(model, {"x": 0}, states={"h": "hn"}, evaluator=evaluator)
    assert made.states == {"h": "hn"} and made.initial["h"].shape == (2, 1, 2)
    with pytest.raises(UsageError, match="no constant"):
        step_model(model, {"x": 0}, evaluator=evaluator)
    with pytest.raises(UsageError, match="`hm`"):
        step_model(model, {"x": 0}, states={"h": "hm"}, evaluator=evaluator)


REFUSED = {
    "backward": (
        f"""agraph (float[4,1,2] x) => (float[4,2,1,2] y) <{cell_weights("GRU", 2)}> {{
        y = GRU<hidden_size = 2, direction = "bidirectional">(x, w, r) }}""",
        "backward",
    ),
    "lengths": (
        f"""agraph (float[4,1,2] x) => (float[4,1,1,2] y) <{cell_weights("GRU")}, int32[1] n = {{3}}> {{ y = GRU<hidden_size = 2>(x, w, r, , n) }}""",
        "lengths",
    ),
    "a state of the data": (
        f"""agraph (float[4,1,2] x) => (float[4,1,1,2] y) <{cell_weights("GRU")}, int64[1] zero = {{0}}> {{
        h = ReduceMean<axes = [0]>(x) y = GRU<hidden_size = 2>(x, w, r, , , h) }}""",
        "no constant",
    ),
    "a mean over time": (
        f"""agraph (float[4,1,2] x) => (float[4,1,1,2] y) <{cell_weights("GRU")}> {{
        m = ReduceMean<axes = [0], keepdims = 1>(x) c = Sub(x, m) y = GRU<hidden_size = 2>(c, w, r) }}""",
        "differ",
    ),
    "turned in time": (
        f"""agraph (float[4,1,2] x) => (float[4,1,1,2] y) <{cell_weights("GRU")}, int64[4] back = {{3, 2, 1, 0}}> {{
        b = Gather<axis = 0>(x, back) y = GRU<hidden_size = 2>(b, w, r) }}""",
        "4 steps",
    ),
    "one step alone": (
        f"agraph (float[1,1,2] x) => (float[1,1,1,2] y) <{cell_weights('GRU')}> {{ y = GRU<hidden_size = 2>(x, w, r) }}",
        "1 steps",
    ),
    "nothing recurrent": ("agraph (float[4,1,2] x) => (float[4,1,2] y) { y = Relu(x) }", "recurrent"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_step_is_refused(kind: str, evaluator: Evaluator) -> None:
    text, reason = REFUSED[kind]
    with pytest.raises(UsageError, match=reason):
        step_model(model_of(text), {"x": 0}, evaluator=evaluator)


def test_an_unknown_input_or_dimension_is_refused(evaluator: Evaluator) -> None:
    with pytest.raises(UsageError, match="`z`"):
        step_model(model_of(STACKED), {"z": 0}, evaluator=evaluator)
    with pytest.raises(UsageError, match="dimension 3"):
        step_model(model_of(STACKED), {"x": 3}, evaluator=evaluator)
