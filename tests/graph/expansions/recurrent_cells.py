"""GRU, LSTM and RNN by the equations of the standard in numpy, and models of a single node with everything it may say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from hypothesis import strategies as st

from jumar.graph import Evaluator, infer_shapes, used_names
from jumar.graph.opset.schemas import find_schema
from jumar.graph.opset.step import Step

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
DEFAULTS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}
OUTPUTS = {"GRU": ["Y", "Y_h"], "LSTM": ["Y", "Y_h", "Y_c"], "RNN": ["Y", "Y_h"]}
# The standard's list, with the parameters that the tests give: alpha and beta, None where the function has none.
ACTIVATIONS: dict[str, tuple[float | None, float | None, Callable[[Any, float, float], Any]]] = {
    "Relu": (None, None, lambda x, _a, _b: np.maximum(x, 0)),
    "Tanh": (None, None, lambda x, _a, _b: np.tanh(x)),
    "Sigmoid": (None, None, lambda x, _a, _b: 1 / (1 + np.exp(-x))),
    "Softsign": (None, None, lambda x, _a, _b: x / (1 + np.abs(x))),
    "Softplus": (None, None, lambda x, _a, _b: np.logaddexp(x, 0)),
    "Affine": (0.75, 0.125, lambda x, a, b: a * x + b),
    "LeakyRelu": (0.125, None, lambda x, a, _b: np.where(x >= 0, x, a * x)),
    "ThresholdedRelu": (0.25, None, lambda x, a, _b: np.where(x > a, x, 0)),
    "ScaledTanh": (0.5, 0.75, lambda x, a, b: a * np.tanh(b * x)),
    "HardSigmoid": (0.25, 0.375, lambda x, a, b: np.clip(a * x + b, 0, 1)),
    "Elu": (0.5, None, lambda x, a, _b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0)))),
}


@dataclass
class Cell:
    """A node: its inputs by the standard's letters (X W R B L H C P) in layout 0, and what its attributes say."""

    kind: str
    feed: dict[str, Any]
    direction: str = "forward"
    options: dict[str, Any] = field(default_factory=dict)
    constant: tuple[str, ...] = ("W", "R", "B", "P")
    layout: int = 0
    opset: int = 14
    used: tuple[int, ...] = (0, 1, 2)

    @property
    def sides(self) -> list[bool]:
        """Of each direction whether it runs backwards."""
        return [False, True] if self.direction == "bidirectional" else [self.direction == "reverse"]

    def outer(self) -> dict[str, Any]:
        """The inputs as the node of this layout takes them."""
        turned = {"X", "H", "C"} if self.layout else set()
        return {name: np.ascontiguousarray(array.swapaxes(0, 1)) if name in turned else array for name, array in self.feed.items()}


def functions(cell: Cell, side: int) -> list[Callable[[Any], Any]]:
    count = len(DEFAULTS[cell.kind])
    names = cell.options.get("activations", DEFAULTS[cell.kind] * 2)[side * count : (side + 1) * count]

    def bound(name: str) -> Callable[[Any], Any]:
        alpha, beta, function = ACTIVATIONS[name]
        return lambda x: function(x, alpha or 0.0, beta or 0.0)

    return [bound(name) for name in names]


def _gru(cell: Cell, side: int, ahead: Any, r: Any, rb: Any, h: Any, cut: Callable[[Any], Any]) -> Any:
    gate, candidate = functions(cell, side)
    (zx, rx, hx), (zr, rr, hr), (zb, rbb, hb) = (np.split(part, 3) for part in (ahead, r, rb))
    z, reset = gate(cut(zx + zr @ h + zb)), gate(cut(rx + rr @ h + rbb))
    inner = reset * (hr @ h + hb) if cell.options.get("linear_before_reset") else hr @ (reset * h) + hb
    return (1 - z) * candidate(cut(hx + inner)) + z * h


