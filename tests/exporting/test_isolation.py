"""What happens in the fork stays in the fork."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumar.exporting.isolation import Limits, Lost, run_apart

torch = pytest.importorskip("torch")
LIMITS = Limits(60.0)


def test_the_answer_and_the_arrays_come_back_and_nothing_else() -> None:
    held = {"count": 0}

    def job() -> tuple[dict[str, Any], dict[str, Any]]:
        held["count"] += 1
        sys.stdout.write("not for the user")
        return {"seen": held["count"]}, {"x": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 3), np.int64)}

    answer, arrays = run_apart(job, LIMITS)
    assert answer == {"seen": 1} and held == {"count": 0}
    assert np.array_equal(arrays["x"], np.arange(6.0).reshape(2, 3)) and arrays["empty"].shape == (0, 3)


def test_a_crash_is_told_by_its_signal() -> None:
    with pytest.raises(Lost, match="killed by SIGSEGV"):
        run_apart(lambda: os.kill(os.getpid(), signal.SIGSEGV), LIMITS)  # type: ignore[arg-type, return-value]


def test_a_job_that_hangs_is_ended() -> None:
    with pytest.raises(Lost, match=r"longer than 0.2 s"):
        run_apart(lambda: time.sleep(600), Limits(0.2))  # type: ignore[arg-type, return-value]


def test_what_the_job_started_keeps_nobody_waiting() -> None:
    def job() -> tuple[dict[str, Any], dict[str, Any]]:
        if os.fork() == 0:
            time.sleep(600)  # holds the child's end of the pipe open
        return {"done": True}, {}

    start = time.monotonic()
    assert run_apart(job, LIMITS)[0] == {"done": True}
    assert time.monotonic() - start < LIMITS.seconds


def test_a_job_that_takes_too_much_memory_is_ended() -> None:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    used = int(next(line for line in status.splitlines() if line.startswith("VmSize")).split()[1]) >> 10
    with pytest.raises(Lost, match=r"memory|Alloc"):
        run_apart(lambda: ({}, {"x": np.ones(1 << 28)}), Limits(60.0, used + 512))


def _failing() -> tuple[dict[str, Any], dict[str, Any]]:
    raise ValueError("no such\nnumber")


def test_an_exception_is_told_in_one_line() -> None:
    with pytest.raises(Lost, match=r"^ValueError: no such number$"):
        run_apart(_failing, LIMITS)


def test_computing_in_threads_before_does_not_hang_the_fork() -> None:
    torch.mm(torch.ones(512, 512), torch.ones(512, 512))
    answer, _ = run_apart(lambda: ({"sum": float(torch.mm(torch.ones(512, 512), torch.ones(512, 512)).sum())}, {}), LIMITS)
    assert answer["sum"] == 512.0**3
