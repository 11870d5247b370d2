"""What needs no input becomes a constant: the same value, no file that explodes, nothing random, nothing asked of the caller."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar import EvaluationError
from jumar.graph import Evaluator
from jumar.graph.fold import DEFAULT_FOLD_LIMIT, fold_constants, foldable_nodes
from jumar.text import say

# torch.arange(n) of the older exporters: the indices of n ones.
ARANGE = """agraph (float[2,5] x) => (int64[2,5] y) <int64 axis = {1}, int64[1] zero = {0}, int64[1] flat = {-1}> {
    shape = Shape(x)
    n = Gather(shape, axis)
    n1 = Unsqueeze(n, zero)
    ones = ConstantOfShape<value = int64[1] one {1}>(n1)
    places = NonZero(ones)
    row = Transpose(places)
    line = Reshape(row, flat)
    whole = Cast<to = 7>(x)
    y = Add(whole, line)
}"""


def model_of(text: str, opset: int = 13) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def ops_of(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def folded(model: ir.Model, evaluator: Evaluator, **options: Any) -> ir.Model:
    """A folded clone, checked, with the same outputs by name."""
    copy = model.clone()
    fold_constants(copy, evaluator, **options)
    onnx.checker.check_model(ir.to_proto(copy), full_check=True)
    assert [value.name for value in copy.graph.outputs] == [value.name for value in model.graph.outputs]
    return copy


def assert_equal_results(before: ir.Model, after: ir.Model, evaluator: Evaluator, feeds: dict[str, Any]) -> None:
    """Tolerance: none, ONNX Runtime made both."""
    expected, found = evaluator.run(before, feeds), evaluator.run(after, feeds)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_an_arange_by_nonzero_folds_away(random: np.random.Generator, evaluator: Evaluator) -> None:
    model = model_of(ARANGE)
    after = folded(model, evaluator)
    assert ops_of(after) == ["Cast", "Add"]
    feeds = {"x": random.standard_normal((2, 5)).astype(np.float32) * 9}
    assert_equal_results(model, after, evaluator, feeds)


def test_a_shape_that_is_open_does_not_fold(evaluator: Evaluator) -> None:
    model = model_of(ARANGE.replace("float[2,5] x", "float[2,N] x").replace("int64[2,5] y", "int64[2,N] y"))
    after = folded(model, evaluator)
    assert {"Shape", "NonZero"} <= {*ops_of(after)}
    assert not foldable_nodes(after)


def test_folding_names_what_it_folded_and_is_idempotent(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2] x) => (float[2] y) <float[2] a = {1, 2}> { b = Neg(a) c = Exp(b) y = Add(x, c) }")
    assert [node.op_type for node in foldable_nodes(model)] == ["Neg", "Exp"]
    assert fold_constants(model, evaluator) == ["c"]
    assert ops_of(model) == ["Add"]
    assert fold_constants(model, evaluator) == []


def test_constant_nodes_become_weights(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2] x) => (float[2] y) { c = Constant<value_floats = [1.0, 2.0]>() y = Add(x, c) }")
    assert ops_of(folded(model, evaluator)) == ["Add"]


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        ("Shape(x)", 13),
        ("Shape(x)", 15),
        ("Size(x)", 13),
        ("Shape<start = 1>(x)", 15),
        ("Shape<start = -2, end = -1>(x)", 15),
        ("Shape<end = -5>(x)", 15),
    ],
)
def test_the_shape_of_a_known_tensor_folds(node: str, opset: int, evaluator: Evaluator) -> None:
    rank = "int64" if "Size" in node else "int64[K]"
    model = model_of(f"agraph (float[2,0,4] x) => ({rank} y) {{ s = {node} y = Neg(s) }}", opset)
    after = folded(model, evaluator)
    assert ops_of(after) == ["Identity"]
    assert_equal_results(model, after, evaluator, {"x": np.zeros((2, 0, 4), np.float32)})


def test_a_graph_output_keeps_a_node(evaluator: Evaluator) -> None:
    """ATC wants an operator that makes each output."""
    model = model_of("agraph (float[2] x) => (float[2] y, float[2] z) <float[2] a = {1, 2}> { y = Neg(a) b = Add(y, x) z = Abs(b) }")
    after = folded(model, evaluator)
    assert [node.op_type for node in after.graph if node.outputs[0].name == "y"] == ["Identity"]
    assert all(value.producer() is not None for value in after.graph.outputs)
    assert_equal_results(model, after, evaluator, {"x": np.array([5, -7], np.float32)})
    assert not foldable_nodes(after)


@pytest.mark.parametrize(("size", "folds"), [(DEFAULT_FOLD_LIMIT // 4, True), (DEFAULT_FOLD_LIMIT // 4 + 8, False)])
def test_a_small_shape_does_not_become_a_large_weight(size: int, folds: bool, evaluator: Evaluator) -> None:
    """The shape itself (8 bytes) is freed, so the result may be that much larger than the limit."""
    model = model_of(f"agraph (float[{size}] x) => (float[{size}] y) <int64[1] n = {{{size}}}> {{ z = ConstantOfShape(n) y = Add(x, z) }}")
    after = folded(model, evaluator)
    assert ("ConstantOfShape" not in ops_of(after)) is folds


def test_the_limit_is_found_out_when_no_shape_tells(evaluator: Evaluator) -> None:
    """NonZero's size is known only once it ran; what it is made from may still fold."""
    text = """agraph (float[2,N] x) => (float[2,N] y) <float[1,4] a = {1, 0, 2, 3}> {
        b = Neg(a)
        places = NonZero(b)
        f = Cast<to = 1>(places)
        y = Add(x, f)
    }"""
    after = folded(model_of(text), evaluator, limit=8)  # f has 24 bytes
    assert ops_of(after) == ["NonZero", "Cast", "Add"]
    assert_equal_results(model_of(text), after, evaluator, {"x": np.ones((2, 3), np.float32)})
    assert ops_of(folded(model_of(text), evaluator, limit=64)) == ["Add"]


