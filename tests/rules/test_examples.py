"""Every example of every rule, at every opset it names: the rule fires, cures, and a wrong cure would be noticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar.case import Case, Finding, Record
from jumar.graph import Evaluator, all_nodes, infer_shapes, save
from jumar.proof import FeedSet, Interface, Prover
from jumar.proof.metrics import compare_all, proof_of
from jumar.rules import Example, MeaningRule, ModelRule, NodeRule, Rule, SupportRule, all_rules
from jumar.targets import Target, find_target
from jumar.verbs.check import check, pinned
from jumar.verbs.fix import fix
from jumar.verbs.meaning import restore_meaning

# NaN, infinities, both zeros, ties, the knees of the hard functions, and magnitudes near the ends of float32.
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0, -1.0, 3.0, -3.0, 2.9999, -2.9999, 1e-30, -1e-30, 3e38, -3e38]


def examples() -> Iterator[Any]:
    for rule in all_rules():
        for number, example in enumerate(rule.EXAMPLES):
            for opset in example.opsets:
                yield pytest.param(rule, example, opset, id=f"{rule.code}-{number}-opset{opset}")


ALL = list(examples())
CURED = [item for item in ALL if item.values[1].cured]


def build(rule: Rule, example: Example, opset: int) -> ir.Model:
    model = ir.from_onnx_text(example.text.replace("OPSET", str(opset)))
    model.ir_version = example.ir_version
    if rule.code != "NM403":  # text has no node names, which is a finding of its own
        for number, node in enumerate(all_nodes(model)):
            node.name = f"{node.op_type}_{number}"
    infer_shapes(model)
    return model


def target_of(example: Example) -> Target:
    return find_target(example.soc, opset_max=example.opset_max)


def feeds_of(model: ir.Model, example: Example) -> FeedSet:
    """Seeded data, the ends of integer ranges, and the edges where the operators define them."""
    cases = []
    for seed in range(5):
        random, feed = np.random.default_rng(seed), {}
        for value in model.graph.inputs:
            if value.name in model.graph.initializers:
                continue
            shape, dtype = tuple(value.shape.numpy()), value.dtype.numpy()
            if dtype.kind == "f":
                array = random.standard_normal(shape) * 3
                if seed == 4 and example.edges:
                    array = np.resize(np.array(EDGES), int(np.prod(shape))).reshape(shape)
            else:
                low, high = example.ranges.get(value.name, (0, 1))
                array = {0: np.full(shape, low), 1: np.full(shape, high)}.get(seed, random.integers(low, high + 1, shape))
            feed[value.name] = array.astype(dtype)
        cases.append(feed)
    return FeedSet(tuple(cases), "test")


def accepted(rule: Rule) -> list[str]:
    """What a user has to name for the rule to rewrite."""
    return [rule.code] if rule.safety == "unsafe" else []


def reference_of(rule: Rule, model: ir.Model, example: Example) -> ir.Model:
    """What proofs compare with: the model as given, unless the rule changes the meaning."""
    if isinstance(rule, MeaningRule):
        return restore_meaning(Case(model, target_of(example), Record(verb="test")), [rule.code])[0]
    return pinned(model, dict(example.shapes)) if example.shapes else model


def found(rule: Rule, model: ir.Model, example: Example) -> list[Finding]:
    record = check(model, target=target_of(example), shapes=example.shapes if rule.code != "SH201" else None).record
    return [finding for finding in record.findings if finding.code == rule.code]


@pytest.mark.parametrize(("rule", "example", "opset"), ALL)
def test_rule_fires_and_no_other_unannounced(rule: Rule, example: Example, opset: int) -> None:
    model = build(rule, example, opset)
    record = check(model, target=target_of(example)).record
    codes = {finding.code for finding in record.findings}
    assert rule.code in codes
    assert codes <= {rule.code, *example.also}, f"also fired: {codes}"


@pytest.mark.parametrize(("rule", "example", "opset"), ALL)
def test_rule_cures_and_stays_cured(rule: Rule, example: Example, opset: int, evaluator: Evaluator, tmp_path: Path) -> None:
    model = build(rule, example, opset)
    reference = reference_of(rule, model, example)
    feeds = feeds_of(reference, example) if all(value.shape.is_static() for value in reference.graph.inputs) else None
    case = fix(
        model,
        target=target_of(example),
        shapes=example.shapes,
        select=[rule.code],
        unsafe=accepted(rule),
        feeds=feeds,
        evaluator=evaluator,
    )
    steps = [step for step in case.record.steps if step.code == rule.code]
    left = [finding for finding in case.record.findings if finding.code == rule.code]
    if not example.cured:
        assert left, "the finding must stand"
        assert not any(step.status == "applied" for step in steps)
        return
    assert [step.status for step in steps] == ["applied"], [str(step.proof.reason) for step in steps if step.proof]
    if not isinstance(rule, MeaningRule):
        assert steps[0].proof is not None
        assert steps[0].proof.passed
    assert not left
    written = save(case.model, tmp_path / "cured.onnx")
    onnx.checker.check_model(str(written[0]), full_check=True)

    assert feeds is not None
    prover = Prover(reference, evaluator, feeds)
    ports = Interface.of(reference).changed(case.record.interface)
    for outputs, expected in prover.against_original(case.model, ports):
        for name, item in compare_all(outputs, expected).items():
            assert proof_of([item], 1, rule.allowed, rule.measure).passed, f"{name}: {item}"

    again = fix(case.model, target=target_of(example), select=[rule.code], unsafe=accepted(rule), evaluator=evaluator)
    assert not [step for step in again.record.steps if step.code == rule.code], "the cure must be idempotent"


@pytest.mark.parametrize(("rule", "example", "opset"), CURED)
def test_planted_error_of_one_percent_is_caught(rule: Rule, example: Example, opset: int, evaluator: Evaluator) -> None:
    model = build(rule, example, opset)
    reference = reference_of(rule, model, example)
    feeds = feeds_of(reference, example)
    case = fix(
        model,
        target=target_of(example),
        shapes=example.shapes,
        select=[rule.code],
        unsafe=accepted(rule),
        feeds=feeds,
        evaluator=evaluator,
    )
    ports = Interface.of(reference).changed(case.record.interface)
    prover = Prover(reference, evaluator, feeds)
    assert prover.prove_model(case.model, ports, rule.allowed, measure=rule.measure).passed
    # A rule that the user has to ask for may allow more than 1 %; then twice what it allows is planted.
    share = 0.01 if rule.safety == "safe" else max(0.01, 2 * rule.allowed)
    assert not prover.prove_model(spoilt(case.model, share), ports, rule.allowed, measure=rule.measure).passed


def spoilt(model: ir.Model, share: float = 0.01) -> ir.Model:
    """The model with its first output too large by a share of 1 % (integers: 1 too large; booleans: negated)."""
    copy = model.clone()
    output = copy.graph.outputs[0]
    name, dtype = output.name, output.dtype
    output.name = f"{name}_true"
    kind = dtype.numpy().kind
    inputs = [output]
    if kind != "b":
        wrong = np.array(1 + share if kind == "f" else 1, dtype=dtype.numpy())
        weight = ir.Value(name="planted_error", const_value=ir.tensor(wrong), type=ir.TensorType(dtype), shape=ir.Shape([]))
        copy.graph.register_initializer(weight)
        inputs.append(weight)
    node = ir.node(
        {"f": "Mul", "b": "Not"}.get(kind, "Add"),
        inputs,
        outputs=[ir.Value(name=name, type=output.type, shape=output.shape)],
        name="planted",
    )
    copy.graph.append(node)
    copy.graph.outputs[0] = node.outputs[0]
    return copy


def test_every_rewriting_rule_has_a_cured_example() -> None:
    able = [rule for rule in all_rules() if isinstance(rule, (NodeRule, ModelRule)) and rule.safety != "advice"]
    assert able
    for rule in able:
        assert any(example.cured for example in rule.EXAMPLES), rule.code


def test_bounds_are_small_enough_to_notice_one_percent() -> None:
    for rule in all_rules():
        # What the user has to ask for by its code may give up more.
        assert (rule.bound <= 1e-4 and rule.allowed < 0.01 and rule.steps == 0) or (rule.safety == "unsafe" and rule.bound <= 0.1), (
            rule.code
        )


def test_support_rules_cover_every_answer_that_is_a_problem() -> None:
    from jumar.targets import Status

    covered = {rule.status for rule in all_rules() if isinstance(rule, SupportRule)}
    assert covered == set(Status) - {Status.SUPPORTED, Status.NO_KERNEL_NEEDED}


@pytest.mark.parametrize(
    ("body", "fires"),
    [
        ("y = Add(x, big)", True),
        ("y = Mul(x, big)", True),
        ("y = Where(c, x, big)", True),
        ("y = Min(x, big)", False),
        ("y = Clip(x, , big)", False),
        ("y = BatchNormalization(x, one, one, one, big)", False),
    ],
)
def test_only_a_constant_that_is_computed_with_overflows_float16(body: str, fires: bool) -> None:
    header = '<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,1] x, bool[1,1] c) => (float[1,1] y) <float[1] big = {1.0e8}, float[1] one = {1.0}>'
    big_or_scalar = header.replace("float[1] big = {1.0e8}", "float big = {1.0e8}") if "Clip" in body else header
    record = check(ir.from_onnx_text(f"{big_or_scalar} {{ {body} }}"), soc="Ascend310P3").record
    assert any(finding.code == "DT303" for finding in record.findings) == fires
