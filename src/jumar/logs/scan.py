"""Clues of a log: which lines say that something failed, how much each explains, and which explains most."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..text import Text
from .codes import STRING_CODE, Code, find_code, status_code
from .lines import Reading, candidates, chunks
from .patterns import SIGNALS, Groups, Pattern, match_pattern

BINARY = 0.05
"""Control characters, of all bytes, above which a file is no text."""
MOST_CLUES = 2000
WEAK = 4
"""Clues up to this tier repeat that something failed."""

_LEVEL = re.compile(
    r"\[(ERROR|WARNING|WARN|INFO|DEBUG|EVENT|TRACE)\]\s{0,4}(?:(?P<module>[A-Z_]{2,20})\((?P<pid>\d{1,10}),(?P<process>[^)]{1,60})\))?"
)
_PID = re.compile(r"\[?\bPID: ?(?P<pid>\d{1,10})|\(pid=(?P<pid2>\d{1,10})\)")
_TIME = re.compile(r"\b(20\d\d-\d\d-\d\d[-T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9}(?:\.\d{1,3})?)?)")
_NUMBER = re.compile(
    r"(?i:error(?:no| ?code)?|err|ret(?:urn)?(?:_?(?:code|value))?|result|code|status|fail(?:ed|ure)?|错误码|返回值?|返回码)"
    r"[^0-9A-Za-z\n]{0,4}(?i:is|was|为|是)?[^0-9A-Za-z\n]{0,4}(?P<number>\b0[xX][0-9a-fA-F]{4,8}\b|\b\d{6,10}\b)(?![.\d])"
)
_NAME = re.compile(r"\bACL(?:NN)?_ERR(?:OR)?_[A-Z0-9_]{3,60}\b")
_EXCEPTION = re.compile(r"^\W{0,3}(?P<kind>(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Interrupt)): (?P<text>.{0,400})")
_PREFIX = re.compile(r"^.{0,80}?\]\s+(?=\w{1,60}(?:\.\w{1,60}){0,6}(?:Error|Exception):)")  # what a logger writes before it
_FAILED = re.compile(r"ATC run failed|\[ERROR\]|\bERROR\b|(?i:\bfail(?:ed|ure)?\b)|(?i:\berror:)|\[FUNC:|失败|错误")
_HARMLESS = re.compile(r"(?i:\b(?:0|no|without|zero) (?:\w+ )?(?:fail|error)\w*|\b(?:fail|error)\w*\s{0,3}[:=]\s{0,3}0(?![x.\d]))")
_SUCCESS = re.compile(r"ATC run success|(?i:successfully converted)")
_DEADLY = ("SIGSEGV", "SIGKILL", "SIGABRT", "SIGBUS", "SIGTERM", "SIGILL", "SIGFPE")
_KERNEL = re.compile(r"^(?:te_)?(?P<op>[A-Za-z]\w*?)_[0-9a-f]{16,}")
_STARTED = re.compile(r"ATC start working now")
_VNPU = re.compile(r"\bvNPU\b|\bvir\d\d\b")
_COMMAND = re.compile(r"(?:^|[\s/$+])(?P<command>(?:atc|atc\.bin) +--\w.{0,4000})")
_NODE = (
    re.compile(
        r"(?i:op|node)(?: ?name)? ?[\[:=]{1,2} ?\[?(?P<node>[^\],\s\[]{1,300})\]?,? ?\(?(?i:op ?)?type:? ?\[?(?P<type>[\w:.]{1,200})"
    ),
    re.compile(r"\[(?P<node>[^\[\],]{1,300}), ?op ?type ?\[(?P<type>[^\]]{1,200})\]"),
    re.compile(r"\b(?i:op|node)_?name ?[=:] ?\[?(?P<node>[^\],\s]{1,300})"),
)
_OWN_NODE = re.compile(r"^(?:-1_\d+_)?(?P<name>.+?)(?:_ascend_mbatch_batch_\d+)?$")


@dataclass(frozen=True)
class Clue:
    """One line that says that something failed.

    Attributes:
        tier: how much it explains (9: the cause itself; up to :data:`WEAK`: only that something failed).
        kind: of trouble; see :class:`~jumar.logs.codes.Code`.
        also: another code on the same line (a return code beside a message).
        node, op, opset: as the line names them; ``op`` is ``domain::Type`` for operators of other domains.
        count: how many such lines there were.
    """

    tier: int
    kind: str
    file: str
    line: int
    text: str
    code: Code | None = None
    also: Code | None = None
    pattern: str | None = None
    groups: Groups = field(default_factory=dict)
    what: Text | None = None
    remedy: Text | None = None
    node: str | None = None
    op: str | None = None
    opset: int | None = None
    pid: str | None = None
    time: str | None = None
    count: int = 1


@dataclass
class Log:
    """What was read of a log or a folder of logs.

    Attributes:
        clues: in the order of the lines, each kind of line once (with its count).
        succeeded: a line says that ATC succeeded, and no failure came after it.
        hidden_gear: a line names the input that sets the gear (``ascend_mbatch_shape_data``).
        skipped: files that hold no text.
    """

    clues: list[Clue] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    started: bool = False
    ended: bool = False
    succeeded: bool = False
    hidden_gear: bool = False
    virtual_device: bool = False
    command: str | None = None
    exception: Clue | None = None
    warned: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Clue | None:
        """The clue that explains most; of several the earliest."""
        return min(self.clues, key=lambda clue: (-clue.tier, *self._place(clue)), default=None)

    def _place(self, clue: Clue) -> tuple[str, int, int]:
        """Time where all clues have one (files of one run overlap), else the order of files and lines."""
        files = [reading.name for reading in self.readings]
        timed = len(files) > 1 and all(item.time for item in self.clues)
        return (clue.time or "" if timed else "", files.index(clue.file) if clue.file in files else 0, clue.line)

    def ordered(self) -> list[Clue]:
        """The clues, best first."""
        return sorted(self.clues, key=lambda clue: (-clue.tier, *self._place(clue)))


def read_text(text: str, name: str = "log") -> Log:
    """The clues of a text in memory."""
    log = Log()
    _scan([text.encode("utf-8", "backslashreplace")], name, log)
    return log


def read_log(paths: Iterable[tuple[str, Path]]) -> Log:
    """The clues of some files, streamed; a file that is no text is named in ``skipped``.

    Args:
        paths: the name to show, and the file.

    Raises:
        UsageError: a file cannot be read.
    """
    log = Log()
    for name, path in paths:
        reading = Reading(name)
        _scan(chunks(path, reading), name, log, reading)
        if (
            reading.binary > BINARY
            and reading.encoding == "utf-8"
            and not any(clue.file == name and clue.tier > WEAK for clue in log.clues)
        ):
            log.skipped.append(name)
            log.clues = [clue for clue in log.clues if clue.file != name]
            log.readings.remove(reading)
    return log


def _scan(source: Iterable[bytes], name: str, log: Log, reading: Reading | None = None) -> None:
    reading = reading or Reading(name)
    log.readings.append(reading)
    keys: dict[tuple[object, ...], int] = {}
    header: Code | None = None
    for number, text in candidates(iter(source), reading):
        level = _LEVEL.search(text[:300])
        _outcome(text, log)
        if level is not None and level.group(1) in ("INFO", "DEBUG", "EVENT", "TRACE"):
            continue
        clue = _clue(text, name, number, header)
        if clue is None:
            continue
        if level is not None and level.group(1).startswith("WARN"):
            if clue.pattern == "kernel-refuses" and clue.op and len(log.warned) < 100:
                log.warned.setdefault(clue.op, clue.text)  # why an engine was not chosen; it counts only if none was
            continue
        if clue.code is not None and STRING_CODE.match(clue.text.lstrip()):
            header = clue.code
        if clue.pattern == "exception" and log.exception is None:
            log.exception = clue
        log.succeeded = False
        _keep(clue, keys, log)


def _outcome(text: str, log: Log) -> None:
    """What a line says of the run as a whole, at whatever level it is logged."""
    if _STARTED.search(text):
        log.started = True
    if _SUCCESS.search(text):
        log.succeeded = log.ended = True
    elif "ATC run failed" in text:
        log.ended = True
    log.hidden_gear = log.hidden_gear or "ascend_mbatch_shape_data" in text
    log.virtual_device = log.virtual_device or _VNPU.search(text) is not None
    if log.command is None and (found := _COMMAND.search(text)):
        log.command = found["command"]


def _keep(clue: Clue, keys: dict[tuple[object, ...], int], log: Log) -> None:
    """Each kind of line once: the same code or pattern at the same node is counted, and weak lines are kept up to a few."""
    code = clue.code.code if clue.code else None
    key = (clue.pattern, code, clue.node, clue.op, clue.what.render() if clue.what else None, clue.tier <= WEAK or clue.text[:80])
    if key in keys:
        place = keys[key]
        log.clues[place] = replace(log.clues[place], count=log.clues[place].count + 1)
    elif len(log.clues) < MOST_CLUES:
        keys[key] = len(log.clues)
        log.clues.append(clue)


def _clue(text: str, name: str, number: int, header: Code | None) -> Clue | None:
    code, also = _codes(text)
    found = match_pattern(text)
    pid = next((group for match in (_LEVEL.search(text[:300]), _PID.search(text)) if match for group in _pids(match)), None)
    time = _TIME.search(text[:300])
    common = {"file": name, "line": number, "text": text.strip()[:1000], "pid": pid, "time": time.group(1) if time else None}
    if found is not None:
        pattern, groups = found
        return _from_pattern(pattern, groups, code, also, header, text, common)
    own = _EXCEPTION.search(_PREFIX.sub("", text)) if code is None or code.inner else None
    if own is not None:
        return Clue(5, "unknown", code=code, pattern="exception", groups=dict(own.groupdict()), **common)  # type: ignore[arg-type]
    if code is not None and code.kind != "warning":
        tier, kind = _tier(code, also)
        node, op, opset = _operator(text)
        return Clue(tier, kind, code=code, also=also, node=node, op=op, opset=opset, **common)  # type: ignore[arg-type]
    if _FAILED.search(text) and not _HARMLESS.search(text):
        tier = 1 if "ATC run failed" in text or _repeats(text) else 3
        node, op, opset = _operator(text)
        return Clue(tier, "unknown", node=node, op=op, opset=opset, **common)  # type: ignore[arg-type]
    return None


def _repeats(text: str) -> bool:
    """A line of a call chain, which repeats what a line before it said."""
    return (
        re.search(r"ret[:=]? ?(?:4294967295|-1|1343\d{6})\b|Inner Error!|TraceBack \(most recent|^\W*(?:Solution|Possible Cause)\b", text)
        is not None
    )


def _pids(match: re.Match[str]) -> list[str]:
    return [value for key, value in match.groupdict().items() if key.startswith("pid") and value]


def _from_pattern(
    pattern: Pattern, groups: Groups, code: Code | None, also: Code | None, header: Code | None, text: str, common: dict[str, object]
) -> Clue | None:
    name = pattern.name
    if name == "exit-status":
        code = status_code(int(groups["status"]))
        if code is None or code.name not in _DEADLY:  # an exit status that no signal made says nothing
            return Clue(1, "unknown", **common) if groups["status"].strip("-") not in ("0", "00") and _FAILED.search(text) else None  # type: ignore[arg-type]
    elif name in SIGNALS:
        code = find_code(SIGNALS[name])
    elif code is None and pattern.kind == "operator" and header is not None and header.kind == "operator":
        code = header  # further operators stand below the line with the code
    what = pattern.what(groups) if pattern.what else None
    remedy = pattern.remedy(groups) if pattern.remedy else None
    node, op, opset = _operator_of(_first(groups, "node"), _first(groups, "type"))
    if op is None and (kernel := _KERNEL.match(groups.get("kernel", ""))):
        op = kernel["op"]
    return Clue(
        pattern.tier,
        pattern.kind,
        code=code,
        also=also,
        pattern=name,
        groups=groups,
        what=what,
        remedy=remedy,
        node=node,
        op=op,
        opset=opset,
        **common,  # type: ignore[arg-type]
    )


def _first(groups: Groups, name: str) -> str | None:
    """The first of ``name``, ``name2``, ... that took part (one group name cannot stand in two alternatives)."""
    return next((value for key, value in groups.items() if value and key.rstrip("23") == name), None)


def _codes(text: str) -> tuple[Code | None, Code | None]:
    """The code a line is about, and a return code beside it."""
    string = None
    for match in STRING_CODE.finditer(text):
        after = text[match.end() : match.end() + 12]
        before = text[max(0, match.start() - 1) : match.start()]
        if re.match(r"\s?[:：\[)\]]", after) or before in ("(", "["):
            string = find_code(match.group())
            break
    number = None
    match_number = _NUMBER.search(text) or _NAME.search(text)
    if match_number is not None:
        word = match_number.groupdict().get("number") or match_number.group()
        number = find_code(word)
        if number is not None and number.kind == "unknown" and string is not None:
            number = None
    if string is None:
        return number, None
    return string, number


def _tier(code: Code, also: Code | None) -> tuple[int, str]:
    """How much a code explains; a call that only passes on a return code of the device is worth that return code."""
    if also is not None and code.kind in ("call", "inner") and also.kind not in ("call", "inner", "unknown"):
        return 6, also.kind
    if code.inner:
        return 2, code.kind
    if not code.known:
        return 4, code.kind
    if code.code.isdigit():
        return (7 if code.specific else 6), code.kind
    return (8 if code.specific else 6), code.kind


def _operator(text: str) -> tuple[str | None, str | None, int | None]:
    for regex in _NODE:
        if match := regex.search(text):
            return _operator_of(match["node"], match.groupdict().get("type"))
    return None, None, None


def _operator_of(node: str | None, kind: str | None) -> tuple[str | None, str | None, int | None]:
    """Node, operator and opset: ``ai.onnx::22::Conv`` is Conv at opset 22; what ATC adds to names of nodes is taken off."""
    opset = None
    if kind is not None and "::" in kind:
        domain, _, rest = kind.partition("::")
        version, _, op = rest.partition("::")
        opset = int(version) if version.isascii() and version.isdigit() and len(version) < 6 else None
        kind = (op or version) if domain in ("", "ai.onnx") else f"{domain}::{op or version}"
    if node is not None and (match := _OWN_NODE.match(node.strip())):
        node = match["name"]
    return node, kind or None, opset
