"""fix: nothing stays that is not proven."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import Record, UsageError, fix
from jumar.graph import Builder, Digester, Evaluator, load
from jumar.graph.digest import file_sha256
from jumar.graph.simplify import base
from jumar.rules import Context, Refused
from jumar.rules.op.hardswish_no_kernel import HardSwishNoKernel
from jumar.text import say

PLAIN = HardSwishNoKernel.rewrite


def wrong(self: HardSwishNoKernel, builder: Builder, node: ir.Node, ctx: Context) -> None:
    """The right rewrite, 1 % off."""
    gate = builder.op("HardSigmoid", node.inputs[0], alpha=1.0 / 6.0, beta=0.5)
    factor = builder.op("Constant", value=ir.tensor(np.float32(1.01)))
    builder.replace(node.outputs[0], builder.op("Mul", builder.op("Mul", node.inputs[0], gate), factor))


def steps(record: Record) -> list[tuple[str | None, str, tuple[str, ...]]]:
    return [(step.code, step.status, step.nodes) for step in record.steps]


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def test_a_proven_rewrite_stays_and_resolves_its_findings(hardswish: Path, evaluator: Evaluator) -> None:
    case = fix(hardswish, soc="BS9SX1AA", select=["OP202"], evaluator=evaluator)
    assert operators(case.model) == ["HardSigmoid", "Mul", "HardSigmoid", "Mul"]
    assert steps(case.record) == [("OP202", "applied", ("HardSwish -> t", "HardSwish -> y"))]
    step = case.record.steps[0]
    assert step.proof is not None
    assert step.subgraphs is not None
    assert (step.proof.passed, step.proof.bound, step.proof.cases) == (True, 1e-6, 2)
    assert (step.subgraphs.passed, step.subgraphs.cases) == (True, 4)
    assert [item.node for item in case.record.resolved if item.code == "OP202"] == ["HardSwish -> t", "HardSwish -> y"]
    assert "OP202" not in {item.code for item in case.record.findings}
    assert step.input_sha256 == Digester().model(load(hardswish))
    assert step.output_sha256 == Digester().model(case.model) != step.input_sha256


def test_the_model_given_is_not_edited(hardswish: Path, evaluator: Evaluator) -> None:
    model = load(hardswish)
    before = ir.to_onnx_text(model)
    fix(model, target="mdc510pro", evaluator=evaluator)
    assert ir.to_onnx_text(model) == before


def test_a_rewrite_one_percent_off_is_rolled_back(hardswish: Path, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HardSwishNoKernel, "rewrite", wrong)
    case = fix(hardswish, soc="BS9SX1AA", select=["OP202"], evaluator=evaluator)
    assert operators(case.model) == ["HardSwish", "HardSwish"]
    assert steps(case.record) == [("OP202", "rolled-back", ("HardSwish -> t",)), ("OP202", "rolled-back", ("HardSwish -> y",))]
    for step in case.record.steps:
        assert step.proof is not None
        assert not step.proof.passed
        assert 0.009 < step.proof.max_rel < 0.011
        assert str(step.proof.reason).endswith("is over the bound 1e-06")
        assert step.input_sha256 == step.output_sha256 == Digester().model(load(hardswish))
    assert [item.node for item in case.record.findings if item.code == "OP202"] == ["HardSwish -> t", "HardSwish -> y"]
    assert case.record.resolved == ()
    assert case.record.verdict == "blocked"


def test_a_wrong_whole_model_is_rolled_back_even_if_each_piece_passed(
    hardswish: Path, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong_in_the_whole(self: HardSwishNoKernel, builder: Builder, node: ir.Node, ctx: Context) -> None:
        (wrong if len([item for item in ctx.model.graph if item.op_type == "HardSwish"]) > 1 else PLAIN)(self, builder, node, ctx)

    monkeypatch.setattr(HardSwishNoKernel, "rewrite", wrong_in_the_whole)
    case = fix(hardswish, soc="BS9SX1AA", select=["OP202"], evaluator=evaluator)
    assert steps(case.record) == [("OP202", "rolled-back", ("HardSwish -> t", "HardSwish -> y"))]
    assert operators(case.model) == ["HardSwish", "HardSwish"]


def test_of_two_nodes_with_one_name_only_the_proven_one_is_changed(
    hardswish: Path, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(hardswish)
    for node in model.graph:
        node.name = "same"

    def wrong_for_the_second(self: HardSwishNoKernel, builder: Builder, node: ir.Node, ctx: Context) -> None:
        (wrong if node.outputs[0].name == "y" else PLAIN)(self, builder, node, ctx)

    monkeypatch.setattr(HardSwishNoKernel, "rewrite", wrong_for_the_second)
    case = fix(model, soc="BS9SX1AA", select=["OP202"], evaluator=evaluator)
    assert operators(case.model) == ["HardSigmoid", "Mul", "HardSwish"]


def test_a_refusal_is_recorded_with_its_reason(hardswish: Path, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused(say("not today", "今天不行"))

    monkeypatch.setattr(HardSwishNoKernel, "rewrite", refuse)
    case = fix(hardswish, soc="BS9SX1AA", select=["hardswish-no-kernel"], evaluator=evaluator)
    assert steps(case.record) == [("OP202", "rolled-back", ("HardSwish -> t",)), ("OP202", "rolled-back", ("HardSwish -> y",))]
    reasons = [step.proof.reason for step in case.record.steps if step.proof is not None]
    assert [reason.render("zh") for reason in reasons if reason is not None] == ["今天不行", "今天不行"]
    assert case.record.verdict == "blocked"


def test_select_leaves_the_other_rules_out(hardswish: Path, evaluator: Evaluator) -> None:
    chosen = fix(hardswish, target="mdc510pro", select=["NM403"], evaluator=evaluator).record
    assert [step.code for step in chosen.steps] == ["NM403"]
    nothing = fix(hardswish, target="mdc510pro", select=[], evaluator=evaluator).record
    assert nothing.steps == ()
    everything = fix(hardswish, target="mdc510pro", evaluator=evaluator).record
    assert {step.code for step in everything.steps} == {"NM403", "OP202", "OP110"}
    assert everything.verdict == "ready"


def test_an_unsafe_rule_waits_to_be_named(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    path = save_text("agraph (int64[3] n) => (int64[3] m) { m = Add(n, n) }")
    waiting = fix(path, soc="Ascend310P3", select=["DT301"], evaluator=evaluator).record
    assert (waiting.steps, waiting.interface) == ((), {"inputs": [], "outputs": []})
    assert {item.fix for item in waiting.findings if item.code == "DT301"} == {"unsafe"}
    named = fix(path, soc="Ascend310P3", select=["DT301"], unsafe=["int64-interface"], evaluator=evaluator)
    assert steps(named.record) == [("DT301", "applied", ("n", "m"))]
    assert [str(value.dtype) for value in (*named.model.graph.inputs, *named.model.graph.outputs)] == ["INT32", "INT32"]


def test_one_wrong_change_among_many_is_left_out(
    save_text: Callable[..., Path], evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simplification that is wrong for one of two pairs of Transposes: the other is still made."""

    def match(node: ir.Node, edit: base.Edit) -> base.Action | None:
        inner = base.producer(base.given(node, 0), "Transpose")
        source = None if inner is None else inner.inputs[0]
        return None if source is None else lambda: edit.pass_through(node, source)

    monkeypatch.setitem(base._BY_OPERATOR, "Transpose", [base.Simplification("merge-transposes", ("Transpose",), True, match)])
    path = save_text(
        """agraph (float[2,2,2] x) => (float[2,2,2] y) {
            a = Transpose<perm = [1, 0, 2]>(x)
            b = Transpose<perm = [1, 0, 2]>(a)
            c = Neg(b)
            d = Transpose<perm = [2, 0, 1]>(c)
            e = Transpose<perm = [0, 2, 1]>(d)
            y = Exp(e)
        }"""
    )
    case = fix(path, soc="Ascend310P3", select=["GR504"], evaluator=evaluator)
    assert operators(case.model) == ["Neg", "Transpose", "Transpose", "Exp"]
    assert steps(case.record) == [("GR504", "rolled-back", ("Transpose -> e",)), ("GR504", "applied", ("Transpose -> b",))]
    assert "GR504" in {item.code for item in case.record.findings}


