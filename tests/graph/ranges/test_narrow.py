"""What becomes int32 computes the same, is valid ONNX, and takes no more Casts than it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_graphs import Drawn, graphs

from jumar.graph import Evaluator, copy_model, infer_shapes
from jumar.graph.ranges import value_ranges
from jumar.graph.ranges.narrow import NARROW, Narrowing, Unit, unit_of


def parsed(body: str, opset: int = 18) -> ir.Model:
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]> agraph {body}')
    infer_shapes(model)
    return model


def narrowed(model: ir.Model, declared: dict[str, tuple[int, int]], wanted: Any = None, *, assume: bool = False) -> tuple[ir.Model, Any]:
    copy = copy_model(model)
    narrowing = Narrowing(copy, value_ranges(copy, declared), assume=assume)
    gains: dict[Unit, int] = {unit: 1 for unit in narrowing.units if wanted is None or unit[0].op_type in wanted}
    plan = narrowing.plan(gains)
    narrowing.apply(plan)
    return copy, plan


def casts(model: ir.Model) -> int:
    return sum(node.op_type == "Cast" for node in model.graph)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(graph=graphs(), seed=st.integers(0, 99))
def test_random_graphs_compute_the_same(graph: Drawn, seed: int, evaluator: Evaluator) -> None:
    model = graph.model()
    changed, plan = narrowed(model, graph.declared)
    onnx.checker.check_model(ir.to_proto(changed), full_check=True)
    assert casts(changed) - casts(model) <= 2 * len(plan.units)  # a removed problem is worth two Casts
    assert plan.assumptions == ()
    feeds = graph.feeds(seed)
    with evaluator.session(model) as before, evaluator.session(changed) as after:
        expected, found = before.run(feeds), after.run(feeds)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


CHAIN = """(int64[6] x) => (float[6] y) <int64 one = {1}, int64 seven = {7}> {
    a = Add(x, one) b = Mod(a, seven) c = Neg(b) d = Abs(c) y = Cast<to = 1>(d) }"""


def test_a_chain_is_narrowed_with_one_cast_at_its_entry() -> None:
    changed, plan = narrowed(parsed(CHAIN), {"x": (0, 100)}, {"Mod", "Abs"})
    assert [value.dtype for value in changed.graph.inputs] == [ir.DataType.INT64]
    assert casts(changed) == 2
    assert {unit[0].op_type for unit in plan.units} >= {"Mod", "Abs", "Neg"}


def test_what_is_not_proven_stays_wide_unless_it_may_be_assumed() -> None:
    _, plan = narrowed(parsed(CHAIN), {}, {"Mod"})
    assert plan.units == frozenset()
    changed, plan = narrowed(parsed(CHAIN), {}, {"Mod"}, assume=True)
    assert {item.tensor for item in plan.assumptions} == {"x", "a"}
    assert all(item.to_dict()["lo"] == -(2**31) for item in plan.assumptions)
    assert changed.graph.inputs[0].dtype == ir.DataType.INT64


def test_a_product_that_may_wrap_around_is_never_assumed_to_fit() -> None:
    """A hash multiplies by a constant beyond int32: neither the product nor what follows may be narrowed."""
    model = parsed("(int64[6] x) => (int64[6] y) <int64 k = {2654435761}, int64 p = {1009}> { a = Mul(x, k) y = Mod(a, p) }")
    for assume in (False, True):
        _, plan = narrowed(model, {}, {"Mod"}, assume=assume)
        assert not [unit for unit in plan.units if unit[0].op_type in ("Mul", "Mod")]


def test_a_slice_bound_beyond_int32_becomes_the_end(evaluator: Evaluator) -> None:
    model = parsed(
        """(float[2,9] f, int64[9] x) => (int64[N] y)
        <int64[1] last = {9223372036854775807}, int64[1] zero = {0}, int64[1] one = {1}> {
        best = ArgMax<axis = 1, keepdims = 0>(f) start = Slice(best, zero, one) y = Slice(x, start, last, zero) }"""
    )
    changed, _ = narrowed(model, {"x": (0, 9)}, {"Slice"})
    bounds = [value.const_value.numpy().tolist() for value in changed.graph.initializers.values() if value.dtype == NARROW]
    assert [2**31 - 1] in bounds
    feeds = {"f": np.random.default_rng(1).standard_normal((2, 9)).astype(np.float32), "x": np.arange(9)}
    with evaluator.session(model) as before, evaluator.session(changed) as after:
        np.testing.assert_array_equal(after.run(feeds)["y"], before.run(feeds)["y"])


def test_inputs_that_the_standard_wants_wide_stay_wide() -> None:
    model = parsed("(float[2,3] x, int64[2] s) => (float[N,M] y) { y = Reshape(x, s) }")
    node = model.graph[0]
    assert unit_of(node, 1, 18) is None
    assert unit_of(parsed("(float[3] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }").graph[0], 1, 18) is not None


def test_a_planted_error_is_caught(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a value that does not fit were narrowed, the comparison would see it."""
    model = parsed("(int64[2] x) => (int64[2] y) <int64 m = {10}, int64 k = {4294967297}> { a = Add(x, k) y = Mod(a, m) }")
    feeds = {"x": np.array([1, 2])}
    _, plan = narrowed(model, {"x": (0, 9)}, {"Mod"})
    assert not [unit for unit in plan.units if unit[0].op_type == "Mod"]
    monkeypatch.setattr(Narrowing, "_fits", lambda *_: True)
    changed, plan = narrowed(model, {"x": (0, 9)}, {"Add", "Mod"})
    assert [unit for unit in plan.units if unit[0].op_type == "Mod"]
    with evaluator.session(model) as before, evaluator.session(changed) as after:
        assert not np.array_equal(after.run(feeds)["y"], before.run(feeds)["y"])
