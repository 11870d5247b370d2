"""The public bug reports of kind op, dtype, shape and memory: each one is repaired as it asks, with the right values, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar import fix
from jumar.graph import Evaluator, load
from jumar.proof import Interface

# Folder: the verdict after ``fix`` and the largest difference to the right values. What is not ready has its reason beside it.
REPAIRED: dict[str, tuple[str, float]] = {
    "dtype-bf16": ("ready", 2e-2),
    "dtype-int64-io": ("warnings", 0.0),  # nothing in the model proves that its mask fits int32: DT301 stays unsafe
    "mem-constantofshape-fold": ("ready", 1e-6),
    "op-activation-family": ("ready", 1e-5),
    "op-attention-rmsnorm-opset23": ("ready", 1e-4),
    "op-bool-logic-where": ("warnings", 1e-6),  # a mask of -1e9, which float16 does not hold: DT303
    "op-com-microsoft-fused": ("ready", 1e-5),
    "op-cumsum-exclusive-reverse": ("ready", 1e-5),
    "op-cumsum-int-position-ids": ("ready", 0.0),
    "op-deformconv-opset19": ("ready", 1e-4),
    "op-einsum-forms": ("ready", 1e-5),
    "op-gru-variants": ("ready", 1e-5),
    "op-layernorm-lost-opset": ("ready", 1e-5),
    "op-loop-constant-trip": ("ready", 1e-6),
    "op-maxpool-dilated": ("ready", 0.0),
    "op-nms-arity-4": ("ready", 0.0),
    "op-nms-center-point-box": ("ready", 0.0),
    "op-nonzero-as-arange": ("ready", 0.0),
    "op-onehot-negative": ("warnings", 0.0),  # an index out of range is allowed, so that nothing proves that it fits int32: DT301
    "op-opset13-axes-as-inputs": ("ready", 1e-6),
    "op-pad-negative": ("ready", 0.0),
    "op-qdq-model": ("ready", 1e-6),
    "op-range-from-shape": ("ready", 0.0),
    "op-resize-tf-crop": ("ready", 1e-4),
    "op-scatternd-strided-assign": ("ready", 1e-6),
    "op-sequence-split": ("ready", 0.0),
    "op-softmax-opset-semantics": ("ready", 1e-6),
    "op-stft-dft": ("ready", 1e-4),
    "op-unused-domains": ("ready", 0.0),
    "shape-scalar-io": ("ready", 1e-6),
}
# Folder: what refuses it (codes of errors or warnings that stand; the loader's words).
REFUSED: dict[str, str] = {
    "dtype-int64-hash-overflow": "DT301",
    "op-nms-default-max-zero": "OP201",
    "op-topk-runtime-k": "OP203",
}
# In two folders one file is repaired and one refused.
FILES = {"shape-name-collisions": {"passthrough": "ready", "dup_nodes": "ready"}}


def where_of(folder: Path) -> dict[str, str]:
    soc = json.loads((folder / "case.json").read_text(encoding="utf-8"))["target"].get("soc") or "Ascend310P3"
    return {"target": "mdc510pro"} if soc == "MDC510" else {"soc": soc}


def models(folder: Path) -> list[Path]:
    names = json.loads((folder / "case.json").read_text(encoding="utf-8"))["input_files"]
    return [folder / name for name in names if name.endswith(".onnx")]


def values(path: Path, record: Any, model: Any, evaluator: Evaluator) -> list[tuple[Any, Any]]:
    """(found, right) outputs, as the caller knows them."""
    feeds, right = (dict(np.load(f"{path}.{kind}.npz")) for kind in ("in", "ref"))
    ports = Interface.of(load(path)).changed(record.interface or {})
    found = ports.to_caller(evaluator.run(model, ports.to_model(feeds)))
    return [(np.asarray(found[name]), array) for name, array in right.items() if name in found]


@pytest.mark.parametrize("name", REPAIRED)
def test_it_is_repaired_with_the_right_values(name: str, shared: Path, evaluator: Evaluator) -> None:
    folder = shared / "cases" / name
    verdict, bound = REPAIRED[name]
    for path in models(folder):
        case = fix(path, feeds=f"{path}.in.npz", evaluator=evaluator, **where_of(folder))
        assert case.record.verdict == verdict, [str(item.message) for item in case.record.findings]
        pairs = values(path, case.record, case.model, evaluator)
        assert pairs
        for found, right in pairs:
            assert found.shape == right.shape
            if right.size:
                assert np.abs(found.astype(np.float64) - right.astype(np.float64)).max() <= bound


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_reason(name: str, shared: Path, evaluator: Evaluator) -> None:
    folder = shared / "cases" / name
    for path in models(folder):
        feeds = Path(f"{path}.in.npz")
        record = fix(path, feeds=feeds if feeds.exists() else None, evaluator=evaluator, **where_of(folder)).record
        assert REFUSED[name] in {item.code for item in record.findings if item.severity != "info"}


def test_a_string_goes_to_the_host(shared: Path, evaluator: Evaluator) -> None:
    path = shared / "cases" / "dtype-string-input" / "string.onnx"
    case = fix(path, soc="Ascend310P3", cut=True, evaluator=evaluator)
    assert case.record.verdict == "ready"
    parts = next(step.options["cut"] for step in case.record.steps if step.name == "cut")
    assert [(part["part"], part["nodes"]) for part in parts] == [("before", 1), ("device", 1)]
    assert parts[0]["inputs"] == {"s": "string"} and parts[1]["inputs"] == {"i": "int64"}


@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder, names in FILES.items() for name in names])
def test_names_are_made_unique(folder: str, name: str, shared: Path, evaluator: Evaluator) -> None:
    record = fix(shared / "cases" / folder / f"{name}.onnx", soc="Ascend310P3", evaluator=evaluator).record
    assert record.verdict == FILES[folder][name]


def test_a_value_that_is_off_would_be_noticed(shared: Path, evaluator: Evaluator) -> None:
    path = shared / "cases" / "op-maxpool-dilated" / "maxpool.onnx"
    case = fix(path, feeds=f"{path}.in.npz", evaluator=evaluator, **where_of(path.parent))
    found, right = values(path, case.record, case.model, evaluator)[0]
    assert np.abs(found - right).max() == 0.0 and np.abs(found * 1.01 - right).max() > 0.0


def test_every_case_is_here(shared: Path) -> None:
    kinds = {path.parent.name: json.loads(path.read_text(encoding="utf-8"))["kind"] for path in (shared / "cases").glob("*/case.json")}
    wanted = {name for name, kind in kinds.items() if kind in ("op", "dtype", "shape", "memory")}
    elsewhere = {"mem-external-data-missing", "dtype-string-input"}
    assert wanted - elsewhere == (REPAIRED.keys() | REFUSED.keys() | FILES.keys()) & wanted
