"""targets import on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def test_no_installation_is_one_line_and_status_2(jumar: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    status, out, err = jumar("targets", "import", tmp_path / "nowhere")
    assert (status, out) == (2, "")
    assert err.startswith(
        f"jumar: `{tmp_path / 'nowhere'}` cannot be imported: there is no such folder; expected an installation of CANN; "
    )
    assert err.count("\n") == 1


def test_a_mistake_in_a_declaration_is_one_line_and_status_2(
    jumar: Callable[..., tuple[int, str, str]], tmp_path: Path, relu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text('[[kernel]]\nop = "Relu"\nopset = "13"\n', encoding="utf-8")
    monkeypatch.setenv("JUMAR_TARGETS", str(tmp_path))
    status, out, err = jumar("check", relu, "--soc", "Ascend310P3")
    assert (status, out) == (2, "")
    assert err.startswith(f"jumar: `{tmp_path / 'mine.toml'}`: `kernel[0].opset`: it is not known; expected one of ")
    assert err.count("\n") == 1