def test_values_over_32_bits_roll_the_narrowing_back(save_text: Callable[..., Path], tmp_path: Path, evaluator: Evaluator) -> None:
    path = save_text("agraph (int64[3] n) => (int64[3] m) { m = Add(n, n) }")
    np.savez(tmp_path / "big.npz", n=np.array([1, 2, 2**40]))
    record = fix(path, soc="Ascend310P3", select=["DT301"], unsafe=["DT301"], feeds=tmp_path / "big.npz", evaluator=evaluator).record
    assert steps(record) == [("DT301", "rolled-back", ("n", "m"))]
    assert record.steps[0].proof is not None
    assert str(record.steps[0].proof.reason) == "`n` holds values from 1 to 1099511627776"


def test_the_interface_is_recorded(embedding: Path, evaluator: Evaluator) -> None:
    model = onnx.load(embedding)
    model.graph.input[0].name = model.graph.node[0].input[1] = "in:ids"
    onnx.save(model, embedding)
    case = fix(embedding, soc="Ascend310P3", evaluator=evaluator)
    inputs, outputs = case.record.interface["inputs"], case.record.interface["outputs"]
    assert [(item["original"], item["original_dtype"], item["dtype"]) for item in inputs] == [("in:ids", "int64", "int32")]
    assert inputs[0]["name"] == case.model.graph.inputs[0].name
    assert ":" not in inputs[0]["name"]
    assert outputs == [{"original": "best", "name": "best", "original_dtype": "int64", "dtype": "int32"}]