def test_an_impossible_size_is_not_tried(evaluator: Evaluator) -> None:
    """2**62 elements, four bytes each, are 0 bytes in 64-bit arithmetic."""
    huge = 1 << 31
    text = f"agraph (float[1] x) => (float[{huge},{huge}] y) <int64[2] n = {{{huge}, {huge}}}> {{ z = ConstantOfShape(n) y = Add(x, z) }}"
    model = model_of(text)
    assert fold_constants(model, evaluator) == []
    assert ops_of(model) == ["ConstantOfShape", "Add"]


def test_a_constant_that_replaces_larger_ones_is_welcome(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[64] x) => (float[64] y) { z = Neg(w) y = Add(x, z) }")
    value = model.graph[0].inputs[0]
    assert value is not None
    value.const_value = ir.tensor(np.arange(64, dtype=np.float32), name="w")
    model.graph.register_initializer(value)
    assert ops_of(folded(model, evaluator, limit=0)) == ["Add"]
    shared = model_of("agraph (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { z = Neg(w) a = Add(x, w) y = Add(a, z) }")
    assert "Neg" in ops_of(folded(shared, evaluator, limit=0))  # w stays for its other reader, so nothing is freed


@pytest.mark.parametrize(
    "node",
    [
        "RandomNormal<shape = [2]>()",
        "RandomUniform<shape = [2]>()",
        "RandomNormalLike(a)",
        "RandomUniformLike(a)",
        "Bernoulli(a)",
        "Dropout(a, half, yes)",
    ],
)
def test_a_random_operator_is_never_folded(node: str, evaluator: Evaluator) -> None:
    text = f"""agraph (float[2] x) => (float[2] y) <float[2] a = {{0.5, 0.5}}, float half = {{0.5}}, bool yes = {{1}}> {{
        r = {node}
        n = Neg(r)
        y = Add(x, n)
    }}"""
    model = model_of(text, 15)
    assert not foldable_nodes(model)
    assert fold_constants(model, evaluator) == []
    assert ops_of(model) == [node.partition("(")[0].partition("<")[0], "Neg", "Add"]


