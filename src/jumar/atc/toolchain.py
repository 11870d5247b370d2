"""Finding and running the real ``atc``."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from ..graph import write_atomic
from ..text import Text, say

_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME")
_DEFAULT_HOME = "/usr/local/Ascend/ascend-toolkit/latest"
_INSIDE = ("bin/atc", "compiler/bin/atc", "atc/bin/atc")
_ERROR_CODE = re.compile(r"\bE[A-Z0-9]?\d{4,5}\b")
DEFAULT_TIMEOUT = 3600.0
"""Seconds ATC may take."""
LONGEST_TIMEOUT = 2e6
"""Operating systems count waits in 31 bits of milliseconds."""


def searched_places() -> list[str]:
    """Where :func:`find_atc` looks, in words."""
    homes = [f"${name}={os.environ[name]}" for name in _VARIABLES if os.environ.get(name)]
    return ["PATH", *homes, _DEFAULT_HOME]


def find_atc() -> Path | None:
    """The ``atc`` program: on PATH, under ASCEND_HOME_PATH / ASCEND_TOOLKIT_HOME / ASCEND_HOME, or in the default place."""
    found = shutil.which("atc")
    if found:
        return Path(found).absolute()  # PATH may hold relative folders, and ATC is run in another directory
    for home in [*(os.environ.get(name) for name in _VARIABLES), _DEFAULT_HOME]:
        for inside in _INSIDE:
            candidate = Path(home or "") / inside
            if home and candidate.is_file() and os.access(candidate, os.X_OK):
                return candidate
    return None


@dataclass(frozen=True)
class AtcRun:
    """How a run of ATC ended. ``problem`` is None when it made the file."""

    seconds: float
    status: int
    codes: tuple[str, ...]
    problem: Text | None


def run_atc(argv: Sequence[str], output: Path, log: Path, timeout: float = DEFAULT_TIMEOUT) -> AtcRun:
    """Run ATC in a scratch directory, keep its log, and judge how it ended.

    Raises:
        ToolError: the program cannot be started.
    """
    start = time.perf_counter()
    late = False
    with tempfile.TemporaryDirectory(prefix="jumar-atc-") as work:
        try:
            # A session of its own, so that the compiler's helpers end with it.
            process = subprocess.Popen(
                argv, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise ToolError(
                say("`{program}` cannot be started: {error}", "无法启动 `{program}`：{error}", program=argv[0], error=error.strerror),
                say("expected an executable atc", "应为可执行的 atc"),
                say("check the CANN installation", "请检查 CANN 安装"),
            ) from error
        try:
            text, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            late = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
        except BaseException:  # Ctrl-C does not reach a session of its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    words = text.decode("utf-8", "replace")
    write_atomic(log, words)
    codes = tuple(dict.fromkeys(_ERROR_CODE.findall(words)))
    problem = _problem(process.returncode, late, timeout, words, output)
    return AtcRun(time.perf_counter() - start, process.returncode, codes, problem)


def _problem(status: int, late: bool, timeout: float, words: str, output: Path) -> Text | None:
    if late:
        return say("it ran longer than {seconds} s and was stopped", "运行超过 {seconds} 秒，已终止", seconds=f"{timeout:g}")
    if status == -signal.SIGKILL or status == 128 + signal.SIGKILL:
        return say("it was killed by SIGKILL, usually for want of memory", "被 SIGKILL 终止，通常是内存不足")
    # A shell reports a signal as 128 + its number; other high statuses (255: exit(-1)) are ATC's own.
    number = -status if status < 0 else status - 128
    if number in [int(item) for item in signal.Signals]:
        return say("it died of {name}", "因 {name} 异常退出", name=signal.Signals(number).name)
    line = next((line.strip() for line in words.splitlines() if _ERROR_CODE.search(line)), "")
    if status != 0:
        return say("it ended with status {status}: {line}", "以状态 {status} 结束：{line}", status=status, line=line[:200] or "-")
    if not output.is_file():
        return say("it reported success but `{name}` is not there", "报告成功但没有生成 `{name}`", name=output.name)
    return None
