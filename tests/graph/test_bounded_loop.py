"""Loops with a bound: so many trips, of which those after the end change nothing; what has no bound or could do harm stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, all_nodes, copy_model, infer_shapes
from jumar.graph.bounded_loop import runtime_loops, trip_bound, unroll_bounded
from jumar.graph.ranges import value_ranges
from jumar.graph.simplify import simplify_graph
from jumar.verbs.fix import fix

X = np.array([1.5, -2.0, 0.25], np.float32)


def model_of(text: str, opset: int = 13) -> ir.Model:
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    infer_shapes(model)
    return model


def rewritten(model: ir.Model, evaluator: Evaluator, *feeds: dict[str, Any], declared: Any = None) -> tuple[list[str], list[str]]:
    """Operators left and reasons; the copy is valid, gives the same bits on all feeds, and so does its simplified form."""
    after = copy_model(model)
    _, reasons = unroll_bounded(after, lambda changed: value_ranges(changed, declared, implied=False))
    onnx.checker.check_model(ir.to_proto(after), full_check=True)
    for feed in feeds:
        assert_same(model, after, evaluator, feed)
    simplify_graph(after, evaluator)
    for feed in feeds:
        assert_same(model, after, evaluator, feed)
    return [node.op_type for node in all_nodes(after)], [str(reason) for reason in reasons.values()]


def assert_same(before: ir.Model, after: ir.Model, evaluator: Evaluator, feed: dict[str, Any]) -> None:
    expected, found = evaluator.run(before, feed), evaluator.run(after, feed)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def loop_of(
    body: str = "t = Sin(a) b = Add(t, x)",
    goes_on: str = "go = Identity(on)",
    count: str = "n",
    start: str = "yes",
    inputs: str = "float[3] x, int64 n",
    weights: str = "",
) -> str:
    weights = ", ".join(["bool yes = {1}", *([weights] if weights else [])])
    return f"""agraph ({inputs}) => (float[3] y) <{weights}> {{
        y = Loop ({count}, {start}, x) <body = g (int64 i, bool on, float[3] a) => (bool go, float[3] b) {{ {goes_on} {body} }}>
    }}"""


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
def test_a_trip_count_with_a_declared_range(opset: int, evaluator: Evaluator) -> None:
    model = model_of(loop_of(), opset)
    feeds = [{"x": X, "n": np.array(count)} for count in range(5)]
    ops, _ = rewritten(model, evaluator, *feeds, declared={"n": (0, 4)})
    assert "Loop" not in ops
    assert ops.count("Sin") == 4
    assert ops.count("Where") == 4


def test_trips_that_certainly_happen_need_no_choice(evaluator: Evaluator) -> None:
    feeds = [{"x": X, "n": np.array(count)} for count in (2, 3)]
    ops, _ = rewritten(model_of(loop_of()), evaluator, *feeds, declared={"n": (2, 3)})
    assert ops.count("Where") == 1


def test_negative_counts_are_no_trips(evaluator: Evaluator) -> None:
    feeds = [{"x": X, "n": np.array(count)} for count in (-3, 0, 2)]
    assert "Loop" not in rewritten(model_of(loop_of()), evaluator, *feeds, declared={"n": (-3, 2)})[0]


@pytest.mark.parametrize("shape", ["", "[1]"])
def test_a_loop_that_ends_early(shape: str, evaluator: Evaluator) -> None:
    """A constant number of trips, and a condition on the data that ends it before; both forms of a scalar."""
    goes_on = "m = ReduceMax<keepdims = 0>(b) " + ("go = Less(m, s)" if not shape else "l = Less(m, s) go = Reshape(l, one)")
    text = (
        loop_of(
            body="t = Abs(a) b = Add(t, t)",
            goes_on="",
            count="five",
            inputs="float[3] x, float s",
            weights="int64 five = {5}, int64[1] one = {1}",
        )
        .replace("b = Add(t, t)", f"b = Add(t, t) {goes_on}")
        .replace("bool go,", f"bool{shape} go,")
        .replace("bool on", f"bool{shape} on")
    )
    text = text.replace("bool yes", f"bool{shape} yes")
    feeds = [{"x": X, "s": np.array(limit, np.float32)} for limit in (0, 5, 9, 17, 33, 1e9, np.nan)]
    assert "Loop" not in rewritten(model_of(text), evaluator, *feeds)[0]


def test_a_start_that_is_computed(evaluator: Evaluator) -> None:
    model = model_of(loop_of(count="two", start="c", inputs="float[3] x, bool c", weights="int64 two = {2}"))
    assert "Loop" not in rewritten(model, evaluator, *({"x": X, "c": np.array(value)} for value in (True, False)))[0]


def test_a_while_loop_that_counts_to_a_number_with_a_range(evaluator: Evaluator) -> None:
    """No trip count at all: the condition compares a counter with an input."""
    text = """agraph (float[3] x, int64 n) => (float[3] y) <int64 zero = {0}, int64 one = {1}, int64 step = {3}> {
        more = Greater(n, zero)
        k, y = Loop (, more, zero, x) <body = g (int64 i, bool on, int64 p, float[3] a) => (bool go, int64 q, float[3] b) {
            q = Add(p, step) go = Less(q, n) b = Sin(a)
        }>
    }"""
    model = model_of(text)
    feeds = [{"x": X, "n": np.array(count)} for count in range(11)]
    ops, _ = rewritten(model, evaluator, *feeds, declared={"n": (0, 10)})
    assert "Loop" not in ops
    assert ops.count("Sin") == 4
    assert "bounds" in rewritten(model, evaluator)[1][0]


def test_nan_of_a_trip_after_the_end_does_not_leak(evaluator: Evaluator) -> None:
    body = "o = Sub(a, a) t = Div(a, o) b = Where(last, x, t)".replace("last", "l")
    text = loop_of(body=f"l = Less(i, two) {body}", weights="int64 two = {2}")
    feeds = [{"x": X, "n": np.array(count)} for count in range(5)]
    assert "Loop" not in rewritten(model_of(text), evaluator, *feeds, declared={"n": (0, 4)})[0]


def test_the_number_of_the_trip_indexes_a_table(evaluator: Evaluator) -> None:
    """Within the table for every trip up to the bound; beyond it the loop stays, since a trip after the end would fail."""
    text = loop_of(body="r = Gather(w, i) b = Add(a, r)", weights="float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}")
    feeds = [{"x": X, "n": np.array(count)} for count in range(5)]
    assert "Loop" not in rewritten(model_of(text), evaluator, *feeds, declared={"n": (0, 4)})[0]
    ops, reasons = rewritten(model_of(text), evaluator, *feeds, declared={"n": (0, 5)})
    assert "Loop" in ops
    assert "places 4 to 4 of an axis of 4" in reasons[0]


def test_an_if_in_the_body(evaluator: Evaluator) -> None:
    body = """p = ReduceMax<keepdims = 0>(a) c = Greater(p, s)
        b = If (c) <then_branch = t () => (float[3] u) { u = Neg(a) }, else_branch = e () => (float[3] v) { v = Add(a, x) }>"""
    text = loop_of(body=body, inputs="float[3] x, int64 n, float s")
    feeds = [{"x": X, "n": np.array(count), "s": np.array(limit, np.float32)} for count in (0, 1, 3) for limit in (1.0, 4.0)]
    assert not {"If", "Loop"} & {*rewritten(model_of(text), evaluator, *feeds, declared={"n": (0, 3)})[0]}


@pytest.mark.parametrize("kind", ["int64", "bool", "float16", "int32"])
def test_other_types_are_carried(kind: str, evaluator: Evaluator) -> None:
    number = {"int64": 7, "bool": 9, "float16": 10, "int32": 6}[kind]
    step = "q = Not(p)" if kind == "bool" else "q = Add(p, p)"
    text = f"""agraph (float[3] x, int64 n) => ({kind}[3] y) <bool yes = {{1}}> {{
        s = Cast<to = {number}>(x)
        y = Loop (n, yes, s) <body = g (int64 i, bool on, {kind}[3] p) => (bool go, {kind}[3] q) {{ go = Identity(on) {step} }}>
    }}"""
    feeds = [{"x": X, "n": np.array(count)} for count in range(4)]
    assert "Loop" not in rewritten(model_of(text), evaluator, *feeds, declared={"n": (0, 3)})[0]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (loop_of(), "bounds"),
        (loop_of(body="r = RandomNormalLike(a) b = Add(a, r)"), "random"),
        (loop_of(body="k = Cast<to = 7>(a) d = Sub(k, i) l = Div(k, d) b = Cast<to = 1>(l)"), "may be 0"),
        (
            """agraph (float[3] x, int64 n) => (float[m] y) <bool yes = {1}> {
            y = Loop (n, yes, x) <body = g (int64 i, bool on, float[p] a) => (bool go, float[q] b)
                { go = Identity(on) b = Concat<axis = 0>(a, x) }> }""",
            "shape",
        ),
        (
            """agraph (float[3] x, int64 n) => (float[m,3] z) <bool yes = {1}> {
            y, z = Loop (n, yes, x) <body = g (int64 i, bool on, float[3] a) => (bool go, float[3] b, float[3] e)
                { go = Identity(on) b = Sin(a) e = Neg(b) }> }""",
            "stacks",
        ),
    ],
)
def test_what_cannot_be_written_out_stays(text: str, word: str, evaluator: Evaluator) -> None:
    ops, reasons = rewritten(model_of(text), evaluator, declared=None if word == "bounds" else {"n": (0, 3)})
    assert "Loop" in ops
    assert word in reasons[0]


def test_a_bound_that_would_make_too_many_nodes_stays(evaluator: Evaluator) -> None:
    ops, reasons = rewritten(model_of(loop_of()), evaluator, declared={"n": (0, 400)})
    assert "Loop" in ops
    assert "1000 are allowed" in reasons[0]


def test_bounds_of_conditions_joined() -> None:
    text = """agraph (float[3] x, int64 n, bool c) => (float[3] y) <int64 zero = {0}, int64 one = {1}, int64 six = {6}> {
        k, y = Loop (, c, zero, x) <body = g (int64 i, bool on, int64 p, float[3] a) => (bool go, int64 q, float[3] b) {
            q = Add(p, one) l = Less(q, n) h = GreaterOrEqual(q, six) m = Not(h) o = And(l, c) go = JOIN(o, m) b = Sin(a)
        }>
    }"""
    for join, declared, bound in [("And", (0, 100), 6), ("Or", (0, 10), 10), ("Or", (0, 2000), None)]:
        model = model_of(text.replace("JOIN", join))
        ranges = value_ranges(model, {"n": declared}, implied=False)
        assert trip_bound(runtime_loops(model.graph)[0], ranges.of) == bound


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lowest=st.integers(0, 2),
    more=st.integers(0, 3),
    limit=st.floats(-3, 12, width=32),
    ops=st.lists(st.sampled_from(["Neg", "Abs", "Exp", "Log", "Sin", "Reciprocal"]), min_size=1, max_size=3),
    opset=st.sampled_from([11, 14, 18]),
)
def test_random_loops(lowest: int, more: int, limit: float, ops: list[str], opset: int, evaluator: Evaluator) -> None:
    """A count and a condition together, on data with NaN and infinities."""
    names = ["a", *(f"t{index}" for index in range(len(ops)))]
    chain = " ".join(f"{after} = {op}({before})" for op, before, after in zip(ops, names, names[1:], strict=False))
    goes_on = "m = ReduceMax<keepdims = 0>(a) v = Less(m, limit) go = And(v, on)"
    text = loop_of(body=f"{chain} b = Add({names[-1]}, x)", goes_on=goes_on, weights=f"float limit = {{{limit}}}")
    feeds = [
        {"x": x, "n": np.array(count)} for count in range(lowest, lowest + more + 1) for x in (X, np.array([np.nan, 1, np.inf], np.float32))
    ]
    assert "Loop" not in rewritten(model_of(text, opset), evaluator, *feeds, declared={"n": (lowest, lowest + more)})[0]


def test_one_trip_too_many_is_noticed(evaluator: Evaluator) -> None:
    """Planted error: a bound below what the count may be."""
    model, wrong = model_of(loop_of()), model_of(loop_of())
    unroll_bounded(wrong, lambda changed: value_ranges(changed, {"n": (0, 2)}, implied=False))
    with pytest.raises(AssertionError):
        assert_same(model, wrong, evaluator, {"x": X, "n": np.array(3)})


def test_through_fix(evaluator: Evaluator) -> None:
    """A declared range bounds the loop, a bound input makes it constant, and without either the finding says what it needs."""
    model = model_of(loop_of())
    plain = fix(model, soc="Ascend310P3", evaluator=evaluator)
    found = next(finding for finding in plain.record.findings if finding.code == "GR511")
    assert "the values of `n`" in str(found.message)
    assert "--range" in str(found.remedy)
    for options in ({"ranges": {"n": (0, 3)}}, {"constants": {"n": 3}}):
        case = fix(model, soc="Ascend310P3", evaluator=evaluator, **options)
        assert "Loop" not in [node.op_type for node in all_nodes(case.model)]
        assert not {"GR506", "GR511", "OP101"} & {finding.code for finding in case.record.findings}


def test_one_loop_within_another(evaluator: Evaluator) -> None:
    """The outer one of constant trips, the inner one with a bound that the number of the outer trip gives."""
    text = """agraph (float[3] x, int64 n) => (float[3] y) <bool yes = {1}, int64 two = {2}> {
        y = Loop (two, yes, x) <body = g (int64 i, bool on, float[3] a) => (bool go, float[3] b) {
            go = Identity(on)
            m = Min(n, two)
            b = Loop (m, on, a) <body = h (int64 j, bool in, float[3] c) => (bool more, float[3] d) { more = Identity(in) d = Sin(c) }>
        }>
    }"""
    model = model_of(text)
    for count in (-1, 0, 1, 2, 7):
        case = fix(model, soc="Ascend310P3", evaluator=evaluator, select=["GR506", "GR511"])
        assert "Loop" not in [node.op_type for node in all_nodes(case.model)]
        assert_same(model, case.model, evaluator, {"x": X, "n": np.array(count)})
