"""Which recurrent nodes stay operators, and what becomes of the others, on targets with and without a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import check, fix
from jumar.graph import Evaluator

CARD = "Ascend310P3"
GATES = {"GRU": 3, "LSTM": 4}


def model_of(kind: str, used: tuple[int, ...] = (0,), lengths: bool = False, computed: bool = False, **options: Any) -> ir.Model:
    """Four steps, a batch of two; the weights are joined by a node if ``computed``."""
    random, sides = np.random.default_rng(3), 2 if options.get("direction") == "bidirectional" else 1
    rows = GATES[kind] * 2
    weights = {name: random.standard_normal((sides, rows, width)).astype(np.float32) for name, width in (("w", 3), ("r", 2))}
    nodes = []
    if computed:
        halves = {f"w{place}": part for place, part in enumerate(np.split(weights.pop("w"), 2, axis=1))}
        weights |= halves
        nodes.append(onnx.helper.make_node("Concat", [*halves], ["w"], name="joined", axis=1))
    inputs = ["x", "w", "r", "", "n"] if lengths else ["x", "w", "r"]
    if lengths:
        weights["n"] = np.array([2, 4], np.int32)
    outputs = [name if place in used else "" for place, name in enumerate(("y", "h", "c")[: 3 if kind == "LSTM" else 2])]
    nodes.append(onnx.helper.make_node(kind, inputs, outputs, name="cell", hidden_size=2, **options))
    ports = [onnx.helper.make_tensor_value_info("x", 1, [4, 2, 3])]
    ends = [onnx.helper.make_tensor_value_info(name, 1, None) for name in outputs if name]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = onnx.helper.make_graph(nodes, "g", ports, ends, held)
    return ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8))


PLAIN: dict[str, Any] = {"linear_before_reset": 1}
# Node, what is found (code and severity; nothing: the kernel computes it), and how many of the operator are there after the repair.
FORMS: dict[str, tuple[ir.Model, set[tuple[str, str]], int]] = {
    "GRU forward": (model_of("GRU", (0, 1), **PLAIN), set(), 1),
    "GRU resets before": (model_of("GRU"), {("OP225", "error")}, 0),
    "GRU backward": (model_of("GRU", (0, 1), direction="reverse", **PLAIN), {("OP225", "warning")}, 1),
    "GRU both, all steps": (model_of("GRU", (0,), direction="bidirectional", **PLAIN), set(), 1),
    "GRU both, ends": (model_of("GRU", (0, 1), direction="bidirectional", **PLAIN), {("OP225", "warning")}, 1),
    "GRU lengths": (model_of("GRU", (0, 1), lengths=True, **PLAIN), {("OP225", "error")}, 1),
    "GRU lengths, ends only": (model_of("GRU", (1,), lengths=True, **PLAIN), set(), 1),
    "GRU both, lengths": (model_of("GRU", (0,), True, direction="bidirectional", **PLAIN), {("OP225", "error")}, 0),
    "LSTM forward": (model_of("LSTM", (0, 1, 2), lengths=True), set(), 1),
    "LSTM backward, ends": (model_of("LSTM", (0, 1), direction="reverse"), {("OP225", "warning")}, 1),
    "LSTM both, ends": (model_of("LSTM", (1,), direction="bidirectional"), {("OP225", "warning")}, 1),
    "LSTM both, cells": (model_of("LSTM", (0, 1, 2), direction="bidirectional"), {("OP225", "warning")}, 2),
    "LSTM clipped": (model_of("LSTM", (0, 2), clip=0.5), {("OP225", "error")}, 0),
    "LSTM of joined weights": (model_of("LSTM", computed=True), {("OP226", "warning")}, 1),
    "LSTM of joined weights, ends": (
        model_of("LSTM", (2,), computed=True, direction="reverse"),
        {("OP225", "warning"), ("OP226", "warning")},
        1,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_is_kept_where_it_can_be(form: str, evaluator: Evaluator) -> None:
    model, expected, kept = FORMS[form]
    found = {(item.code, item.severity) for item in check(model, soc=CARD).record.findings if item.code in ("OP225", "OP226", "OP108")}
    assert found == expected
    case = fix(model, soc=CARD, evaluator=evaluator)
    repaired = case.model
    assert isinstance(repaired, ir.Model)
    assert sum(node.op_type in GATES for node in repaired.graph) == kept
    after = {(item.code, item.severity) for item in check(repaired, soc=CARD).record.findings}
    assert not [item for item in after if item[1] == "error" or item[0] in ("OP225", "OP226")]
    assert all(step.status == "applied" for step in case.record.steps)
