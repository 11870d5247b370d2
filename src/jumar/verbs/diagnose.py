"""``jumar diagnose``: what a log of ATC, the runtime or the driver says, or what one code means."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..case import Finding, Record
from ..errors import UsageError
from ..logs.codes import find_code
from ..targets import Target
from ..text import Text, say
from .diagnose_code import code_data, code_record
from .diagnose_steps import model_findings, triage, with_repair

if TYPE_CHECKING:
    from ..logs.report import Named
    from ..logs.scan import Log
    from .common import ModelLike

MOST_FILES = 2000
"""Files of a folder that are read."""
_LOG_NAMES = (".log", ".txt", ".out", ".err", ".gz", ".json", ".stdout", ".stderr", "")


def diagnose(
    source: str | Path,
    *,
    model: ModelLike | None = None,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    status: int | None = None,
) -> Record:
    """Find the line of a log that says why something failed, and what to do; or look one code up.

    Args:
        source: a log, a folder of logs, ``-`` for standard input; or a code: ``E19010``, ``507011``, ``0x7BC80``, the name of an ACL constant,
            an exit status such as ``139``. A file or folder of that name comes first.
        model: the model that was compiled; the findings of ``check`` on the operators named in the log are added.
        soc: exact soc_version, or ``target``: for what the support list says; taken from the log's own command if left out.
        status: exit status of the process that wrote the log (139, 137, or minus the number of a signal), for ends without a word.

    Returns:
        A record. ``findings``: the root cause first, as LG801 to LG814. ``data``: ``root`` (file, line, text, code, operator), ``codes``,
        ``triage`` (the five steps), ``others`` (further lines), ``read`` (files, lines, bytes). For a code alone: ``data["codes"]``.

    Raises:
        UsageError: neither a file nor a code, empty, unreadable, or no text.
        ModelError, TargetError: see :func:`jumar.check`.
    """
    place = os.fspath(source)
    exists = place == "-" or _exists(place)
    code = None if exists else find_code(place)
    if code is not None:
        if model is not None:
            raise UsageError(
                say("a model does not bear on a code alone", "单独的代码与模型无关"),
                say("expected a log beside --model", "--model 应与日志一起使用"),
                say("leave --model out, or give the log", "去掉 --model，或给出日志"),
            )
        return code_record(code)
    if not exists:
        raise UsageError(
            say("`{source}` does not exist and is no error code", "`{source}` 不存在，也不是错误码", source=place[:200]),
            say("expected a log, a folder of logs, or a code such as E19010 or 507011", "应为日志、日志目录，或 E19010、507011 这样的代码"),
            say("check the path", "请检查路径"),
        )
    if status is not None and not -64 <= status <= 255:
        raise UsageError(
            say("--status {status} makes no sense", "--status {status} 没有意义", status=status),
            say("expected an exit status from 0 to 255, or minus the number of a signal", "应为 0 到 255 的退出状态，或信号编号的相反数"),
            say("correct --status", "请修正 --status"),
        )
    return _log_record(place, model, soc, target, cann, status)


def _exists(place: str) -> bool:
    try:
        return Path(place).exists()
    except (OSError, ValueError):  # too long, or a NUL in it
        return False


def _log_record(
    place: str, model: ModelLike | None, soc: str | None, target: str | Target | None, cann: str | None, status: int | None
) -> Record:
    from ..logs.report import log_findings

    log = _read(place, status)
    found, stated = _target(soc, target, cann, log)
    named = log_findings(log, found, status)
    findings = [item.finding for item in named]
    record = Record(verb="diagnose", target=None if found is None else found.to_dict())
    repairs: list[Finding] = []
    if model is not None:
        record, repairs = model_findings(record, named, model, found)
        findings = [with_repair(item, repairs) for item in named]
    notes = [*triage(named, model is not None, repairs), *_reading_notes(log), *([stated] if stated else [])]
    if not findings:
        notes.insert(0, _no_failure(log))
    data = _data(log, named, [note for note in notes[:5] if named])
    return replace(record, findings=(*findings, *repairs), notes=tuple(notes), data=data)


def _read(place: str, status: int | None) -> Log:
    """The clues of a log, a folder or standard input.

    Raises:
        UsageError: nothing in it can be read as text.
    """
    from ..logs.scan import read_log

    if place == "-":
        log = _read_stdin()
    else:
        path = Path(place)
        log = read_log(_files(path)) if path.is_dir() else read_log([(path.name, path)])
    if not log.readings:
        raise UsageError(
            say("`{place}` holds no text", "`{place}` 不包含文本", place=place),
            say("expected a log of ATC, the runtime or npu-smi", "应为 ATC、Runtime 或 npu-smi 的日志"),
            say("for an .om or .onnx file use `jumar inspect`", "查看 .om 或 .onnx 文件请用 `jumar inspect`"),
        )
    if all(reading.size == 0 for reading in log.readings) and status in (None, 0):
        raise UsageError(
            say("`{place}` is empty", "`{place}` 是空的", place=place),
            say("expected the text of a log", "应为日志文本"),
            say(
                "if the program ended without a word, give its exit status with --status",
                "如果程序没有输出就结束，请用 --status 给出其退出状态",
            ),
        )
    return log


def _read_stdin() -> Log:
    import shutil
    import tempfile

    from ..logs.scan import read_log

    with tempfile.NamedTemporaryFile(prefix="jumar-log-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        return read_log([("stdin", Path(copy.name))])


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder that may be logs, by name; links are not followed.

    Raises:
        UsageError: there is none.
    """
    count = 0
    for path in _walk(folder):
        if count >= MOST_FILES:
            return
        count += 1
        yield str(path.relative_to(folder)), path
    if not count:
        raise UsageError(
            say("the folder `{folder}` holds no log", "目录 `{folder}` 中没有日志", folder=folder),
            say("expected files such as plog-1234_20250101.log", "应有 plog-1234_20250101.log 这样的文件"),
            say(
                "the logs of CANN are in ~/ascend/log unless ASCEND_PROCESS_LOG_PATH says otherwise",
                "CANN 的日志默认在 ~/ascend/log，或 ASCEND_PROCESS_LOG_PATH 所指的目录",
            ),
        )


