"""The real program, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "jumar"]
HEAVY = ("numpy", "onnx", "onnx_ir", "onnxruntime", "ml_dtypes", "rich")


def run(*words: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    settings: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60, "check": False, **options}
    return subprocess.run([*PROGRAM, *map(str, words)], **settings)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\nfrom jumar.cli.main import run\n"
        f"status = run({words!r})\n"
        f"print(status, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert ended.stderr == b"0 []\n"


def test_the_program_ends_with_the_status(save_text: Callable[..., Path]) -> None:
    path = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = HardSwish(x) }", opset=14)
    ended = run("--format", "json", "check", path, "--target", "mdc510pro")
    assert (ended.returncode, ended.stderr, json.loads(ended.stdout)["verdict"]) == (1, b"", "blocked")


def test_help_is_in_the_wanted_language() -> None:
    assert "带证明的改写" in run("--lang", "zh", "--help").stdout.decode()
    assert "带证明的改写" in run("--help", env={**os.environ, "LC_ALL": "zh_CN.UTF-8"}).stdout.decode()


@pytest.mark.parametrize("words", [["--help"], ["targets", "list"], ["targets", "list", "--format", "json"]])
def test_a_reader_that_went_away_is_no_error(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = run(*words, stdout=writing)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_reader_that_went_away_does_not_unblock(save_text: Callable[..., Path], format: str) -> None:
    path = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = HardSwish(x) }", opset=14)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = run("check", path, "--target", "mdc510pro", "--format", format, stdout=writing)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = run("targets", "list", stdout=full)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"jumar: standard output cannot be written: No space left on device; ")
    assert ended.stderr.count(b"\n") == 1


def test_a_closed_stdout_is_no_error() -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *PROGRAM, "targets", "list"], stderr=subprocess.PIPE, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_terminal_without_chinese_gets_numbers() -> None:
    ended = run("--lang", "zh", "explain", "OP101", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith("问题：".encode("ascii", "backslashreplace"))


def test_ctrl_c_ends_with_130_and_leaves_the_output_alone(save_text: Callable[..., Path], tmp_path: Path) -> None:
    """A fake ATC that tells that it runs and then waits; it must not outlive the program."""
    model = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "atc").write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid.new"; mv "{tmp_path}/pid.new" "{tmp_path}/pid"\nexec sleep 60\n')
    (tools / "atc").chmod(0o755)
    process = subprocess.Popen(
        [*PROGRAM, "compile", str(model), "--soc", "Ascend310P3", "-o", str(tmp_path / "out")],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_for(tmp_path / "pid", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["compile.sh"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None, "it ended before it should"
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.02)


def test_nothing_of_a_library_is_heard() -> None:
    code = """
import logging
from jumar.cli import main as program
plain = program.run
def noisy(argv):
    logging.getLogger("onnx_ir").error("Shape inference failed")
    return plain(argv)
program.run = noisy
program.main()
"""
    ended = subprocess.run([sys.executable, "-c", code, "explain", "OP101"], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith(b"What: ")
