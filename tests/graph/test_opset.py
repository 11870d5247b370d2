"""A model at a lower opset computes what it computed; what cannot be said there is refused with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, infer_shapes
from jumar.graph.lower import FORMER, LOWER, NEW_VALUES
from jumar.graph.opset import Unconvertible, convert_opset

# Tolerance: the same kernels run before and after. Only where the form becomes other operators (Softmax over another axis is
# transposed) may the order of a sum differ.
TOLERANCE = 1e-6

HYPOTHESIS = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def model_of(text: str, opset: int) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def converted(text: str, opset: int, version: int) -> tuple[ir.Model, ir.Model, list[str]]:
    """The model before and after (which the checker accepts, types and shapes included), and the places that changed."""
    before, after = model_of(text, opset), model_of(text, opset)
    infer_shapes(after)
    places = convert_opset(after, version)
    proto = ir.to_proto(after)
    onnx.checker.check_model(proto, full_check=True)
    assert {item.domain: item.version for item in proto.opset_import} == {"": version}
    assert [value.name for value in after.graph.outputs] == [value.name for value in before.graph.outputs]
    return before, after, places


def assert_same(before: ir.Model, after: ir.Model, evaluator: Evaluator, feeds: dict[str, Any]) -> None:
    expected, found = evaluator.run(before, feeds), evaluator.run(after, feeds)
    for name, array in expected.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        np.testing.assert_allclose(found[name], array, rtol=TOLERANCE, atol=0, equal_nan=True)


def refusal(text: str, opset: int, version: int) -> str:
    model = model_of(text, opset)
    infer_shapes(model)
    with pytest.raises(Unconvertible) as caught:
        convert_opset(model, version)
    english, chinese = caught.value.reason.render("en"), caught.value.reason.render("zh")
    assert english.startswith("`") and chinese.startswith("`") and "\n" not in english
    return english


def x_of(*shape: int, edges: bool = True) -> np.ndarray:
    """Seeded floats; with NaN, infinities and a signed zero among them where the operator is defined on them."""
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    if edges:
        flat = array.reshape(-1)
        flat[:4] = [np.nan, np.inf, -np.inf, -0.0][: flat.size]
    return array


UNARY = "agraph (float[2,3,4] x) => (float[{out}] y) {weights} {{ {body} }}"


def unary(body: str, out: str = "2,3,4", weights: str = "") -> str:
    return UNARY.format(out=out, weights=f"<{weights}>" if weights else "", body=body)


# (operator, the version that is left) -> models that use it; each is run before and after.
FORMS: dict[tuple[str, int], list[str]] = {
    ("Squeeze", 13): [
        "agraph (float[1,3,1] x) => (float[3,1] y) <int64[1] a = {0}> { y = Squeeze(x, a) }",
        "agraph (float[1,3,1] x) => (float[3] y) <int64[2] a = {-1, 0}> { y = Squeeze(x, a) }",
        "agraph (float[1,3,1] x) => (float[3] y) { y = Squeeze(x) }",
    ],
    ("Unsqueeze", 13): [unary("y = Unsqueeze(x, a)", "1,2,3,4,1", "int64[2] a = {0, -1}")],
    ("ReduceSum", 13): [
        unary("y = ReduceSum(x, a)", "2,1,4", "int64[1] a = {1}"),
        unary("y = ReduceSum<keepdims = 0>(x, a)", "4", "int64[2] a = {0, -2}"),
        unary("y = ReduceSum(x)", "1,1,1"),
        unary("y = ReduceSum<noop_with_empty_axes = 1>(x, a)", "2,3,1", "int64[1] a = {2}"),
    ],
    **{
        (op, 18): [
            unary(f"y = {op}(x, a)", "2,1,4", "int64[1] a = {1}"),
            unary(f"y = {op}<keepdims = 0, noop_with_empty_axes = 1>(x, a)", "3", "int64[2] a = {0, -1}"),
            unary(f"y = {op}(x)", "1,1,1"),
        ]
        for op, version in LOWER
        if op.startswith("Reduce") and version == 18
    },
    ("Split", 13): [
        "agraph (float[2,6] x) => (float[2,1] y, float[2,5] z) <int64[2] s = {1, 5}> { y, z = Split<axis = 1>(x, s) }",
        "agraph (float[2,6] x) => (float[2,3] y, float[2,3] z) { y, z = Split<axis = -1>(x) }",
    ],
    ("Split", 18): [
        "agraph (float[2,7] x) => (float[2,3] y, float[2,3] z, float[2,1] w) { y, z, w = Split<axis = 1, num_outputs = 3>(x) }",
        "agraph (float[4,2] x) => (float[2,2] y, float[2,2] z) { y, z = Split<num_outputs = 2>(x) }",
        "agraph (float[2,6] x) => (float[2,1] y, float[2,5] z) <int64[2] s = {1, 5}> { y, z = Split<axis = 1>(x, s) }",
    ],
    **{
        (op, 13): [
            unary(f"y = {op}(x)"),
            *(unary(f"y = {op}<axis = {axis}>(x)") for axis in (0, 1, 2, -1, -2)),
            unary(f"a = {op}<axis = 1>(x) y = {op}<axis = 0>(a)"),
        ]
        for op in ("Softmax", "LogSoftmax", "Hardmax")
    },
    ("Pad", 18): [
        unary("y = Pad(x, p, , a)", "2,4,4", "int64[2] p = {1, 0}, int64[1] a = {1}"),
        unary("y = Pad(x, p, v, a)", "3,3,6", "int64[4] p = {0, 1, 1, 1}, float v = {7}, int64[2] a = {0, -1}"),
        unary("y = Pad(x, p)", "2,3,5", "int64[6] p = {0, 0, 1, 0, 0, 0}"),
    ],
    ("Pad", 11): [
        unary("y = Pad(x, p, v)", "2,3,7", "int64[6] p = {0, 0, 1, 0, 0, 2}, float v = {0.5}"),
        unary('y = Pad<mode = "reflect">(x, p)', "2,3,5", "int64[6] p = {0, 0, 1, 0, 0, 0}"),
        unary("y = Pad(x, p)", "2,3,3", "int64[6] p = {0, 0, -1, 0, 0, 0}"),
    ],
    ("Clip", 11): [
        unary("y = Clip(x, a, b)", weights="float a = {-0.5}, float b = {0.25}"),
        unary("y = Clip(x, a)", weights="float a = {-0.5}"),
        unary("y = Clip(x, , b)", weights="float b = {0.25}"),
        unary("y = Clip(x)"),
    ],
    ("Slice", 10): [
        unary("y = Slice(x, s, e)", "1,3,4", "int64[1] s = {1}, int64[1] e = {9}"),
        unary("y = Slice(x, s, e, a)", "2,1,2", "int64[2] s = {1, -2}, int64[2] e = {2, 9}, int64[2] a = {1, 2}"),
        unary("y = Slice(x, s, e, a, t)", "2,3,2", "int32[1] s = {0}, int32[1] e = {-2}, int32[1] a = {2}, int32[1] t = {1}"),
    ],
    ("TopK", 10): [
        "agraph (float[2,3,4] x) => (float[2,3,2] y, int64[2,3,2] i) <int64[1] k = {2}> { y, i = TopK(x, k) }",
        "agraph (float[2,3,4] x) => (float[2,1,4] y, int64[2,1,4] i) <int64[1] k = {1}> { y, i = TopK<axis = 1>(x, k) }",
    ],
    ("Dropout", 12): [
        unary("y = Dropout<seed = 3>(x, r)", weights="float r = {0.5}"),
        unary("y = Dropout(x)"),
        unary("y = Dropout(x, r, t)", weights="float r = {0.5}, bool t = {0}"),
    ],
    ("Shape", 15): [
        *(
            f"agraph (float[2,3,4] x) => (int64[{size}] y) {{ s = Shape<{span}>(x) y = Identity(s) }}"
            for span, size in (("start = 1", 2), ("start = -1", 1), ("end = 2", 2), ("start = 1, end = -1", 1), ("start = 2, end = 9", 1))
        ),
        "agraph (float[2,3,4] x) => (int64[3] y) { y = Shape<start = 0>(x) }",
        "agraph (float[2,3,4] x) => (int64[1] y) { y = Shape<start = -2, end = 2>(x) }",
    ],
    ("GridSample", 20): [
        f"agraph (float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,3,3] y) {{ y = GridSample{mode}(x, g) }}"
        for mode in ("", '<mode = "linear">', '<mode = "cubic">', '<mode = "nearest", align_corners = 1>')
    ],
    ("Resize", 13): [
        "agraph (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] s = {1, 1, 2, 2}> { y = Resize(x, , s) }",
        'agraph (float[1,1,4,4] x) => (float[1,1,7,3] y) <int64[4] s = {1, 1, 7, 3}> { y = Resize<mode = "linear">(x, , , s) }',
    ],
    ("GreaterOrEqual", 12): ["agraph (float[2,3] x, float[2,3] z) => (bool[2,3] y) { y = GreaterOrEqual(x, z) }"],
    ("LessOrEqual", 12): ["agraph (float[2,3] x, float[2,3] z) => (bool[2,3] y) { y = LessOrEqual(x, z) }"],
}
# Undefined (or another answer of another kernel) on NaN: which element is the largest, and where it falls on a grid.
NO_EDGES = {"TopK", "Hardmax", "GridSample", "Resize"}


def cases() -> Iterator[Any]:
    for (op, version), texts in FORMS.items():
        for number, text in enumerate(texts):
            yield pytest.param(op, version, text, id=f"{op}-{version}-{number}")


def feeds_of(model: ir.Model, edges: bool) -> dict[str, Any]:
    feeds = {}
    for number, value in enumerate(model.graph.inputs):
        array = x_of(*(int(dim) for dim in value.shape or ()), edges=edges and number == 0)  # type: ignore[arg-type]
        feeds[value.name or ""] = array
    return feeds


def test_every_adapter_has_a_form_here() -> None:
    assert FORMS.keys() == LOWER.keys()


@pytest.mark.parametrize(("op", "version", "text"), [*cases()])
def test_a_lowered_form_computes_the_same(op: str, version: int, text: str, evaluator: Evaluator) -> None:
    before, after, places = converted(text, version, version - 1)
    for edges in {False, op not in NO_EDGES}:
        assert_same(before, after, evaluator, feeds_of(before, edges))
    if places:
        assert all(place.startswith(op) for place in places)


def test_a_comparison_keeps_its_answer_on_nan_and_ties(evaluator: Evaluator) -> None:
    values = np.array([1, np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    x, z = (grid.reshape(6, 6).astype(np.float32) for grid in np.meshgrid(values, values))
    for op in ("GreaterOrEqual", "LessOrEqual"):
        before, after, _ = converted(f"agraph (float[6,6] x, float[6,6] z) => (bool[6,6] y) {{ y = {op}(x, z) }}", 16, 11)
        assert_same(before, after, evaluator, {"x": x, "z": z})
        assert {node.op_type for node in after.graph} == {op.removesuffix("OrEqual"), "Equal", "Or"}


def test_a_wrong_adapter_would_be_seen(evaluator: Evaluator) -> None:
    """The comparison above fails for what the adapters are there to avoid: flattening Softmax, and Not(Less) on NaN."""
    before, wrong = model_of(unary("y = Softmax<axis = 1>(x)"), 13), model_of(unary("y = Softmax<axis = 1>(x)"), 11)
    with pytest.raises(AssertionError):
        assert_same(before, wrong, evaluator, {"x": x_of(2, 3, 4, edges=False)})
    right = "agraph (float[3] x, float[3] z) => (bool[3] y) { y = GreaterOrEqual(x, z) }"
    other = "agraph (float[3] x, float[3] z) => (bool[3] y) { l = Less(x, z) y = Not(l) }"
    with pytest.raises(AssertionError):
        values = np.array([np.nan, 1, 2], np.float32)
        assert_same(model_of(right, 13), model_of(other, 13), evaluator, {"x": values, "z": values})


def test_a_whole_way_down_passes_every_form(evaluator: Evaluator) -> None:
    text = """agraph (float[2,3,4] x) => (float[2,2,4] y, int64[2] s)
    <int64[1] a = {1}, int64[2] p = {0, 1}, float low = {-1}, int64[1] one = {1}, int64[1] three = {3}> {
        soft = Softmax<axis = 1>(x)
        again = Softmax<axis = 0>(soft)
        sum = ReduceMax(again, a)
        flat = Squeeze(sum, a)
        back = Unsqueeze(flat, a)
        wide = Add(back, again)
        some = Slice(wide, one, three, one)
        y = Clip(some, low)
        s = Shape<start = 1>(x)
    }"""
    for version in (17, 12, 11, 10, 9, 8):
        before, after, places = converted(text, 18, version)
        assert_same(before, after, evaluator, {"x": x_of(2, 3, 4)})
        # Each place is named once, and only nodes of the model as given are.
        assert len(places) == len({*places}) and all(" -> " in place for place in places)


def test_nodes_in_bodies_are_lowered_too(evaluator: Evaluator) -> None:
    text = """agraph (float[2,3,4] x, bool c) => (float[2,1,4] y) <int64[1] a = {1}> {
        y = If (c) <
            then_branch = p () => (float[2,1,4] u) { u = ReduceSum(x, a) },
            else_branch = q () => (float[2,1,4] v) { v = ReduceMax<axes = [1]>(x) }
        >
    }"""
    before, after, places = converted(text, 16, 11)
    assert places == ["ReduceSum -> u"]
    for condition in (True, False):
        assert_same(before, after, evaluator, {"x": x_of(2, 3, 4), "c": np.array(condition)})


@pytest.mark.parametrize(
    ("text", "opset", "version", "says"),
    [
        # Computed where the lower version has an attribute.
        ("agraph (float[1,3] x, int64[1] a) => (float[3] y) { y = Squeeze(x, a) }", 13, 12, "axes is computed"),
        ("agraph (float[4] x, int64[2] s) => (float[A] y, float[B] z) { y, z = Split(x, s) }", 13, 12, "split is computed"),
        ("agraph (float[4] x, int64[2] p) => (float[A] y) { y = Pad(x, p) }", 11, 10, "pads is computed"),
        ("agraph (float[4] x, float m) => (float[4] y) { y = Clip(x, m) }", 11, 10, "min is computed"),
        ("agraph (float[4] x, int64[1] k) => (float[K] y, int64[K] i) { y, i = TopK(x, k) }", 10, 9, "K is computed"),
        ("agraph (float[4] x, int64[1] s) => (float[K] y) { y = Slice(x, s, s) }", 10, 9, "starts is computed"),
        ("agraph (float[4] x, int64[1] a) => (float[4] y) <int64[2] p = {0, 0}> { y = Pad(x, p, , a) }", 18, 17, "axes is computed"),
        # Forms without a counterpart.
        (unary("y = ReduceSum<noop_with_empty_axes = 1>(x)"), 13, 12, "noop_with_empty_axes"),
        (unary("y = ReduceMax<noop_with_empty_axes = 1>(x)"), 18, 17, "noop_with_empty_axes"),
        ("agraph (float[N] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs = 2>(x) }", 18, 17, "not known"),
        (unary("y = Slice(x, s, e, a, t)", "1,3,4", "int64[1] s = {0}, int64[1] e = {2}, int64[1] a = {0}, int64[1] t = {2}"), 10, 9, "steps"),
        (unary("y = Dropout(x, r, t)", weights="float r = {0.5}, bool t = {1}"), 12, 11, "training mode"),
        ("agraph (float[4,4] x) => (float[4,4] y) { y = Gemm(x, x) }", 11, 10, "other inputs"),
        ("agraph (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[0] r = {}, float[4] s = {1,1,2,2}> { y = Resize(x, r, s) }", 11, 10, "other inputs"),
        ("agraph (double[2] x) => (double[2] y) <double a = {0.1}> { y = Clip(x, a) }", 12, 10, "float32"),
        # Attributes that say something the lower version does not do.
        ("agraph (float[4] x, int64[4] i) => (float[4] y) { y = ScatterElements<reduction = \"add\">(x, i, x) }", 16, 15, "reduction"),
        ("agraph (float[4] x, int64[4] i) => (float[4] y) { y = ScatterElements<reduction = \"max\">(x, i, x) }", 18, 16, "reduction = max"),
        ("agraph (float[4] x, int64[4,1] i) => (float[4] y) { y = ScatterND<reduction = \"min\">(x, i, x) }", 18, 16, "reduction = min"),
        ("agraph (float[0,4] x, int64[2] s) => (float[A,B] y) { y = Reshape<allowzero = 1>(x, s) }", 14, 13, "allowzero"),
        ("agraph (float[4] x) => (float[6] y) <int64[2] p = {1, 1}> { y = Pad<mode = \"wrap\">(x, p) }", 19, 18, "mode = wrap"),
        (
            """agraph (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] s = {1, 1, 2, 2}> {
                y = Resize<coordinate_transformation_mode = "half_pixel_symmetric">(x, , s)
            }""",
            19,
            18,
            "half_pixel_symmetric",
        ),
        ("agraph (float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y) { y = RoiAlign(x, r, b) }", 16, 15, "coordinate_"),
        ("agraph (float[4] x) => (int64[1] y) { y = ArgMax<select_last_index = 1>(x) }", 12, 11, "select_last_index"),
        ("agraph (float[1,1,2,2,2] x, float[1,2,2,2,3] g) => (float[1,1,2,2,2] y) { y = GridSample(x, g) }", 20, 19, "rank 4"),
        # Dtypes and operators that came later.
        ("agraph (int64[4] x) => (int64[4] y) <int64 a = {1}> { y = Clip(x, a) }", 12, 11, "does not take int64"),
        ("agraph (float[4] x) => (bool[4] y) { y = Equal(x, x) }", 11, 10, "does not take float"),
        ("agraph (float[4] x) => (bool[4] y) { y = GreaterOrEqual(x, x) }", 12, 10, "does not take float"),
        ("agraph (float[4] x) => (float[4] y) { y = HardSwish(x) }", 14, 13, "only from opset 14 on"),
        ("agraph (float[2,4] x, float[4] s) => (float[2,4] y) { y = LayerNormalization(x, s) }", 17, 11, "only from opset 17 on"),
    ],
)  # fmt: skip
def test_what_the_lower_opset_cannot_say_is_refused(text: str, opset: int, version: int, says: str) -> None:
    assert says in refusal(text, opset, version)


def test_every_listed_value_is_refused_above() -> None:
    """The tables name attributes that both schemas have, or only the upper one."""
    for op, version, name in NEW_VALUES:
        schemas = [onnx.defs.get_schema(op, number, "") for number in (version, version - 1)]
        assert schemas[0].since_version == version and all(name in schema.attributes for schema in schemas)
    for op, version, name in FORMER:
        schemas = [onnx.defs.get_schema(op, number, "") for number in (version, version - 1)]
        assert name in schemas[0].attributes and name not in schemas[1].attributes


def test_what_an_operator_always_did_is_dropped_when_it_is_spelled_out(evaluator: Evaluator) -> None:
    """RoiAlign before 16 did what 16 calls output_half_pixel, which is not the default."""
    text = """agraph (float[1,1,4,4] x, float[1,4] r) => (float[1,1,1,1] y) <int64[1] b = {0}> {
        y = RoiAlign<coordinate_transformation_mode = "output_half_pixel">(x, r, b)
    }"""
    before, after, places = converted(text, 16, 15)
    assert places == ["RoiAlign -> y"]
    feeds = {"x": x_of(1, 1, 4, 4, edges=False), "r": np.array([[0.5, 1, 2.5, 3]], np.float32)}
    assert_same(before, after, evaluator, feeds)


@pytest.mark.parametrize(
    ("body", "opset"),
    [("y = Reshape<allowzero = 0>(x, s)", 14), ("y = Cast<to = 1, saturate = 1>(x)", 19), ("y = Relu(x)", 21)],
)
def test_attributes_at_their_default_are_dropped(body: str, opset: int, evaluator: Evaluator) -> None:
    before, after, _ = converted(unary(body, weights="int64[3] s = {2, 3, 4}"), opset, 11)
    assert not {"allowzero", "saturate"} & {name for node in after.graph for name in node.attributes}
    assert_same(before, after, evaluator, {"x": x_of(2, 3, 4)})


def test_other_domains_are_left_alone() -> None:
    model = ir.from_onnx_text(
        '<ir_version: 8, opset_import: ["" : 16, "mine" : 3]>\nagraph (float[2] x) => (float[2] y) { z = Relu(x) y = mine.Softmax(z) }'
    )
    assert convert_opset(model, 11) == []
    assert dict(model.opset_imports) == {"": 11, "mine": 3}


# Steps up


def test_a_step_up_keeps_the_form(evaluator: Evaluator) -> None:
    text = unary("a = Relu(x) b = LeakyRelu<alpha = 0.5>(a) y = Softmax<axis = 2>(b)")
    for version in (13, 18):
        before, after, places = converted(text, 7, version)
        assert places == []
        assert_same(before, after, evaluator, {"x": x_of(2, 3, 4)})


@pytest.mark.parametrize(
    ("text", "opset", "version", "says"),
    [
        (unary("y = Softmax<axis = 1>(x)"), 11, 13, "means something else"),
        (unary("y = Softmax(x)"), 11, 13, "means something else"),
        (unary("y = ReduceSum<axes = [1]>(x)", "2,1,4"), 11, 13, "axes"),
        (unary("y = Clip<min = 0.0>(x)"), 8, 11, "min"),
        ("agraph (float[2,2] x) => (float[4,4] y) <float[2] s = {2, 2}> { y = Upsample(x, s) }", 9, 11, "no longer exists"),
        (
            'agraph (float[1,1,4,4] x, float[1,2,2,2] g) => (float[1,1,2,2] y) { y = GridSample<mode = "bilinear">(x, g) }',
            16,
            20,
            "means something else",
        ),
        ("agraph (float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y) { y = RoiAlign(x, r, b) }", 15, 16, "something else"),
    ],
)
def test_a_step_up_that_changes_the_meaning_is_refused(text: str, opset: int, version: int, says: str) -> None:
    assert says in refusal(text, opset, version)


def test_a_node_that_is_not_of_its_own_opset_is_refused() -> None:
    for version in (9, 13):
        assert "it is not an operator of opset 11" in refusal(unary("y = HardSwish(x)"), 11, version)


# Properties


@HYPOTHESIS
@given(data=st.data())
def test_any_axes_survive(data: st.DataObject, evaluator: Evaluator) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    places = data.draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    axes = [axis - rank if data.draw(st.booleans()) else axis for axis in places]
    op, opset = data.draw(st.sampled_from([("ReduceSum", 13), ("ReduceMax", 18), ("ReduceMean", 18), ("ReduceL2", 18)]))
    dims, listed = ",".join(map(str, shape)), ", ".join(map(str, axes))
    kept = ",".join("1" if axis in places else str(size) for axis, size in enumerate(shape))
    text = f"agraph (float[{dims}] x) => (float[{kept}] y) <int64[{len(axes)}] a = {{{listed}}}> {{ y = {op}(x, a) }}"
    before, after, _ = converted(text, opset, 11)
    assert_same(before, after, evaluator, {"x": x_of(*shape, edges=False)})


@HYPOTHESIS
@given(data=st.data())
def test_any_pads_survive(data: st.DataObject, evaluator: Evaluator) -> None:
    shape = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    pads = data.draw(st.lists(st.integers(-1, 3), min_size=2 * len(axes), max_size=2 * len(axes)))
    out = list(shape)
    for position, axis in enumerate(axes):
        out[axis] += pads[position] + pads[position + len(axes)]
    signed = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    text = (
        f"agraph (float[{','.join(map(str, shape))}] x) => (float[{','.join(map(str, out))}] y) "
        f"<int64[{len(pads)}] p = {{{', '.join(map(str, pads))}}}, float v = {{1.5}}, int64[{len(axes)}] a = {{{', '.join(map(str, signed))}}}> "
        "{ y = Pad(x, p, v, a) }"
    )
    for version in (13, 10):
        before, after, _ = converted(text, 18, version)
        assert_same(before, after, evaluator, {"x": x_of(*shape, edges=False)})


@HYPOTHESIS
@given(sizes=st.lists(st.integers(0, 4), min_size=2, max_size=4), rest=st.integers(1, 3))
def test_any_split_sizes_survive(sizes: list[int], rest: int, evaluator: Evaluator) -> None:
    names = ", ".join(f"y{number}" for number in range(len(sizes)))
    outputs = ", ".join(f"float[{rest},{size}] y{number}" for number, size in enumerate(sizes))
    text = (
        f"agraph (float[{rest},{sum(sizes)}] x) => ({outputs}) <int64[{len(sizes)}] s = {{{', '.join(map(str, sizes))}}}> "
        f"{{ {names} = Split<axis = 1>(x, s) }}"
    )
    before, after, _ = converted(text, 13, 11)
    assert_same(before, after, evaluator, {"x": x_of(rest, sum(sizes), edges=False)})


@HYPOTHESIS
@given(count=st.integers(1, 4), chunk=st.integers(1, 3), data=st.data())
def test_any_number_of_chunks_survives(count: int, chunk: int, data: st.DataObject, evaluator: Evaluator) -> None:
    last = data.draw(st.integers(1, chunk))
    sizes = [chunk] * (count - 1) + [last]
    assume(-(-sum(sizes) // count) == chunk)  # else the chunks are smaller
    names = ", ".join(f"y{number}" for number in range(count))
    outputs = ", ".join(f"float[{size},2] y{number}" for number, size in enumerate(sizes))
    text = f"agraph (float[{sum(sizes)},2] x) => ({outputs}) {{ {names} = Split<num_outputs = {count}>(x) }}"
    for version in (17, 11):
        before, after, _ = converted(text, 18, version)
        assert_same(before, after, evaluator, {"x": x_of(sum(sizes), 2, edges=False)})