def _walk(folder: Path) -> Iterable[Path]:
    for root, folders, names in os.walk(folder, onerror=None):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if path.suffix.lower() in _LOG_NAMES and path.is_file() and not path.is_symlink():
                yield path


def _target(soc: str | None, target: str | Target | None, cann: str | None, log: Log) -> tuple[Target | None, Text | None]:
    """The target stated by the caller, else the one of the log's own command."""
    from ..errors import TargetError
    from ..logs.command import soc_of
    from ..targets import find_target

    if isinstance(target, Target):
        return target, None
    if soc is not None or target is not None or cann is not None:
        own = soc_of(log.command) if log.command and soc is None and target is None else None
        return find_target(soc or own, profile=target, cann=cann), None
    own = soc_of(log.command) if log.command else None
    if own is None:
        return None, None
    try:
        return find_target(own), say("target taken from the command in the log: {soc}", "目标取自日志中的命令：{soc}", soc=own)
    except TargetError as error:
        return None, say("the soc_version of the command in the log: {error}", "日志中命令的 soc_version：{error}", error=error.found)


def _reading_notes(log: Log) -> list[Text]:
    notes = []
    if log.skipped:
        notes.append(say("{count} files hold no text and were left out", "有 {count} 个文件不是文本，已略过", count=len(log.skipped)))
    if log.succeeded and log.clues:
        notes.append(say("ATC reports success after these lines", "这些行之后 ATC 报告成功"))
    return notes


def _no_failure(log: Log) -> Text:
    lines = sum(reading.lines for reading in log.readings)
    if log.succeeded:
        return say("ATC reports success; no failure in {lines} lines", "ATC 报告成功；{lines} 行中没有失败", lines=lines)
    return say("no failure in {lines} lines", "{lines} 行中没有失败", lines=lines)


def _data(log: Log, named: Sequence[Named], triage: Sequence[Text]) -> dict[str, Any]:
    from ..logs.report import codes_named

    head = named[0].group.clues[0] if named and named[0].group.clues else None
    used = {(clue.file, clue.line) for item in named for clue in item.group.clues}
    others = [clue for clue in log.clues if (clue.file, clue.line) not in used]
    return {
        "root": None
        if head is None
        else {
            "file": head.file,
            "line": head.line,
            "text": head.text,
            "code": head.code.code if head.code else None,
            "node": head.node,
            "op": head.op,
            "pid": head.pid,
        },
        "codes": [code_data(code) for code in codes_named(named)],
        "triage": [text.to_dict() for text in triage],
        "operators": [
            {
                "op": item.finding.op,
                "opset": item.group.head.opset,
                "nodes": list(dict.fromkeys(clue.node for clue in item.group.clues if clue.node)),
            }
            for item in named
            if item.group.clues and item.finding.op
        ],
        "others": [{"file": clue.file, "line": clue.line, "text": clue.text[:300]} for clue in others[:50]],
        "others_count": len(others),
        "command": log.command,
        "read": [{"file": item.name, "bytes": item.size, "lines": item.lines} for item in log.readings[:100]],
    }