def _lstm(cell: Cell, side: int, total: Any, c: Any, cut: Callable[[Any], Any]) -> tuple[Any, Any]:
    gate, candidate, shown = functions(cell, side)
    i, o, f, g = np.split(total, 4)
    pi, po, pf = np.split(cell.feed["P"][side].astype(np.float64), 3) if "P" in cell.feed else (0, 0, 0)
    i = gate(cut(i + pi * c))
    f = 1 - i if cell.options.get("input_forget") else gate(cut(f + pf * c))
    c = f * c + i * candidate(cut(g))
    return gate(cut(o + po * c)) * shown(c), c


def closed_form(cell: Cell) -> dict[str, Any]:
    """Y, Y_h (and Y_c) of the node's layout in float64, one sequence and one step at a time."""
    feed, kind = cell.feed, cell.kind
    x = feed["X"].astype(np.float64)
    (steps, batch, _), size = x.shape, feed["R"].shape[2]
    whole = np.zeros((steps, len(cell.sides), batch, size))
    ends, cells = (np.zeros((len(cell.sides), batch, size)) for _ in range(2))
    clip = cell.options.get("clip", np.inf)

    def cut(value: Any) -> Any:
        return np.clip(value, -clip, clip)

    for side, backwards in enumerate(cell.sides):
        w, r = feed["W"][side].astype(np.float64), feed["R"][side].astype(np.float64)
        wb, rb = np.split(feed["B"][side].astype(np.float64) if "B" in feed else np.zeros(2 * GATES[kind] * size), 2)
        for lane in range(batch):
            length = int(feed["L"][lane]) if "L" in feed else steps
            h, c = (feed[name][side, lane].astype(np.float64) if name in feed else np.zeros(size) for name in "HC")
            for time in range(length - 1, -1, -1) if backwards else range(length):
                ahead = w @ x[time, lane] + wb
                if kind == "RNN":
                    h = functions(cell, side)[0](cut(ahead + r @ h + rb))
                elif kind == "GRU":
                    h = _gru(cell, side, ahead, r, rb, h, cut)
                else:
                    h, c = _lstm(cell, side, ahead + r @ h + rb, c, cut)
                whole[time, side, lane] = h
            ends[side, lane], cells[side, lane] = h, c
    if cell.layout:
        whole, ends, cells = whole.transpose(2, 0, 1, 3), ends.swapaxes(0, 1), cells.swapaxes(0, 1)
    found = {"Y": whole, "Y_h": ends, "Y_c": cells}
    return {name: found[name] for place, name in enumerate(OUTPUTS[kind]) if place in cell.used}


def build(cell: Cell) -> ir.Model:
    """The model of the node; what ``constant`` names is a weight."""
    feed = cell.outer()
    inputs = [name if name in feed else "" for name in "XWRBLHCP"[: 8 if cell.kind == "LSTM" else 6]]
    while not inputs[-1]:
        inputs.pop()
    outputs = [name if place in cell.used else "" for place, name in enumerate(OUTPUTS[cell.kind])]
    options = cell.options | ({"layout": 1} if cell.layout else {})
    node = onnx.helper.make_node(
        cell.kind, inputs, outputs, name="cell", direction=cell.direction, hidden_size=feed["R"].shape[2], **options
    )
    ports = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(feed[name].dtype), feed[name].shape)
        for name in feed
        if name not in cell.constant
    ]
    held = [onnx.numpy_helper.from_array(feed[name], name) for name in cell.constant if name in feed]
    kind = onnx.helper.np_dtype_to_tensor_dtype(feed["X"].dtype)
    ends = [onnx.helper.make_tensor_value_info(name, kind, None) for name in outputs if name]
    graph = onnx.helper.make_graph([node], "g", ports, ends, held)
    model = ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", cell.opset)], ir_version=8))
    infer_shapes(model)
    return model


