"""Tensors of data-dependent shape, kept with all places: equal to ONNX Runtime's results for masks of every density.

Floats are held to 1e-5 (sums in another order), integers are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.errors import EvaluationError
from jumar.graph import Evaluator, copy_model, infer_shapes
from jumar.graph.masked import Densified, densify
from jumar.graph.masked.base import Look
from jumar.graph.ranges import Interval, value_ranges, whole

quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
WHERE = "n = NonZero(m) t = Transpose<perm = [1, 0]>(n)"
TOP = f"""{WHERE} g = GatherND(x, t) s = Shape(g) c = Gather(s, zero) u = Unsqueeze<axes = [0]>(c) k = Concat<axis = 0>(three, u)
    r = ReduceMin<keepdims = 0>(k) w = Reshape(r, open) v, i = TopK(g, w) h = GatherND(b, t) p = Gather(h, i)"""
NMS = f"""p = Sigmoid(s) m = Greater(p, limit) {WHERE} g = GatherND(p, t) flat = Squeeze<axes = [0]>(b) q = GatherND(flat, t)
    boxes = Unsqueeze<axes = [0]>(q) scores = Unsqueeze<axes = [0, 1]>(g) most = Shape(g)"""
EMPTY_OR_NMS = f"""{NMS} n4 = Shape(q) all = ReduceProd<keepdims = 0>(n4) none = Equal(all, zero)
    keep = If (none) <
        then_branch = nothing () => (int64[0] e) {{ e = Constant<value = int64[0] {{}}>() }},
        else_branch = some () => (int64[j] f) {{
            o = NonMaxSuppression(boxes, scores, most, overlap) column = Gather<axis = 1>(o, two) f = Squeeze<axes = [1]>(column)
        }}
    > v = Gather(q, keep) y = ReduceSum<keepdims = 0>(v)"""
# name: inputs, outputs, weights, nodes. Each in the form of opset 11.
MODELS = {
    "sum": ("float[4,3] x, bool[4] m", "float[3] y", "", f"{WHERE} g = GatherND(x, t) y = ReduceSum<axes = [0], keepdims = 0>(g)"),
    "extremes": ("float[4,3] x, bool[4] m", "float[3] y, float[1,1] z", "",
                 f"{WHERE} g = GatherND(x, t) y = ReduceMax<axes = [0], keepdims = 0>(g) z = ReduceMin<axes = [0, 1]>(g)"),
    "mean": ("float[4,3] x, bool[4,3] m", "float y", "", f"{WHERE} g = GatherND(x, t) h = Sigmoid(g) y = ReduceMean<keepdims = 0>(h)"),
    "norms": ("float[4,3] x, bool[4] m", "float[3] y, float[3] z", "",
              "g = Compress<axis = 0>(x, m) y = ReduceL2<axes = [0], keepdims = 0>(g) z = ReduceLogSumExp<axes = [0], keepdims = 0>(g)"),
    "written back": ("float[4,3] x, bool[4,3] m", "float[4,3] y", "", f"{WHERE} g = GatherND(x, t) h = Exp(g) y = ScatterND(x, t, h)"),
    "index_put": ("float[4,3] x, bool[4,3] m", "float[4,3] y", "int64 zero = {0}, float half = {0.5}",
                  f"{WHERE} s = Shape(t) c = Gather(s, zero) u = Unsqueeze<axes = [0]>(c) v = Expand(half, u) y = ScatterND(x, t, v)"),
    "count": ("float[4,3] x, bool[4] m", "float[4,3] y", "int64 one = {1}",
              "n = NonZero(m) s = Shape(n) c = Gather(s, one) f = Cast<to = 1>(c) y = Mul(x, f)"),
    "softmax": ("float[4,3] x, bool[4] m", "float[3] y", "",
                "g = Compress<axis = 0>(x, m) t = Transpose<perm = [1, 0]>(g) p = Softmax<axis = 1>(t) q = Mul(p, t) y = ReduceSum<axes = [1], keepdims = 0>(q)"),
    "product": ("float[4,3] x, float[4,2] w, bool[4] m", "float[3,2] y", "",
                "g = Compress<axis = 0>(x, m) h = Compress<axis = 0>(w, m) t = Transpose<perm = [1, 0]>(g) y = MatMul(t, h)"),
    "rows": ("float[4,3] x, float[3,2] w, float[2] v, bool[4] m", "float[2] y", "",
             "g = Compress<axis = 0>(x, m) h = Gemm(g, w, v) r = Relu(h) y = ReduceSum<axes = [0], keepdims = 0>(r)"),
    "edges": ("float[5,3] x, int64[6] i, int64[6] j, bool[6] m, float[5,3] base", "float[5,3] y", "",
              ("s = Compress<axis = 0>(i, m) d = Compress<axis = 0>(j, m) g = Gather(x, s) u = Unsqueeze<axes = [1]>(d) e = Shape(g) f = Expand(u, e) "
              "o = ScatterElements<axis = 0>(base, f, g) y = Sub(o, base)")),
    "counting": ("float[4,3] x, bool[4] m, float[6,3] e", "float[3] y", "int64 zero = {0}, int64 one = {1}",
                 ("g = Compress<axis = 0>(x, m) s = Shape(g) c = Gather(s, zero) r = Range(zero, c, one) p = Gather(e, r) q = Mul(g, p) "
                 "y = ReduceSum<axes = [0], keepdims = 0>(q)")),
    "again": ("float[6] x, bool[6] m, float[6] b", "float y", "float h = {0.1}",
              ("g = Compress<axis = 0>(x, m) q = Compress<axis = 0>(b, m) p = Greater(g, h) n = NonZero(p) t = Transpose<perm = [1, 0]>(n) "
              "z = GatherND(q, t) y = ReduceSum<keepdims = 0>(z)")),
    "joined": ("float[4,3] x, bool[4] m, float[2,3] r", "float[3] y", "",
               "g = Compress<axis = 0>(x, m) c = Concat<axis = 0>(g, r) y = ReduceMax<axes = [0], keepdims = 0>(c)"),
    "flattened": ("float[4,3] x, bool[4] m", "float y", "int64[1] open = {-1}",
                  "g = Compress<axis = 0>(x, m) f = Reshape(g, open) y = ReduceProd<keepdims = 0>(f)"),
    "first two": ("float[6] x, bool[6] m", "float y", "int64[1] a = {1}, int64[1] b = {3}",
                  "g = Compress<axis = 0>(x, m) h = Slice(g, a, b) y = ReduceSum<keepdims = 0>(h)"),
    "last": ("float[4,3] x, bool[4] m", "float[3] y", "int64 z = {-1}", "g = Compress<axis = 0>(x, m) y = Gather(g, z)"),
    "largest": ("float[6] x, bool[6] m", "int64 y", "", "g = Compress<axis = 0>(x, m) y = ArgMax<axis = 0, keepdims = 0>(g)"),
    "largest of few": ("float[6] x, bool[6] m", "int64 y", "", "a = Sigmoid(x) g = Compress<axis = 0>(a, m) y = ArgMax<axis = 0, keepdims = 0>(g)"),
    "top": ("float[6] x, bool[6] m, float[6,4] b", "float y", "int64 zero = {0}, int64[1] three = {3}, int64[1] open = {-1}",
            f"{TOP} l = Unsqueeze<axes = [1]>(v) o = Mul(p, l) y = ReduceSum<keepdims = 0>(o)"),
    "boxes": ("float[1,6,4] b, float[6] s", "float y",
              "float limit = {0.4}, float[1] overlap = {0.3}, int64[1] two = {2}, int64[1] open = {-1}",
              (f"{NMS} o = NonMaxSuppression(boxes, scores, most, overlap) c = Gather<axis = 1>(o, two) i = Reshape(c, open) v = Gather(g, i) "
              "k = Gather(q, i) l = Unsqueeze<axes = [1]>(v) e = Mul(l, k) y = ReduceSum<keepdims = 0>(e)")),
    "boxes or nothing": ("float[1,6,4] b, float[6] s", "float y", "float limit = {0.4}, float[1] overlap = {0.3}, int64[1] two = {2}, int64 zero = {0}",
                         EMPTY_OR_NMS),
}  # fmt: skip
UNIQUE = "y = ReduceSum<keepdims = 0>(f) w = Mul(v, two) z = ReduceMax<keepdims = 0>(c) k = Mul(i, c) o = ReduceSum<keepdims = 0>(k)"


def model_of(inputs: str, outputs: str, weights: str, nodes: str, opset: int = 11) -> ir.Model:
    text = (
        f'<ir_version: 8, opset_import: ["" : {opset}]> agraph ({inputs}) => ({outputs}) {f"<{weights}>" if weights else ""} {{ {nodes} }}'
    )
    model = ir.from_onnx_text(text)
    for number, node in enumerate(model.graph):
        node.name = f"{node.op_type}_{number}"
    infer_shapes(model)
    return model


def dense(model: ir.Model, outputs: bool = False) -> tuple[ir.Model, Densified]:
    ranges, copy = value_ranges(model), copy_model(model)
    known = {value.name: value for value in ranges}

    def range_of(value: ir.Value) -> Interval:
        return ranges.of(known[value.name]) if value.name in known else whole(value.dtype)

    found = densify(copy, range_of, "test", outputs)
    infer_shapes(copy)
    onnx.checker.check_model(ir.to_proto(copy), full_check=True)
    return copy, found


def feed_of(model: ir.Model, seed: int) -> dict[str, Any]:
    """Masks of density 1/2, 0, 1 and 1/5 in turn; indices from 0 to 4; boxes with their corners in order."""
    random, feed = np.random.default_rng(seed), {}
    for value in model.graph.inputs:
        shape, dtype = tuple(value.shape.numpy()), value.dtype.numpy()
        if dtype.kind == "b":
            feed[value.name] = random.random(shape) < (0.5, 0, 1, 0.2)[seed % 4]
        elif dtype.kind == "i":
            feed[value.name] = random.integers(0, 5, shape).astype(dtype)
        else:
            feed[value.name] = (np.sort(random.random(shape)) if shape == (1, 6, 4) else random.standard_normal(shape)).astype(dtype)
            if seed % 4 == 1 and value.name == "s":
                feed[value.name] -= 9
    return feed


def compare(model: ir.Model, new: ir.Model, found: Densified, evaluator: Evaluator, seeds: int = 12) -> int:
    """On how many inputs the model runs (the first of nothing is an error); the results are then equal."""
    runs = 0
    with evaluator.session(model) as one, evaluator.session(new) as other:
        for seed in range(seeds):
            feed = feed_of(model, seed)
            try:
                expected = one.run(feed)
            except EvaluationError:
                continue
            runs += 1
            results = other.run(feed)
            for item in found.padded:
                results[item.name] = np.take(results[item.name], range(int(results[item.count][0])), axis=item.axis)
            for name, array in expected.items():
                assert results[name].shape == array.shape
                assert results[name].dtype == array.dtype
                assert np.allclose(results[name], array, rtol=1e-5, atol=1e-6, equal_nan=True), (seed, results[name], array)
    return runs


@pytest.mark.parametrize("name", MODELS)
def test_equal_for_every_mask(name: str, evaluator: Evaluator) -> None:
    model = model_of(*MODELS[name])
    new, found = dense(model)
    assert not found.refused, [str(reason) for reason in found.refused.values()]
    assert not {node.op_type for node in new.graph} & {"NonZero", "Compress", "Unique", "If"}
    assert compare(model, new, found, evaluator) >= 6
    open_shapes = [value for node in new.graph for value in node.outputs if value.shape is None or not value.shape.is_static()]
    assert not open_shapes or "NonMaxSuppression" in {node.op_type for node in new.graph}


@pytest.mark.parametrize("form", ["<sorted = 1>", "<sorted = 0>"])
@pytest.mark.parametrize(("shape", "axis"), [("6", None), ("2,3", None), ("5,2", 0), ("2,5,2", 1), ("2,4", -1)])
def test_unique(form: str, shape: str, axis: int | None, evaluator: Evaluator) -> None:
    attribute = form if axis is None else form.replace(">", f", axis = {axis}>")
    size = int(np.prod([int(item) for item in shape.split(",")])) if axis is None else int(shape.split(",")[axis])
    nodes = f"u, i, v, c = Unique{attribute}(x) a = Cast<to = 1>(u) f = Exp(a) {UNIQUE}"
    model = model_of(f"int64[{shape}] x", f"float y, int64[{size}] w, int64 z, int64 o", "int64 two = {2}", nodes)
    new, found = dense(model)
    assert not found.refused
    assert compare(model, new, found, evaluator) == 12


def test_outputs_get_all_places_and_a_count(evaluator: Evaluator) -> None:
    model = model_of("float[4,3] x, bool[4] m", "float[k,3] y, int64[k,1] t", "", f"{WHERE} y = GatherND(x, t)")
    _, refused = dense(model)
    assert refused.open == {"n"}
    assert "y" in str(refused.refused["n"]) or "t" in str(refused.refused["n"])
    new, found = dense(model, outputs=True)
    assert [(item.name, item.axis, item.size) for item in found.padded] == [("y", 0, 4), ("t", 0, 4)]
    assert len({item.count for item in found.padded}) == 1, "one mask has one count"
    assert compare(model, new, found, evaluator) == 12
    assert all(value.shape is not None and value.shape.is_static() for value in new.graph.outputs)


def test_sorted_values_come_out_sorted(evaluator: Evaluator) -> None:
    model = model_of("int64[2,5] x", "int64[k] u, int64[k] i, int64[10] v, int64[k] c", "", "u, i, v, c = Unique(x)")
    new, found = dense(model, outputs=True)
    assert compare(model, new, found, evaluator) == 12


@pytest.mark.parametrize(
    ("inputs", "outputs", "weights", "nodes", "reason"),
    [
        ("float[a,3] x, bool[a] m", "float[3] y", "", f"{WHERE} g = GatherND(x, t) y = ReduceSum<axes = [0], keepdims = 0>(g)", "static"),
        ("float[4] x, bool[4] m, bool[4] k", "float y", "", "g = Compress<axis = 0>(x, m) h = Compress<axis = 0>(x, k) s = Add(g, h) y = ReduceSum<keepdims = 0>(s)", "different masks"),
        ("float[4,3] x, bool[4] m, bool[3] k", "float y", "", "g = Compress<axis = 0>(x, m) h = Compress<axis = 1>(g, k) y = ReduceSum<keepdims = 0>(h)", "by another one"),
        ("float[4] x, bool[4] m", "float y", "", "g = Compress<axis = 0>(x, m) h = Squeeze<axes = [0]>(g) y = Neg(h)", "squeezes"),
        ("float[4] x, bool[4] m", "float y", "int64[1] a = {-2}, int64[1] b = {9}", "g = Compress<axis = 0>(x, m) h = Slice(g, a, b) y = ReduceSum<keepdims = 0>(h)", "from the end"),
        ("float[4] x, bool[4] m, float[2] z", "float y", "", "g = Compress<axis = 0>(x, m) h = Add(g, z) y = ReduceSum<keepdims = 0>(h)", "its own size"),
        ("float[2048] x", "float y", "", "u = Unique(x) y = ReduceSum<keepdims = 0>(u)", "NaN"),
        ("int64[3000] x", "int64 y", "", "u = Unique(x) y = ReduceSum<keepdims = 0>(u)", "9000000"),
        ("float[4] x, bool[4] m, bool c", "float y", "", "g = Compress<axis = 0>(x, m) y = If (c) <then_branch = a () => (float d) { d = ReduceSum<keepdims = 0>(g) }, else_branch = b () => (float e) { e = ReduceMax<keepdims = 0>(g) }>", "control flow"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused_with_the_reason(inputs: str, outputs: str, weights: str, nodes: str, reason: str) -> None:
    model = model_of(inputs, outputs, weights, nodes)
    before = [node.op_type for node in model.graph]
    new, found = dense(model)
    assert found.refused
    assert any(reason in str(item) for item in found.refused.values()), [str(item) for item in found.refused.values()]
    assert not found.done
    assert [node.op_type for node in new.graph] == before, "the model is as it was"


def test_one_is_refused_and_the_other_kept(evaluator: Evaluator) -> None:
    nodes = "g = Compress<axis = 0>(x, m) y = ReduceSum<keepdims = 0>(g) h = Compress<axis = 0>(x, k) i = Squeeze<axes = [0]>(h) z = Neg(i)"
    new, found = dense(model_of("float[4] x, bool[4] m, bool[4] k", "float y, float z", "", nodes))
    assert found.done == {"g"}
    assert found.refused.keys() == {"h"}
    assert sum(node.op_type == "Compress" for node in new.graph) == 1


@quick
@given(data=st.data())
def test_chains_of_elementwise_and_moving_operators(data: st.DataObject, evaluator: Evaluator) -> None:
    """A random walk of operators between a Compress and a reduction."""
    draw = data.draw
    rank, axis = 3, draw(st.integers(0, 2))
    dims = [draw(st.integers(1, 3)) for _ in range(rank)]
    dims[axis] = draw(st.integers(1, 5))
    nodes, name, place = [f"v0 = Compress<axis = {axis}>(x, m)"], "v0", axis
    shape: list[int] = list(dims)
    for step in range(draw(st.integers(1, 4))):
        kind, new = draw(st.sampled_from(["Neg", "Transpose", "Mul", "Unsqueeze", "Softmax", "Gather", "Reduce", "CumSum"])), f"v{step + 1}"
        if kind == "Transpose":
            perm = list(draw(st.permutations(range(len(shape)))))
            nodes.append(f"{new} = Transpose<perm = {perm}>({name})")
            shape, place = [shape[item] for item in perm], perm.index(place)
        elif kind == "Mul":
            nodes.append(f"{new} = Mul({name}, {draw(st.sampled_from([name, 'half']))})")
        elif kind == "Unsqueeze":
            at = draw(st.integers(0, len(shape)))
            nodes.append(f"{new} = Unsqueeze<axes = [{at}]>({name})")
            shape.insert(at, 1)
            place += at <= place
        elif kind == "Softmax":
            nodes.append(f"{new} = Softmax<axis = {draw(st.integers(0, len(shape) - 1))}>({name})")
        elif kind == "CumSum":
            nodes.append(f"{new} = CumSum<reverse = {draw(st.integers(0, 1))}>({name}, a{draw(st.integers(0, 2))})")
        elif kind == "Gather" and place:
            nodes.append(f"{new} = Gather<axis = 0>({name}, zero)")
            shape[0] = 2
        elif kind == "Reduce" and len(shape) > 1:
            at = draw(st.sampled_from([item for item in range(len(shape)) if item != place]))
            nodes.append(f"{new} = ReduceMax<axes = [{at}], keepdims = 0>({name})")
            del shape[at]
            place -= at < place
        else:
            nodes.append(f"{new} = Neg({name})")
        name = new
    nodes.append(f"y = ReduceSum<axes = [{place}]>({name})")
    weights = "float half = {0.5}, int64[2] zero = {0, 0}, int64 a0 = {0}, int64 a1 = {1}, int64 a2 = {2}"
    result = ",".join("1" if item == place else str(size) for item, size in enumerate(shape))
    text = " ".join(nodes)
    if len(shape) < 3 and "CumSum" in text:
        text = text.replace("a2", "a0").replace("a1", "a0")
    model = model_of(f"float[{','.join(map(str, dims))}] x, bool[{dims[axis]}] m", f"float[{result}] y", weights, text)
    new, found = dense(model)
    assert not found.refused, [str(item) for item in found.refused.values()]
    compare(model, new, found, evaluator, 4)


def test_a_planted_error_is_found(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the filling, what is not there is added too."""
    monkeypatch.setattr(Look, "filled", lambda self, item, _number: self.values(item))
    model = model_of(*MODELS["sum"])
    new, found = dense(model)
    with pytest.raises(AssertionError):
        compare(model, new, found, evaluator)
