"""``jumar.inspect``: .om files, ONNX models and bundles."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

import jumar
from jumar.case import Record
from jumar.errors import ModelError, TargetError, UsageError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "om"))
from om_writer import forms, image, simple

SCHEMA = json.loads(resources.files("jumar").joinpath("data/record.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def om(tmp_path: Path) -> Path:
    path = tmp_path / "net.om"
    path.write_bytes(image([simple()], wide=True))
    return path


def text_of(record: Record, lang: str = "en") -> str:
    return "\n".join(note.render("zh" if lang == "zh" else "en") for note in record.notes)


@pytest.mark.parametrize("name", forms())
def test_every_form_has_a_record_of_the_schema(name: str, tmp_path: Path) -> None:
    path = tmp_path / "net.om"
    path.write_bytes(forms()[name])
    record = jumar.inspect(path, operators=True)
    data = record.to_dict()
    jsonschema.validate(data, SCHEMA)
    assert json.loads(json.dumps(data, allow_nan=False)) == json.loads(json.dumps(Record.from_dict(record.to_dict(None)).to_dict()))
    assert (data["verb"], data["model"], data["verdict"], data["data"]["kind"]) == ("inspect", None, "ready", "om")
    assert "Ascend310P3" in text_of(record)
    assert "算子：" in text_of(record, "zh")


def test_the_text_says_what_the_file_holds(om: Path) -> None:
    text = text_of(jumar.inspect(om))
    for part in (
        "7.6.0.1.220 (CANN 8.1.RC1, from the path of atc)",
        "v2, IR, 64-bit partition table",
        "--model=net.onnx --soc_version=Ascend310P3",
        "  x  float16  [2, 3]  ND  12 bytes",
        "  add:0:y  float16  [2, 3]  ND  12 bytes",
        "WEIGHTS_DATA  64 bytes",
        "Operators: 3 (local 1, aicore 1, runtime 1)",
        "Gears: none",
        "AIPP: none",
    ):
        assert part in text
    assert "  aicore   Add        add" in text_of(jumar.inspect(om, operators=True))


def test_gears_and_aipp_in_the_text(tmp_path: Path) -> None:
    path = tmp_path / "net.om"
    path.write_bytes(forms()["gears"])
    text = text_of(jumar.inspect(path))
    assert "Gears: 2, image: height, width (image)\n  320, 320\n  640, 640\n" in text
    assert "[1, 3, ?, ?]" in text
    path.write_bytes(forms()["aipp"])
    assert "AIPP of the inputs\n  image: static: aipp_mode 1, csc_switch True" in text_of(jumar.inspect(path))
    path.write_bytes(image([simple()]) + b"more")
    assert "4 bytes follow the end" in text_of(jumar.inspect(path))


def test_with_a_target_it_says_whether_the_file_fits(om: Path) -> None:
    record = jumar.inspect(om, soc="Ascend310P3")
    assert (record.verdict, record.findings) == ("ready", ())
    assert record.target is not None
    record = jumar.inspect(om, soc="Ascend910B1", cann="8.0.0")
    assert [finding.code for finding in record.findings] == ["CP710", "CP712"]
    assert record.verdict == "blocked"
    jsonschema.validate(record.to_dict(), SCHEMA)
    with pytest.raises(TargetError):
        jumar.inspect(om, soc="Ascend999")


def test_an_onnx_model(relu: Path) -> None:
    record = jumar.inspect(relu, operators=True)
    jsonschema.validate(record.to_dict(), SCHEMA)
    assert record.model is not None and record.model.sha256 == record.data["sha256"]
    assert record.data["operator_counts"] == {"Relu": 1}
    assert "  x  float  [2, 3]" in text_of(record)
    with pytest.raises(UsageError, match=r"which is no \.om"):
        jumar.inspect(relu, soc="Ascend310P3")


@pytest.fixture
def folder(relu: Path, tmp_path: Path) -> Path:
    jumar.compile(relu, output=tmp_path / "out", soc="Ascend310P3", dry_run=True)
    return tmp_path / "out"


def test_a_bundle(folder: Path) -> None:
    record = jumar.inspect(folder)
    jsonschema.validate(record.to_dict(), SCHEMA)
    assert record.data["kind"] == "bundle"
    assert {item["state"] for item in record.data["files"]} == {"intact"}
    assert "target: soc Ascend310P3, cann 8.1.RC1" in text_of(record)
    assert "command line: atc " in text_of(record)


def test_changed_missing_and_outer_files_of_a_bundle(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    first = folder / manifest["files"][0]["path"]
    first.write_bytes(first.read_bytes() + b" ")
    (folder / "net.om").write_bytes(image([simple()]))
    manifest["files"] += [
        {"path": "no.bin", "sha256": "0" * 64},
        {"path": "../relu.onnx", "sha256": "0" * 64},
        {"path": "net.om", "sha256": None},
        {"path": "a\0b", "sha256": None},
        {"path": 3},
        None,
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    record = jumar.inspect(folder)
    states = {item["path"]: item["state"] for item in record.data["files"]}
    assert states[first.name] == "changed"
    assert (states["no.bin"], states["../relu.onnx"], states["net.om"], states["a\0b"]) == ("missing", "outside", "not hashed", "missing")
    assert record.data["om"]["soc_version"] == "Ascend310P3"


@pytest.mark.parametrize(
    ("content", "expected"),
    [("[]", "holds no manifest"), ("{", "cannot be read"), ('{"jumar": NaN}', "NaN is not JSON"), ("[" * 100_000, "cannot be read")],
)
def test_bad_manifests(content: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ModelError, match=expected):
        jumar.inspect(tmp_path)


def test_odd_manifests_are_shown_as_far_as_they_go(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"target": 3, "command": {}, "files": "none"}')
    assert "made by Jumar -" in text_of(jumar.inspect(tmp_path))


def test_an_om_needs_no_onnx(om: Path, run_python: Callable[..., str]) -> None:
    assert run_python("import jumar, sys; jumar.inspect(sys.argv[1]); print('onnx' in sys.modules)", str(om)).strip() == "False"


@pytest.fixture
def run_python() -> Callable[..., str]:
    import subprocess

    def call(program: str, *arguments: str) -> str:
        return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True).stdout

    return call


def test_where_a_model_is_expected_an_om_is_named_and_judged(om: Path, relu: Path) -> None:
    """Nothing loads it: a target it does not fit is named first."""
    with pytest.raises(ModelError, match=r"is compiled \(for Ascend310P3\).*`jumar inspect`"):
        jumar.verify(om, against=relu)
    with pytest.raises(ModelError, match="is compiled"):
        jumar.verify(relu, against=om)
    with pytest.raises(ModelError, match=r"compiled for Ascend310P3, the target is .*\(CP710\)"):
        jumar.check(om, soc="Ascend910B1")
