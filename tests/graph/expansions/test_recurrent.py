"""Unrolled GRU, LSTM and RNN against a numpy closed form of the standard's equations, with everything a node may say."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, infer_shapes, used_names
from jumar.graph.expansions.recurrent import NODE_LIMIT, unrolled
from jumar.graph.opset.schemas import find_schema
from jumar.graph.opset.step import Step, Unconvertible

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
# Of the largest element: sums of a dozen products in float32.
BOUND = 1e-5


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def closed_form(kind: str, feed: dict[str, Any], direction: str, options: dict[str, Any]) -> dict[str, Any]:
    """Y, Y_h (and Y_c) in float64, one sequence and one step at a time."""
    x = feed["X"].astype(np.float64)
    steps, batch, _ = x.shape
    size = feed["R"].shape[2]
    sides = [direction == "reverse"] if direction != "bidirectional" else [False, True]
    whole = np.zeros((steps, len(sides), batch, size))
    ends, cells = (np.zeros((len(sides), batch, size)) for _ in range(2))
    clip = options.get("clip", np.inf)

    def cut(value: Any) -> Any:
        return np.clip(value, -clip, clip)

    for side, backwards in enumerate(sides):
        w, r = feed["W"][side].astype(np.float64), feed["R"][side].astype(np.float64)
        bias = feed["B"][side].astype(np.float64) if "B" in feed else np.zeros(2 * GATES[kind] * size)
        wb, rb = np.split(bias, 2)
        for lane in range(batch):
            length = int(feed["L"][lane]) if "L" in feed else steps
            h = feed["H"][side, lane].astype(np.float64) if "H" in feed else np.zeros(size)
            c = np.zeros(size)
            for time in range(length - 1, -1, -1) if backwards else range(length):
                ahead = w @ x[time, lane] + wb
                if kind == "RNN":
                    h = np.tanh(cut(ahead + r @ h + rb))
                elif kind == "GRU":
                    zx, rx, hx = np.split(ahead, 3)
                    zr, rr, hr = np.split(r, 3)
                    zb, rbb, hb = np.split(rb, 3)
                    z, reset = sigmoid(cut(zx + zr @ h + zb)), sigmoid(cut(rx + rr @ h + rbb))
                    inner = reset * (hr @ h + hb) if options.get("linear_before_reset") else hr @ (reset * h) + hb
                    h = (1 - z) * np.tanh(cut(hx + inner)) + z * h
                else:
                    i, o, f, g = np.split(ahead + r @ h + rb, 4)
                    i, f = sigmoid(cut(i)), sigmoid(cut(f))
                    c = f * c + i * np.tanh(cut(g))
                    h = sigmoid(cut(o)) * np.tanh(c)
                whole[time, side, lane] = h
            ends[side, lane], cells[side, lane] = h, c
    return {"Y": whole, "Y_h": ends} | ({"Y_c": cells} if kind == "LSTM" else {})


def build(kind: str, feed: dict[str, Any], direction: str, options: dict[str, Any], opset: int) -> ir.Model:
    inputs = ["X", "W", "R", "B" if "B" in feed else "", "L" if "L" in feed else "", "H" if "H" in feed else ""]
    while not inputs[-1]:
        inputs.pop()
    outputs = ["Y", "Y_h", "Y_c"][: 3 if kind == "LSTM" else 2]
    node = onnx.helper.make_node(kind, inputs, outputs, name="cell", direction=direction, hidden_size=feed["R"].shape[2], **options)
    ports = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(feed[name].dtype), feed[name].shape)
        for name in feed
        if name not in ("W", "R", "B")
    ]
    weights = [onnx.numpy_helper.from_array(feed[name], name) for name in ("W", "R", "B") if name in feed]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    graph = onnx.helper.make_graph([node], "g", ports, ends, weights)
    model = ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8))
    infer_shapes(model)
    return model


def expand(model: ir.Model) -> ir.Model:
    node, version = model.graph[0], model.opset_imports[""]
    step = Step(model, node, used_names(model), version, rule="test")
    schema = find_schema(node.op_type, version)
    assert schema is not None
    step.source = schema
    unrolled(step)
    return model


@st.composite
def cells(draw: st.DrawFn) -> tuple[str, dict[str, Any], str, dict[str, Any], int]:
    kind = draw(st.sampled_from(sorted(GATES)))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    steps, batch, width, size = (draw(st.integers(1, high)) for high in (5, 3, 3, 3))
    sides, random = 2 if direction == "bidirectional" else 1, np.random.default_rng(draw(st.integers(0, 99)))

    def normal(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    feed = {"X": normal(steps, batch, width), "W": normal(sides, GATES[kind] * size, width), "R": normal(sides, GATES[kind] * size, size)}
    if draw(st.booleans()):
        feed["B"] = normal(sides, 2 * GATES[kind] * size)
    if draw(st.booleans()):
        feed["L"] = random.integers(1, steps + 1, batch).astype(np.int32)
    if draw(st.booleans()):
        feed["H"] = normal(sides, batch, size)
    options: dict[str, Any] = {"linear_before_reset": draw(st.integers(0, 1))} if kind == "GRU" else {}
    if draw(st.booleans()):
        options["clip"] = 0.5
    return kind, feed, direction, options, draw(st.sampled_from([11, 14, 18, 22]))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cell=cells())
def test_it_is_what_the_equations_say(cell: tuple[str, dict[str, Any], str, dict[str, Any], int], evaluator: Evaluator) -> None:
    kind, feed, direction, options, _ = cell
    model = expand(build(*cell))
    assert {node.op_type for node in model.graph}.isdisjoint(GATES)
    inputs = {value.name for value in model.graph.inputs}
    found = evaluator.run(model, {name: array for name, array in feed.items() if name in inputs})
    for name, expected in closed_form(kind, feed, direction, options).items():
        scale = max(np.abs(expected).max(), 1e-3)
        assert np.abs(found[name] - expected).max() <= BOUND * scale, name


def test_the_other_equation_of_a_gru_would_be_noticed(evaluator: Evaluator) -> None:
    random = np.random.default_rng(0)
    feed = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in (("X", (4, 1, 3)), ("W", (1, 9, 3)), ("R", (1, 9, 3)), ("B", (1, 18)))
    }
    found = evaluator.run(expand(build("GRU", feed, "forward", {"linear_before_reset": 0}, 13)), {"X": feed["X"]})
    wrong = closed_form("GRU", feed, "forward", {"linear_before_reset": 1})
    assert np.abs(found["Y"] - wrong["Y"]).max() > 1e-2


def test_a_sequence_that_is_too_long_is_refused() -> None:
    feed = {"X": np.zeros((NODE_LIMIT, 1, 2), np.float32), "W": np.zeros((1, 3, 2), np.float32), "R": np.zeros((1, 3, 1), np.float32)}
    with pytest.raises(Unconvertible, match=str(NODE_LIMIT)):
        expand(build("GRU", feed, "forward", {}, 13))
