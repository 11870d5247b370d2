"""Loop: trips that are known are unrolled, what is not known stays, and what need not go round does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from control_cases import OPSETS, X, assert_same, kinds_in, model_of, ops_of, simplified
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator
from jumar.graph.simplify import Journal, loops, simplify_graph

# Trip count and conditions come from the head; carries s, stacks e.
SUM = """agraph (float[3] x{inputs}) => (float[3] y, float[{trips},3] z) <{weights}> {{
    y, z = Loop({count}, {start}, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[3] s_out, float[3] e)
        <float[3] w = {{0.5, 2, -1}}> {{
        on_out = {goes_on}
        f = Cast<to = 1>(i)
        q = Mul(s, w)
        s_out = Add(q, f)
        e = Exp(s_out)
    }}>
}}"""


def sum_of(trips: Any = 3, count: str = "n", start: str = "yes", goes_on: str = "Identity(on)", weights: str = "", inputs: str = "") -> str:
    given = [f"int64 n = {{{trips}}}"] if not inputs else []
    given += ["bool yes = {1}", "bool no = {0}", *([weights] if weights else [])]
    return SUM.format(
        inputs=inputs, trips="N" if inputs else max(trips, 0), weights=", ".join(given), count=count, start=start, goes_on=goes_on
    )


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("trips", [-2, 0, 1, 4])
@pytest.mark.parametrize(("start", "goes_on"), [("yes", "Or(on, no)"), ("", "Identity(yes)")])
def test_a_known_number_of_trips_is_unrolled(opset: int, trips: int, start: str, goes_on: str, evaluator: Evaluator) -> None:
    model = model_of(sum_of(trips, start=start, goes_on=goes_on), opset)
    after, _ = simplified(model, evaluator, {"x": X})
    assert "Loop" not in ops_of(after)
    assert ops_of(after).count("Exp") == max(trips, 0)
    assert ops_of(after).count("Concat") == (trips > 1)
    assert len([value for value in after.graph.initializers.values() if value.shape == [3]]) == (trips > 0)  # the copies share the weight


@pytest.mark.parametrize(
    ("text", "trips"),
    [
        (sum_of(4, start="no"), 0),
        (sum_of(0, count="n", inputs=", int64 n", start="no"), 0),  # whatever is fed
        (sum_of(4, goes_on="Identity(no)"), 1),
        (sum_of(4, count="", goes_on="Identity(no)"), 1),
        (sum_of(9, goes_on="Less(i, two)", weights="int64 two = {2}"), 3),
        (sum_of(2, goes_on="Less(i, two)", weights="int64 two = {7}"), 2),
    ],
)
def test_a_condition_that_is_known_ends_the_loop(text: str, trips: int, evaluator: Evaluator) -> None:
    model = model_of(text.replace("float[4,3] z", "float[N,3] z").replace("float[9,3] z", "float[N,3] z"))
    feed: dict[str, Any] = {"x": X, **({"n": np.array(5)} if "int64 n)" in text else {})}
    after, _ = simplified(model, evaluator, feed)
    assert "Loop" not in ops_of(after)
    assert ops_of(after).count("Exp") == trips


def test_a_while_loop_that_counts(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x) => (float[3] y, int64 k) <int64 first = {1}, int64 two = {2}, int64 limit = {50}, bool yes = {1}> {
            y, k = Loop("", yes, x, first) <body = b (int64 i, bool on, float[3] s, int64 j) => (bool on_out, float[3] s_out, int64 j_out) {
                s_out = Sin(s)
                j_out = Mul(j, two)
                on_out = Less(j_out, limit)
            }>
        }""".replace('""', "")
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert ops_of(after).count("Sin") == 6
    assert "Loop" not in ops_of(after)


