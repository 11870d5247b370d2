"""Candidate lines of a log of any size: streamed, bounded in memory, whatever the bytes are."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..errors import UsageError
from ..text import say

CHUNK = 1 << 20
LONGEST = 6000
"""Bytes kept of a line; the rest of a longer one is not read."""
SAME = 40
"""How often lines are read that differ in numbers only."""
SHAPES = 20_000
"""Different lines that are remembered; more than this many are read only where they hold a code or a strong word."""
MOST_LINES = 100_000
"""Lines judged before only strong ones are, and of these as many again: one costs some 40 microseconds."""
MOST_UNPACKED = 4 << 30
"""Bytes read of a packed log."""

# Bytes, because most lines of a log are never decoded. Every pattern of patterns.py needs one of these words.
_HIT = re.compile(
    rb"[EW](?:\d{5}|[A-Z]\d{4})|ERROR|rror|[Ff]ail|Killed|[Kk]illed process|fault|xcept|ATC (?:start|run)|FATAL|ACL_ERR"
    rb"|[Oo]ut of memory|bad_alloc|not found|NumPy|No module|No such file|No space|timed? ?out|Abort|dumped|terminate|denied|unsupported"
    rb"|socVersion|soc_version|No parser|\[FUNC:|Compile op|No support|errorStr|kernel.name|node_name|removed in|TimeoutExp|TIME LIMIT|longer than|initiali|macro must|Alarm|Critical|Warning \||ascend_mbatch|ret(?:urn)?(?: ?code)?\W{1,3}-?(?:0x)?\w|exit(?:ed)? (?:code|status|with)"
    rb"|\xe5\xa4\xb1\xe8\xb4\xa5|\xe9\x94\x99\xe8\xaf\xaf|\xca\xa7\xb0\xdc|\xb4\xed\xce\xf3|vir0\d|vNPU|\batc |npu-smi|SIG[A-Z]{3}|\xe5\xb7\xb2\xe6\x9d\x80|\xe6\xae\xb5\xe9\x94\x99|OFFLINE|Offline|UNKNOWN|oom.|OOMK|free\(\)|double free|returned -|MemoryErr|Unable to alloc"
)
_CODE = re.compile(rb"[EW][0-9A-Z]\d{4}")
_STRONG = re.compile(rb"Killed|fault|bad_alloc|No module|ATC run|FATAL")
_SHAPELESS = b"0123456789abcdef"
_QUIET = (b"[INFO]", b"[DEBUG]", b"[EVENT]", b"[TRACE]")
_OUTCOMES = (b"ATC ", b"atc ", b"ascend_mbatch", b"vNPU", b"vir0", b"ucces")
"""What is read of lines of a low level: how the run went as a whole."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass
class Reading:
    """What was read of one file.

    Attributes:
        binary: bytes that no text holds (NUL and control characters), of all bytes of the first chunk.
    """

    name: str
    size: int = 0
    lines: int = 0
    judged: int = 0
    skipped: int = 0
    binary: float = 0.0
    encoding: str = "utf-8"
    last: str = ""


def decode(raw: bytes) -> str:
    """A line as text without colours and carriage returns: UTF-8, else GB18030 (GBK), else with the odd bytes written out."""
    for encoding in ("utf-8", "gb18030"):
        try:
            text = raw.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        text = raw.decode("utf-8", "backslashreplace")
    return _ESCAPES.sub("", text).replace("\x1b", "").replace("\r", " ").replace("\0", "").strip("\n")


def chunks(path: Path, reading: Reading) -> Iterator[bytes]:
    """The bytes of a file: unpacked if it is gzip, as UTF-8 if it is UTF-16.

    Raises:
        UsageError: it cannot be read, or the packed data are damaged.
    """
    try:
        with path.open("rb") as raw:
            head = raw.read(4)
            raw.seek(0)
            packed = head[:2] == b"\x1f\x8b"
            stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
            wide = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
            decoder = codecs.getincrementaldecoder(wide)("replace") if wide else None
            reading.encoding = wide or "utf-8"
            while chunk := stream.read(CHUNK):
                reading.size += len(chunk)
                yield decoder.decode(chunk).encode("utf-8", "replace") if decoder else chunk
                if packed and reading.size >= MOST_UNPACKED:
                    return
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UsageError(
            say("`{path}` cannot be read: {error}", "无法读取 `{path}`：{error}", path=path, error=reason),
            say("expected the text of a log", "应为日志文本"),
            say("check the path and the permission", "请检查路径和权限"),
        ) from error


def candidates(source: Iterator[bytes], reading: Reading) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that may say something. Of lines that differ in numbers only, the first :data:`SAME` are given."""
    seen: dict[int, int] = {}
    rest = b""
    first = True
    dropping = False  # inside a line of which the beginning was read already
    for chunk in source:
        if first:
            sample = chunk[: 1 << 16]
            odd = len(sample) - len(sample.translate(None, bytes([*range(9), *range(14, 27), *range(28, 32)])))
            reading.binary, first = odd / max(1, len(sample)), False
        if dropping:
            end = chunk.find(b"\n")
            if end < 0:
                continue
            chunk, dropping = chunk[end + 1 :], False
        data = rest + chunk
        end = data.rfind(b"\n")
        if end < 0 and len(data) < CHUNK:
            rest = data
            continue
        if end < 0:
            yield from _hits(data[:LONGEST], reading, seen)
            rest, dropping = b"", True
            continue
        yield from _hits(data[: end + 1], reading, seen)
        rest = data[end + 1 :]
    if rest:
        yield from _hits(rest, reading, seen)


def _hits(data: bytes, reading: Reading, seen: dict[int, int]) -> Iterator[tuple[int, str]]:
    number = reading.lines
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for raw in lines:
        number += 1
        raw = raw[:LONGEST]
        if raw.startswith(_QUIET) and not any(word in raw for word in _OUTCOMES):
            continue
        if _wanted(raw, reading, seen):
            reading.judged += 1
            yield number, decode(raw)
        else:
            reading.skipped += 1
    reading.lines = number
    if tail := data.rstrip().rpartition(b"\n")[2]:
        reading.last = decode(tail[:400])


def _wanted(raw: bytes, reading: Reading, seen: dict[int, int]) -> bool:
    """Whether a line may say something that lines like it did not say often enough."""
    if reading.judged >= 2 * MOST_LINES:
        return False
    code = _CODE.search(raw)
    # Digits and the letters of hexadecimal numbers are left out, so that times and addresses do not make each line a new one.
    key = hash((raw.translate(None, _SHAPELESS), code.group() if code else None))
    count = seen.get(key, 0)
    if count >= SAME:
        return False
    scarce = (count == 0 and len(seen) >= SHAPES) or reading.judged >= MOST_LINES
    if scarce and code is None and _STRONG.search(raw) is None:
        return False
    if count or len(seen) < SHAPES:
        seen[key] = count + 1
    return code is not None or _HIT.search(raw) is not None
