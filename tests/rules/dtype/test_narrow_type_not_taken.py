"""DT307: each operator that only moves or chooses gives the same through a wider type; those that compute are left alone."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator
from jumar.proof import FeedSet
from jumar.verbs.fix import fix

BODIES = [
    "(bool[2,3] a, bool[2,3] b) => (bool[4,3] y) { y = Concat<axis = 0>(a, b) }",
    "(bool[2,3] a, bool[2,3] b) => (bool[2,3] y, bool[4,3] z) { z = Concat<axis = 0>(b, a) y = Not(a) }",
    "(int8[2,3] a) => (int8[2,3] y) { y = Sign(a) }",
    "(uint8[2,3] a) => (uint8[2,3] y) { y = Sign(a) }",
]


@pytest.mark.parametrize("body", BODIES)
def test_it_gives_the_same_at_both_ends_of_the_type(body: str, evaluator: Evaluator) -> None:
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph {body}')
    cases = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        feed = {}
        for value in model.graph.inputs:
            dtype, shape = value.dtype.numpy(), tuple(value.shape.numpy())
            limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            feed[value.name] = random.choice(np.array([*limits, 0, 1]), shape).astype(dtype)
        cases.append(feed)
    case = fix(model, soc="Ascend310P3", select=["DT307"], feeds=FeedSet(tuple(cases), "test"), evaluator=evaluator)
    assert [step.status for step in case.record.steps] == ["applied"]
    assert case.record.steps[0].proof is not None
    assert case.record.steps[0].proof.max_abs == 0.0
    assert not [finding for finding in case.record.findings if finding.code in ("DT307", "OP107")]


def test_an_operator_that_computes_is_left_alone(evaluator: Evaluator) -> None:
    model = ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13]> agraph (int8[2,3] a) => (int8[2,3] y) { y = Abs(a) }')
    case = fix(model, soc="Ascend310P3", select=["DT307"], evaluator=evaluator)
    assert not case.record.steps
