"""The models on which the retired Ascend surgeon was wrong, or crashed, or wrote what cannot be loaded: right here, every one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from adversarial_cases import NOT_PROBED, PROBES, Probe

import jumar
from jumar.case import Case
from jumar.graph import Evaluator
from jumar.proof.metrics import compare_all, worst
from jumar.rules import find_rule

SOC = "Ascend310P3"
# Of the largest element of an output; nothing at all where only exact rewrites were made.
ROUNDING = 1e-5


def simplified(model: ir.Model, evaluator: Evaluator) -> Case:
    return jumar.simplify(model, evaluator=evaluator)


def simplified_exactly(model: ir.Model, evaluator: Evaluator) -> Case:
    return jumar.simplify(model, exact=True, evaluator=evaluator)


def fixed(model: ir.Model, evaluator: Evaluator) -> Case:
    return jumar.fix(model, soc=SOC, evaluator=evaluator)


def bound_of(case: Case) -> float:
    """What the steps that were applied may change together."""
    return sum(find_rule(step.code).bound for step in case.record.steps if step.status == "applied")


def judge(probe: Probe, case: Case, evaluator: Evaluator) -> float:
    """The result is valid, keeps names and types, runs, and is as near as its steps say; returns the distance."""
    before, after = probe.model(), case.model
    onnx.checker.check_model(ir.to_proto(after), full_check=True)
    assert [step.name for step in case.record.steps if step.status != "applied"] == []
    assert all(step.proof is not None and step.proof.passed for step in case.record.steps)
    kept = [[(value.name, value.shape) for value in side] for side in (after.graph.inputs, after.graph.outputs)]
    assert kept == [[(value.name, value.shape) for value in side] for side in (before.graph.inputs, before.graph.outputs)]
    feeds = probe.inputs()
    expected = evaluator.run(before, feeds)
    assert all(np.isfinite(array).all() for array in expected.values())
    found = evaluator.run(after, {name: cast_to(array, after.graph.inputs, name) for name, array in feeds.items()})
    return worst(compare_all({name: array.astype(expected[name].dtype) for name, array in found.items()}, expected).values()).max_scaled


def cast_to(array: Any, inputs: Any, name: str) -> Any:
    """The caller's part where a fix narrowed the type of an input, which the record says."""
    return array.astype(next(value for value in inputs if value.name == name).dtype.numpy())


@pytest.mark.parametrize("way", [simplified, simplified_exactly, fixed])
@pytest.mark.parametrize("probe", PROBES.values(), ids=[f"{rule}: {name}" for rule, name in PROBES])
def test_the_result_is_valid_and_equal(probe: Probe, way: Callable[[ir.Model, Evaluator], Case], evaluator: Evaluator) -> None:
    case = way(probe.model(), evaluator)
    bound = bound_of(case)
    assert bound <= 3 * ROUNDING
    assert way is not simplified_exactly or bound == 0.0
    assert judge(probe, case, evaluator) <= bound


# What the surgeon made of some of them: inputs in another order, no truncation, a product in 32 bits, the second pad dropped.
WRONG = {
    ("KnowledgeMergeConsecutiveConcat", "inner Concat is the second input"): Probe(
        "agraph (float[1,2] x, float[1,2] z) => (float[1,6] y) { n = Neg(x) y = Concat<axis=1>(n, z, x) }"
    ),
    ("KnowledgeMergeCasts", "float->int32->float"): Probe("agraph (float[2,8] x) => (float[2,8] y) { y = Neg(x) }"),
    ("KnowledgeTypeCast", "Mul then Div by 100000 on values 30000..50000"): Probe(
        """agraph (int64[4] x) => (int64[4] y) <int32[1] k = {100000}> {
            n = Cast<to=6>(x) m = Mul(n, k) d = Div(m, k) e = Cast<to=7>(d) y = Add(e, e)
        }"""
    ),
    ("KnowledgeModifyReflectionPad", "asymmetric pads"): Probe(
        """agraph (float[1,2,6,6] x) => (float[1,2,10,8] y) <int64[8] p = {0, 0, 2, 1, 0, 0, 2, 1}> {
            a = Relu(x) y = Pad<mode="reflect">(a, p)
        }""",
        11,
    ),
}


@pytest.mark.parametrize("key", WRONG, ids=[f"{rule}: {name}" for rule, name in WRONG])
def test_what_the_surgeon_did_would_be_noticed(key: tuple[str, str], evaluator: Evaluator) -> None:
    case = simplified(PROBES[key].model(), evaluator)
    assert judge(PROBES[key], case, evaluator) <= ROUNDING
    assert judge(PROBES[key], case.replace(model=WRONG[key].model()), evaluator) > ROUNDING


def test_every_probe_of_the_record_is_here(shared: Path) -> None:
    """The record has one line for each of the models, or says that a rule was not probed."""
    rules = json.loads((shared / "facts" / "peers" / "surgeon_rules.json").read_text(encoding="utf-8"))["rules"]
    recorded = {
        (rule["name"], name) for rule in rules for name in ([NOT_PROBED] if isinstance(rule["our_probe"], str) else rule["our_probe"])
    }
    assert set(PROBES) == recorded
    assert len(rules) == 17
