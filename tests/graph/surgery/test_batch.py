"""A changed batch size gives what the samples give one after the other, or is refused with the place."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar import UsageError
from jumar.graph import Evaluator, change_batch
from jumar.graph.surgery.batch_proof import TOLERANCE


def model_of(text: str) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 16]>\n{text}')


BAKED = {
    "reshape to features": "agraph (float[1,4,2,3] x) => (float[1,24] y) <int64[2] t = {1, 24}> { y = Reshape(x, t) }",
    "reshape with the open dimension elsewhere": """agraph (float[1,4,2,3] x) => (float[1,4,6] y) <int64[3] t = {1, 4, -1}> { y = Reshape(x, t) }""",
    "heads and back": """agraph (float[1,5,8] x) => (float[1,5,8] y)
        <int64[4] split = {1, 5, 2, 4}, int64[3] fold = {2, 5, 4}, int64[4] out = {1, 2, 5, 4}, int64[3] join = {1, 5, 8}> {
        a = Reshape(x, split) b = Transpose<perm = [0, 2, 1, 3]>(a) c = Reshape(b, fold) d = Softmax<axis = -1>(c)
        e = Reshape(d, out) f = Transpose<perm = [0, 2, 1, 3]>(e) y = Reshape(f, join) }""",
    "sequence first": """agraph (float[1,5,4] x) => (float[1,5,6] y)
        <int64[2] rows = {5, 4}, int64[3] back = {5, 1, 6}, float[4,6] w = {1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2,1,0,1,2,3,4,5,6}, float[6] b = {0,1,2,3,4,5}> {
        a = Transpose<perm = [1, 0, 2]>(x) c = Reshape(a, rows) d = Gemm(c, w, b) e = Reshape(d, back) y = Transpose<perm = [1, 0, 2]>(e) }""",
    "a token joined to each sample": """agraph (float[1,5,2] x) => (float[1,6,2] y) <float[1,1,2] token = {7, 8}> { y = Concat<axis = 1>(token, x) }""",
    "a token expanded by computed sizes": """agraph (float[1,5,2] x) => (float[1,6,2] y) <float[1,1,2] token = {7, 8}, int64[3] n = {1, -1, -1}, int64 minus = {-1}> {
        three = Shape(n) ones = ConstantOfShape<value = int64[1] {1}>(three) low = Mul(ones, minus) open = Equal(n, low) target = Where(open, ones, n)
        e = Expand(token, target) y = Concat<axis = 1>(e, x) }""",
    "expand": "agraph (float[1,1,2] x) => (float[1,3,2] y) <int64[3] t = {1, 3, 2}> { y = Expand(x, t) }",
    "slice of the whole batch": """agraph (float[1,4] x) => (float[1,2] y) <int64[2] s = {0, 1}, int64[2] e = {1, 3}, int64[2] a = {0, 1}> { y = Slice(x, s, e, a) }""",
    "initial states": """agraph (float[1,3,2] x) => (float[3,1,1,2] y, float[1,1,2] h)
        <float[1,2,2] w = {1,2,3,4}, float[1,2,2] r = {0.5,0,0,0.5}, float[1,1,2] start = {1, -1}, int64[1] z = {0}> {
        a = Transpose<perm = [1, 0, 2]>(x) y, h = RNN<hidden_size = 2>(a, w, r, , , start) }""",
    "a fixed size used as an open one": """agraph (float[1,4] x) => (float[1,2,2] y) <int64 zero = {0}, int64[1] axis = {0}, int64[2] rest = {2, 2}> {
        s = Shape(x) n = Gather(s, zero) m = Unsqueeze(n, axis) t = Concat<axis = 0>(m, rest) y = Reshape(x, t) }""",
}


@pytest.mark.parametrize("size", [1, 3, "N"])
@pytest.mark.parametrize("kind", BAKED)
def test_what_a_fixed_batch_left_is_freed(kind: str, size: int | str, evaluator: Evaluator) -> None:
    model = model_of(BAKED[kind])
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    changed = change_batch(model, size, evaluator=evaluator)
    onnx.checker.check_model(ir.to_proto(changed), full_check=True)
    assert changed.graph.inputs[0].shape is not None and changed.graph.inputs[0].shape[0] == size
    assert size in [dim if isinstance(dim, int) else dim.value for dim in changed.graph.outputs[0].shape or ()]
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before
    x = np.random.default_rng(1).standard_normal((size if isinstance(size, int) else 4, *model.graph.inputs[0].shape.numpy()[1:]))  # type: ignore[union-attr]
    x = x.astype(np.float32)
    found = evaluator.run(changed, {"x": x})["y"]
    axis = 2 if kind == "initial states" else 0
    alone = np.concatenate([evaluator.run(model, {"x": x[row : row + 1]})["y"] for row in range(len(x))], axis)
    np.testing.assert_allclose(found, alone, rtol=0, atol=TOLERANCE * np.abs(alone).max())


def test_a_fixed_batch_of_several_becomes_one_of_others(evaluator: Evaluator) -> None:
    text = """agraph (float[4,3] x) => (float[4,3] y) <float[4,3] bias = {1,2,3,1,2,3,1,2,3,1,2,3}, int64[2] t = {4, -1}> { a = Add(x, bias) y = Reshape(a, t) }"""
    for size in (1, 6, "N"):
        changed = change_batch(model_of(text), size, evaluator=evaluator)
        x = np.ones((size if isinstance(size, int) else 5, 3), np.float32)
        np.testing.assert_array_equal(evaluator.run(changed, {"x": x})["y"], x + np.array([1, 2, 3], np.float32))


def test_an_open_batch_is_pinned_or_renamed(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[n,3] x, float[3] w) => (float[n,3] y) { y = Mul(x, w) }")
    assert change_batch(model, 8, inputs=["x"], evaluator=evaluator).graph.outputs[0].shape == ir.Shape([8, 3])
    assert change_batch(model, "m", inputs=["x"], evaluator=evaluator).graph.outputs[0].shape == ir.Shape(["m", 3])


REFUSED = {
    "no common batch size": "agraph (float[1,3] x, float[3] w) => (float[1,3] y) { y = Mul(x, w) }",
    "it takes some samples": "agraph (float[4,3] x) => (float[2,3] y) <int64[1] s = {0}, int64[1] e = {2}> { y = Slice(x, s, e) }",
    "`bias` is not the same": "agraph (float[2,1] x) => (float[2,1] y) <float[2,1] bias = {1, 2}> { y = Add(x, bias) }",
    "mixes the batch": "agraph (float[2,3] x) => (float[3,2] y) <int64[2] t = {3, 2}> { y = Reshape(x, t) }",
    "a batch gives something else": "agraph (float[1,3] x) => (float[1,3] y) { m = ReduceMean<axes = [0]>(x) y = Sub(x, m) }",
    "from its samples|than its samples": "agraph (float[2,3] x) => (float[2,3] y) { m = ReduceMax<axes = [0]>(x) y = Sub(x, m) }",
    "along the batch": "agraph (float[1,3] x) => (float[2,3] y) <float[1,3] w = {1,2,3}> { y = Concat<axis = 0>(x, w) }",
}


@pytest.mark.parametrize("says", REFUSED)
def test_a_model_that_mixes_samples_is_refused(says: str, evaluator: Evaluator) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        change_batch(model_of(REFUSED[says]), 3, evaluator=evaluator)
    assert caught.value.render("zh")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"size": 0}, "no batch size"), ({"inputs": ["q"]}, "no input `q`"), ({"feeds": {"x": np.zeros((1, 24))}}, "1 samples")],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], says: str, evaluator: Evaluator) -> None:
    model = model_of("agraph (float[1,24] x) => (float[1,24] y) { y = Neg(x) }")
    with pytest.raises(UsageError, match=says):
        change_batch(model, **{"size": 2, "evaluator": evaluator, **arguments})  # type: ignore[arg-type]


def test_a_smaller_batch_is_compared_in_the_company_of_other_samples(evaluator: Evaluator) -> None:
    """Filled up with copies of itself a sample would not notice that it is compared with others."""
    with pytest.raises(UsageError, match="than its samples"):
        change_batch(
            model_of("agraph (float[2,3] x) => (float[2,3] y) { m = ReduceMean<axes = [0]>(x) y = Sub(x, m) }"), 1, evaluator=evaluator
        )


def test_without_proof_only_what_can_be_followed_is_changed() -> None:
    assert change_batch(model_of(BAKED["heads and back"]), 2, verify=False).graph.outputs[0].shape == ir.Shape([2, 5, 8])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_reshapes_are_right_or_refused(data: st.DataObject, evaluator: Evaluator) -> None:
    batch = data.draw(st.integers(1, 3))
    shape, lines, weights = [batch, *data.draw(st.permutations([2, 3, 4]))], [], []
    first = list(shape)
    for number in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["merge", "split", "transpose", "neg"]))
        into, out = f"t{number - 1}" if number else "x", f"t{number}"
        if kind == "transpose":
            order = data.draw(st.permutations(range(len(shape))))
            shape = [shape[axis] for axis in order]
            lines.append(f"{out} = Transpose<perm = {list(order)}>({into})")
            continue
        if kind == "neg":
            lines.append(f"{out} = Neg({into})")
            continue
        if kind == "merge" and len(shape) > 1:
            at = data.draw(st.integers(0, len(shape) - 2))
            shape = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
        elif kind == "split":
            at = data.draw(st.integers(0, len(shape) - 1))
            parts = [factor for factor in (1, 2, 3, 4) if shape[at] % factor == 0]
            factor = data.draw(st.sampled_from(parts))
            shape = [*shape[:at], factor, shape[at] // factor, *shape[at + 1 :]]
        weights.append(f"int64[{len(shape)}] s{number} = {{{', '.join(map(str, shape))}}}")
        lines.append(f"{out} = Reshape({into}, s{number})")
    lines.append(f"y = Neg({f't{len(lines) - 1}'})")
    declared = f"<{', '.join(weights)}>" if weights else ""
    model = model_of(f"agraph (float{first} x) => (float{shape} y) {declared} {{ {' '.join(lines)} }}")
    try:
        changed = change_batch(model, 2 * batch, evaluator=evaluator)
    except UsageError:
        return
    x = np.random.default_rng(0).standard_normal((2 * batch, *first[1:])).astype(np.float32)
    halves = [evaluator.run(model, {"x": half})["y"] for half in (x[:batch], x[batch:])]
    found = evaluator.run(changed, {"x": x})["y"]
    assert any(np.array_equal(found, np.concatenate(halves, axis)) for axis in range(found.ndim)) or found.size == 2 * halves[0].size
    assert sorted(found.reshape(-1)) == sorted(np.concatenate([half.reshape(-1) for half in halves]))
