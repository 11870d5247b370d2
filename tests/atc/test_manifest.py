"""What the manifest says."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy
import onnx

from jumar import __version__
from jumar.atc import MANIFEST_SCHEMA, build_manifest
from jumar.case import Artifact, ModelInfo, Step, TensorInfo
from jumar.targets import find_target

MODEL = ModelInfo("model.onnx", "1" * 64, 13, (TensorInfo("x", "float", (1, "N", None)),), ())
SOURCE = ModelInfo("/home/me/source.onnx", "2" * 64, 17, (), ())
TARGET = find_target("Ascend310P3")


def test_manifest_holds_all_that_reproduces_a_compile() -> None:
    files = [Artifact("model.onnx", "1" * 64, "model")]
    interface = {"inputs": [{"original": "a", "name": "b", "original_dtype": "int64", "dtype": "int32"}], "outputs": []}
    outcome = {"program": "/opt/atc", "status": 0, "seconds": 1.5, "codes": []}
    manifest = build_manifest(TARGET, ["atc", "--x=1"], files, source=SOURCE, model=MODEL, interface=interface, atc=outcome)
    assert manifest == {
        "manifest": MANIFEST_SCHEMA,
        "jumar": __version__,
        "target": TARGET.to_dict(),
        "source": {"path": "/home/me/source.onnx", "sha256": "2" * 64, "opset": 17, "inputs": [], "outputs": []},
        "model": {
            "path": "model.onnx",
            "sha256": "1" * 64,
            "opset": 13,
            "inputs": [{"name": "x", "dtype": "float", "shape": [1, "N", None]}],
            "outputs": [],
        },
        "interface": interface,
        "command": ["atc", "--x=1"],
        "atc": outcome,
        "versions": manifest["versions"],
        "files": [{"path": "model.onnx", "sha256": "1" * 64, "kind": "model"}],
        "host_casts": {"inputs": [{"name": "b", "from": "int64", "to": "int32"}]},
    }
    assert list(manifest["versions"]) == ["python", "numpy", "onnx", "onnx-ir", "onnxruntime"]
    assert manifest["versions"]["python"] == platform.python_version()
    assert (manifest["versions"]["numpy"], manifest["versions"]["onnx"]) == (numpy.__version__, onnx.__version__)
    assert json.loads(json.dumps(manifest)) == manifest


def test_what_was_not_run_is_null() -> None:
    manifest = build_manifest(TARGET, [], [], source=None, model=MODEL, interface={}, atc=None)
    assert (manifest["source"], manifest["atc"], manifest["files"]) == (None, None, [])


def test_what_the_result_rests_on_is_told(tmp_path: Path) -> None:
    assumed = [{"tensor": "ids", "lo": 0, "hi": 100}]
    steps = [
        Step("int64-interface", "0", None, None, 0.0, {"assumptions": assumed}, code="DT301", status="applied"),
        Step("int64-inside", "0", None, None, 0.0, {"assumptions": assumed}, code="DT305", status="rolled-back"),
        Step("cut", "0", None, None, 0.0, {"cut": ["tail"]}, status="applied"),
    ]
    (tmp_path / "aipp.cfg").write_bytes(b"abc")
    manifest = build_manifest(
        TARGET,
        ["atc"],
        [],
        source=None,
        model=MODEL,
        interface={"outputs": [{"original": "o", "name": "o", "original_dtype": "int64", "dtype": "int32"}]},
        atc=None,
        steps=steps,
        aipp=tmp_path / "aipp.cfg",
    )
    assert manifest["assumptions"] == [{"code": "DT301", "step": "int64-interface", "assumptions": assumed}]
    assert manifest["cut_parts"] == [{"code": None, "step": "cut", "cut": ["tail"]}]
    assert manifest["host_casts"] == {"outputs": [{"name": "o", "from": "int32", "to": "int64"}]}
    assert manifest["aipp"] == {"path": "aipp.cfg", "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
