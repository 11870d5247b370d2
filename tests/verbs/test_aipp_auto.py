"""``migrate --aipp auto`` writes the file of the transform; ``verify --aipp`` tells at which stage outputs begin to differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar import UsageError, check_aipp, migrate, verify_aipp
from jumar.cli.main import run
from jumar.graph import Evaluator

SOC = "Ascend310P3"
HALVES = {"order": "RGB", "scale": "x/255", "mean": [0.5, 0.4, 0.3], "std": [0.5, 0.25, 0.2]}
PLAIN = """
<ir_version: 8, opset_import: ["" : 13]>
agraph (float[1,3,8,8] image) => (float[1,2] y)
<float[2,3,8,8] w = {WEIGHTS}, int64[1] axis = {0}> { r = Conv(image, w) y = Flatten(r) }
"""
INSIDE = PLAIN.replace("r = Conv(image, w)", "m = Sub(image, mean) r = Conv(m, w)").replace(
    "<float[2,3", "<float[1,3,1,1] mean = {120, 110, 100}, float[2,3"
)


def saved(folder: Path, text: str = PLAIN) -> Path:
    weights = np.random.default_rng(0).normal(size=384) / 10
    ir.save(ir.from_onnx_text(text.replace("WEIGHTS", ", ".join(f"{value:.4f}" for value in weights))), folder / "m.onnx")
    return folder / "m.onnx"


def files(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return found


def test_the_file_of_the_transform_is_in_the_bundle(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    case = migrate(saved(tmp_path), output=bundle, soc=SOC, aipp="auto", preprocess=HALVES, dry_run=True)
    assert case.record.verdict != "blocked"
    manifest = files(bundle)
    assert "--insert_op_conf=aipp.cfg" in manifest["command"]
    record = check_aipp(bundle / "aipp.cfg", soc=SOC, model=bundle / "model.onnx", preprocess=HALVES)
    assert record.verdict == "ready"
    assert record.data is not None
    assert record.data["blocks"][0]["equal"]
    other = check_aipp(bundle / "aipp.cfg", soc=SOC, preprocess={**HALVES, "mean": [0.5, 0.4, 0.2]})
    assert "AI108" in {item.code for item in other.findings}


def test_a_network_that_normalises_gets_pixels(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    case = migrate(saved(tmp_path, INSIDE), output=bundle, soc=SOC, aipp="auto", dry_run=True)
    assert any("AIPP hands over pixels" in str(note) for note in case.record.notes)
    text = (bundle / "aipp.cfg").read_text(encoding="utf-8")
    assert "var_reci_chn_0: 1\n" in text
    assert "mean_chn" not in text or "mean_chn_0: 0\n" in text


def test_what_is_needed_is_said(tmp_path: Path) -> None:
    model = saved(tmp_path)
    with pytest.raises(UsageError, match="give --preprocess"):
        migrate(model, output=tmp_path / "b", soc=SOC, aipp="auto")
    with pytest.raises(UsageError, match="the transform has 1 channels"):
        migrate(
            model, output=tmp_path / "b", soc=SOC, aipp="auto", preprocess={"order": "GRAY", "scale": "x/255", "mean": [0.5], "std": [0.5]}
        )
    open_size = saved(tmp_path, PLAIN.replace("float[1,3,8,8] image", "float[1,3,h,8] image"))
    with pytest.raises(UsageError, match="are open"):
        migrate(open_size, output=tmp_path / "b", soc=SOC, aipp="auto", preprocess=HALVES)
    assert not (tmp_path / "b").exists()


def test_another_transform_does_the_stage_again(tmp_path: Path) -> None:
    model = saved(tmp_path)
    migrate(model, output=tmp_path / "b", soc=SOC, aipp="auto", preprocess=HALVES, dry_run=True)
    first = (tmp_path / "b" / "aipp.cfg").read_text(encoding="utf-8")
    migrate(model, output=tmp_path / "b", soc=SOC, aipp="auto", preprocess={**HALVES, "std": [1, 1, 1]}, dry_run=True, resume=True)
    assert (tmp_path / "b" / "aipp.cfg").read_text(encoding="utf-8") != first


def stages(record: Any, name: str = "max_scaled") -> list[float]:
    return [item.value for item in record.measurements if item.name.startswith("stage") and item.name.endswith(name)]


def test_each_stage_is_measured(tmp_path: Path, evaluator: Evaluator) -> None:
    model = saved(tmp_path)
    migrate(model, output=tmp_path / "b", soc=SOC, aipp="auto", preprocess=HALVES, dry_run=True)
    record = verify_aipp(model, tmp_path / "b" / "aipp.cfg", preprocess=HALVES, soc=SOC, evaluator=evaluator)
    host, aipp, half = stages(record)
    assert host == 0.0
    assert 0 < aipp < 0.01
    assert 0 < half < 0.02
    assert {item.origin for item in record.measurements} == {"simulator"}


def test_a_wrong_file_shows_at_the_second_stage(tmp_path: Path, evaluator: Evaluator) -> None:
    model = saved(tmp_path)
    migrate(model, output=tmp_path / "b", soc=SOC, aipp="auto", preprocess={**HALVES, "std": [0.25, 0.25, 0.25]}, dry_run=True)
    record = verify_aipp(model, tmp_path / "b" / "aipp.cfg", preprocess=HALVES, soc=SOC, evaluator=evaluator)
    assert "AI108" in {item.code for item in record.findings}
    assert stages(record)[1] > 0.05


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    model = saved(tmp_path)
    assert run(["verify", str(model), "--image", "a.png"]) == 2
    assert run(["verify", str(model), "--aipp", "a.cfg", "--feeds", "a.npz"]) == 2
    assert run(["migrate", str(model), "--soc", SOC, "--preprocess", "p.json", "-o", str(tmp_path / "b")]) == 2
