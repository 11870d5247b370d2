"""Fixtures that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def evaluator() -> Iterator[Evaluator]:
    """One ONNX Runtime child for the whole run."""
    with Evaluator(timeout=120) as shared:
        yield shared


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are tested in English unless a test asks for Chinese; no CANN and no facts of the machine's user are used by accident."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JUMAR_TARGETS", "/nowhere/own-facts")


@pytest.fixture
def save_text(tmp_path: Path) -> Callable[..., Path]:
    """Write a model given as ONNX text (without ``<ir_version...>`` a plain header is put before it) to a file."""

    def write(text: str, name: str = "model.onnx", opset: int = 13) -> Path:
        text = text if text.lstrip().startswith("<") else f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}'
        path = tmp_path / name
        ir.save(ir.from_onnx_text(text), path)
        return path

    return write


@pytest.fixture
def relu(save_text: Callable[..., Path]) -> Path:
    """The smallest model that does something."""
    return save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", "relu.onnx")


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The facts and cases beside the project; tests that need them are skipped in a checkout without them, never in CI."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"{SHARED} is missing in CI")
        pytest.skip(f"{SHARED} is not there")
    return SHARED


@pytest.fixture(scope="session")
def demo_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the three PP-OCRv4 models of scripts/demo (downloaded once, kept in demo-out/models)."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from fetch_demo_models import fetch
    finally:
        sys.path.pop(0)
    folder = ROOT / "demo-out" / "models"
    fetch(folder)
    return folder