def expand(model: ir.Model, expansion: Callable[[Step], None]) -> ir.Model:
    node, version = model.graph[0], model.opset_imports[""]
    step = Step(model, node, used_names(model), version, rule="test")
    schema = find_schema(node.op_type, version)
    assert schema is not None
    step.source = schema
    expansion(step)
    return model


def run(evaluator: Evaluator, model: ir.Model, cell: Cell) -> dict[str, Any]:
    inputs = {value.name for value in model.graph.inputs}
    return evaluator.run(model, {name: array for name, array in cell.outer().items() if name in inputs})


def assert_equal(found: dict[str, Any], wanted: dict[str, Any], bound: float, floor: float = 1e-3) -> None:
    """Within ``bound`` of the largest element, or of ``floor`` if that is more."""
    assert set(found) == set(wanted)
    for name, expected in wanted.items():
        assert found[name].shape == expected.shape, name
        assert np.abs(found[name] - expected).max() <= bound * max(np.abs(expected).max(), floor), name


def weights(kind: str, sides: int, width: int, size: int, random: np.random.Generator, bias: bool = True) -> dict[str, Any]:
    gates = GATES[kind] * size
    shapes = {"W": (sides, gates, width), "R": (sides, gates, size)} | ({"B": (sides, 2 * gates)} if bias else {})
    return {name: (random.standard_normal(shape) * 0.7).astype(np.float32) for name, shape in shapes.items()}


@st.composite
def cells(draw: st.DrawFn, kinds: tuple[str, ...] = ("GRU", "LSTM", "RNN"), plain: bool = False) -> Cell:
    """Any node of the standard; plain: with nothing that changes the cell itself."""
    kind = draw(st.sampled_from(kinds))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    steps, batch, width, size = (draw(st.integers(1, high)) for high in (5, 3, 3, 3))
    sides, random = 2 if direction == "bidirectional" else 1, np.random.default_rng(draw(st.integers(0, 99)))
    layout = draw(st.sampled_from([0, 0, 1]))
    feed = {"X": random.standard_normal((steps, batch, width)).astype(np.float32)}
    feed |= weights(kind, sides, width, size, random, draw(st.booleans()))
    if draw(st.booleans()):
        feed["L"] = random.integers(1, steps + 1, batch).astype(np.int32)
    for name in "HC" if kind == "LSTM" else "H":
        if draw(st.booleans()):
            feed[name] = random.standard_normal((sides, batch, size)).astype(np.float32)
    options: dict[str, Any] = {"linear_before_reset": 1 if plain else draw(st.integers(0, 1))} if kind == "GRU" else {}
    if not plain:
        _anything(draw, kind, feed, options, random, sides)
    fixed = draw(st.sampled_from([("W", "R", "B", "P"), ("W", "R", "B", "P", "L"), ("R",), ("W", "R", "B", "P", "H", "L")]))
    # Without a third output, the model of a GRU or an RNN that is asked for it alone would have none.
    used = draw(st.sampled_from([(0,), (0, 1), (0, 1, 2), (1,), (1, 2)]))
    return Cell(kind, feed, direction, options, fixed, layout, draw(st.sampled_from([14, 18, 22] if layout else [9, 11, 14, 18, 22])), used)


def _anything(draw: st.DrawFn, kind: str, feed: dict[str, Any], options: dict[str, Any], random: Any, sides: int) -> None:
    if draw(st.booleans()):
        options["clip"] = 0.5
    if kind == "LSTM":
        if draw(st.booleans()):
            feed["P"] = random.standard_normal((sides, 3 * feed["R"].shape[2])).astype(np.float32)
        if draw(st.booleans()):
            options["input_forget"] = 1
    if draw(st.booleans()):
        names = [draw(st.sampled_from(sorted(ACTIVATIONS))) for _ in range(len(DEFAULTS[kind]) * sides)]
        options["activations"] = names
        for place, key in enumerate(("activation_alpha", "activation_beta")):
            values = [value for value in (ACTIVATIONS[name][place] for name in names) if value is not None]
            options |= {key: values} if values else {}
