"""``jumar inspect`` and ``jumar view`` at the command line."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "om"))
from om_writer import image, simple

Jumar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def om(tmp_path: Path) -> Path:
    path = tmp_path / "net.om"
    path.write_bytes(image([simple()]))
    return path


def test_inspect(om: Path, jumar: Jumar) -> None:
    status, out, err = jumar("inspect", om)
    assert (status, err) == (0, "")
    assert "soc_version   Ascend310P3" in out
    status, out, _ = jumar("inspect", om, "--format", "json")
    assert status == 0
    data = json.loads(out)["data"]
    assert (data["soc_version"], data["models"][0]["engines"]) == ("Ascend310P3", {"local": 1, "aicore": 1, "runtime": 1})
    assert "命令行" in jumar("inspect", om, "--lang", "zh")[1]
    assert "Add" in jumar("inspect", om, "--operators")[1]


def test_a_file_for_another_soc_ends_with_1(om: Path, jumar: Jumar) -> None:
    assert jumar("inspect", om, "--soc", "Ascend310P3")[0] == 0
    status, out, err = jumar("inspect", om, "--soc", "Ascend310")
    assert (status, err) == (1, "")
    assert "CP710 error the file was compiled for Ascend310P3, the target is Ascend310" in out


def test_both_real_files(shared: Path, jumar: Jumar) -> None:
    for path in sorted((shared / "facts" / "toolchain" / "om_samples").glob("*.om")):
        status, out, err = jumar("inspect", path)
        assert (status, err) == (0, "")
        assert "Inputs" in out and "Operators: " in out


def test_names_in_a_file_do_not_reach_the_terminal_raw(tmp_path: Path, jumar: Jumar) -> None:
    path = tmp_path / "net.om"
    path.write_bytes(image([simple({"soc_version": "\x1b[31mred\nline", "atc_cmdline": "atc\x07"})]))
    status, out, _ = jumar("inspect", path)
    assert status == 0
    assert "\x1b[31m" not in out and "\x07" not in out
    assert "red\\x0aline" in out and "\nline" not in out


class Netron(types.ModuleType):
    def __init__(self) -> None:
        super().__init__("netron")
        self.started: list[tuple[str, object, bool]] = []
        self.waited = 0

    def start(self, file: str, address: object, browse: bool) -> tuple[str, int]:
        if address == ("localhost", 80):
            raise OSError(13, "Permission denied")
        self.started.append((file, address, browse))
        return "localhost", 8080

    def wait(self) -> None:
        self.waited += 1


@pytest.fixture
def netron(monkeypatch: pytest.MonkeyPatch) -> Netron:
    stand_in = Netron()
    monkeypatch.setitem(sys.modules, "netron", stand_in)
    return stand_in


def test_view_opens_netron(om: Path, netron: Netron, jumar: Jumar) -> None:
    status, out, err = jumar("view", om)
    assert (status, out) == (0, "")
    assert "http://localhost:8080" in err
    assert jumar("view", om, "--port", "9000", "--no-browser", "-q")[2] == ""
    assert netron.started == [(str(om), ("localhost", None), True), (str(om), ("localhost", 9000), False)]
    assert netron.waited == 2
    status, _, err = jumar("view", om, "--port", "80")
    assert status == 2
    assert "Netron cannot start: Permission denied" in err


def test_view_without_netron_names_the_pip_command(om: Path, monkeypatch: pytest.MonkeyPatch, jumar: Jumar) -> None:
    monkeypatch.setitem(sys.modules, "netron", None)
    status, out, err = jumar("view", om)
    assert (status, out) == (2, "")
    assert err == 'jumar: Netron is not installed; expected the extra `view`; run: pip install "jumar[view]"\n'
