"""Which Python line a frame, a node or a message belongs to: the innermost one that is not torch's own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType, TracebackType

_OWN = f"{Path(__file__).parent.parent}/"
_TORCH = re.compile(r"/(torch|onnxscript|onnx_ir|functorch|sympy)/|^<|/(contextlib|copy|warnings)\.py$")
_STACK = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_DOC = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): ", re.MULTILINE)
_SAID = re.compile(r"(?P<file>[^\s\"'()]+\.py)(?:\", line |:|\()(?P<line>\d+)")


def is_foreign(file: str) -> bool:
    """Whether a file is the user's or a library's model code, not torch's machinery and not ours."""
    return not file.startswith(_OWN) and not _TORCH.search(file)


def short(file: str, line: int | str) -> str:
    """``file:line``; below the working directory or a package folder the path is relative to it."""
    path = Path(file)
    for part in ("site-packages", "dist-packages"):
        if part in path.parts:
            place = len(path.parts) - 1 - path.parts[::-1].index(part)
            return f"{Path(*path.parts[place + 1 :])}:{line}"
    try:
        return f"{path.relative_to(Path.cwd())}:{line}"
    except (ValueError, OSError):
        return f"{path}:{line}"


def current_line() -> str | None:
    """The line that is being executed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_foreign(frame.f_code.co_filename):
            return short(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def line_of_stack(text: str) -> str | None:
    """Of a stack trace as the dynamo exporter keeps it: the innermost frame is the last."""
    return _last(_STACK.finditer(text))


def line_of_doc(text: str) -> str | None:
    """Of a stack as the TorchScript exporter keeps it: the innermost frame is the first."""
    return _first(_DOC.finditer(text))


def line_of_error(error: BaseException) -> str | None:
    """Where an exception came from, or what its message names."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    for item in reversed(chain):
        found = _of_traceback(item.__traceback__)
        if found:
            return found
    for item in chain:
        found = _last(_STACK.finditer(str(item))) or _first(_SAID.finditer(str(item)))
        if found:
            return found
    return None


def _of_traceback(trace: TracebackType | None) -> str | None:
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_foreign(file):
            found = short(file, trace.tb_lineno)
        trace = trace.tb_next
    return found


def any_line(text: str) -> str | None:
    """Of the stack of a module that is torch's own: the innermost frame there is."""
    stack = [(match["file"], match["line"]) for match in _STACK.finditer(text)][-1:] or [
        (match["file"], match["line"]) for match in _DOC.finditer(text)
    ][:1]
    return short(*stack[0]) if stack and not stack[0][0].startswith(("<", _OWN)) else None


def _last(matches: Iterable[re.Match[str]]) -> str | None:
    found = [short(match["file"], match["line"]) for match in matches if is_foreign(match["file"])]
    return found[-1] if found else None


def _first(matches: Iterable[re.Match[str]]) -> str | None:
    return next((short(match["file"], match["line"]) for match in matches if is_foreign(match["file"])), None)