@pytest.mark.parametrize("goes_on", ["Less(total, limit)", "Identity(c)"])
def test_a_condition_of_the_data_stays(goes_on: str, evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[3] x, bool c) => (float[3] y) <int64 n = {{5}}, bool yes = {{1}}, float limit = {{9}}> {{
            y = Loop(n, yes, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[3] s_out) {{
                s_out = Add(s, s)
                total = ReduceMax<keepdims = 0>(s_out)
                on_out = {goes_on}
            }}>
        }}"""
    )
    after, _ = simplified(model, evaluator, *({"x": X, "c": np.array(c)} for c in (True, False)))
    assert "Loop" in ops_of(after)


def test_a_number_of_trips_that_is_fed_stays(evaluator: Evaluator) -> None:
    model = model_of(sum_of(inputs=", int64 n"))
    after, _ = simplified(model, evaluator, *({"x": X, "n": np.array(n)} for n in (-1, 0, 1, 4)))
    assert "Loop" in ops_of(after)


def test_a_loop_that_would_grow_beyond_the_limit_stays(evaluator: Evaluator) -> None:
    """Four nodes and one result: 200 trips are 1,000 nodes, and are made; 201 are not."""
    assert "Loop" not in ops_of(simplified(model_of(sum_of(200)), evaluator, {"x": X})[0])
    assert "Loop" in ops_of(simplified(model_of(sum_of(201)), evaluator, {"x": X})[0])
    assert loops.UNROLL_LIMIT == 1000
    assert "Loop" in ops_of(simplified(model_of(sum_of(2**62)), evaluator)[0])


def test_a_loop_that_starts_a_seed_over_stays(evaluator: Evaluator) -> None:
    text = """agraph (float[3] x) => (float[3] y) <int64 n = {TRIPS}, bool yes = {1}> {
        y = Loop(n, yes, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[3] s_out) {
            on_out = Identity(on)
            r = RandomNormalLike<seed = 1.0>(s)
            s_out = Add(s, r)
        }>
    }"""
    assert "Loop" in ops_of(simplified(model_of(text.replace("TRIPS", "3")), evaluator, {"x": X})[0])
    assert "Loop" not in ops_of(simplified(model_of(text.replace("TRIPS", "1")), evaluator, {"x": X})[0])


def test_an_empty_result_needs_a_known_shape(evaluator: Evaluator) -> None:
    text = """agraph (float[A] x) => (float[A] y, float[N,B] z) <int64 n = {0}, bool yes = {1}> {
        y, z = Loop(n, yes, x) <body = b (int64 i, bool on, float[D] s) => (bool on_out, float[E] s_out, float[F] e) {
            on_out = Identity(on)
            s_out = Concat<axis = 0>(s, s)
            e = Exp(s)
        }>
    }"""
    assert "Loop" in ops_of(simplified(model_of(text), evaluator, {"x": X})[0])


def test_a_carried_tensor_may_grow(evaluator: Evaluator) -> None:
    """The body declares a size that only the first trip has."""
    model = model_of(
        """agraph (float[3] x) => (float[N] y, int64[1] k) <int64 n = {3}, bool yes = {1}> {
            y = Loop(n, yes, x) <body = b (int64 i, bool on, float[D] s) => (bool on_out, float[E] s_out) {
                on_out = Identity(on)
                h = Exp(s)
                s_out = Concat<axis = 0>(s, h)
            }>
            k = Shape(y)
        }"""
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert "Loop" not in ops_of(after)


def test_tensors_that_change_places(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x) => (float[3] p, float[3] q) <int64 n = {3}, bool yes = {1}> {
            h = Exp(x)
            p, q = Loop(n, yes, x, h) <body = b (int64 i, bool on, float[3] s, float[3] t) => (bool on, float[3] t, float[3] s) { }>
        }"""
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert "Loop" not in ops_of(after)


@pytest.mark.parametrize("count", [-1, 0, 1, 3])
def test_what_is_passed_on_unchanged_is_read_from_outside(count: int, evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x, int64 n) => (float[3] y, float[3] u, float[N,3] z) <bool yes = {1}> {
            h = Exp(x)
            y, u, z = Loop(n, yes, x, h) <body = b (int64 i, bool on, float[3] s, float[3] t) => (bool on_out, float[3] s_out, float[3] t_out, float[3] t) {
                on_out = Identity(on)
                t_out = Identity(t)
                s_out = Mul(s, t)
            }>
        }"""
    )
    after, journal = simplified(model, evaluator, {"x": X, "n": np.array(count)})
    assert "loop-invariant" in kinds_in(journal)
    loop = next(node for node in after.graph if node.op_type == "Loop")
    assert len(loop.inputs) == 3


def test_a_loop_that_changes_nothing_goes(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x, int64 n) => (float[3] y) <bool yes = {1}> {
            h = Exp(x)
            y = Loop(n, yes, h) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[3] s) { on_out = Identity(on) }>
        }"""
    )
    assert ops_of(simplified(model, evaluator, {"x": X, "n": np.array(2)})[0]) == ["Exp"]


def test_what_nobody_reads_is_not_carried(evaluator: Evaluator) -> None:
    """t and v are read by each other and by a result nobody reads; w is read by the condition."""
    model = model_of(
        """agraph (float[3] x, int64 n) => (float[3] y) <bool yes = {1}, float nine = {9}> {
            m = ReduceMax<keepdims = 0>(x)
            y, p, q, r, z = Loop(n, yes, x, x, x, m) <
                body = b (int64 i, bool on, float[3] s, float[3] t, float[3] v, float w)
                      => (bool on_out, float[3] s_out, float[3] t_out, float[3] v_out, float w_out, float[3] e) {
                s_out = Sin(s)
                t_out = Cos(v)
                v_out = Tan(t)
                e = Add(t, v)
                w_out = Add(w, w)
                on_out = Less(w_out, nine)
            }>
        }"""
    )
    after, journal = simplified(model, evaluator, *({"x": X, "n": np.array(n)} for n in (0, 1, 8)))
    assert "unused-loop-value" in kinds_in(journal)
    assert not {"Cos", "Tan"} & {*ops_of(after)}
    assert "Loop" in ops_of(after)


