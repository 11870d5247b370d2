"""If: the branch that is known to be taken, names, captures, and what the branches agree on."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from control_cases import OPSETS, X, assert_same, kinds_in, model_of, ops_of, simplified

from jumar.graph import Evaluator
from jumar.graph.simplify import simplify_graph

BOTH = [{"x": X, "c": np.array(True)}, {"x": X, "c": np.array(False)}]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("value", "op"), [(1, "Exp"), (0, "Neg")])
def test_a_constant_condition_takes_its_branch(opset: int, value: int, op: str, evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[3] x) => (float[3] y) <bool c = {{{value}}}> {{
            y = If(c) <then_branch = t () => (float[3] a) {{ a = Exp(x) }}, else_branch = e () => (float[3] b) {{ b = Neg(x) }}>
        }}""",
        opset,
    )
    after, journal = simplified(model, evaluator, {"x": X})
    assert ops_of(after) == [op]
    assert "constant-if" in kinds_in(journal)


def test_a_runtime_condition_stays(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x, bool c) => (float[3] y) {
            y = If(c) <then_branch = t () => (float[3] a) { a = Exp(x) }, else_branch = e () => (float[3] b) { b = Neg(x) }>
        }"""
    )
    after, _ = simplified(model, evaluator, *BOTH)
    assert ops_of(after) == ["If", "Exp", "Neg"]


def test_a_default_value_is_no_constant(evaluator: Evaluator) -> None:
    """The caller may feed another condition."""
    model = model_of(
        """agraph (float[3] x, bool c = {1}) => (float[3] y) {
            y = If(c) <then_branch = t () => (float[3] a) { a = Exp(x) }, else_branch = e () => (float[3] b) { b = Neg(x) }>
        }"""
    )
    assert "If" in ops_of(simplified(model, evaluator, *BOTH)[0])


@pytest.mark.parametrize("opset", OPSETS)
def test_weights_and_names_of_a_branch_move_out(opset: int, evaluator: Evaluator) -> None:
    """Both branches of the first If and the second use the names ``w`` and ``m``, which the outer graph may have only once."""
    branches = """then_branch = t () => (float[3] out) <float[3] w = {1, 2, 3}> { m = Mul(x, w) out = Exp(m) },
                  else_branch = e () => (float[3] out) <float[3] w = {4, 5, 6}> { m = Add(x, w) out = Neg(m) }"""
    model = model_of(
        f"""agraph (float[3] x, bool c) => (float[3] y, float[3] z) <bool yes = {{1}}, bool no = {{0}}> {{
            y = If(yes) <{branches}>
            a = If(no) <{branches}>
            b = If(c) <{branches}>
            z = Add(a, b)
        }}""",
        opset,
    )
    after, _ = simplified(model, evaluator, *BOTH)
    assert ops_of(after).count("If") == 1


@pytest.mark.parametrize(
    ("then", "ops"),
    [
        ("{ o = Identity(x) }", ["Identity"]),  # a graph input cannot take the output's name
        ("<float[3] o = {1, 2, 3}> { }", ["Identity"]),
        ("{ o = Identity(h) }", ["Exp", "Identity"]),  # nor can what is an output already
    ],
)
def test_an_output_that_is_no_node_of_the_branch(then: str, ops: list[str], evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[3] x) => (float[3] y, float[3] h) <bool c = {{1}}> {{
            h = Exp(x)
            y = If(c) <then_branch = t () => (float[3] o) {then}, else_branch = e () => (float[3] b) {{ b = Neg(x) }}>
        }}"""
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert sorted(ops_of(after)) == sorted({"Exp", *ops})


@pytest.mark.parametrize("opset", OPSETS)
def test_if_in_loop_in_if(opset: int, evaluator: Evaluator) -> None:
    """Everything is known: nothing but the arithmetic stays. The innermost branch reads tensors of all three scopes around it."""
    model = model_of(
        """agraph (float[3] x) => (float[3] y) <bool yes = {1}, int64 three = {3}> {
            y = If(yes) <
                then_branch = t () => (float[3] r) <bool no = {0}> {
                    e = Exp(x)
                    r = Loop(three, yes, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[3] s_out) {
                        on_out = Identity(on)
                        q = Mul(s, e)
                        s_out = If(no) <
                            then_branch = tt () => (float[3] p) { p = Neg(q) },
                            else_branch = ee () => (float[3] p) { f = Cast<to = 1>(i) g = Add(q, f) p = Sub(g, x) }
                        >
                    }>
                },
                else_branch = l () => (float[3] r) { r = Neg(x) }
            >
        }""",
        opset,
    )
    after, journal = simplified(model, evaluator, {"x": X})
    assert {"If", "Loop"} & {*ops_of(after)} == set()
    assert {"constant-if", "unrolled-loop"} <= kinds_in(journal)
    assert ops_of(after).count("Mul") == 3


