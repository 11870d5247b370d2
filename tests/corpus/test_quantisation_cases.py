"""The public report of int8: one outlier among 64 samples ruins max calibration."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jumar import quantize
from jumar.graph import Evaluator, load

CASE = "acc-int8-outlier-calibration"


def sqnr(right: np.ndarray, found: np.ndarray) -> float:
    return float(10 * np.log10(np.square(right).sum() / np.square(found - right).sum()))


def test_an_outlier_ruins_max_and_not_histogram(shared: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    folder = shared / "cases" / CASE
    with np.load(folder / "mlp.onnx.in.npz") as feeds, np.load(folder / "mlp.onnx.ref.npz") as reference:
        x, right = feeds["x"], reference["y"]
    found = {}
    for method in ("max", "histogram"):
        case = quantize(
            folder / "mlp.onnx",
            calib=folder / "calib_x.npy",
            output=tmp_path / method,
            soc="Ascend310P3",
            method=method,
            max_drop=1.0,
            symmetric=True,
            evaluator=evaluator,
        )
        found[method] = sqnr(right, evaluator.run(load(tmp_path / method / "qdq.onnx"), {"x": x})["y"])
        told = [item for item in case.record.findings if item.code == "QT103"]
        assert "sample 5 " in str(told[0].message) and told[0].severity == ("warning" if method == "max" else "info")
        if method == "max":
            assert "scale_d: 3.1496" in (tmp_path / "max" / "record.txt").read_text()  # three useful levels
    assert found["histogram"] > found["max"] + 15
