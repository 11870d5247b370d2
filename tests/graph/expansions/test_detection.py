"""Non-maximum suppression written out selects the rows that ONNX Runtime selects, in its order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, used_names
from jumar.graph.expansions import detection
from jumar.graph.opset.schemas import find_schema
from jumar.graph.opset.step import Step, Unconvertible

Form = dict[str, Any]
FORMS = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 3),
        "classes": st.integers(1, 3),
        "count": st.integers(1, 17),
        "most": st.integers(1, 20),
        "centre": st.booleans(),
        "overlap": st.sampled_from([None, 0.0, 0.3, 0.5, 1.0]),
        "least": st.sampled_from([None, 0.0, 0.4, -1.0]),
        "opset": st.sampled_from([10, 11, 13, 18]),
        "ties": st.booleans(),
        "seed": st.integers(0, 1000),
    }
)


def model_of(form: Form) -> ir.Model:
    names, weights = ["boxes", "scores", "most"], [onnx.numpy_helper.from_array(np.array([form["most"]], np.int64), "most")]
    for name in ("overlap", "least"):
        names.append("" if form[name] is None else name)
        if form[name] is not None:
            weights.append(onnx.numpy_helper.from_array(np.array([form[name]], np.float32), name))
    while not names[-1]:
        names.pop()
    node = onnx.helper.make_node("NonMaxSuppression", names, ["rows"], center_point_box=int(form["centre"]))
    info = onnx.helper.make_tensor_value_info
    boxes = info("boxes", onnx.TensorProto.FLOAT, [form["batch"], form["count"], 4])
    scores = info("scores", onnx.TensorProto.FLOAT, [form["batch"], form["classes"], form["count"]])
    graph = onnx.helper.make_graph([node], "g", [boxes, scores], [info("rows", onnx.TensorProto.INT64, ["n", 3])], weights)
    return ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", form["opset"])], ir_version=8))


def feeds_of(form: Form) -> dict[str, Any]:
    """With ``ties``: whole numbers, so that boxes, overlaps and scores are often equal."""
    random = np.random.default_rng(form["seed"])
    shapes = {"boxes": (form["batch"], form["count"], 4), "scores": (form["batch"], form["classes"], form["count"])}
    if form["ties"]:
        return {
            "boxes": random.integers(0, 6, shapes["boxes"]).astype(np.float32),
            "scores": (random.integers(-3, 5, shapes["scores"]) / 4).astype(np.float32),
        }
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def written(form: Form, expansion: Callable[[Step], None] = detection.greedy_selection) -> ir.Model:
    model = model_of(form)
    step = Step(model, model.graph[0], used_names(model), form["opset"])
    schema = find_schema("NonMaxSuppression", form["opset"])
    assert schema is not None
    step.source = schema
    expansion(step)
    onnx.checker.check_model(ir.to_proto(model))
    return model


def by_table(step: Step) -> None:
    """The form with a table of boxes, cut to the rows there are."""
    found = detection.select_by_kernel(step)
    rows = step.op("Compress", step.cast(found.rows, ir.DataType.INT64), found.valid, axis=0)
    step.finish(rows)


def same(form: Form, expansion: Callable[[Step], None], evaluator: Evaluator) -> bool:
    feeds = feeds_of(form)
    right, found = (evaluator.run(model, feeds)["rows"] for model in (model_of(form), written(form, expansion)))
    return bool(np.array_equal(right, found))


@settings(max_examples=10, deadline=None)
@given(FORMS)
def test_the_same_rows_in_the_same_order(evaluator: Evaluator, form: Form) -> None:
    assert same(form, detection.greedy_selection, evaluator)


@settings(max_examples=10, deadline=None)
@given(FORMS)
def test_from_a_table_of_boxes(evaluator: Evaluator, form: Form) -> None:
    assert same(form | {"opset": max(form["opset"], 11)}, by_table, evaluator)  # ScatterND is younger than NonMaxSuppression


@settings(max_examples=8, deadline=None)
@given(FORMS)
def test_row_by_row_where_all_pairs_are_too_many(evaluator: Evaluator, form: Form) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detection, "DENSE_LIMIT", 0)
        assert same(form, detection.greedy_selection, evaluator)


@settings(max_examples=10, deadline=None)
@given(FORMS)
def test_boxes_by_their_centre_become_corners(evaluator: Evaluator, form: Form) -> None:
    assert same(form | {"centre": True}, detection.corner_boxes, evaluator)


def test_a_wrong_threshold_is_noticed(evaluator: Evaluator) -> None:
    form = {
        "batch": 1,
        "classes": 1,
        "count": 17,
        "most": 17,
        "centre": False,
        "overlap": 0.3,
        "least": -9.0,
        "opset": 13,
        "ties": True,
        "seed": 3,
    }
    right = evaluator.run(model_of(form), feeds_of(form))["rows"]
    assert not np.array_equal(right, evaluator.run(written(form | {"overlap": 0.5}), feeds_of(form))["rows"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"most": 0}, "absent or 0"),
        ({"most": 400, "count": 400}, "320 are written out"),
        ({"most": 200, "count": 3000}, "more than 128 selections"),
    ],
)
def test_what_is_too_much_is_refused(changes: Form, words: str) -> None:
    form = {"batch": 1, "classes": 1, "count": 5, "most": 3, "centre": False, "overlap": 0.3, "least": 0.0, "opset": 13} | changes
    with pytest.raises(Unconvertible, match=words):
        written(form)


def test_only_the_first_rows_are_made_where_no_others_are_read() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    agraph (float[1,40,4] boxes, float[1,1,40] scores) => (int64[m] kept)
    <int64[1] most = {40}, float[1] iou = {0.5}, int64[1] column = {2}, int64[1] one = {1}, int64[1] zero = {0}, int64[1] end = {7}> {
        rows = NonMaxSuppression(boxes, scores, most, iou)
        last = Gather<axis = 1>(rows, column)
        line = Squeeze(last, one)
        kept = Slice(line, zero, end, zero)
    }
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    assert detection.rows_read(model.graph[0].outputs[0]) == 7
    model.graph.outputs.append(model.graph[0].outputs[0])
    assert detection.rows_read(model.graph[0].outputs[0]) is None
