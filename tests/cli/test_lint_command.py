"""jumar lint on the command line."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

Jumar = Callable[..., tuple[int, str, str]]
GOOD = "atc --model=m.onnx --framework=5 --output=m --soc_version=Ascend310P3"


def test_status_and_text(jumar: Jumar, tmp_path: Path) -> None:
    assert jumar("lint", GOOD)[0] == 0
    (tmp_path / "a.sh").write_text(f"{GOOD} --precision=fp16\n")
    status, out, err = jumar("lint", tmp_path / "a.sh")
    assert status == 1 and not err
    assert f"AT901 error {tmp_path / 'a.sh'}:1: ATC has no flag --precision" in out
    assert "calls of atc: 1; files: 1" in out


def test_json(jumar: Jumar) -> None:
    status, out, _ = jumar("lint", f"{GOOD} --log=ERROR", "--format", "json")
    assert status == 1
    assert [finding["code"] for finding in json.loads(out)["findings"]] == ["AT902"]


def test_chinese(jumar: Jumar) -> None:
    _, out, _ = jumar("lint", f"{GOOD} --log=ERROR", "--lang", "zh")
    assert "AT902 错误 command:1：--log：不接受取值 `ERROR`" in out


def test_standard_input(jumar: Jumar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(f"{GOOD} --log=ERROR".encode())))
    assert jumar("lint", "-")[0] == 1


def test_nothing_to_read(jumar: Jumar, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    status, out, err = jumar("lint", tmp_path / "a.txt")
    assert (status, out) == (2, "") and err.startswith("jumar: there is nothing of ATC's in `") and err.count("\n") == 1
