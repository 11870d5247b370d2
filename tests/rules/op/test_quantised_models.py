"""Models that quantisers write: exact in floats, or within what the user accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar import check, fix
from jumar.graph import Evaluator
from jumar.proof import FeedSet

SOC = "Ascend310P3"


def fixed(text: str, feeds: list[dict[str, Any]], evaluator: Evaluator, unsafe: tuple[str, ...] = ()) -> Any:
    return fix(ir.from_onnx_text(text), soc=SOC, feeds=FeedSet(tuple(feeds), "user"), evaluator=evaluator, unsafe=unsafe)


def applied(case: Any) -> list[str]:
    return [step.code for step in case.record.steps if step.status == "applied"]


@settings(max_examples=25, deadline=None)
@given(
    scale=st.floats(2.0**-10, 2.0, width=32),
    zero=st.integers(0, 255),
    signed=st.booleans(),
    size=st.sampled_from([0.1, 1.0, 50.0]),
    seed=st.integers(0, 99),
)
def test_a_pair_is_the_same_rounding(evaluator: Evaluator, scale: float, zero: int, signed: bool, size: float, seed: int) -> None:
    kind, point = ("int8", zero - 128) if signed else ("uint8", zero)
    text = f"""<ir_version: 8, opset_import: ["" : 13]> agraph (float[4,16] x) => (float[4,16] y) <float s = {{{scale!r}}}, {kind} z = {{{point}}}> {{
        q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }}"""
    random = np.random.default_rng(seed)
    x = (random.standard_normal((4, 16)) * size).astype(np.float32)
    x[0] = (np.arange(16) - 8 + 0.5) * np.float32(scale)  # ties
    x[1, :4] = [np.inf, -np.inf, 0.0, -0.0]
    case = fixed(text, [{"x": x}], evaluator)
    assert "OP277" in applied(case)
    assert {node.op_type for node in case.model.graph} <= {"Div", "Round", "Clip", "Mul"}
    expected = evaluator.run(ir.from_onnx_text(text), {"x": x})["y"]
    found = evaluator.run(case.model, {"x": x})["y"]
    assert np.array_equal(found, expected)
    assert not np.array_equal(found + np.float32(scale), expected)


PAIR = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,8] x) => (float[2,8] y) <float s = {{0.05}}, uint8 z = {{120}}> {
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Tanh(d) }""".replace("{{", "{").replace("}}", "}")


def test_it_is_left_out_only_when_asked(evaluator: Evaluator) -> None:
    x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    case = fixed(PAIR, [{"x": x}], evaluator, ("OP278",))
    assert [node.op_type for node in case.model.graph] == ["Tanh"]
    step = next(step for step in case.record.steps if step.code == "OP278")
    assert step.proof is not None
    assert 0 < step.proof.max_scaled <= 0.1


def test_another_scale_is_no_pair(evaluator: Evaluator) -> None:
    text = PAIR.replace("DequantizeLinear(q, s, z)", "DequantizeLinear(q, t, z)").replace("uint8 z", "float t = {0.07}, uint8 z")
    case = fixed(text, [{"x": np.ones((2, 8), np.float32)}], evaluator)
    assert "OP277" not in applied(case)
    assert "OP275" in applied(case)


ADD = """<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]> agraph (uint8[64,64] a, uint8[64,64] b) => (uint8[64,64] y)
    <float one = {0.1}, float two = {0.05}, float out = {0.04}, uint8 z = {11}> { y = com.microsoft.QLinearAdd(a, one, z, b, two, z, out, z) }"""


def test_a_sum_may_be_off_by_one_step_and_no_more(evaluator: Evaluator) -> None:
    random = np.random.default_rng(1)
    feed = {name: random.integers(0, 256, (64, 64)).astype(np.uint8) for name in ("a", "b")}
    case = fixed(ADD, [feed], evaluator)
    assert "OP276" not in applied(case)
    case = fixed(ADD, [feed], evaluator, ("OP276",))
    assert "OP276" in applied(case)
    step = next(step for step in case.record.steps if step.code == "OP276")
    assert step.proof is not None
    assert step.proof.max_abs <= 1


