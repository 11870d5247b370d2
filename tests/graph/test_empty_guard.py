"""An If that asks whether anything was found: what is done otherwise does the same with nothing, or the If stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator, copy_model, infer_shapes
from jumar.graph.empty_guard import empty_guards, take_full_branch

BOXES = np.array([[0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 2.1, 2], [5, 5, 6, 6], [-4, -4, -1, -1]], np.float32)

# torchvision's batched_nms, in the words of its export: boxes of different classes are moved apart, then all are suppressed at once.
NMS = """agraph (float[5,4] x, float[5] score, int64[5] label) => (int64[m] y)
    <int64 zero = {{0}}, float limit = {{0.5}}, int64[1] flat = {{-1}}, float one = {{1}}, int64[1] first = {{0}}, int64[1] second = {{1}},
     int64 most = {{100}}, float[1] overlap = {{0.5}}, int64 two = {{2}}, float[3] other = {{1, 2, 3}}> {{
    good = Greater(score, limit)
    found = NonZero(good)
    which = Reshape(found, flat)
    b = Gather(x, which)
    s = Gather(score, {which})
    c = Gather(label, which)
    shape = Shape(b)
    {asked}
    y = If (none) <
        then_branch = t () => (int64[0] e) {{ e = Constant <value = int64[{empty}] {{}}> () }},
        else_branch = f () => (int64[n] k) {{
            top = ReduceMax<keepdims = 0>(b)
            f32 = Cast<to = 1>(c)
            step = Add(top, one)
            offset = Mul(f32, step)
            column = Unsqueeze(offset, second)
            moved = Add(b, column)
            b3 = Unsqueeze(moved, first)
            s2 = Unsqueeze(s, first)
            s3 = Unsqueeze(s2, first)
            picked = NonMaxSuppression(b3, s3, most, overlap)
            k = Gather<axis = 1>(picked, two)
        }}
    >
}}"""
ASKED = "count = ReduceProd<keepdims = 0>(shape) none = Equal(count, zero)"


def model_of(which: str = "which", asked: str = ASKED, empty: str = "0", opset: int = 13) -> ir.Model:
    text = NMS.format(which=which, asked=asked, empty=empty)
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    infer_shapes(model)
    return model


def feeds() -> list[dict[str, Any]]:
    label = np.array([0, 1, 0, 1, 1])
    scores = ([0.9, 0.8, 0.7, 0.6, 0.9], [0.1, 0.8, 0.7, 0.2, 0.3], [0.1] * 5, [0.4, 0.2, 0.3, 0.1, 0.9])
    return [{"x": BOXES, "score": np.array(score, np.float32), "label": label} for score in scores]


def assert_same(before: ir.Model, after: ir.Model, evaluator: Evaluator) -> None:
    for feed in feeds():
        expected, found = evaluator.run(before, feed)["y"], evaluator.run(after, feed)["y"]
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        "count = Size(b) none = Equal(zero, count)",
        "count = Gather(shape, zero) some = Greater(count, zero) none = Not(some)",
        "rows = Gather(shape, first) count = Squeeze(rows, first) small = Cast<to = 6>(count) l = Cast<to = 7>(small) none = Equal(l, zero)",
    ],
)
def test_the_question_in_its_forms(asked: str, evaluator: Evaluator) -> None:
    before = model_of(asked=asked)
    after = copy_model(before)
    assert len(empty_guards(after)) == 1
    assert take_full_branch(after, 0, evaluator)
    assert "If" not in [node.op_type for node in after.graph]
    assert_same(before, after, evaluator)


@pytest.mark.parametrize(
    ("which", "asked", "empty"),
    [
        ("which", ASKED.replace("Equal", "Less"), "0"),  # another question
        ("which", ASKED.replace("(count, zero)", "(count, two)"), "0"),
        ("which", "n = Shape(other) count = ReduceProd<keepdims = 0>(n) none = Equal(count, zero)", "0"),  # of another tensor
        (
            "which",
            "k = Shape(b) l = Cast<to = 3>(k) m = ReduceProd<keepdims = 0>(k) o = Cast<to = 3>(m) p = Cast<to = 7>(o) none = Equal(p, zero)",
            "0",
        ),
        ("which", ASKED, "1"),  # not empty
    ],
)
def test_other_questions_are_no_guards(which: str, asked: str, empty: str) -> None:
    model = model_of(which, asked)
    if empty == "1":
        branch = next(node for node in model.graph if node.op_type == "If").attributes["then_branch"].as_graph()
        branch[0].attributes["value"] = ir.AttrTensor("value", ir.tensor(np.array([7])))
    assert not empty_guards(model)


def test_a_tensor_that_need_not_be_empty_with_the_other() -> None:
    assert not empty_guards(model_of(which="first"))


def test_a_branch_that_gives_something_of_nothing_stays(evaluator: Evaluator) -> None:
    """The same model, but the branch adds an element of its own to what was found."""
    model = model_of()
    body = next(node for node in model.graph if node.op_type == "If").attributes["else_branch"].as_graph()
    extra = ir.node("Concat", [body.outputs[0], model.graph.initializers["first"]], {"axis": 0}, outputs=[ir.Value(name="longer")])
    body.append(extra)
    extra.outputs[0].type, extra.outputs[0].shape = ir.TensorType(ir.DataType.INT64), ir.Shape([None])
    body.outputs[0] = extra.outputs[0]
    before = copy_model(model)
    assert not take_full_branch(model, 0, evaluator)
    assert_same(before, model, evaluator)


PLAIN = "s = Gather(score, which)"


@pytest.mark.parametrize(
    ("made", "together"),
    [
        ("t = Gather(score, which) u = Sigmoid(t) s = Mul(u, one)", True),
        ("t = Gather(score, which) r = Gather(score, first) s = Add(t, r)", True),  # one element decides nothing
        ("t = Gather(score, which) g = Cast<to = 1>(c) h = Add(g, t) s = Where(w, h, t)", True),
        ("t = Gather(x, which) r = Slice(t, first, second, second) q = Flatten(r) s = Squeeze(q, second)", True),
        ("l = Shape(c) k = ConstantOfShape(l) t = Gather(score, which) s = Add(k, t)", True),
        ("t = Gather(score, which) s = Add(t, v)", False),  # v has as many rows as something else was found
        ("t = Gather(score, which) r = Gather(score, first) s = Concat<axis = 0>(t, r)", False),
        ("t = Gather(score, which) r = Gather(score, others) s = Concat<axis = 0>(t, r)", False),
        ("t = Gather(x, first) s = Reshape(t, flat)", False),
    ],
)
def test_what_has_as_many_rows(made: str, together: bool) -> None:
    text = NMS.format(which="which", asked=ASKED, empty="0").replace(
        PLAIN,
        f"bad = Not(good) lost = NonZero(bad) others = Reshape(lost, flat) v = Gather(score, others) c0 = Gather(score, which)"
        f" w = Greater(c0, limit) {made}",
    )
    text = text.replace("c = Gather(label, which)", "").replace("bad = Not(good)", "c = Gather(label, which) bad = Not(good)")
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]>\n{text}')
    infer_shapes(model)
    assert len(empty_guards(model)) == int(together)


def test_boxes_of_two_levels_joined(evaluator: Evaluator) -> None:
    """As a one-stage detector: the best of each level, their boxes decoded, and all joined."""
    level = """kL = Min(most1, cntL) sL, iL = TopK(scL, kL) dL = Gather(x, iL) eL = Exp(dL) bL = Mul(dL, eL) mL = Mod(iL, four) lL = Cast<to = 1>(mL)"""
    levels = " ".join(
        f"ok{number} = Greater(score{number}, limit) nz{number} = NonZero(ok{number}) in{number} = Reshape(nz{number}, flat)"
        f" sc{number} = Gather(score{number}, in{number}) cnt{number} = Shape(sc{number}) " + level.replace("L", str(number))
        for number in (1, 2)
    )
    text = f"""agraph (float[5,4] x, float[5] score1, float[5] score2) => (float[m] y) <int64 zero = {{0}}, float limit = {{0.5}},
        int64[1] flat = {{-1}}, int64[1] most1 = {{3}}, int64 four = {{4}}> {{
        {levels}
        b = Concat<axis = 0>(b1, b2) s = Concat<axis = 0>(s1, s2) l = Concat<axis = 0>(l1, l2)
        shape = Shape(b) count = ReduceProd<keepdims = 0>(shape) none = Equal(count, zero)
        y = If (none) <
            then_branch = t () => (float[0] e) {{ e = Constant <value = float[0] {{}}> () }},
            else_branch = f () => (float[n] k) {{ top = ReduceMax<keepdims = 0>(b) o = Mul(l, top) k = Add(o, s) }}
        >
    }}"""
    before = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]>\n{text}')
    infer_shapes(before)
    after = copy_model(before)
    assert take_full_branch(after, 0, evaluator)
    assert "If" not in [node.op_type for node in after.graph]
    for first in ([0.9, 0.8, 0.7, 0.6, 0.9], [0.1] * 5, [0.1, 0.9, 0.2, 0.1, 0.3]):
        feed = {"x": BOXES / 6, "score1": np.array(first, np.float32), "score2": np.array(first[::-1], np.float32) * np.float32(0.6)}
        np.testing.assert_array_equal(evaluator.run(after, feed)["y"], evaluator.run(before, feed)["y"], strict=True)
