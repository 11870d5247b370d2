"""Finding and running a (fake) ATC, however it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jumar.atc import AtcRun, find_atc, run_atc, searched_places, toolchain
from jumar.errors import ToolError

Fake = Callable[[Path, str], Path]


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(toolchain, "_DEFAULT_HOME", str(tmp_path / "nowhere"))


def test_nothing_is_found_where_nothing_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert find_atc() is None
    assert searched_places() == ["PATH", f"$ASCEND_HOME_PATH={tmp_path}", str(tmp_path / "nowhere")]


def test_path_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_tool: Fake) -> None:
    home, tools = fake_tool(tmp_path / "home" / "bin", ""), fake_tool(tmp_path / "tools", "")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home.parent))
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    assert find_atc() == tools / "atc"


def test_a_relative_path_is_found_from_every_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_tool: Fake) -> None:
    fake_tool(tmp_path / "tools", "touch made.om")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "tools:/usr/bin:/bin")
    assert find_atc() == tmp_path / "tools" / "atc"


@pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME"])
@pytest.mark.parametrize("inside", ["bin", "compiler/bin", "atc/bin"])
def test_the_usual_homes_are_searched(variable: str, inside: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_tool: Fake) -> None:
    fake_tool(tmp_path / inside, "")
    monkeypatch.setenv(variable, str(tmp_path))
    assert find_atc() == tmp_path / inside / "atc"


def test_a_file_that_cannot_be_executed_is_not_atc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_tool: Fake) -> None:
    (fake_tool(tmp_path / "bin", "") / "atc").chmod(0o644)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert find_atc() is None


def ended(tmp_path: Path, fake_tool: Fake, body: str, timeout: float = 30.0) -> AtcRun:
    program = fake_tool(tmp_path / "tools", body) / "atc"
    return run_atc([str(program), "--model=m"], tmp_path / "m.om", tmp_path / "atc.log", timeout)


def test_success_needs_the_file(tmp_path: Path, fake_tool: Fake) -> None:
    run = ended(tmp_path, fake_tool, f'echo "ATC run success $1"; touch kernel_meta "{tmp_path}/m.om"')
    assert (run.status, run.problem, run.codes) == (0, None, ())
    assert (tmp_path / "atc.log").read_text() == "ATC run success --model=m\n"
    assert not (tmp_path / "kernel_meta").exists()
    assert 0 < run.seconds < 30


@pytest.mark.parametrize(
    ("body", "status", "problem", "codes"),
    [
        ("echo done", 0, "it reported success but `m.om` is not there", ()),
        (
            "echo 'noise'; echo ' E10001: Value [x] is wrong. E10001 EZ3003' >&2; exit 1",
            1,
            "it ended with status 1: E10001: Value [x] is wrong. E10001 EZ3003",
            ("E10001", "EZ3003"),
        ),
        ("echo 'E19999: inner error'; exit 255", 255, "it ended with status 255: E19999: inner error", ("E19999",)),
        ("exit 3", 3, "it ended with status 3: -", ()),
        ("kill -KILL $$", -9, "it was killed by SIGKILL, usually for want of memory", ()),
        ("bash -c 'kill -KILL $$'; exit $?", 137, "it was killed by SIGKILL, usually for want of memory", ()),
        ("kill -SEGV $$", -11, "it died of SIGSEGV", ()),
        ("exit 139", 139, "it died of SIGSEGV", ()),
        ("printf 'E10001 \\xff\\n'; exit 1", 1, "it ended with status 1: E10001 \ufffd", ("E10001",)),
    ],
)
def test_every_other_end_is_told_apart(
    body: str, status: int, problem: str, codes: tuple[str, ...], tmp_path: Path, fake_tool: Fake
) -> None:
    run = ended(tmp_path, fake_tool, body)
    assert (run.status, str(run.problem), run.codes) == (status, problem, codes)


def test_a_late_atc_is_ended_with_its_helpers(tmp_path: Path, fake_tool: Fake) -> None:
    start = time.monotonic()
    run = ended(tmp_path, fake_tool, f'echo started; sleep 60 & echo $! > "{tmp_path}/helper"; wait', 0.5)
    assert time.monotonic() - start < 10
    assert str(run.problem) == "it ran longer than 0.5 s and was stopped"
    assert (tmp_path / "atc.log").read_text() == "started\n"
    state = Path(f"/proc/{(tmp_path / 'helper').read_text().strip()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_what_cannot_be_started_is_a_tool_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no-atc` cannot be started: No such file or directory; expected an executable atc; "):
        run_atc([str(tmp_path / "no-atc")], tmp_path / "m.om", tmp_path / "atc.log")
    assert not os.listdir(tmp_path)  # noqa: PTH208 - nothing, not even a log
