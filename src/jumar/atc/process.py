"""Run a compiler that may hang, crash or take all memory: a time limit, a memory limit, and a look at what the kernel did to it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from ..errors import OutputError, ToolError
from ..text import say

_PAGE = os.sysconf("SC_PAGE_SIZE")
_FIRST_WAIT, _LONGEST_WAIT = 0.02, 1.0  # seconds between looks: short runs are not made longer


@dataclass(frozen=True)
class Sample:
    """What a running program has taken so far."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Attributes:
        status: its exit status, negative for a signal.
        stopped: why it was killed from here, or None.
        out_of_memory: whether the kernel's memory killer struck on this machine (or in this container) meanwhile.
        peak_bytes: most memory seen in use by it and its helpers together.
    """

    seconds: float
    status: int
    stopped: Literal["late", "memory"] | None
    out_of_memory: bool
    peak_bytes: int


def run_watched(
    argv: Sequence[str],
    log: Path,
    timeout: float,
    *,
    environment: Mapping[str, str] | None = None,
    memory_limit: int | None = None,
    watch: Callable[[Sample], None] | None = None,
    folder: Path | None = None,
) -> Ended:
    """Run a program in a scratch directory (or in ``folder``), with all it prints in ``log``. It and its helpers end with it.

    Raises:
        ToolError: it cannot be started.
        OutputError: the log cannot be written.
    """
    start, kills = time.perf_counter(), _memory_kills()
    with tempfile.TemporaryDirectory(prefix="jumar-atc-") as work:
        held = log.with_name(f".{log.name}.running")  # a log of an earlier run stays until this one has ended
        try:
            with _opened(held) as stream:
                process = _started(argv, str(folder or work), stream.fileno(), environment)
                try:
                    stopped, peak = _wait(process, start, timeout, memory_limit, watch)
                finally:  # Ctrl-C does not reach a session of its own, and helpers may outlive the program
                    _kill(process)
            held.replace(log)
        finally:
            held.unlink(missing_ok=True)
    return Ended(time.perf_counter() - start, process.returncode, stopped, _memory_kills() > kills, peak)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise OutputError(
            say("`{path}` cannot be written: {error}", "无法写入 `{path}`：{error}", path=path, error=error.strerror),
            say("expected a writable place", "应为可写的位置"),
            say("choose another -o", "请更换 -o"),
        ) from error


def _started(argv: Sequence[str], work: str, stream: int, environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    try:
        # A session of its own, so that the compiler's helpers end with it.
        return subprocess.Popen(
            argv,
            cwd=work,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolError(
            say(
                "`{program}` cannot be started: {error}",
                "无法启动 `{program}`：{error}",
                program=argv[0],
                error=getattr(error, "strerror", None) or str(error),
            ),
            say("expected an executable atc", "应为可执行的 atc"),
            say("check the CANN installation", "请检查 CANN 安装"),
        ) from error


def _wait(
    process: subprocess.Popen[bytes], start: float, timeout: float, memory_limit: int | None, watch: Callable[[Sample], None] | None
) -> tuple[Literal["late", "memory"] | None, int]:
    peak, pause = 0, _FIRST_WAIT
    while True:
        left = timeout - (time.perf_counter() - start)
        try:
            process.wait(max(0.0, min(pause, left)))
        except subprocess.TimeoutExpired:
            pause = min(_LONGEST_WAIT, pause * 1.5)
        else:
            return None, peak
        held = session_bytes(process.pid)
        peak = max(peak, held)
        if memory_limit is not None and held > memory_limit:
            return "memory", peak
        if time.perf_counter() - start >= timeout:
            return "late", peak
        if watch is not None:
            watch(Sample(time.perf_counter() - start, peak))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program and all its helpers, and wait until they are gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.perf_counter() + 5.0
    while any(state != "Z" for state, _ in _session(process.pid)) and time.perf_counter() < deadline:
        time.sleep(_FIRST_WAIT)


def session_bytes(session: int) -> int:
    """Resident memory of all processes of a session; shared pages count for each. 0 where the system does not tell."""
    return sum(held for _, held in _session(session))


def _session(session: int) -> Iterator[tuple[str, int]]:
    """State and resident bytes of each process of a session."""
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):  # noqa: PTH208 - an iterator left open would be reported
            if not entry.isdecimal():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                # Fields after the name, which is in parentheses and may hold anything: state ppid pgrp session ... rss is the 22nd.
                fields = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if int(fields[3]) == session:
                    yield fields[0], int(fields[21]) * _PAGE


def _memory_kills() -> int:
    """How often the kernel has killed for want of memory: on the whole machine, and in this control group."""
    count = 0
    for path, word in (("/proc/vmstat", "oom_kill"), ("/sys/fs/cgroup/memory.events", "oom_kill")):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(path).read_text(encoding="ascii").splitlines():
                name, _, number = line.partition(" ")
                if name == word:
                    count += int(number)
    return count
