"""Running a job on a live module in a fork of this process: the module is never touched, and a crash, a hang or a flood of memory stays there.

The child is forked, not spawned, because a module need not be picklable and importing torch again costs seconds. It computes with one thread,
since OpenMP's threads do not survive a fork.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ..child import wire
from ..text import Text, say

_LOOK = 0.5
"""Seconds between looks at whether the child still lives."""
Job = Callable[[], tuple[dict[str, Any], Mapping[str, Any]]]
"""Returns what can be said in JSON, and arrays by name."""


@dataclass(frozen=True)
class Limits:
    """What a child may use."""

    seconds: float = 900.0
    memory_mb: int = 0
    """0: four fifths of the machine's memory."""


class Lost(Exception):  # noqa: N818 - turned into a finding or an error by whoever asked
    """The child gave no answer."""

    def __init__(self, reason: Text) -> None:
        self.reason = reason
        super().__init__(str(reason))


def run_apart(job: Job, limits: Limits) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the job in a fork and return its answer. An exception of the job is told by the job itself.

    Raises:
        Lost: it crashed, or went over a limit.
    """
    source, sink = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, which the child does not use
        child = os.fork()
    if child == 0:
        os.close(source)
        _serve(job, sink, limits)
    os.close(sink)
    try:
        data = _received(child, source, limits)
    finally:
        os.close(source)
        # One that has answered is ending already, with a status of its own; what it started itself goes with it.
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return _answer(data, status)


def _received(child: int, source: int, limits: Limits) -> bytearray:
    """All that the child writes until it ends; what it started may hold its end of the pipe open for longer."""
    deadline = time.monotonic() + limits.seconds
    data = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Lost(say("it took longer than {seconds:g} s", "运行超过 {seconds:g} 秒", seconds=limits.seconds))
        if select.select([source], [], [], min(left, _LOOK))[0]:
            piece = os.read(source, 1 << 20)
            if not piece:
                return data
            data += piece
        elif os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return data


def _answer(data: bytearray, status: int) -> tuple[dict[str, Any], dict[str, Any]]:
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        raise Lost(say("it was killed by {signal} (crash, or out of memory)", "被 {signal} 终止（崩溃或内存不足）", signal=name))
    view, place = memoryview(data), 0

    def read(size: int) -> bytes:
        nonlocal place
        place += size
        if place > len(view):
            raise EOFError
        return bytes(view[place - size : place])

    try:
        header, payloads = wire.decode(read)
    except EOFError:
        code = os.waitstatus_to_exitcode(status)
        raise Lost(say("it ended without an answer (status {code})", "没有返回结果就结束了（状态 {code}）", code=code)) from None
    if "broken" in header:
        raise Lost(say("{reason}", "{reason}", reason=header["broken"]))
    arrays = {name: wire.unpack_array(item, raw) for (name, item), raw in zip(header.pop("arrays"), payloads, strict=True)}
    header.pop("payloads", None)
    return header, arrays


def _serve(job: Job, sink: int, limits: Limits) -> NoReturn:
    status = 1
    try:
        _settle(limits)
        try:
            answer, arrays = job()
            packed = [(name, *wire.pack_array(array)) for name, array in arrays.items()]
            message = wire.encode({**answer, "arrays": [(name, item) for name, item, _ in packed]}, [raw for *_, raw in packed])
        except MemoryError:
            message = wire.encode({"broken": "out of memory"}, [])
        except BaseException as error:
            lines = traceback.format_exception_only(error)
            message = wire.encode({"broken": " ".join("".join(lines).split())[:400]}, [])
        for part in message:
            view = memoryview(part)
            while view:
                view = view[os.write(sink, view) :]
        status = 0
    finally:
        os._exit(status)  # neither the parent's exit handlers nor its open files are the child's business


def _settle(limits: Limits) -> None:
    import torch

    os.setpgid(0, 0)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the child
    # What torch and the module print is not for the user; only the answer leaves.
    faulthandler.disable()
    logging.disable(logging.CRITICAL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    sys.stdout = sys.stderr = os.fdopen(os.dup(null), "w", encoding="utf-8")
    limit = limits.memory_mb << 20 or int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 0.8)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