def test_a_known_if_within_a_body_that_stays(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x, int64 n) => (float[3] y) <bool yes = {1}> {
            y = Loop(n, yes, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[3] s_out) {
                on_out = Identity(on)
                s_out = If(yes) <
                    then_branch = t () => (float[3] p) { p = Add(s, x) }, else_branch = e () => (float[3] p2) { p2 = Neg(s) }
                >
            }>
        }"""
    )
    after, _ = simplified(model, evaluator, *({"x": X, "n": np.array(n)} for n in (-1, 0, 3)))
    assert sorted(op for op in ops_of(after) if op != "Identity") == ["Add", "Loop"]


def test_equal_branches(evaluator: Evaluator) -> None:
    branch = "() => (float[3] {0}) <float[3] {0}w = {{1, 2, 3}}> {{ {0}a = Mul(x, {0}w) {0} = Softmax<axis = 0>({0}a) }}"
    text = """agraph (float[3] x, bool c) => (float[3] y) {{ y = If(c) <then_branch = t {}, else_branch = e {}> }}"""
    model = model_of(text.format(branch.format("p"), branch.format("q")))
    assert ops_of(simplified(model, evaluator, *BOTH)[0]) == ["Mul", "Softmax"]
    other = model_of(text.format(branch.format("p"), branch.format("q").replace("3}>", "4}>")))
    assert "If" in ops_of(simplified(other, evaluator, *BOTH)[0])


def test_branches_that_swap_the_branches_of_an_inner_if_differ(evaluator: Evaluator) -> None:
    one, other = "t{0} () => (float[3] a{0}) {{ a{0} = Exp(x) }}", "e{0} () => (float[3] b{0}) {{ b{0} = Neg(x) }}"

    def inner(first: str, second: str, tag: str) -> str:
        return f"{first} = {one.format(tag)}, {second} = {other.format(tag)}"

    model = model_of(
        f"""agraph (float[3] x, bool c, bool d) => (float[3] y) {{ y = If(c) <
            then_branch = t () => (float[3] p) {{ p = If(d) <{inner("then_branch", "else_branch", "1")}> }},
            else_branch = e () => (float[3] q) {{ q = If(d) <{inner("else_branch", "then_branch", "2")}> }}
        > }}"""
    )
    feeds = [{"x": X, "c": np.array(c), "d": np.array(d)} for c in (True, False) for d in (True, False)]
    assert ops_of(simplified(model, evaluator, *feeds)[0]).count("If") == 3


def test_outputs_on_which_the_branches_agree(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x, bool c) => (float[3] y, float[3] z, float[2] k, float[3] v) {
            h = Exp(x)
            y, z, k, w, u = If(c) <
                then_branch = t () => (float[3] a, float[3] b, float[2] d, float[3] f, float[3] g) <float[2] d = {1, 2}>
                    { a = Identity(h) b = Neg(x) f = Identity(x) g = Cos(x) },
                else_branch = e () => (float[3] a2, float[3] b2, float[2] d2, float[3] f2, float[3] g2) <float[2] d2 = {1, 2}>
                    { a2 = Identity(h) b2 = Abs(x) f2 = Identity(x) g2 = Sin(x) }
            >
            v = Add(y, w)
        }"""
    )
    after, journal = simplified(model, evaluator, *BOTH)
    assert {"agreed-output", "unused-branch-output"} <= kinds_in(journal)
    assert not {"Sin", "Cos"} & {*ops_of(after)}
    branching = next(node for node in after.graph if node.op_type == "If")
    assert [value.name for value in branching.outputs] == ["z"]


