"""If on values of the run time: both branches are computed, nothing of the other one leaks, and what could fail stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, all_nodes, copy_model
from jumar.graph.both_branches import compute_both, switch_of
from jumar.graph.ranges import value_ranges

NASTY = np.array([[np.nan, np.inf, -np.inf], [-1.5, 0.0, 2.0]], np.float32)


def model_of(text: str, opset: int = 13) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def rewritten(model: ir.Model, evaluator: Evaluator, *feeds: dict[str, Any], declared: Any = None) -> tuple[list[str], list[str]]:
    """Operators left and reasons; the copy is valid and gives the same bits on all feeds."""
    after = copy_model(model)
    _, reasons = compute_both(after, lambda copy: value_ranges(copy, declared))
    onnx.checker.check_model(ir.to_proto(after), full_check=True)
    for feed in feeds:
        assert_same(model, after, evaluator, feed)
    return [node.op_type for node in all_nodes(after)], [str(reason) for reason in reasons.values()]


def assert_same(before: ir.Model, after: ir.Model, evaluator: Evaluator, feed: dict[str, Any]) -> None:
    expected, found = evaluator.run(before, feed), evaluator.run(after, feed)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def choice(then: str, other: str, kind: str = "float[2,3]", inputs: str = "float[2,3] x, bool c", weights: str = "") -> str:
    return f"""agraph ({inputs}) => ({kind} y) {weights} {{
        y = If (c) <then_branch = t () => ({kind} a) {{ {then} }}, else_branch = e () => ({kind} b) {{ {other} }}>
    }}"""


def feeds(**more: Any) -> list[dict[str, Any]]:
    return [{"x": NASTY, "c": np.array(value), **more} for value in (True, False)]


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21])
def test_nan_of_the_branch_not_taken_does_not_leak(opset: int, evaluator: Evaluator) -> None:
    text = choice("a = Identity(x)", "z = Sub(x, x) b = Div(x, z)")
    assert "If" not in rewritten(model_of(text, opset), evaluator, *feeds())[0]


@pytest.mark.parametrize("kind", ["float", "double", "float16", "int64", "int32", "uint8", "int8", "int16", "bool", "uint32"])
def test_every_type_a_where_must_carry(kind: str, evaluator: Evaluator) -> None:
    number = {"float": 1, "double": 11, "float16": 10, "int64": 7, "int32": 6, "uint8": 2, "int8": 3, "int16": 5, "bool": 9, "uint32": 12}[
        kind
    ]
    text = choice(f"p = Abs(x) a = Cast<to = {number}>(p)", f"q = Exp(x) b = Cast<to = {number}>(q)", f"{kind}[2,3]")
    x = np.array([[0, 1, 2], [3, 0.5, 4]], np.float32)
    model = model_of(text)
    assert "If" not in rewritten(model, evaluator, *({"x": x, "c": np.array(c)} for c in (True, False)))[0]


def test_a_condition_with_one_dimension_and_a_scalar_result(evaluator: Evaluator) -> None:
    text = choice("a = ReduceMax<keepdims = 0>(x)", "b = ReduceMin<keepdims = 0>(x)", "float", "float[2,3] x, bool[1] c")
    clean = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert "If" not in rewritten(model_of(text), evaluator, *({"x": clean, "c": np.array([c])} for c in (True, False)))[0]


def test_one_within_another_and_names_that_both_branches_use(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[2,3] x, bool c, bool d) => (float[2,3] y, float[2,3] z) {
            y, z = If (c) <
                then_branch = t () => (float[2,3] a, float[2,3] same) { m = Exp(x) a = If (d) <
                    then_branch = tt () => (float[2,3] p) { n = Neg(m) p = Abs(n) },
                    else_branch = te () => (float[2,3] q) { n = Sin(m) q = Abs(n) }
                > same = Neg(m) },
                else_branch = e () => (float[2,3] a, float[2,3] other) { m = Cos(x) a = Identity(m) other = Identity(x) }
            >
        }"""
    )
    cases = [{"x": NASTY, "c": np.array(c), "d": np.array(d)} for c in (True, False) for d in (True, False)]
    assert "If" not in rewritten(model, evaluator, *cases)[0]


@pytest.mark.parametrize(
    ("then", "inputs", "word"),
    [
        ("a = Gather(x, i)", "float[2,3] x, bool c, int64[2] i", "places"),
        ("k = Cast<to = 7>(x) r = Div(k, j) a = Cast<to = 1>(r)", "float[2,3] x, bool c, int64[3] j", "may be 0"),
        ("k = Cast<to = 7>(x) r = Mod(k, j) a = Cast<to = 1>(r)", "float[2,3] x, bool c, int64[3] j", "may be 0"),
        ("r = RandomNormalLike(x) a = Add(x, r)", "float[2,3] x, bool c", "RandomNormalLike"),
        ("a = Reshape(x, s)", "float[2,3] x, bool c, int64[2] s", "not fixed"),
        ("a = CumSum(x, j)", "float[2,3] x, bool c, int64 j", "CumSum"),
        ("s = SequenceConstruct(x, x) a = SequenceAt(s, j)", "float[2,3] x, bool c, int64 j", "SequenceConstruct"),
        (
            "m = NonZero(x) n = Shape(m) k = Cast<to = 1>(n) t = ReduceMax<keepdims = 0>(k) a = Add(x, t)",
            "float[2,3] x, bool c",
            "NonZero",
        ),
    ],
)
def test_what_could_fail_stays(then: str, inputs: str, word: str, evaluator: Evaluator) -> None:
    ops, reasons = rewritten(model_of(choice(then, "b = Neg(x)", inputs=inputs)), evaluator)
    assert "If" in ops
    assert any(word in reason for reason in reasons), reasons


