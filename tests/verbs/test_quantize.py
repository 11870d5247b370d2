"""``jumar quantize`` from samples to files: what is written, what is said, what is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import Case, UsageError, quantize
from jumar.errors import TargetError
from jumar.graph import Evaluator, load
from jumar.quant.config import read_config
from jumar.quant.records import read_records, write_records
from jumar.verbs.quantize_parts import Split

SOC = "Ascend310P3"
SHAPES = {"w1": (8, 3, 3, 3), "w2": (8, 1, 3, 3), "s": (8,), "b": (8,), "m": (8,), "v": (8,), "w3": (8, 5), "b3": (5,)}
TEXT = """<ir_version: 8, opset_import: ["" : 11]>
agraph (float[N,3,16,16] x) => (float[N,5] y) {
    c = Conv<pads = [1,1,1,1]>(x, w1) n = BatchNormalization(c, s, b, m, v) r = Relu(n)
    d = Conv<group = 8, pads = [1,1,1,1]>(r, w2) e = Relu(d) p = GlobalAveragePool(e) f = Flatten(p)
    h = MatMul(f, w3) z = Add(h, b3) y = Softmax<axis = 1>(z)
}"""


@pytest.fixture
def model(tmp_path: Path, random: np.random.Generator) -> Path:
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
    weights["v"] = np.abs(weights["v"]) + 0.5
    made = ir.from_onnx_text(TEXT, initializers=[ir.tensor(array, name=name) for name, array in weights.items()])
    path = tmp_path / "model.onnx"
    ir.save(made, path)
    return path


@pytest.fixture
def calib(tmp_path: Path, random: np.random.Generator) -> Path:
    path = tmp_path / "calib.npz"
    np.savez(path, x=random.standard_normal((60, 3, 16, 16)).cumsum(axis=-1).astype(np.float32))
    return path


Made = Callable[..., Case]


@pytest.fixture
def run(model: Path, calib: Path, tmp_path: Path, evaluator: Evaluator) -> Made:
    def call(**named: Any) -> Case:
        options = {"calib": calib, "output": tmp_path / "out", "soc": SOC, "evaluator": evaluator} | named
        return quantize(options.pop("model", model), **options)

    return call


def codes(case: Case) -> set[str]:
    return {finding.code for finding in case.record.findings}


def test_what_is_written(run: Made, model: Path, tmp_path: Path, evaluator: Evaluator, calib: Path) -> None:
    case = run()
    out = tmp_path / "out"
    names = [
        "amct_config.json",
        "calibration.npz",
        "curve.csv",
        "curve.json",
        "curve.svg",
        "deploy.onnx",
        "qdq.onnx",
        "quantization.json",
        "record.txt",
    ]
    assert sorted(item.name for item in out.iterdir()) == names
    assert {Path(item.path).name for item in case.record.artifacts} == set(names) - {"calibration.npz"}
    data = case.record.data["quantize"]
    assert len(data["layers"]) == 3 and data["held"] and data["samples"] == {"calibration": 48, "held_out": 12}
    deploy, qdq = load(out / "deploy.onnx"), load(out / "qdq.onnx")
    assert deploy.opset_imports[""] == qdq.opset_imports[""] == 11  # never touched
    assert not [node for node in deploy.graph if node.op_type in ("QuantizeLinear", "DequantizeLinear", "BatchNormalization")]
    assert sum(node.op_type == "AscendDequant" for node in deploy.graph) == 3
    onnx.checker.check_model(str(out / "qdq.onnx"), full_check=True)
    records = read_records((out / "record.txt").read_text(encoding="utf-8"))
    assert set(records) == set(data["layers"])
    assert [len(item.scale_w) for item in records.values()] == [8, 8, 1]
    assert data["proof"]["failed"] == [] and data["proof"]["comparisons"] == 6
    x = np.load(calib)["x"][4:5]
    right, found = (evaluator.run(load(path), {"x": x})["y"] for path in (model, out / "deploy.onnx"))
    assert 0 < np.abs(found - right).max() < 0.1
    assert {item.name: item.origin for item in case.record.measurements}["speed of matrix products"] == "estimate"


def test_the_record_says_what_and_why(run: Made, model: Path) -> None:
    named = load(model)
    for node in named.graph:
        node.name = node.outputs[0].name
    case = run(skip_layers=["d"], skip_types=["Gemm"], max_drop=1.0, model=named)  # MatMul and Add become a Gemm before
    left = {str(finding.why): finding.node for finding in case.record.findings if finding.code == "QT104"}
    assert left["in skip_layers"] == "d" and "its type Gemm is in skip_layer_types" in left
    assert case.record.data["quantize"]["layers"] == ["c"]
    assert "QT111" in codes(case)


def test_layers_go_back_until_the_gate_holds(run: Made, tmp_path: Path) -> None:
    strict = run(max_drop=2e-7, metric="similarity")
    data = strict.record.data["quantize"]
    assert data["put_back"] and data["held"] and strict.record.verdict != "blocked"
    assert "QT105" in codes(strict)
    assert len(json.loads((tmp_path / "out" / "curve.json").read_text())) >= 3
    none = run(max_drop=0.0, output=tmp_path / "none")
    assert "QT107" in codes(none) and none.record.data["quantize"]["layers"] == []
    assert not [node for node in load(tmp_path / "none" / "deploy.onnx").graph if node.op_type.startswith("Ascend")]
    refused = run(max_drop=0.0, fallback=False, output=tmp_path / "refused")
    assert "QT106" in codes(refused) and refused.record.verdict == "blocked"


def test_a_metric_of_ones_own_sees_labels(run: Made) -> None:
    asked: list[int] = []

    def metric(number: int, outputs: Mapping[str, Any]) -> float:
        asked.append(number)
        return float(outputs["y"].argmax() == number % 5)

    case = run(metric=metric, max_drop=1.0)
    assert set(asked) == set(range(4, 60, 5))
    assert case.record.data["quantize"]["metric"] == "user"


def test_a_set_of_its_own_for_the_gate(run: Made, random: np.random.Generator) -> None:
    asked: list[int] = []
    held = list(random.standard_normal((7, 1, 3, 16, 16)).astype(np.float32))
    case = run(held=held, metric=lambda number, _outputs: asked.append(number) or 1.0)
    assert set(asked) == set(range(7))
    assert case.record.data["quantize"]["samples"] == {"calibration": 60, "held_out": 7}


def test_configurations_go_round(run: Made, tmp_path: Path) -> None:
    run(method="max")
    path = tmp_path / "out" / "quantization.json"
    config = json.loads(path.read_text())
    first = next(iter(config["layers"]))
    assert config["layers"][first]["quantise"] and config["layers"][first]["scale"] > 0
    config["layers"][first]["quantise"] = False
    path.write_text(json.dumps(config))
    again = run(config=path, output=tmp_path / "again")
    assert first not in again.record.data["quantize"]["layers"] and again.record.data["quantize"]["recipe"] == "max"
    amct = read_config((tmp_path / "again" / "amct_config.json").read_text())
    assert not amct.layers[first].enabled
    third = run(config=tmp_path / "again" / "amct_config.json", output=tmp_path / "third")
    assert third.record.data["quantize"]["layers"] == again.record.data["quantize"]["layers"]
    with pytest.raises(UsageError, match="no layer `nothing`"):
        run(skip_layers=["nothing"])


def test_auto_tries_and_says_what_it_saw(run: Made) -> None:
    trials = run().record.data["quantize"]["trials"]
    assert {"histogram", "max", "entropy", "percentile"} < set(trials) and len(trials) == 6
    assert run(method="entropy").record.data["quantize"]["trials"] == {}


def test_few_and_odd_samples_are_told(run: Made, random: np.random.Generator) -> None:
    noise = list(random.standard_normal((3, 1, 3, 16, 16)).astype(np.float32))
    case = run(calib=noise)
    assert {"QT101", "QT102"} <= codes(case)
    smooth = random.standard_normal((60, 1, 3, 16, 16)).cumsum(axis=-1).astype(np.float32)
    smooth[10, 0, 1, 4, 4] = 9000
    outlier = run(calib=list(smooth))
    found = next(finding for finding in outlier.record.findings if finding.code == "QT103")
    assert "sample 10 (sample 10)" in str(found.message)
    smooth[10, 0, 1, 4, 4] = np.nan
    assert "QT109" in codes(run(calib=list(smooth)))


def test_the_split_holds_every_fifth_out() -> None:
    split = Split.of(100, 1000)
    assert split.held == list(range(4, 100, 5)) and not set(split.held) & set(split.calibration) and len(split.calibration) == 80
    few = Split.of(3, 1000)
    assert few.shared and few.held == few.calibration == [0, 1, 2]
    assert len(Split.of(5000, 1000).held) == 100


def test_a_killed_calibration_goes_on(run: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(method="max", max_drop=1.0)
    before = (tmp_path / "out" / "calibration.npz").read_bytes()
    read = []
    from jumar.quant import calibrate as module

    original = module._see_inputs
    monkeypatch.setattr(module, "_see_inputs", lambda *arguments: (read.append(arguments[-1]), original(*arguments)))
    run(method="percentile", max_drop=1.0)
    assert not read and (tmp_path / "out" / "calibration.npz").read_bytes() == before
    run(method="percentile", max_drop=1.0, samples=30)
    assert read


def test_bad_arguments(run: Made, tmp_path: Path, model: Path) -> None:
    for named, message in (
        ({"max_drop": -1.0}, "--max-drop -1 makes no sense"),
        ({"samples": 0}, "--samples 0 makes no sense"),
        ({"metric": "sqnr"}, "`sqnr` is no metric of agreement"),
        ({"method": "best"}, "`best` of --method is no calibration method"),
        ({"calib": tmp_path / "none"}, "no such file or folder"),
        ({"output": model.parent, "model": model.with_name("deploy.onnx")}, "is the model itself"),
    ):
        if "model" in named:
            model.rename(model.with_name("deploy.onnx"))
        with pytest.raises(UsageError, match=message):
            run(**named)
    with pytest.raises(TargetError):
        run(soc=None, model=model.with_name("deploy.onnx"))


def test_a_model_without_layers(run: Made, relu: Path) -> None:
    case = run(model=relu, calib=[np.ones((2, 3), np.float32) * index for index in range(6)])
    assert {"QT107", "QT101"} <= codes(case) and case.record.verdict == "warnings"


def test_a_quantised_model_keeps_its_scales(run: Made, tmp_path: Path, evaluator: Evaluator, calib: Path) -> None:
    run(method="max", max_drop=1.0)
    first = read_records((tmp_path / "out" / "record.txt").read_text(encoding="utf-8"))
    again = run(model=tmp_path / "out" / "qdq.onnx", output=tmp_path / "again")
    assert {"QT110", "QT111"} <= codes(again) and not {"QT104", "QT106", "QT108"} & codes(again)
    second = read_records((tmp_path / "again" / "record.txt").read_text(encoding="utf-8"))
    assert sorted(item.scale_d for item in first.values()) == sorted(item.scale_d for item in second.values())
    assert len(second) == 3 and again.record.data["quantize"]["quality"] > 0.9999
    alone = run(model=tmp_path / "out" / "qdq.onnx", output=tmp_path / "alone", calib=None)  # on generated inputs
    assert "QT110" in codes(alone)
    with pytest.raises(UsageError, match="no samples to calibrate on"):
        run(calib=None)


def test_scales_of_a_record(run: Made, tmp_path: Path) -> None:
    run(method="max", max_drop=1.0)
    path = tmp_path / "out" / "record.txt"
    again = run(record=path, output=tmp_path / "again", max_drop=1.0)
    assert (tmp_path / "again" / "record.txt").read_text() == path.read_text()
    assert (tmp_path / "again" / "deploy.onnx").read_bytes() == (tmp_path / "out" / "deploy.onnx").read_bytes()
    assert again.record.data["quantize"]["recipe"] == "record"
    records = read_records(path.read_text())
    first, *_ = records
    path.write_text(write_records({first: records[first]}))
    one = run(record=path, output=tmp_path / "one", max_drop=1.0)
    assert one.record.data["quantize"]["layers"] == [first]
    assert "it is not in the record" in {str(item.why) for item in one.record.findings if item.code == "QT104"}
    path.write_text(write_records({"other": records[first]}))
    with pytest.raises(UsageError, match="no layer `other` of the record"):
        run(record=path)
    with pytest.raises(UsageError, match="is no record file"):
        run(record=tmp_path / "none.txt")


def test_forms_that_differ_are_an_error(run: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    from jumar.quant import proof

    original = proof.integer_layer
    monkeypatch.setattr(proof, "integer_layer", lambda item, q: original(item, q) * np.float32(1.001))
    case = run(method="max", max_drop=1.0)
    assert "QT108" in codes(case) and case.record.verdict == "blocked"
