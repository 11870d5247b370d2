"""Masks beyond float16 before a Softmax: chosen ones become -65504, added ones only where the user says so."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar import fix
from jumar.graph import Evaluator
from jumar.proof import FeedSet

HEAD = '<ir_version: 8, opset_import: ["" : 13]> agraph (float[4,6] x, bool[4,6] m) => (float[4,6] y) <float mask = {-1.0e9}, float zero = {0.0}, float one = {1.0}> '
CHOSEN = "{ s = Where(m, x, mask) y = Softmax<axis = 1>(s) }"
ADDED = "{ b = Where(m, zero, mask) s = Add(x, b) y = Softmax<axis = 1>(s) }"
SCALED = "{ n = Cast<to = 1>(m) o = Sub(one, n) b = Mul(o, mask) s = Add(x, b) y = Softmax<axis = 1>(s) }"
READ_TWICE = "{ s = Where(m, x, mask) u = Softmax<axis = 1>(s) y = Add(u, s) }"
SHOWN = "{ y = Where(m, x, mask) }"
FACTOR = "{ s = Mul(x, mask) y = Softmax<axis = 1>(s) }"
LOGARITHM = "{ s = Where(m, x, mask) y = LogSoftmax<axis = 1>(s) }"


def feeds(masked_row: bool = False) -> FeedSet:
    random = np.random.default_rng(0)
    mask = random.random((4, 6)) < 0.5
    mask[:, 0] = True
    if masked_row:
        mask[1] = False
    return FeedSet(({"x": (random.standard_normal((4, 6)) * 5).astype(np.float32), "m": mask},), "test")


def least(model: ir.Model) -> float:
    constants = [value.const_value.numpy() for value in model.graph.initializers.values() if value.const_value is not None]
    return min(float(array.min()) for array in constants)


@pytest.mark.parametrize("masked_row", [False, True])
def test_a_chosen_mask_is_replaced(masked_row: bool, evaluator: Evaluator) -> None:
    case = fix(ir.from_onnx_text(HEAD + CHOSEN), soc="Ascend310P3", feeds=feeds(masked_row), evaluator=evaluator)
    assert [step.status for step in case.record.steps if step.code == "DT303"] == ["applied"]
    assert case.record.verdict == "ready"
    assert least(case.model) == -65504.0
    feed = feeds(masked_row).cases[0]
    found = next(iter(evaluator.run(case.model, feed).values()))
    assert np.allclose(found.sum(1), 1.0, atol=1e-6)  # also of a row that is masked everywhere


@pytest.mark.parametrize("body", [ADDED, SCALED])
def test_an_added_mask_is_replaced_only_if_allowed(body: str, evaluator: Evaluator) -> None:
    model = ir.from_onnx_text(HEAD + body)
    case = fix(model, soc="Ascend310P3", feeds=feeds(), evaluator=evaluator)
    assert {finding.fix for finding in case.record.findings if finding.code == "DT303"} == {"unsafe"}
    case = fix(model, soc="Ascend310P3", feeds=feeds(), evaluator=evaluator, unsafe=["DT303"])
    assert [step.status for step in case.record.steps if step.code == "DT303"] == ["applied"]
    assert least(case.model) == -10000.0


def test_an_added_mask_of_a_whole_row_is_rolled_back(evaluator: Evaluator) -> None:
    """There the scores decide once the mask no longer swallows them, and the proof sees it."""
    case = fix(ir.from_onnx_text(HEAD + ADDED), soc="Ascend310P3", feeds=feeds(masked_row=True), evaluator=evaluator, unsafe=["DT303"])
    assert [step.status for step in case.record.steps if step.code == "DT303"] == ["rolled-back"]
    assert least(case.model) == -1e9


@pytest.mark.parametrize("body", [READ_TWICE, SHOWN, FACTOR, LOGARITHM])
def test_a_mask_that_somebody_else_reads_stays(body: str, evaluator: Evaluator) -> None:
    case = fix(ir.from_onnx_text(HEAD + body), soc="Ascend310P3", feeds=feeds(), evaluator=evaluator, unsafe=["DT303"])
    assert not [step for step in case.record.steps if step.code == "DT303" and step.status == "applied"]
    assert {finding.fix for finding in case.record.findings if finding.code == "DT303"} == {"none"}
    assert least(case.model) == -1e9


def test_masks_of_several_values_are_not_made_one(evaluator: Evaluator) -> None:
    """In a row that is masked everywhere the largest of them would win, and as one value they would share it."""
    text = (HEAD + CHOSEN).replace("float mask = {-1.0e9}", "float[6] mask = {-1.0e9, -2.0e9, -1.0e9, -1.0e9, -1.0e9, -1.0e9}")
    case = fix(ir.from_onnx_text(text), soc="Ascend310P3", feeds=feeds(), evaluator=evaluator)
    assert {finding.fix for finding in case.record.findings if finding.code == "DT303"} == {"unsafe"}
    assert least(case.model) == -2e9


def causal(size: int, opset: int, axis: int = -1) -> ir.Model:
    """Scores of all pairs of positions, of which later ones are masked by addition, as exporters of language models write it."""
    mask = np.where(np.tri(size, dtype=bool), np.float32(0), np.finfo(np.float32).min)
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> agraph (float[2,{size},{size}] x) => (float[2,{size},{size}] y) {{ y = Softmax<axis = {axis}>(x) }}'
    model = ir.from_onnx_text(text)
    tensor = ir.tensor(mask, name="mask")
    value = ir.Value(name="mask", const_value=tensor, shape=ir.Shape(mask.shape), type=ir.TensorType(ir.DataType.FLOAT))
    model.graph.register_initializer(value)
    softmax = model.graph[0]
    add = ir.node("Add", [model.graph.inputs[0], value], name="add")
    add.outputs[0].name, add.outputs[0].type, add.outputs[0].shape = "masked", ir.TensorType(ir.DataType.FLOAT), ir.Shape([2, size, size])
    model.graph.insert_before(softmax, add)
    softmax.replace_input_with(0, add.outputs[0])
    return model


@pytest.mark.parametrize(("opset", "axis"), [(13, -1), (11, 2)])
def test_an_added_mask_that_leaves_something_of_every_row_is_replaced(opset: int, axis: int, evaluator: Evaluator) -> None:
    feed = {"x": (np.random.default_rng(0).standard_normal((2, 80, 80)) * 9).astype(np.float32)}
    case = fix(causal(80, opset, axis), soc="Ascend310P3", feeds=FeedSet((feed,), "test"), evaluator=evaluator)
    assert [step.status for step in case.record.steps if step.code == "DT303"] == ["applied"]
    assert least(case.model) == -10000.0
    assert case.record.verdict == "ready"


def test_an_added_mask_beside_another_one_is_not(evaluator: Evaluator) -> None:
    """What the one leaves of a row, the other may hide."""
    model = causal(80, 13)
    add = next(node for node in model.graph if node.op_type == "Add")
    far = ir.Value(
        name="far", const_value=ir.tensor(np.float32(-1e9), name="far"), shape=ir.Shape([]), type=ir.TensorType(ir.DataType.FLOAT)
    )
    model.graph.register_initializer(far)
    hides = ir.Value(name="hides", shape=ir.Shape([80]), type=ir.TensorType(ir.DataType.BOOL))
    model.graph.inputs.append(hides)
    where = ir.node("Where", [hides, far, model.graph.inputs[0]], name="where")
    where.outputs[0].name, where.outputs[0].type, where.outputs[0].shape = "some", ir.TensorType(ir.DataType.FLOAT), ir.Shape([2, 80, 80])
    model.graph.insert_before(add, where)
    add.replace_input_with(0, where.outputs[0])
    feed = {"x": np.random.default_rng(0).standard_normal((2, 80, 80)).astype(np.float32), "hides": np.zeros(80, np.bool_)}
    case = fix(model, soc="Ascend310P3", feeds=FeedSet((feed,), "test"), evaluator=evaluator)
    assert {finding.fix for finding in case.record.findings if finding.code == "DT303"} == {"unsafe"}


def test_along_another_axis_it_is_not(evaluator: Evaluator) -> None:
    """Along the middle axis other places are masked, and a mask of the last axis says nothing of them."""
    feed = {"x": np.random.default_rng(0).standard_normal((2, 80, 80)).astype(np.float32)}
    case = fix(causal(80, 13, 1), soc="Ascend310P3", feeds=FeedSet((feed,), "test"), evaluator=evaluator)
    assert {finding.fix for finding in case.record.findings if finding.code == "DT303"} == {"unsafe"}


@pytest.mark.parametrize(
    "scores",
    [
        "u = Where(n, x, mask)",
        "u = Where(n, x, far)",
        "f = Cast<to = 1>(n) o = Sub(one, f) b = Mul(o, mask) u = Add(x, b)",
        "f = Cast<to = 1>(n) o = Sub(f, one) g = Neg(mask) b = Mul(o, g) w = Add(x, b) u = Identity(w)",
    ],
)
def test_scores_that_hold_another_mask_keep_this_one(scores: str, evaluator: Evaluator) -> None:
    """In a row that both masks hide the two tie, or the other one wins; as -65504 this one would win it, and few inputs have such a row."""
    head = HEAD.replace("bool[4,6] m", "bool[4,6] m, bool[4,6] n").replace("float mask =", "float far = {-2.0e9}, float mask =")
    model = ir.from_onnx_text(f"{head} {{ {scores} s = Where(m, u, mask) y = Softmax<axis = 1>(s) }}")
    feed = {**feeds().cases[0], "n": np.ones((4, 6), np.bool_)}
    case = fix(model, soc="Ascend310P3", feeds=FeedSet((feed,), "test"), evaluator=evaluator)
    hidden = {**feed, "n": np.zeros((4, 6), np.bool_)}
    hidden["m"][0] = [True, True, False, False, True, False]
    np.testing.assert_allclose(
        next(iter(evaluator.run(case.model, hidden).values())), next(iter(evaluator.run(model, hidden).values())), atol=1e-6
    )
