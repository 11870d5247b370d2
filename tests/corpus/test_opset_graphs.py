"""Exports of both PyTorch exporters at another opset: those at 18 go down to 11, those at 11 and 16 go up to 18, and run equal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jumar.graph import Evaluator, copy_model, infer_shapes, load, model_opset
from jumar.graph.opset import Unconvertible, convert_opset
from jumar.proof.feeds import make_feeds

GRAPHS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "graphs"
OPS = GRAPHS.parent / "ops"
# Where a form changed only, all bits stay. Where an operator was written out (LayerNormalization, Gelu, Resize), sums have another
# order: the largest relative error measured is 1.2e-6 of the largest element.
TOLERANCE = 3e-6
# What ONNX's standard has no older words for.
REFUSED = {("op_roi_align__dyn18", 11)}


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.onnx"))


@pytest.fixture(scope="session")
def hydrated(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """The exports with weights drawn for them (JUMAR_GRAPHS names a folder that has them already)."""
    return Path(os.environ.get("JUMAR_GRAPHS") or tmp_path_factory.mktemp("graphs"))


def full(folder: Path, name: str) -> Path:
    path = folder / f"{name}.onnx"
    if not path.is_file():
        subprocess.run([sys.executable, str(GRAPHS.parent / "hydrate.py"), str(GRAPHS / path.name), str(path)], check=True)
    return path


def wanted(opset: int) -> Iterator[int]:
    yield from (version for version in (18, 11) if version != opset)


def compare(path: Path, evaluator: Evaluator) -> None:
    model = load(path)
    feeds = next(iter(make_feeds(model, evaluator, 1).cases))
    expected = evaluator.run(model, feeds)
    for version in wanted(model_opset(model)):
        after = copy_model(model)
        infer_shapes(after)
        if (path.stem, version) in REFUSED:
            with pytest.raises(Unconvertible):
                convert_opset(after, version)
            continue
        convert_opset(after, version)
        assert [(value.name, value.dtype) for value in after.graph.outputs] == [(value.name, value.dtype) for value in model.graph.outputs]
        found = evaluator.run(after, feeds)
        for name, array in expected.items():
            assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
            largest = np.max(np.abs(array), initial=0) if array.dtype.kind == "f" else 0
            np.testing.assert_allclose(found[name], array, rtol=TOLERANCE, atol=TOLERANCE * largest)


@pytest.mark.slow
@pytest.mark.parametrize("name", names(GRAPHS))
def test_an_export_runs_equal_at_another_opset(name: str, hydrated: Path, evaluator: Evaluator) -> None:
    compare(full(hydrated, name), evaluator)


@pytest.mark.slow
def test_the_exports_of_single_operators_run_equal_at_another_opset(shared: Path, evaluator: Evaluator) -> None:
    for name in names(OPS):
        try:
            next(iter(make_feeds(load(OPS / f"{name}.onnx"), evaluator, 1).cases))
        except Exception:  # three of them do not run as they are
            continue
        compare(OPS / f"{name}.onnx", evaluator)