def test_a_weight_the_caller_may_override_is_no_constant(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { z = Neg(w) y = Add(x, z) }")
    assert fold_constants(model, evaluator) == []
    feeds = {"x": np.zeros(2, np.float32), "w": np.array([7, 8], np.float32)}
    assert evaluator.run(model, feeds)["y"].tolist() == [-7, -8]


def test_sequences_and_foreign_operators_stay_and_bodies_fold(evaluator: Evaluator) -> None:
    model = ir.from_onnx_text("""
    <ir_version: 8, opset_import: ["" : 16, "mine" : 1]>
    agraph (float[2] x) => (float[2] y) <float[2] a = {1, 2}, bool c = {1}, int64 zero = {0}> {
        s = SplitToSequence(a)
        t = SequenceAt(s, zero)
        f = mine.Op(a)
        i = If (c) <then_branch = p () => (float[2] u) { u = Neg(a) }, else_branch = q () => (float[2] v) { v = Abs(a) }>
        b = Add(t, f)
        d = Add(b, i)
        y = Add(x, d)
    }""")
    assert sorted(fold_constants(model, evaluator)) == ["u", "v"]
    assert ops_of(model) == ["SplitToSequence", "SequenceAt", "Op", "If", "Add", "Add", "Add"]


def test_a_constant_read_in_a_body_folds(evaluator: Evaluator) -> None:
    text = """agraph (float[2] x, bool c) => (float[2] y) <float[2] a = {1, 2}> {
        b = Neg(a)
        y = If (c) <then_branch = p () => (float[2] u) { u = Add(x, b) }, else_branch = q () => (float[2] v) { v = Sub(x, b) }>
    }"""
    model = model_of(text, 16)
    after = folded(model, evaluator)
    assert ops_of(after) == ["If"]
    for condition in (True, False):
        assert_equal_results(model, after, evaluator, {"x": np.array([3, 4], np.float32), "c": np.array(condition)})


def test_one_output_of_several_may_be_a_graph_output(evaluator: Evaluator) -> None:
    text = """agraph (float[2] x) => (float[2] y, float[2] z) <float[4] a = {1, 2, 3, 4}> {
        y, rest = Split<axis = 0>(a)
        z = Add(x, rest)
    }"""
    model = model_of(text)
    after = folded(model, evaluator)
    assert "Split" not in ops_of(after)
    assert_equal_results(model, after, evaluator, {"x": np.ones(2, np.float32)})


def test_only_what_was_asked_for_is_folded(evaluator: Evaluator) -> None:
    text = "agraph (float[2] x) => (float[2] y) <float[2] a = {1, 2}> { b = Neg(a) c = Exp(a) d = Add(x, b) y = Add(d, c) }"
    model = model_of(text)
    assert fold_constants(model, evaluator, within={"c"}) == ["c"]
    assert ops_of(model) == ["Neg", "Add", "Add"]


def test_a_constant_expression_that_cannot_run_stays_and_the_rest_folds(evaluator: Evaluator) -> None:
    text = """agraph (float[2] x) => (float[M] y) <int64[1] far = {9}, float[2] a = {1, 2}> {
        n = Neg(a) g = Gather(n, far) h = Exp(g) e = Exp(a) f = Add(x, e) y = Add(f, h) }"""
    model = model_of(text)
    assert sorted(fold_constants(model, evaluator)) == ["e", "n"]
    assert ops_of(model) == ["Gather", "Exp", "Add", "Add"]


def test_a_crash_on_a_constant_expression_is_an_error(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> None:
        error = EvaluationError(say("it crashed", "崩溃"))
        error.stopped = True
        raise error

    monkeypatch.setattr(Evaluator, "run", crash)
    with pytest.raises(EvaluationError):
        fold_constants(model_of("agraph (float[2] x) => (float[2] y) <float[2] a = {1, 2}> { e = Exp(a) y = Add(x, e) }"), evaluator)


STEPS = ["Add", "Sub", "Mul", "Max", "Min", "Concat", "Gather", "Neg", "Abs", "Slice", "Unsqueeze", "Cast", "Where"]


@st.composite
def shape_arithmetic(draw: st.DrawFn) -> tuple[list[int], str]:
    """A chain of the operators that exporters compute shapes with, over the shape of the input."""
    shape = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    lines, values = ["s0 = Shape(x)"], ["s0", "two"]
    for number, op in enumerate(draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=8))):
        name, a, b = f"v{number}", draw(st.sampled_from(values)), draw(st.sampled_from(values))
        first = f"f{number}"
        # Any vector of at least one element is cut to its first, so that every pair broadcasts.
        lines.append(f"{first} = Gather({b}, zero)")
        match op:
            case "Concat":
                lines.append(f"{name} = Concat<axis = 0>({a}, {b})")
            case "Gather":
                lines.append(f"{name} = Gather({a}, zero)")
            case "Neg" | "Abs":
                lines.append(f"{name} = {op}({a})")
            case "Slice":
                lines.append(f"{name} = Slice({a}, zero, last)")
            case "Unsqueeze":
                lines += [f"u{number} = Unsqueeze({a}, zero)", f"{name} = Squeeze(u{number}, zero)"]
            case "Cast":
                lines += [f"c{number} = Cast<to = 1>({a})", f"{name} = Cast<to = 7>(c{number})"]
            case "Where":
                lines += [f"w{number} = Equal({a}, {first})", f"{name} = Where(w{number}, {first}, {a})"]
            case _:
                lines.append(f"{name} = {op}({a}, {first})")
        values.append(name)
    lines += [f"total = ReduceSum<keepdims = 1>({values[-1]})", "wide = Cast<to = 7>(x)", "y = Add(wide, total)"]
    dims = ",".join(map(str, shape))
    weights = "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] last = {2}>"
    return shape, f"agraph (float[{dims}] x) => (int64[{dims}] y) {weights} {{\n" + "\n".join(lines) + "\n}"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=shape_arithmetic())
def test_any_shape_arithmetic_folds_to_what_onnx_runtime_computes(case: tuple[list[int], str], evaluator: Evaluator) -> None:
    shape, text = case
    model = model_of(text)
    after = folded(model, evaluator)
    assert ops_of(after) == ["Cast", "Add"]
    assert_equal_results(model, after, evaluator, {"x": np.zeros(shape, np.float32)})
