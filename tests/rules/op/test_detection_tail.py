"""Tails of detectors are recognised by how they tell classes apart; the tensors named are those a host tail starts from."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar.case import Finding
from jumar.graph import Evaluator, extract
from jumar.verbs.check import check

TAIL = "<int64[1] most = {4}, float[1] iou = {0.5}, float[1] least = {0.1}, float far = {7680}, float one = {1}, int64[1] k = {1}>"
FORMS = {
    # torchvision.ops.batched_nms, as the TorchScript exporter writes it
    "torchvision": """
        (float[9,4] x, float[9] s, int64[9] labels) => (int64[n,3] y) {TAIL} {
            corners = Relu(x)
            largest = ReduceMax<keepdims = 0>(corners)
            distance = Add(largest, one)
            kinds = Cast<to = 1>(labels)
            moves = Mul(kinds, distance)
            column = Unsqueeze<axes = [1]>(moves)
            apart = Add(corners, column)
            boxes = Unsqueeze<axes = [0]>(apart)
            likely = Sigmoid(s)
            scores = Unsqueeze<axes = [0, 1]>(likely)
            y = NonMaxSuppression(boxes, scores, most, iou, least)
        }""",
    # YOLO exports: an index that was chosen, times a constant
    "yolo": """
        (float[1,9,4] x, float[1,9,5] s) => (int64[n,3] y) {TAIL} {
            best = ReduceMax<axes = [2], keepdims = 1>(s)
            class = ArgMax<axis = 2, keepdims = 1>(s)
            kinds = Cast<to = 1>(class)
            moves = Mul(kinds, far)
            corners = Relu(x)
            boxes = Add(corners, moves)
            scores = Transpose<perm = [0, 2, 1]>(best)
            y = NonMaxSuppression(boxes, scores, most, iou, least)
        }""",
    "best": """
        (float[1,9,4] x, float[1,9,5] s) => (int64[n,3] y) {TAIL} {
            best = ReduceMax<axes = [2], keepdims = 1>(s)
            boxes = Relu(x)
            scores = Transpose<perm = [0, 2, 1]>(best)
            y = NonMaxSuppression(boxes, scores, most, iou, least)
        }""",
    "classes": """
        (float[1,9,4] x, float[1,9,5] s) => (int64[n,3] y) {TAIL} {
            likely = Softmax<axis = 2>(s)
            boxes = Relu(x)
            scores = Transpose<perm = [0, 2, 1]>(likely)
            y = NonMaxSuppression(boxes, scores, most, iou, least)
        }""",
    # a shift of all boxes is no distance between classes
    "single": """
        (float[1,9,4] x, float[1,1,9] s) => (int64[n,3] y) {TAIL} {
            wide = Mul(x, far)
            boxes = Add(wide, one)
            scores = Sigmoid(s)
            y = NonMaxSuppression(boxes, scores, most, iou, least)
        }""",
}
SAYS = {"torchvision": "moved apart", "yolo": "moved apart", "best": "best class only", "classes": "by itself", "single": "of one kind"}


def model(form: str) -> ir.Model:
    text = '<ir_version: 8, opset_import: ["" : 11]> agraph ' + FORMS[form].replace("{TAIL}", TAIL)
    return ir.from_proto(onnx.parser.parse_model(text))


def tails(graph: ir.Model, **target: str) -> list[Finding]:
    return [item for item in check(graph, **target).record.findings if item.code == "OP234"]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_recognised(form: str) -> None:
    (finding,) = tails(model(form), soc="Ascend310P3")
    assert SAYS[form] in str(finding.message)
    assert "`boxes` and `scores`" in str(finding.remedy)
    assert "BatchMultiClassNMS" in str(finding.remedy)


def test_only_an_operator_that_the_target_has_is_offered() -> None:
    (finding,) = tails(model("classes"), target="mdc510pro")  # which has no NonMaxSuppression
    assert "BatchMultiClassNMS" in str(finding.remedy)
    (finding,) = tails(model("classes"), soc="Ascend035")
    assert "BatchMultiClassNMS" not in str(finding.remedy)


def test_suppression_of_given_boxes_is_no_tail() -> None:
    text = '<ir_version: 8, opset_import: ["" : 11]> agraph (float[1,9,4] b, float[1,1,9] s) => (int64[n,3] y) {TAIL} { y = NonMaxSuppression(b, s, most, iou, least) }'
    assert not tails(ir.from_proto(onnx.parser.parse_model(text.replace("{TAIL}", TAIL))), soc="Ascend310P3")


@pytest.mark.parametrize("form", ["yolo", "classes"])
def test_the_halves_at_the_named_tensors_are_the_model(form: str, evaluator: Evaluator) -> None:
    whole = model(form)
    rng = np.random.default_rng(3)
    feed = {value.name or "": rng.random(tuple(value.shape or ()), np.float32) for value in whole.graph.inputs}
    device, host = extract(whole, list(feed), ["boxes", "scores"]), extract(whole, ["boxes", "scores"], ["y"])
    chosen = evaluator.run(host, evaluator.run(device, feed))["y"]
    assert len(chosen)
    np.testing.assert_array_equal(chosen, evaluator.run(whole, feed)["y"])