def test_steps_are_counted_for_integers_only() -> None:
    from jumar.proof.metrics import compare, proof_of

    one, other = np.array([3, 4], np.uint8), np.array([3, 5], np.uint8)
    assert not proof_of([compare(one, other)], 1, 0.05).passed
    assert proof_of([compare(one, other)], 1, 0.05, steps=1).passed
    assert not proof_of([compare(one, other + np.uint8(1))], 1, 0.05, steps=1).passed
    assert not proof_of([compare(np.float32([0.0]), np.float32([1.0]))], 1, 0.05, steps=1).passed
    assert not proof_of([compare(np.array([True]), np.array([False]))], 1, 0.05, steps=1).passed


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_dynamically_quantised_lstm_becomes_one_of_floats(direction: str, evaluator: Evaluator) -> None:
    import onnx
    from onnx import helper, numpy_helper

    random, ways = np.random.default_rng(2), 2 if direction == "bidirectional" else 1
    weights = {
        "w": random.integers(-127, 128, (ways, 6, 32)).astype(np.int8),
        "r": random.integers(-127, 128, (ways, 8, 32)).astype(np.int8),
        "b": (random.standard_normal((ways, 64)) * 0.1).astype(np.float32),
        "ws": np.full(ways, 0.004, np.float32),
        "wz": np.zeros(ways, np.int8),
        "rs": np.full(ways, 0.004, np.float32),
        "rz": np.zeros(ways, np.int8),
    }
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"],
        ["y"],
        domain="com.microsoft",
        hidden_size=8,
        direction=direction,
        name="lstm",
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [5, 2, 6])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [5, ways, 2, 8])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    imports = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    model = ir.from_proto(helper.make_model(graph, opset_imports=imports, ir_version=8))
    x = random.standard_normal((5, 2, 6)).astype(np.float32)
    case = fix(model, soc=SOC, feeds=FeedSet(({"x": x},), "user"), evaluator=evaluator, unsafe=["OP279"])
    assert "OP279" in applied(case)
    assert "com.microsoft" not in case.model.opset_imports
    expected, found = evaluator.run(model, {"x": x})["y"], evaluator.run(case.model, {"x": x})["y"]
    assert 0 < np.abs(found - expected).max() <= 0.05 * np.abs(expected).max()


def test_integers_are_not_folded_into_scaled_weights(evaluator: Evaluator) -> None:
    """A factor before a rounding stays where it is: in the weights it would decide ties the other way."""
    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,4] x) => (float[1,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float s = {0.3}> {
        p = MatMul(x, w) m = Mul(p, s) y = Round(m) }"""
    case = fixed(text, [{"x": np.ones((1, 4), np.float32)}], evaluator)
    assert "Mul" in [node.op_type for node in case.model.graph]


DYNAMIC = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,4] x) => (float[2,2] y) <int8[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float s = {0.1},
    float[3] three = {1, 2, 3}> { q, a, z = DynamicQuantizeLinear(x) p = MatMulInteger(q, w, z) c = Cast<to = 1>(p) BODY }"""


@pytest.mark.parametrize(
    "body", ["y = Mul(c, c)", "b = Mul(a, three) y = Mul(c, b)", "b = Mul(a, a) y = Mul(c, b)", "b = Mul(s, s) y = Mul(c, b)"]
)
def test_what_only_looks_like_a_dynamic_product_is_left_alone(body: str) -> None:
    record = check(ir.from_onnx_text(DYNAMIC.replace("BODY", body)), soc=SOC).record
    assert "OP279" not in {finding.code for finding in record.findings}
    good = check(ir.from_onnx_text(DYNAMIC.replace("BODY", "b = Mul(a, s) y = Mul(c, b)")), soc=SOC).record
    assert "OP279" in {finding.code for finding in good.findings}


@pytest.mark.parametrize("value", [0.0, 5.0, -5.0])
def test_one_value_alone_is_scaled_as_the_runtime_does(value: float, evaluator: Evaluator) -> None:
    """Zeros have no range: ONNX Runtime scales them by 1."""
    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x) => (float[2,3] y, float[1] t) <int64[1] one = {1}> {
        q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, z) t = Reshape(s, one) }"""
    random = {"x": np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)}
    case = fix(ir.from_onnx_text(text), target="mdc510pro", feeds=FeedSet((random,), "user"), evaluator=evaluator)
    assert not {"DynamicQuantizeLinear", "QuantizeLinear"} & {node.op_type for node in case.model.graph}
    feed = {"x": np.full((2, 3), value, np.float32)}
    found, expected = evaluator.run(case.model, feed), evaluator.run(ir.from_onnx_text(text), feed)
    assert np.array_equal(found["t"], expected["t"])
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-6)