def test_a_body_within_a_body_has_names_of_its_own_in_every_copy(evaluator: Evaluator) -> None:
    """The inner If stays (its condition is fed), once for each trip; it reads the counter, the carried tensor and a weight of its own."""
    model = model_of(
        """agraph (float[3] x, bool c) => (float[3] y) <int64 n = {3}, bool yes = {1}> {
            y = Loop(n, yes, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[3] s_out) {
                on_out = Identity(on)
                s_out = If(c) <
                    then_branch = t () => (float[3] p) <float[3] w = {1, 2, 3}> { f = Cast<to = 1>(i) g = Add(s, f) p = Mul(g, w) },
                    else_branch = e () => (float[3] q) { m = Neg(s) q = Sub(m, x) }
                >
            }>
        }"""
    )
    after, _ = simplified(model, evaluator, *({"x": X, "c": np.array(c)} for c in (True, False)))
    assert ops_of(after).count("If") == 3
    assert sum("w" in name for graph in after.graphs() for name in graph.initializers) == 1


def test_sequences_that_a_loop_fills(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x) => (float[N] y, float[M,3] z, int64 k) <int64 n = {3}, bool yes = {1}> {
            empty = SequenceEmpty<dtype = 1>()
            s = Loop(n, yes, empty) <body = b (int64 i, bool on, seq(float[3]) s) => (bool on_out, seq(float[3]) s_out) {
                on_out = Identity(on)
                f = Cast<to = 1>(i)
                h = Add(x, f)
                s_out = SequenceInsert(s, h)
            }>
            y = ConcatFromSequence<axis = 0>(s)
            z = ConcatFromSequence<axis = 0, new_axis = 1>(s)
            k = SequenceLength(s)
        }"""
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert not [op for op in ops_of(after) if "Sequence" in op or op == "Loop"]


def test_a_trip_left_out_is_noticed(evaluator: Evaluator) -> None:
    """Planted error: one trip less gives other values in both outputs."""
    model, wrong = model_of(sum_of(4).replace("float[4,3]", "float[N,3]")), model_of(sum_of(3).replace("float[3,3]", "float[N,3]"))
    simplify_graph(wrong, evaluator)
    with pytest.raises(AssertionError):
        assert_same(model, wrong, evaluator, {"x": X})


BINARY = ("Add", "Sub", "Mul", "Min", "Max")


@st.composite
def loop_models(draw: st.DrawFn) -> str:
    """A loop with two carried tensors, a result, a counter that may end it, captures, and an If inside."""
    names, lines = ["s", "t", "f", "x", "h"], []
    for index in range(draw(st.integers(1, 5))):
        first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        if draw(st.integers(0, 4)) == 0:
            condition = draw(st.sampled_from(["c", "yes", "odd"]))
            lines.append(
                f"v{index} = If({condition}) <then_branch = t{index} () => (float[3] a) {{ a = Neg({first}) }}, "
                f"else_branch = e{index} () => (float[3] a) {{ a = Identity({second}) }}>"
            )
        else:
            lines.append(f"v{index} = {draw(st.sampled_from(BINARY))}({first}, {second})")
        names.append(f"v{index}")
    outputs = [draw(st.sampled_from(names)) for _ in range(3)]
    goes_on = draw(st.sampled_from(["Identity(on)", "Identity(yes)", "Less(i, two)", "Not(odd)", "Identity(c)"]))
    trips = draw(st.integers(-1, 5))
    count, inputs = draw(st.sampled_from([("m", ""), ("n", ", int64 n")]))
    unread = draw(st.booleans())
    return f"""agraph (float[3] x, bool c{inputs}) => (float[3] y, float[N,3] z{"" if unread else ", float[3] u"})
        <int64 m = {{{trips}}}, bool yes = {{1}}, int64 two = {{2}}, int64 one = {{1}}> {{
        h = Sin(x)
        y, u, z = Loop({count}, yes, x, h) <body = b (int64 i, bool on, float[3] s, float[3] t)
                => (bool on_out, float[3] s_out, float[3] t_out, float[3] e) {{
            k = Mod(i, two)
            odd = Equal(k, one)
            g = Cast<to = 1>(i)
            f = Add(x, g)
            {" ".join(lines)}
            on_out = {goes_on}
            s_out = Identity({outputs[0]})
            t_out = Identity({outputs[1]})
            e = Identity({outputs[2]})
        }}>
    }}"""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=loop_models(), opset=st.sampled_from(OPSETS), trips=st.integers(-1, 4), condition=st.booleans())
def test_any_loop_computes_the_same(text: str, opset: int, trips: int, condition: bool, evaluator: Evaluator) -> None:
    model = model_of(text, opset)
    feed: dict[str, Any] = {"x": X, "c": np.array(condition)}
    if any(value.name == "n" for value in model.graph.inputs):
        feed["n"] = np.array(trips)
    simplified(model, evaluator, feed)


def test_kinds_can_be_refused(evaluator: Evaluator) -> None:
    model = model_of(sum_of(2))
    name = next(node for node in model.graph if node.op_type == "Loop").name or ""
    journal = simplify_graph(model, evaluator, journal=Journal(refused=frozenset({("unrolled-loop", name or "Loop -> y")})))
    assert "Loop" in ops_of(model)
    assert not [rewrite for rewrite in journal.rewrites if rewrite.kind == "unrolled-loop"]
    assert isinstance(model.graph, ir.Graph)
