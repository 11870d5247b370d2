"""What the manifest says."""

from __future__ import annotations

import json
import platform

import numpy
import onnx

from jumar import __version__
from jumar.atc import MANIFEST_SCHEMA, build_manifest
from jumar.case import Artifact, ModelInfo, TensorInfo
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
    }
    assert list(manifest["versions"]) == ["python", "numpy", "onnx", "onnx-ir", "onnxruntime"]
    assert manifest["versions"]["python"] == platform.python_version()
    assert (manifest["versions"]["numpy"], manifest["versions"]["onnx"]) == (numpy.__version__, onnx.__version__)
    assert json.loads(json.dumps(manifest)) == manifest


def test_what_was_not_run_is_null() -> None:
    manifest = build_manifest(TARGET, [], [], source=None, model=MODEL, interface={}, atc=None)
    assert (manifest["source"], manifest["atc"], manifest["files"]) == (None, None, [])
