"""A graph is right when it computes what the module computes; only ties may change places."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar.exporting.agreement import BOUND, compare_with_eager, same_but_for_ties
from jumar.exporting.samples import GIVEN
from jumar.graph import Evaluator
from jumar.proof import Interface

MODEL = '<ir_version: 8, opset_import: ["" : 13]> agraph (float[4] x) => (float[4] y) <float w = {FACTOR}> { y = Mul(x, w) }'


def judged(factor: float, evaluator: Evaluator) -> bool:
    model = ir.from_onnx_text(MODEL.replace("FACTOR", repr(factor)))
    x = np.array([0.5, -1, 2, 3], np.float32)
    return compare_with_eager(model, Interface.of(model), [(GIVEN, {"x": x}, {"y": 2 * x})], evaluator).right


def test_rounding_passes_and_more_does_not(evaluator: Evaluator) -> None:
    assert judged(2.0, evaluator) and judged(2.0 + BOUND / 2, evaluator)
    assert not judged(2.02, evaluator) and not judged(2.0 + 4 * BOUND, evaluator)


def detections() -> dict[str, np.ndarray]:
    return {
        "boxes": np.arange(20, dtype=np.float32).reshape(5, 4),
        "scores": np.array([0.9, 0.7, 0.7, 0.7, 0.1], np.float32),
        "labels": np.array([3, 1, 2, 2, 5], np.int64),
    }


NAMES = ["boxes", "scores", "labels"]


@pytest.mark.parametrize(
    ("order", "right"), [([0, 2, 1, 3, 4], True), ([0, 3, 1, 2, 4], True), ([1, 0, 2, 3, 4], False), ([0, 1, 2, 4, 3], False)]
)
def test_only_rows_of_equal_score_may_change_places(order: list[int], right: bool) -> None:
    expected = detections()
    assert same_but_for_ties(NAMES, {name: array[order] for name, array in expected.items()}, expected) is right


def test_rows_move_as_a_whole() -> None:
    expected, found = detections(), detections()
    found["boxes"] = found["boxes"][[0, 2, 1, 3, 4]]
    assert not same_but_for_ties(NAMES, found, expected)


def test_without_a_score_no_row_may_move() -> None:
    expected = {"boxes": detections()["boxes"]}
    assert not same_but_for_ties(["boxes"], {"boxes": expected["boxes"][::-1]}, expected)


def test_a_graph_that_does_not_run_is_wrong(evaluator: Evaluator) -> None:
    model = ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13]> agraph (float[2] x) => (float[2] y) { y = Add(x, x) }')
    found = compare_with_eager(
        model, Interface.of(model), [(GIVEN, {"x": np.zeros(3, np.float32)}, {"y": np.zeros(3, np.float32)})], evaluator
    )
    assert not found.right and not found.right_on_given
