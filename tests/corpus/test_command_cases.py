"""The public bug reports of kind atc-args: each one's finding is made, by its meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumar import check, lint

# Folder, what lint must find in its command: code, severity, ATC's code, and a part of the sentence.
COMMANDS: list[tuple[str, set[tuple[str, str, str, str]]]] = [
    ("atc-310-unbounded-dynamic", {("AT909", "error", "", "Ascend310 takes no open shapes")}),
    ("atc-dims-count-vs-minus1", {("AT907", "error", "E10045", "values: 3 given, 4 wanted")}),
    ("atc-dims-ragged-profile", {("AT907", "error", "E10037", "gear 3 `5`: values: 1 given, 2 wanted")}),
    ("atc-dims-single-profile", {("AT907", "error", "E10035", "--dynamic_dims has one gear")}),
    ("atc-dims-too-many", {("AT907", "error", "E10036", "--dynamic_dims has 101 gears")}),
    ("atc-dims-with-aipp", {("AT904", "error", "E10001", "--insert_op_conf + --dynamic_dims do not go together")}),
    (
        "atc-missing-required",
        {("AT903", "error", "E10054", "--soc_version is missing"), ("AT908", "error", "E10041", "--framework=3 is TensorFlow")},
    ),
    # The report calls it an error. Ascend910B is a name that ATC takes, of the old 910: nobody can tell that it was not meant.
    ("atc-soc-family-name", {("AT905", "warning", "", "--soc_version=Ascend910B is easily mistaken")}),
]
# Folder, file, what check must find in the model.
MODELS = [
    ("shape-colon-in-name", "colon", ("NM401", "error")),
    ("shape-initializer-as-input", "ir3", ("GR501", "info")),
]


def test_every_case_of_a_command_is_here(shared: Path) -> None:
    folders = {
        path.parent.name
        for path in (shared / "cases").glob("*/case.json")
        if json.loads(path.read_text(encoding="utf-8"))["kind"] == "atc-args"
    }
    assert {folder for folder, _ in COMMANDS} | {folder for folder, _, _ in MODELS} == folders


@pytest.mark.parametrize(("folder", "expected"), COMMANDS, ids=[folder for folder, _ in COMMANDS])
def test_a_command_is_judged(folder: str, expected: set[tuple[str, str, str, str]], shared: Path) -> None:
    (model,) = (shared / "cases" / folder).glob("*.onnx")
    record = lint(shared / "cases" / folder / "cmd.txt", model=model)
    for code, severity, atc, words in expected:
        found = [item for item in record.findings if item.code == code and words in str(item.message)]
        assert [item.severity for item in found] == [severity]
        assert not atc or f"ATC {atc}" in found[0].evidence
    errors = {item.code for item in record.findings if item.severity == "error"}
    assert errors == {code for code, severity, _, _ in expected if severity == "error"}


@pytest.mark.parametrize(("folder", "name", "expected"), MODELS, ids=[folder for folder, _, _ in MODELS])
def test_a_model_that_no_command_can_name(folder: str, name: str, expected: tuple[str, str], shared: Path) -> None:
    found = check(shared / "cases" / folder / f"{name}.onnx", soc="Ascend310P3").record.findings
    assert expected in {(item.code, item.severity) for item in found}


def test_names_that_a_command_cannot_hold(shared: Path) -> None:
    """The command lint is given for these models says so too."""
    folder = shared / "cases" / "shape-colon-in-name"
    record = lint("atc --model=colon.onnx --framework=5 --output=o --soc_version=Ascend310P3", model=folder / "colon.onnx")
    assert [(item.code, item.severity) for item in record.findings] == [("AT908", "error"), ("AT908", "warning")]
    folder = shared / "cases" / "shape-initializer-as-input"
    record = lint(
        'atc --model=ir3.onnx --framework=5 --output=o --soc_version=Ascend310P3 --input_shape="w:3,3"', model=folder / "ir3.onnx"
    )
    assert "ATC E10017" in record.findings[0].evidence and "`w` is a weight" in str(record.findings[0].message)
