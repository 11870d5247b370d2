"""What the user accepted by naming a rule is told at the end, and covers no more than that rule may change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar import migrate, verify
from jumar.proof import FeedSet
from jumar.proof.metrics import compare
from jumar.rules import find_rule
from jumar.verbs.accepted import Accepted, told_by

SOC = "Ascend310P3"
TEXT = """agraph (float[2,4] x) => (float[2,2] y) <int8[4,2] w = {100, -20, 35, 90, -64, 7, 88, -120}, float scale = {0.01}, int8 zero = {0}> {
    q, s, z = DynamicQuantizeLinear(x) sums = MatMulInteger(q, w, z, zero) wide = Cast<to = 1>(sums) both = Mul(s, scale) y = Mul(wide, both) }"""


def test_a_migration_says_what_it_gave_up(save_text: Callable[..., Path], tmp_path: Path) -> None:
    path, bundle = save_text(TEXT), tmp_path / "b"
    case = migrate(path, output=bundle, soc=SOC, dry_run=True, unsafe=["OP279"])
    assert case.record.verdict == "warnings"
    assert [(item.code, item.node) for item in case.record.findings if item.code.startswith("VF")] == [("VF605", "y")]
    assert (bundle / "compile.sh").is_file()

    feeds = FeedSet(({"x": np.float32([[0.3, -1.2, 0.7, 0.4], [1.1, 0.2, -0.6, 0.9]])},), "user")
    again = verify(bundle / "model.onnx", feeds=feeds).record  # the manifest tells what was accepted
    assert [item.code for item in again.findings] == ["VF605"]
    assert [item.code for item in verify(bundle / "model.onnx", path, feeds=feeds, accepted=()).record.findings] == ["VF601"]

    wrong = ir.load(bundle / "model.onnx")
    weight = next(value for value in wrong.graph.initializers.values() if value.const_value is not None and value.const_value.size == 8)
    weight.const_value = ir.tensor(weight.const_value.numpy() * np.float32(1.3), name=weight.name)
    told = [{"code": "OP279", **told_by(find_rule("OP279"))}]
    assert [item.code for item in verify(wrong, path, feeds=feeds, accepted=told).record.findings] == ["VF601"]


def test_without_the_code_nothing_is_given_up(save_text: Callable[..., Path], tmp_path: Path) -> None:
    case = migrate(save_text(TEXT), output=tmp_path / "b", soc=SOC, dry_run=True)
    assert not [item for item in case.record.findings if item.code.startswith("VF")]


@pytest.mark.parametrize(
    ("found", "reference", "covered"),
    [
        (np.float32([1.0, 1.09]), np.float32([1.0, 1.0]), True),
        (np.float32([1.0, 1.11]), np.float32([1.0, 1.0]), False),
        (np.float32([1.0, np.nan]), np.float32([1.0, 1.0]), False),
        (np.uint8([3, 4]), np.uint8([3, 5]), True),
        (np.uint8([3, 4]), np.uint8([3, 6]), False),
        (np.array([True]), np.array([False]), False),
    ],
)
def test_what_is_covered(found: Any, reference: Any, covered: bool) -> None:
    accepted = Accepted(("OP276", "OP279"), 0.1, 1)
    assert accepted.covers(compare(found, reference)) == covered


def test_bounds_of_several_are_added() -> None:
    told = [{"code": code, **told_by(find_rule(code))} for code in ("OP276", "OP279")]
    assert Accepted.of(told) == Accepted(("OP276", "OP279"), pytest.approx(0.15), 1)
    assert told_by(find_rule("OP275")) == {}  # safe


@pytest.mark.parametrize("told", [[{}], [None], [{"code": "OP279", "accepted": {"max_scaled": "much", "steps": 0}}], ["OP279"]])
def test_what_a_damaged_manifest_tells_is_not_accepted(told: Any) -> None:
    assert Accepted.of(told) == Accepted()
