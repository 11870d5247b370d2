"""Finding the real ``atc`` (and ``aoe``), and judging how a run of it ended."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..graph import write_atomic
from ..text import Text, say
from .process import Ended, Sample, run_watched

_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME")
_DEFAULT_HOME = "/usr/local/Ascend/ascend-toolkit/latest"
_OTHER_HOMES = ("/usr/local/Ascend/cann", "~/Ascend/ascend-toolkit/latest", "~/Ascend/cann")
_INSIDE: Mapping[str, tuple[str, ...]] = {
    "atc": ("bin/atc", "compiler/bin/atc", "atc/bin/atc"),
    "aoe": ("bin/aoe", "tools/aoe/bin/aoe"),
}
_SET_ENV = ("set_env.sh", "../set_env.sh", "bin/setenv.bash")
_ERROR_CODE = re.compile(r"\bE[A-Z0-9]?\d{4,5}\b")
DEFAULT_TIMEOUT = 3600.0
"""Seconds ATC may take."""
LONGEST_TIMEOUT = 2e6
"""Operating systems count waits in 31 bits of milliseconds."""
_READ_BYTES = 8 << 20
"""Of a log that is looked at: its beginning and its end. A verbose one may hold gigabytes."""


def homes() -> list[tuple[str, Path]]:
    """Folders that may hold a CANN, and how each is named in messages."""
    found = [(f"${name}={os.environ[name]}", Path(os.environ[name])) for name in _VARIABLES if os.environ.get(name)]
    found.append((_DEFAULT_HOME, Path(_DEFAULT_HOME)))
    # Other usual places are looked at only beside the first one, which tests and containers move.
    if _DEFAULT_HOME.startswith("/usr/local/"):
        found += [(home, Path(home).expanduser()) for home in _OTHER_HOMES]
    return found


def searched_places() -> list[str]:
    """Where :func:`find_atc` looks, in words."""
    return ["PATH", *(name for name, _ in homes())]


def find_tool(name: str) -> Path | None:
    """A program of CANN: on PATH, under ASCEND_HOME_PATH / ASCEND_TOOLKIT_HOME / ASCEND_HOME, or in the usual places."""
    found = shutil.which(name)
    if found:
        return Path(found).absolute()  # PATH may hold relative folders, and ATC is run in another directory
    for _, home in homes():
        for inside in _INSIDE[name]:
            candidate = home / inside
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return candidate
    return None


def find_atc() -> Path | None:
    """The ``atc`` program, see :func:`find_tool`."""
    return find_tool("atc")


def find_set_env() -> Path | None:
    """The script that sets CANN's environment, or None."""
    for _, home in homes():
        for inside in _SET_ENV:
            candidate = home / inside
            if candidate.is_file():
                return candidate.resolve()
    return None


def tool_environment(program: Path) -> dict[str, str]:
    """The environment to run ``program`` in: this one, or, where it is not on PATH, what CANN's set_env.sh makes of it."""
    environment = dict(os.environ)
    script = find_set_env()
    if shutil.which(program.name) or script is None:
        return environment
    command = ["bash", "-c", 'source "$1" >/dev/null 2>&1; exec env -0', "bash", str(script)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return environment
    words = (item.partition("=") for item in os.fsdecode(done.stdout).split("\0") if "=" in item)
    return {**environment, **{name: value for name, _, value in words}}


def verbose_variables(folder: Path) -> dict[str, str]:
    """Environment variables that make CANN write all of its log: level debug, its files below ``folder``."""
    return {
        "ASCEND_GLOBAL_LOG_LEVEL": "0",
        "ASCEND_GLOBAL_EVENT_ENABLE": "1",
        "ASCEND_SLOG_PRINT_TO_STDOUT": "0",
        "ASCEND_PROCESS_LOG_PATH": str(folder),
    }


@dataclass(frozen=True)
class AtcRun:
    """How a run of ATC ended.

    Attributes:
        problem: None when it made the file.
        words: the log's beginning and end.
        stopped: whether it was ended from here, for time or memory.
    """

    seconds: float
    status: int
    codes: tuple[str, ...]
    problem: Text | None
    peak_bytes: int = 0
    words: str = ""
    stopped: bool = False


def run_atc(
    argv: Sequence[str],
    output: Path | None,
    log: Path,
    timeout: float = DEFAULT_TIMEOUT,
    *,
    environment: Mapping[str, str] | None = None,
    memory_limit: int | None = None,
    watch: Callable[[Sample], None] | None = None,
) -> AtcRun:
    """Run ATC in a scratch directory, keep its log, and judge how it ended.

    Args:
        output: the file it must make; None where none is wanted of it.
        memory_limit: bytes that it and its helpers may hold together.
        watch: called about once a second with the time and memory taken.

    Raises:
        ToolError: the program cannot be started.
    """
    ended = run_watched(argv, log, timeout, environment=environment, memory_limit=memory_limit, watch=watch)
    words = _log_words(log)
    codes = tuple(dict.fromkeys(_ERROR_CODE.findall(words)))
    problem = _problem(ended, timeout, memory_limit, words, output)
    return AtcRun(ended.seconds, ended.status, codes, problem, ended.peak_bytes, words, ended.stopped is not None)


def _log_words(log: Path) -> str:
    """The log as text, without the middle of one that is very long. Bytes that are no text are replaced, in the file too."""
    size = log.stat().st_size
    with log.open("rb") as file:
        raw = file.read(_READ_BYTES)
        if size > 2 * _READ_BYTES:
            file.seek(size - _READ_BYTES)
            return (raw + b"\n" + file.read()).decode("utf-8", "replace")
        raw += file.read()
    words = raw.decode("utf-8", "replace")
    if words.encode() != raw:
        write_atomic(log, words)
    return words


def _problem(ended: Ended, timeout: float, memory_limit: int | None, words: str, output: Path | None) -> Text | None:
    if ended.stopped == "late":
        return say("it ran longer than {seconds} s and was stopped", "运行超过 {seconds} 秒，已终止", seconds=f"{timeout:g}")
    peak = f"{ended.peak_bytes / (1 << 30):.1f}"
    if ended.stopped == "memory":
        limit = f"{(memory_limit or 0) / (1 << 30):.1f}"
        return say(
            "it took {peak} GB, more than the {limit} GB allowed, and was stopped",
            "占用 {peak} GB，超过上限 {limit} GB，已终止",
            peak=peak,
            limit=limit,
        )
    killed = ended.status in (-signal.SIGKILL, 128 + signal.SIGKILL)
    if ended.out_of_memory and ended.status != 0:
        return say(
            "the kernel killed it or one of its helpers for want of memory; it held {peak} GB at most",
            "内核因内存不足终止了它或其子进程；其最大占用为 {peak} GB",
            peak=peak,
        )
    if killed:
        return say("it was killed by SIGKILL, usually for want of memory", "被 SIGKILL 终止，通常是内存不足")
    # A shell reports a signal as 128 + its number; other high statuses (255: exit(-1)) are ATC's own.
    number = -ended.status if ended.status < 0 else ended.status - 128
    if number in [int(item) for item in signal.Signals]:
        return say("it died of {name}", "因 {name} 异常退出", name=signal.Signals(number).name)
    line = next((line.strip() for line in words.splitlines() if _ERROR_CODE.search(line)), "")
    if ended.status != 0:
        return say("it ended with status {status}: {line}", "以状态 {status} 结束：{line}", status=ended.status, line=line[:200] or "-")
    if output is not None and not output.is_file():
        return say("it reported success but `{name}` is not there", "报告成功但没有生成 `{name}`", name=output.name)
    return None