@pytest.mark.parametrize("opset", OPSETS)
def test_an_if_of_constants_selects(opset: int, evaluator: Evaluator) -> None:
    text = """agraph (bool c) => (int64[2] y) {
        y = If(c) <then_branch = t () => (int64[2] a) <int64[2] a = {1, 2}> { },
                   else_branch = e () => (int64[SIZE] b) { b = Constant<value = int64[SIZE] {VALUES}>() }>
    }"""
    feeds = [{"c": feed["c"]} for feed in BOTH]
    model = model_of(text.replace("SIZE", "2").replace("VALUES", "3, 4"), opset)
    assert ops_of(simplified(model, evaluator, *feeds)[0]) == ["Where"]
    other = model_of(text.replace("SIZE", "1").replace("VALUES", "3").replace("=> (int64[2] y)", "=> (int64[N] y)"), opset)
    assert "If" in ops_of(simplified(other, evaluator, *feeds)[0])


def test_within_a_branch_the_condition_is_known(evaluator: Evaluator) -> None:
    inner = (
        "If(c) <then_branch = t{0} () => (float[3] a{0}) {{ a{0} = Exp(x) }}, else_branch = e{0} () => (float[3] b{0}) {{ b{0} = Neg(x) }}>"
    )
    model = model_of(
        f"""agraph (float[3] x, bool c) => (float[3] y) {{ y = If(c) <
            then_branch = t () => (float[3] p) {{ s = {inner.format(1)} p = Sin(s) }},
            else_branch = e () => (float[3] q) {{ u = {inner.format(2)} q = Cos(u) }}
        > }}"""
    )
    after, _ = simplified(model, evaluator, *BOTH)
    assert sorted(ops_of(after)) == ["Cos", "Exp", "If", "Neg", "Sin"]


def test_an_if_nobody_reads_lets_go_of_what_it_read(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x, bool c) => (float[3] y) {
            h = Exp(x)
            z = If(c) <then_branch = t () => (float[3] a) { a = Neg(h) }, else_branch = e () => (float[3] b) { b = Abs(h) }>
            y = Sin(x)
        }"""
    )
    assert ops_of(simplified(model, evaluator, *BOTH)[0]) == ["Sin"]


def test_inlined_nodes_keep_their_metadata_and_take_the_rest_from_the_if(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x) => (float[3] y) <bool c = {1}> {
            y = If(c) <then_branch = t () => (float[3] a) { h = Exp(x) a = Neg(h) }, else_branch = e () => (float[3] b) { b = Abs(x) }>
        }"""
    )
    branching = model.graph[0]
    branching.metadata_props.update({"namespace": "outer", "trace": "line 7"})
    branching.attributes["then_branch"].as_graph()[0].metadata_props["namespace"] = "inner"
    after, _ = simplified(model, evaluator, {"x": X})
    assert [dict(node.metadata_props) for node in after.graph] == [
        {"namespace": "inner", "trace": "line 7"},
        {"namespace": "outer", "trace": "line 7"},
    ]


def test_a_sequence_from_a_branch(evaluator: Evaluator) -> None:
    model = model_of(
        """agraph (float[3] x) => (float[N] y) <bool c = {1}> {
            s = If(c) <then_branch = t () => (seq(float[3]) a) { h = Exp(x) a = SequenceConstruct(x, h) },
                       else_branch = e () => (seq(float[3]) b) { b = SequenceConstruct(x) }>
            y = ConcatFromSequence<axis = 0>(s)
        }"""
    )
    assert ops_of(simplified(model, evaluator, {"x": X})[0]) == ["Exp", "Concat"]


def test_the_wrong_branch_is_noticed(evaluator: Evaluator) -> None:
    """Planted error: the comparison above sees a simplifier that takes the other branch."""
    text = """agraph (float[3] x) => (float[3] y) <bool c = {VALUE}> {
        y = If(c) <then_branch = t () => (float[3] a) { a = Exp(x) }, else_branch = e () => (float[3] b) { b = Neg(x) }>
    }"""
    model, wrong = model_of(text.replace("VALUE", "1")), model_of(text.replace("VALUE", "0"))
    simplify_graph(wrong, evaluator)
    with pytest.raises(AssertionError):
        assert_same(model, wrong, evaluator, {"x": X})


def test_without_a_runtime_control_flow_is_simplified_too() -> None:
    model = model_of(
        """agraph (float[3] x) => (float[3] y) <bool a = {1}, bool b = {0}> {
            c = Or(a, b)
            y = If(c) <then_branch = t () => (float[3] p) { p = Exp(x) }, else_branch = e () => (float[3] q) { q = Neg(x) }>
        }"""
    )
    simplify_graph(model)
    assert ops_of(model) == ["Exp"]
    assert isinstance(model.graph.outputs[0].type, ir.TensorType)
