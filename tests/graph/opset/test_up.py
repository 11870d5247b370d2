"""An old model at a newer opset computes what it computed, and comes back."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from opset_models import assert_same, converted, model_of, refusal, unary, x_of

from jumar.graph import Evaluator, copy_model, infer_shapes
from jumar.graph.opset import convert_opset, newest_opset

# (text, opset): each goes up to 13, 18 and the newest.
OLD = [
    (unary("y = Softmax<axis = 1>(x)"), 11),
    (unary("y = Softmax(x)"), 7),
    (unary("y = Hardmax<axis = 0>(x)"), 7),
    (unary("y = LogSoftmax<axis = -1>(x)"), 11),
    (unary("y = ReduceSum<axes = [1]>(x)", "2,1,4"), 11),
    (unary("y = ReduceMean<axes = [0, 2], keepdims = 0>(x)", "3"), 7),
    (unary("y = ReduceMax(x)", "1,1,1"), 7),
    (unary("y = Clip<min = 0.0>(x)"), 8),
    (unary("y = Clip(x)"), 8),
    (unary("y = Pad<pads = [0, 0, 1, 0, 0, -1], value = 2.5>(x)", "2,3,4"), 7),
    (unary("y = Slice<starts = [1, -3], ends = [2, 9], axes = [0, 2]>(x)", "1,3,3"), 7),
    (unary("y, i = TopK<k = 2, axis = 2>(x)", "2,3,2"), 8),
    (unary("y = Unsqueeze<axes = [0]>(x)", "1,2,3,4"), 7),
    ("agraph (float[1,3,1] x) => (float[3] y) { y = Squeeze<axes = [0, 2]>(x) }", 7),
    ("agraph (float[1,3,1] x) => (float[3] y) { y = Squeeze(x) }", 7),
    ("agraph (float[2,6] x) => (float[2,2] y, float[2,4] z) { y, z = Split<axis = 1, split = [2, 4]>(x) }", 7),
    ("agraph (float[2,6] x) => (float[2,3] y, float[2,3] z) { y, z = Split<axis = 1>(x) }", 7),
    (unary("y = Dropout<ratio = 0.25>(x)"), 7),
    (unary("y, m = Dropout(x)"), 7),
    ("agraph (float[1,1,2,2] x) => (float[1,1,4,6] y) { y = Upsample<scales = [1.0, 1.0, 2.0, 3.0]>(x) }", 7),
    ('agraph (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1, 1, 2, 2}> { y = Upsample<mode = "linear">(x, s) }', 9),
    ("agraph (float[1,1,4,4] x) => (float[1,1,2,2] y) <float[4] s = {1, 1, 0.5, 0.5}> { y = Resize(x, s) }", 10),
    (
        "agraph (float[3,3] x) => (float[3,3] y) <int64[1,3] i = {1, 0, 2}> { u = Slice<starts = [0], ends = [1]>(x) y = Scatter(x, i, u) }",
        9,
    ),
    (
        "agraph (float[2,2,3] x) => (float[2,2,3] y) <float[2] s = {1, 2}, float[2] v = {3, 4}> { y = BatchNormalization(x, s, s, s, v) }",
        7,
    ),
]


@pytest.mark.parametrize(("text", "opset"), OLD)
def test_an_old_model_goes_up_and_comes_back(text: str, opset: int, evaluator: Evaluator) -> None:
    feeds = {"x": x_of(*(int(dim) for dim in model_of(text, opset).graph.inputs[0].shape or ()), edges=False)}  # type: ignore[arg-type]
    for version in (13, 18, 22):
        before, after, _ = converted(text, opset, version)
        assert_same(before, after, evaluator, feeds)
    back = copy_model(after)
    infer_shapes(back, forget=True)
    convert_opset(back, 11)
    assert_same(before, back, evaluator, feeds)


def test_infinities_are_clipped_as_they_were(evaluator: Evaluator) -> None:
    """A bound that is not given is the largest finite number."""
    before, after, _ = converted(unary("y = Clip<min = 0.0>(x)"), 8, 13)
    found = evaluator.run(after, {"x": x_of(2, 3, 4)})["y"]
    assert np.isfinite(found[~np.isnan(found)]).all()
    assert_same(before, after, evaluator, {"x": x_of(2, 3, 4)})


def test_a_step_up_keeps_the_form(evaluator: Evaluator) -> None:
    text = unary("a = Relu(x) b = LeakyRelu<alpha = 0.5>(a) y = Tanh(b)")
    for version in (13, 18, newest_opset()):
        places = converted(text, 7, version)[2]
        assert places == []
    assert_same(model_of(text, 7), converted(text, 7, 18)[1], evaluator, {"x": x_of(2, 3, 4)})


def test_the_ir_version_rises_with_the_opset() -> None:
    assert converted(unary("y = Relu(x)"), 8, 23)[1].ir_version >= 11
    assert converted(unary("y = Relu(x)"), 18, 11)[1].ir_version == 8


def test_a_weight_needs_an_ir_version_that_takes_it() -> None:
    """Up to IR version 3 every weight had to be an input as well."""
    model = ir.from_onnx_text(f'<ir_version: 3, opset_import: ["" : 8]>\n{unary("y = Clip<max = 1.0>(x)")}')
    infer_shapes(model)
    convert_opset(model, 11)
    assert model.ir_version >= 4


def test_rounding_that_changed_its_meaning_is_spelled_out(evaluator: Evaluator) -> None:
    """RoiAlign before 16 did what 16 calls output_half_pixel, which is not the default."""
    text = "agraph (float[1,1,4,4] x, float[1,4] r) => (float[1,1,1,1] y) <int64[1] b = {0}> { y = RoiAlign(x, r, b) }"
    before, after, places = converted(text, 15, 16)
    assert places == ["RoiAlign -> y"]
    feeds = {"x": x_of(1, 1, 4, 4, edges=False), "r": np.array([[0.5, 1, 2.5, 3]], np.float32)}
    assert_same(before, after, evaluator, feeds)
    # Without the attribute the answer is another one: the comparison would see it.
    next(iter(after.graph)).attributes.clear()
    with pytest.raises(AssertionError):
        assert_same(before, after, evaluator, feeds)


def test_flattened_rows_are_kept(evaluator: Evaluator) -> None:
    """Softmax before 13 normalises all dimensions from the axis on together; the bare new form would not."""
    before, after, _ = converted(unary("y = Softmax<axis = 1>(x)"), 11, 13)
    assert_same(before, after, evaluator, {"x": x_of(2, 3, 4, edges=False)})
    with pytest.raises(AssertionError):
        assert_same(before, model_of(unary("y = Softmax<axis = 1>(x)"), 13), evaluator, {"x": x_of(2, 3, 4, edges=False)})


@pytest.mark.parametrize(
    ("text", "opset", "version", "says"),
    [
        (
            """agraph (float[2,2,3] x, float[2] s) => (float[2,2,3] y, float[2] m, float[2] v, float[2] a, float[2] b) {
                y, m, v, a, b = BatchNormalization(x, s, s, s, s)
            }""",
            9,
            14,
            "no longer exist",
        ),
    ],
)
def test_what_the_newer_opset_cannot_say_is_refused(text: str, opset: int, version: int, says: str) -> None:
    assert says in refusal(text, opset, version)


def test_a_node_that_is_not_of_its_own_opset_is_refused() -> None:
    for version in (9, 13):
        assert "it is not an operator of opset 11" in refusal(unary("y = HardSwish(x)"), 11, version)
