"""``verify --precision``: the findings, the table, the files, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from jumar import UsageError, verify_precision
from jumar.case import Record
from jumar.proof import FeedSet

NORM = """
<ir_version: 8, opset_import: ["" : 11]>
norm (float[3,16] x) => (float[3,16] y) <float eps = {0.000000000001}> {
    q = Mul(x, x)
    s = ReduceSum<axes = [1]>(q)
    n = Sqrt(s)
    m = Max(n, eps)
    y = Div(x, m)
}
"""


def norm() -> ir.Model:
    model = ir.from_onnx_text(NORM)
    for node in model.graph:
        node.name = f"make_{node.outputs[0].name}"
    return model


def feeds(scale: float) -> FeedSet:
    return FeedSet(({"x": (np.random.default_rng(0).standard_normal((3, 16)) * scale).astype(np.float32)},), "user")


def test_a_norm_of_small_values_is_lost_and_mended(tmp_path: Path) -> None:
    case = verify_precision(norm(), feeds=feeds(1e-4), keep_list=tmp_path / "keep", csv_file=tmp_path / "t.csv")
    codes = [finding.code for finding in case.record.findings]
    assert codes[0] == "VF609"
    assert "VF606" in codes
    assert case.record.verdict == "warnings", "there is a list with which it reaches the bound"
    born = next(finding for finding in case.record.findings if finding.code == "VF610")
    assert born.node == "make_q"
    assert "largest magnitude" in str(born.remedy)
    kept = (tmp_path / "keep" / "keep_dtype.cfg").read_text().split()
    again = verify_precision(norm(), feeds=feeds(1e-4), keep=kept)
    assert again.record.verdict == "ready"
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["GroundTruth"] for row in rows] == [f"make_{name}" for name in "qsnmy"]
    assert float(rows[-1]["OverFlow"]) > 0


def test_without_a_list_it_blocks() -> None:
    record = verify_precision(norm(), feeds=feeds(1e-4), table=True).record
    assert record.verdict == "blocked"
    assert len(record.data["precision"]["rows"]) == 5
    assert Record.from_dict(record.to_dict(None)).to_dict() == record.to_dict()


def test_values_of_a_common_size_are_no_problem() -> None:
    record = verify_precision(norm(), feeds=feeds(1.0)).record
    assert record.verdict == "ready"
    assert not [finding for finding in record.findings if finding.code in ("VF609", "VF610")]


def test_bfloat16_has_the_range_but_not_the_digits() -> None:
    assert verify_precision(norm(), "bf16", feeds=feeds(1e-4)).record.verdict == "ready"
    coarse = verify_precision(norm(), "bf16", feeds=feeds(1.0), metric="max_abs", bound=1e-3).record
    assert coarse.verdict == "blocked"


def test_a_metric_of_ones_own() -> None:
    record = verify_precision(
        norm(), feeds=feeds(1.0), metric=lambda right, device: -float(np.abs(right["y"] - device["y"]).max()), bound=-1e-2
    ).record
    assert record.verdict == "ready"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "fp8"}, "no precision mode"),
        ({"precision": "int8"}, "not emulated"),
        ({"metric": "nothing"}, "no metric"),
        ({"keep": ["nothing"]}, "no node"),
    ],
)
def test_what_is_not_known_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        verify_precision(norm(), feeds=feeds(1.0), **options)  # type: ignore[arg-type]
