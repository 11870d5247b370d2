"""verify --triage: each planted mistake is found at its stage, and what comes after it is not asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar import Record, migrate, triage
from jumar.cli.main import run
from jumar.graph import Evaluator, save
from jumar.verbs.triage import slip_between

SOC = "Ascend310P3"
TEXT = """
<ir_version: 8, opset_import: ["" : 14]>
agraph (float[1,3,6,6] image, int64[1] kind) => (float[1,108] y, int64[1] z) <float half = {0.5}, int64[2] flat = {1, 108}> {
    a = HardSwish(image)
    b = Mul(a, half)
    y = Reshape(b, flat)
    z = Add(kind, kind)
}
"""
HALVES = {"scale": "x/255", "mean": [0.5] * 3, "std": [0.5] * 3}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triage")
    save(ir.from_onnx_text(TEXT), folder / "m.onnx")
    rng = np.random.default_rng(0)
    np.savez(folder / "right.npz", image=rng.random((1, 3, 6, 6), np.float32), kind=np.array([3]))
    migrate(folder / "m.onnx", output=folder / "b", soc=SOC, aipp="auto", preprocess=HALVES, ranges={"kind": (0, 9)}, dry_run=True)
    return folder


def codes(record: Record) -> list[str]:
    return [item.code for item in record.findings if item.severity == "error"]


def asked(record: Record) -> list[str]:
    return [str(note) for note in record.notes]


def test_a_right_model_passes_every_stage(bundle: Path, evaluator: Evaluator) -> None:
    record = triage(
        bundle / "b" / "model.onnx",
        feeds=bundle / "right.npz",
        device_feeds=bundle / "right.npz",
        aipp=bundle / "b" / "aipp.cfg",
        preprocess=HALVES,
        soc=SOC,
        evaluator=evaluator,
    ).record
    assert codes(record) == []
    notes = asked(record)
    assert len(notes) == 5
    assert not any("not asked" in note for note in notes[:4])
    assert "nothing that can be seen" in notes[-1]


def test_a_wrong_aipp_file_is_the_first_culprit(bundle: Path, evaluator: Evaluator) -> None:
    other = {**HALVES, "std": [0.25] * 3}
    record = triage(bundle / "b" / "model.onnx", aipp=bundle / "b" / "aipp.cfg", preprocess=other, soc=SOC, evaluator=evaluator).record
    assert codes(record) == ["AI108"]
    assert len(asked(record)) == 2
    assert "the culprit is preprocessing" in asked(record)[-1]


def test_a_program_that_scales_twice_is_named(bundle: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    with np.load(bundle / "right.npz") as held:
        arrays = dict(held)
    np.savez(tmp_path / "device.npz", **{**arrays, "image": arrays["image"] / 255})
    record = triage(
        bundle / "b" / "model.onnx", feeds=bundle / "right.npz", device_feeds=tmp_path / "device.npz", soc=SOC, evaluator=evaluator
    ).record
    assert codes(record) == ["VF612"]
    assert "divided by 255 once more" in str(record.findings[0].message)
    assert "the culprit is inputs" in asked(record)[-1]


def test_a_model_that_differs_is_found_before_precision(bundle: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    wrong = tmp_path / "other.onnx"
    save(ir.from_onnx_text(TEXT.replace("half = {0.5}", "half = {0.6}")), wrong)
    record = triage(wrong, bundle / "m.onnx", feeds=bundle / "right.npz", soc=SOC, evaluator=evaluator).record
    assert codes(record) == ["VF601"]
    assert "the culprit is conversion" in asked(record)[-1]


def test_the_rewrite_to_blame_is_named(bundle: Path, monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator) -> None:
    """A rewrite that is wrong on inputs unlike those it was proven on: here every result of ``fix`` with OP... is spoilt."""
    from jumar.verbs import triage as module

    told = [step["code"] for step in json.loads((bundle / "b" / "report.json").read_text(encoding="utf-8"))["steps"] if step.get("code")]
    applied = list(dict.fromkeys(told))
    assert len(applied) >= 2
    guilty = applied[1]
    honest = module.fix

    def dishonest(model: Any, **options: Any) -> Any:
        case = honest(model, **options)
        if guilty in options["select"]:
            for node in case.model.graph:
                if node.op_type == "Mul" and node.inputs[1] is not None and node.inputs[1].const_value is not None:
                    node.inputs[1].const_value = ir.tensor(np.float32(0.6), name=node.inputs[1].name)
        return case

    monkeypatch.setattr(module, "fix", dishonest)
    findings = module._blame(bundle / "b" / "model.onnx", bundle / "m.onnx", bundle / "right.npz", None, 1e-4, evaluator)
    assert [item.code for item in findings] == ["VF613"]
    assert guilty in str(findings[0].message)


def test_precision_is_the_last_to_be_asked(tmp_path: Path, evaluator: Evaluator) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    agraph (float[1,8] x) => (float[1,8] y) <float large = {300000}> { a = Mul(x, large) y = Sub(a, large) }
    """
    save(ir.from_onnx_text(text), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=np.linspace(0.5, 1, 8, dtype=np.float32)[None])
    record = triage(tmp_path / "m.onnx", tmp_path / "m.onnx", feeds=tmp_path / "x.npz", soc=SOC, evaluator=evaluator).record
    assert "VF609" in codes(record)
    assert "the culprit is precision" in asked(record)[-1]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(["scaled-once-more", "scale-missing", "colours-swapped", "channels-last"]), st.integers(0, 1000))
def test_each_usual_mistake_is_named(name: str, seed: int) -> None:
    from jumar.verbs.triage import _SLIPS

    right = np.random.default_rng(seed).normal(size=(1, 3, 5, 7)).astype(np.float32)
    assert slip_between(right, _SLIPS[name][1](right)) == name
    assert slip_between(right, np.random.default_rng(seed + 1).normal(size=right.shape).astype(np.float32)) is None


def test_from_the_command_line(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(bundle / "b" / "model.onnx")
    assert run(["verify", model, "--triage", "--soc", SOC, "--feeds", str(bundle / "right.npz")]) == 0
    assert "3 conversion: equal to the original" in capsys.readouterr().out
    assert run(["verify", model, "--device-feeds", "a.npz"]) == 2
    assert run(["verify", model, "--triage", "--keep-list", "k"]) == 2


def test_what_the_images_are_reaches_the_first_stage(bundle: Path, evaluator: Evaluator) -> None:
    """The file is for RGB images: told that they are BGR, red and blue are exchanged."""
    asked_with = {"aipp": bundle / "b" / "aipp.cfg", "preprocess": {**HALVES, "mean": [0.5, 0.4, 0.3]}, "soc": SOC, "evaluator": evaluator}
    migrate(
        bundle / "m.onnx",
        output=bundle / "c",
        soc=SOC,
        aipp="auto",
        preprocess=asked_with["preprocess"],
        dry_run=True,
        ranges={"kind": (0, 9)},
    )
    asked_with["aipp"] = bundle / "c" / "aipp.cfg"
    assert codes(triage(bundle / "c" / "model.onnx", **asked_with, kind="rgb").record) == []
    assert codes(triage(bundle / "c" / "model.onnx", **asked_with, kind="bgr").record) == ["AI108"]
