"""DT305 beyond its examples: assumptions are recorded, wrap-around is refused, and a rewrite that does not pay is not made."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar import UsageError
from jumar.graph import Evaluator
from jumar.proof import FeedSet
from jumar.verbs.fix import fix

SOC = "Ascend310P3"


def parsed(body: str) -> ir.Model:
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph {body}')
    for number, node in enumerate(model.graph):
        node.name = f"{node.op_type}_{number}"
    return model


MOD = "(int64[4] n) => (float[4] y) <int64 three = {3}, int64 one = {1}> { m = Add(n, one) odd = Mod(m, three) y = Cast<to = 1>(odd) }"


def test_an_assumption_is_recorded_as_data(evaluator: Evaluator) -> None:
    feeds = FeedSet(({"n": np.array([-7, 0, 5, 100])},), "test")
    case = fix(parsed(MOD), soc=SOC, select=["DT305"], unsafe=["DT305"], feeds=feeds, evaluator=evaluator)
    step = next(step for step in case.record.steps if step.code == "DT305")
    assert step.status == "applied"
    assert step.options["assumptions"] == [
        {"tensor": "m", "lo": -(2**31), "hi": 2**31 - 1, "known": [-(2**63), 2**63 - 1]},
        {"tensor": "n", "lo": -(2**31), "hi": 2**31 - 1, "known": [-(2**63), 2**63 - 1]},
    ]
    assert case.record.to_dict()["steps"][0]["options"]["assumptions"]


def test_without_unsafe_nothing_is_assumed(evaluator: Evaluator) -> None:
    case = fix(parsed(MOD), soc=SOC, select=["DT305"], evaluator=evaluator)
    assert not [step for step in case.record.steps if step.code == "DT305"]
    finding = next(finding for finding in case.record.findings if finding.code == "DT305")
    assert finding.fix == "unsafe"
    assert "-9223372036854775808" in str(finding.message)


def test_a_declared_range_makes_it_safe_and_is_recorded(evaluator: Evaluator) -> None:
    feeds = FeedSet(({"n": np.array([0, 5, 99, 7])},), "test")
    case = fix(parsed(MOD), soc=SOC, ranges={"n": (0, 99)}, feeds=feeds, evaluator=evaluator)
    steps = {step.code: step for step in case.record.steps if step.status == "applied"}
    assert steps["DT301"].options["assumptions"] == [{"tensor": "n", "lo": 0, "hi": 99, "known": [0, 99]}]
    assert steps["DT305"].options["assumptions"] == [{"tensor": "n", "lo": 0, "hi": 99}]
    assert not [finding for finding in case.record.findings if finding.code in ("DT301", "DT305", "OP104")]


def test_a_declared_range_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError):
        fix(parsed(MOD), soc=SOC, ranges={"m": (0, 99)})


def test_hash_arithmetic_is_refused_even_with_unsafe(evaluator: Evaluator) -> None:
    model = parsed(
        "(int64[4] n) => (float[4] y) <int64 k = {2654435761}, int64 p = {97}> { m = Mul(n, k) h = Mod(m, p) y = Cast<to = 1>(h) }"
    )
    case = fix(model, soc=SOC, unsafe=["DT305"], evaluator=evaluator)
    assert not [step for step in case.record.steps if step.code == "DT305" and step.status == "applied"]
    finding = next(finding for finding in case.record.findings if finding.code == "DT305")
    assert finding.fix == "none"


def test_what_takes_more_casts_than_it_removes_problems_is_left_alone(evaluator: Evaluator) -> None:
    """One Cast in and one out for one ReduceMax of int64 (not certain on the vehicle target) are no gain."""
    model = parsed("(float[2,5] x) => (int64[2,1] y) { i = NonZero(x) y = ReduceMax<axes = [1]>(i) }")
    case = fix(model, target="mdc510pro", select=["DT305"], evaluator=evaluator)
    assert any(finding.op == "ReduceMax" and "int64" in str(finding.message) for finding in case.record.findings)
    assert not case.record.steps


def test_an_output_keeps_its_type_and_name(evaluator: Evaluator) -> None:
    model = parsed(
        """(bool[2,3] m) => (int64[2,3] y) <int64 axis = {1}> {
        ones = Cast<to = 7>(m) places = CumSum(ones, axis) back = Neg(places) y = Abs(back) }"""
    )
    case = fix(model, soc=SOC, select=["DT305"], evaluator=evaluator)
    assert [step.status for step in case.record.steps] == ["applied"]
    assert [(value.name, value.dtype) for value in case.model.graph.outputs] == [("y", ir.DataType.INT64)]
    assert case.record.interface == {"inputs": [], "outputs": []}