def test_a_model_that_does_not_run_is_left_as_it_is(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    path = save_text(
        """<ir_version: 8, opset_import: ["" : 14, "vendor" : 1]>
        agraph (float[2,3] x) => (float[2,3] y) { t = vendor.Secret(x) y = HardSwish(t) }"""
    )
    case = fix(path, soc="BS9SX1AA", evaluator=evaluator)
    warnings = [item for item in case.record.findings if item.code == "VF602"]
    assert [(item.severity, item.fix) for item in warnings] == [("warning", "none")]
    assert "Secret" in str(warnings[0].message)
    assert case.record.steps == ()
    assert operators(case.model) == ["Secret", "HardSwish"]
    assert case.record.verdict == "blocked"


def test_the_output_is_written_and_loads(hardswish: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    output = tmp_path / "new" / "folder" / "out.onnx"
    case = fix(hardswish, target="mdc510pro", output=output, evaluator=evaluator)
    assert [(item.path, item.sha256, item.kind) for item in case.record.artifacts] == [(str(output), file_sha256(output), "model")]
    assert Digester().model(load(output)) == Digester().model(case.model)
    assert [path.name for path in output.parent.iterdir()] == ["out.onnx"]
    assert fix(output, target="mdc510pro", evaluator=evaluator).record.steps == ()  # idempotent


def test_generated_inputs_are_told_from_real_ones(hardswish: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    generated = fix(hardswish, soc="BS9SX1AA", evaluator=evaluator).record
    assert [str(note) for note in generated.notes] == ["proofs ran on 2 generated inputs; give real ones with --feeds"]
    np.savez(tmp_path / "feeds.npz", x=np.ones((2, 3), "float32"))
    real = fix(hardswish, soc="BS9SX1AA", feeds=tmp_path / "feeds.npz", evaluator=evaluator).record
    assert real.notes == ()
    assert {step.proof.cases for step in real.steps if step.proof is not None} == {1}


def test_progress_goes_from_0_to_1(hardswish: Path, evaluator: Evaluator) -> None:
    seen: list[float] = []
    fix(hardswish, target="mdc510pro", evaluator=evaluator, progress=lambda _what, fraction: seen.append(fraction))
    assert (seen[0], seen[-1]) == (0.0, 1.0)
    assert seen == sorted(seen)


def test_the_given_model_is_never_overwritten(relu: Path) -> None:
    before = relu.read_bytes()
    with pytest.raises(UsageError, match="is the model itself"):
        fix(relu, soc="Ascend310P3", output=relu.parent / "." / relu.name)
    assert relu.read_bytes() == before
