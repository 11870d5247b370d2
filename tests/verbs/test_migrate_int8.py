"""``jumar migrate --quantize int8``: one more stage, its files in the bundle, and the deploy form for ATC."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar import Case, UsageError, migrate
from jumar.graph import Evaluator, load

SOC = "Ascend310P3"
# An input whose name has a colon is renamed on the way, and HardSwish is written out: samples must follow.
TEXT = """<ir_version: 8, opset_import: ["" : 16]>
agraph (float[N,3,16,16] x) => (float[N,4] y) {
    c = Conv<pads = [1,1,1,1]>(x, w1, b1) h = HardSwish(c) p = GlobalAveragePool(h) f = Flatten(p) y = Gemm(f, w2, b2)
}"""
SHAPES = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 4), "b2": (4,)}

Made = Callable[..., Case]


@pytest.fixture
def run(tmp_path: Path, random: np.random.Generator) -> Made:
    weights = [ir.tensor(random.standard_normal(shape).astype(np.float32), name=name) for name, shape in SHAPES.items()]
    model = ir.from_onnx_text(TEXT, initializers=weights)
    model.graph.inputs[0].name = "image:0"
    ir.save(model, tmp_path / "model.onnx")
    samples = random.standard_normal((60, 3, 16, 16)).cumsum(axis=-1).astype(np.float32)
    np.savez(tmp_path / "calib.npz", **{"image:0": samples})

    def call(**named: Any) -> Case:
        options = {
            "output": tmp_path / "bundle",
            "soc": SOC,
            "shapes": {"image:0": (1, 3, 16, 16)},
            "quantize": "int8",
            "calib": tmp_path / "calib.npz",
            "method": "histogram",
            "dry_run": True,
        }
        return migrate(tmp_path / "model.onnx", **{**options, **named})

    return call


def test_a_bundle_in_int8(run: Made, tmp_path: Path, evaluator: Evaluator) -> None:
    case = run()
    bundle = tmp_path / "bundle"
    assert {"model.onnx", "deploy.onnx", "qdq.onnx", "record.txt", "quantization.json", "curve.svg", "manifest.json", "report.html"} <= {
        item.name for item in bundle.iterdir()
    }
    assert not (bundle / "calibration.npz").exists()
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["model"]["path"] == "deploy.onnx"
    assert "--model=deploy.onnx" in manifest["command"] or "deploy.onnx" in " ".join(manifest["command"])
    told = manifest["quantization"][0]["quantization"]
    assert told["layers"] == 2 and told["held"] and told["recipe"] == "histogram"
    digests = {item["path"]: item["sha256"] for item in manifest["files"]}
    assert digests["deploy.onnx"] and "record.txt" in digests
    assert case.record.data["quantize"]["work_share"] == pytest.approx(1.0)
    assert "QT111" in {finding.code for finding in case.record.findings}
    assert "AscendQuant" in {node.op_type for node in case.model.graph}
    name = case.model.graph.inputs[0].name
    x = np.load(tmp_path / "calib.npz")["image:0"][:1]
    right = evaluator.run(load(tmp_path / "model.onnx"), {"image:0": x})["y"]
    found = evaluator.run(load(bundle / "deploy.onnx"), {str(name): x})["y"]
    assert 0 < np.abs(found - right).max() < 0.1 * np.abs(right).max()


def test_the_stage_is_resumed(run: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    calls: list[int] = []
    from jumar.verbs import migrate_int8

    original = migrate_int8.quantize
    monkeypatch.setattr(migrate_int8, "quantize", lambda *a, **k: (calls.append(1), original(*a, **k))[1])
    before = (tmp_path / "bundle" / "deploy.onnx").read_bytes()
    run(resume=True)
    assert not calls and (tmp_path / "bundle" / "deploy.onnx").read_bytes() == before
    run(resume=True, method="max")
    assert calls


def test_what_does_not_go_together(run: Made) -> None:
    for named, message in (
        ({"quantize": "int4"}, "`int4` is no kind of quantisation"),
        ({"calib": None, "method": None}, "has no samples"),
        ({"quantize": None}, "options of --quantize are given without it"),
        ({"cut": True}, "--cut does not go together"),
        ({"precision_mode": "origin"}, "--precision-mode does not go together"),
        ({"gears": "batch 1,2", "shapes": None}, "--gears does not go together"),
    ):
        with pytest.raises(UsageError, match=message):
            run(**named)


def test_without_it_nothing_changes(run: Made, tmp_path: Path) -> None:
    case = run(quantize=None, calib=None, method=None)
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert manifest["model"]["path"] == "model.onnx" and "quantization" not in manifest
    assert not (tmp_path / "bundle" / "deploy.onnx").exists() and "quantize" not in case.record.data