def test_an_index_that_is_known_to_be_within_its_axis(evaluator: Evaluator) -> None:
    """By a declared range, by what computes it, or as a constant; a range that is too wide does not do."""
    text = choice("a = Gather(x, i)", "b = Neg(x)", inputs="float[2,3] x, bool c, int64[2] i")
    cases = feeds(i=np.array([1, -2]))
    assert "If" not in rewritten(model_of(text), evaluator, *cases, declared={"i": (-2, 1)})[0]
    assert "If" in rewritten(model_of(text), evaluator, *cases, declared={"i": (0, 2)})[0]
    clipped = text.replace("a = Gather(x, i)", "k = Min(i, one) l = Max(k, zero) a = Gather(x, l)").replace(
        "=> (float[2,3] y)  {", "=> (float[2,3] y) <int64 one = {1}, int64 zero = {0}> {"
    )
    assert "If" not in rewritten(model_of(clipped), evaluator, *feeds(i=np.array([70, -5])))[0]


def test_an_index_that_only_a_branch_uses_is_not_taken_to_be_valid(evaluator: Evaluator) -> None:
    """What indexes an axis in a branch may be anything while the branch is not taken."""
    text = choice("a = Gather(x, i)", "b = Neg(x)", inputs="float[2,3] x, bool c, int64[2] i")
    evaluator.run(model_of(text), {"x": NASTY, "c": np.array(False), "i": np.array([99, 99])})
    assert "If" in rewritten(model_of(text), evaluator)[0]


def test_shapes_that_differ_or_are_only_declared_stay(evaluator: Evaluator) -> None:
    differ = "agraph (float[2,3] x, bool c) => (float[m,3] y) { y = If (c) <then_branch = t () => (float[2,3] a) { a = Neg(x) }, "
    differ += "else_branch = e () => (float[4,3] b) { b = Concat<axis = 0>(x, x) }> }"
    assert "shapes" in rewritten(model_of(differ), evaluator)[1][0]
    claimed = choice("s = Cast<to = 7>(n) a = Slice(x, zero, s)", "b = Neg(x)", inputs="float[2,3] x, bool c, float[1] n")
    claimed = claimed.replace("=> (float[2,3] y)  {", "=> (float[2,3] y) <int64[1] zero = {0}> {")
    assert "not fixed" in rewritten(model_of(claimed), evaluator)[1][0]


def test_a_switch_between_two_ways_of_working_stays_and_is_named(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[2,3] x, int64 rate) => (float[2,3] y) <int64 wide = {16000}, float[3,3] w = {1,0,0,0,2,0,0,0,3}> {
            c = Equal(rate, wide)
            y = If (c) <then_branch = t () => (float[2,3] a) { a = MatMul(x, w) }, else_branch = e () => (float[2,3] b) { b = Neg(x) }>
        }"""
    )
    ops, reasons = rewritten(model, evaluator)
    assert "If" in ops
    assert "`rate` only switches" in reasons[0]
    assert switch_of(model.graph[1], model) == ("rate", [16000])


def test_a_large_branch_stays(evaluator: Evaluator) -> None:
    chain = "t0 = Neg(x) " + " ".join(f"t{index + 1} = Sin(t{index})" for index in range(210)) + " a = Neg(t210)"
    assert "nodes" in rewritten(model_of(choice(chain, "b = Neg(x)")), evaluator)[1][0]


UNARY = ["Neg", "Abs", "Exp", "Sqrt", "Log", "Relu", "Reciprocal", "Sin"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.lists(st.sampled_from(UNARY), min_size=1, max_size=4),
    second=st.lists(st.sampled_from(UNARY), min_size=1, max_size=4),
    opset=st.sampled_from([9, 11, 15, 18]),
    threshold=st.floats(-2, 2, width=32),
)
def test_random_branches(first: list[str], second: list[str], opset: int, threshold: float, evaluator: Evaluator) -> None:
    def chain(ops: list[str], end: str) -> str:
        names = ["x", *(f"{end}{index}" for index in range(len(ops) - 1)), end]
        return " ".join(f"{after} = {op}({before})" for op, before, after in zip(ops, names, names[1:], strict=False))

    model = model_of(
        f"""agraph (float[2,3] x, float s) => (float[2,3] y) <float limit = {{{threshold}}}> {{
            c = Greater(s, limit)
            y = If (c) <then_branch = t () => (float[2,3] a) {{ {chain(first, "a")} }},
                        else_branch = e () => (float[2,3] b) {{ {chain(second, "b")} }}>
        }}""",
        opset,
    )
    cases = [{"x": NASTY, "s": np.array(value, np.float32)} for value in (-3, 3, np.nan, threshold)]
    assert "If" not in rewritten(model, evaluator, *cases)[0]


def test_a_choice_the_wrong_way_round_is_noticed(evaluator: Evaluator) -> None:
    """Planted error: the branches exchanged."""
    right, wrong = model_of(choice("a = Neg(x)", "b = Abs(x)")), model_of(choice("a = Abs(x)", "b = Neg(x)"))
    compute_both(wrong, value_ranges)
    with pytest.raises(AssertionError):
        assert_same(right, wrong, evaluator, feeds()[0])
