"""verify: numbers against a reference, and the bundle knows its own."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jumar import EvaluationError, UsageError, migrate, verify
from jumar.graph import Evaluator, load

GOOD = "agraph (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Relu(x) z = Exp(x) }"
BAD = """agraph (float[2,3] x) => (float[2,3] y, float[2,3] z) <float f = {1.01}> { y = Relu(x) e = Exp(x) z = Mul(e, f) }"""


def test_equal_models_pass_with_zero_difference(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    case = verify(save_text(GOOD), save_text(GOOD, "other.onnx"), evaluator=evaluator)
    assert (case.record.verb, case.record.verdict, case.record.findings, case.record.target) == ("verify", "ready", (), None)
    (step,) = case.record.steps
    assert step.proof is not None
    assert (step.name, step.proof.passed, step.proof.max_abs, step.proof.bound, step.proof.cases) == ("verify", True, 0.0, 1e-4, 2)
    assert dict(step.options) == {"bound": 1e-4, "feeds": "generated"}
    assert [(item.name, item.value, item.unit, item.origin) for item in case.record.measurements] == [
        (f"{output}/{key}", value, "1", "reference")
        for output in "yz"
        for key, value in (("max_abs", 0.0), ("max_rel", 0.0), ("cosine", 1.0))
    ]


def test_one_percent_off_blocks_and_names_the_output(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    record = verify(save_text(BAD), save_text(GOOD, "good.onnx"), evaluator=evaluator).record
    assert record.verdict == "blocked"
    assert [(item.code, item.severity, item.node) for item in record.findings] == [("VF601", "error", "z")]
    assert str(record.findings[0].message) == "output `z` differs: max_rel 0.01, bound 0.0001"
    values = {item.name: item.value for item in record.measurements}
    assert values["y/max_rel"] == 0.0
    assert values["z/max_rel"] == pytest.approx(0.01, rel=1e-3)
    assert record.steps[0].proof is not None
    assert not record.steps[0].proof.passed


@pytest.mark.parametrize(("bound", "verdict"), [(0.0101, "ready"), (0.0099, "blocked"), (0.0, "blocked")])
def test_the_bound_decides(bound: float, verdict: str, save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    assert verify(save_text(BAD), save_text(GOOD, "good.onnx"), bound=bound, evaluator=evaluator).record.verdict == verdict


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), -1e-9, 1.1])
def test_a_senseless_bound_is_refused(bound: float, relu: Path) -> None:
    with pytest.raises(UsageError, match=r"^--bound .* makes no sense; expected a number from 0 to 1; "):
        verify(relu, relu, bound=bound)


def test_csv_holds_the_same_numbers(save_text: Callable[..., Path], tmp_path: Path, evaluator: Evaluator) -> None:
    target = tmp_path / "new" / "table.csv"
    record = verify(save_text(BAD), save_text(GOOD, "good.onnx"), csv_file=target, evaluator=evaluator).record
    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["output"] for row in rows] == ["y", "z"]
    assert {f"{row['output']}/{key}": float(row[key]) for row in rows for key in ("max_abs", "max_rel", "cosine")} == {
        item.name: item.value for item in record.measurements
    }
    assert [row["reason"] for row in rows] == ["", ""]


def test_a_missing_output_is_a_difference(save_text: Callable[..., Path], relu: Path, evaluator: Evaluator) -> None:
    record = verify(relu, save_text(GOOD), evaluator=evaluator).record
    assert [(item.code, item.node) for item in record.findings] == [("VF601", "z")]
    assert "(output `z` is missing)" in str(record.findings[0].message)


def test_a_model_that_does_not_run_differs_in_every_output(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    broken = save_text("agraph (float[2,4] x) => (float[2,4] y, float[2,4] z) { y = Relu(x) z = Exp(x) }")
    record = verify(broken, save_text(GOOD, "good.onnx"), evaluator=evaluator).record
    assert [(item.code, item.node) for item in record.findings] == [("VF601", "y"), ("VF601", "z")]


def test_a_reference_that_does_not_run_is_an_error(save_text: Callable[..., Path], relu: Path, evaluator: Evaluator) -> None:
    secret = save_text(
        '<ir_version: 8, opset_import: ["" : 13, "vendor" : 1]> agraph (float[2,3] x) => (float[2,3] y) { y = vendor.Secret(x) }'
    )
    with pytest.raises(EvaluationError, match="Secret"):
        verify(relu, secret, evaluator=evaluator)


def test_sizes_of_a_pinned_model_are_taken_over(save_text: Callable[..., Path], relu: Path, evaluator: Evaluator) -> None:
    reference = save_text("agraph (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    assert verify(relu, reference, evaluator=evaluator).record.verdict == "ready"


def test_a_model_in_memory_may_be_either_side(relu: Path, evaluator: Evaluator) -> None:
    model = load(relu)
    assert verify(model, model, evaluator=evaluator).record.verdict == "ready"


def test_a_bundle_knows_its_source_and_its_interface(
    embedding: Path, tmp_path: Path, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    migrate(embedding.name, output="bundle", soc="Ascend310P3", dry_run=True)
    migrated = tmp_path / "bundle" / "model.onnx"
    assert {str(value.dtype) for value in load(migrated).graph.inputs} == {"INT32"}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    record = verify(migrated, evaluator=evaluator).record
    assert record.verdict == "ready"
    assert {item.name for item in record.measurements if item.name.endswith("/max_abs") and item.value == 0.0} == {
        "best/max_abs",
        "y/max_abs",
    }
    np.savez(tmp_path / "feeds.npz", ids=np.array([[0, 1, 2], [3, 2, 1]]))
    assert verify(migrated, feeds=tmp_path / "feeds.npz", evaluator=evaluator).record.steps[0].options["feeds"] == "user"


def test_a_changed_source_is_not_taken_for_the_reference(embedding: Path, tmp_path: Path) -> None:
    migrate(embedding, output=tmp_path / "bundle", soc="Ascend310P3", dry_run=True)
    embedding.touch()  # the same bytes are the same source
    assert verify(tmp_path / "bundle" / "model.onnx").record.verdict == "ready"
    embedding.write_bytes((tmp_path / "bundle" / "model.onnx").read_bytes())
    with pytest.raises(UsageError, match=r"^the bundle's source `.*embedding.onnx` is gone or has changed; .* name it with --against$"):
        verify(tmp_path / "bundle" / "model.onnx")


def test_a_changed_model_is_not_of_the_bundle(embedding: Path, tmp_path: Path) -> None:
    migrate(embedding, output=tmp_path / "bundle", soc="Ascend310P3", dry_run=True)
    (tmp_path / "bundle" / "model.onnx").write_bytes(embedding.read_bytes())
    with pytest.raises(UsageError, match=r"^no reference was given; "):
        verify(tmp_path / "bundle" / "model.onnx")


def test_without_a_reference_nothing_is_claimed(relu: Path) -> None:
    with pytest.raises(UsageError, match=r"^no reference was given; "):
        verify(relu)
