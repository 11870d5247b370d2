"""``jumar lint``: what is wrong in calls of ATC and in the files that ATC reads beside them, without running anything."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..aipp.lint import lint_aipp
from ..atc.lint import SCRIPT_SUFFIXES, LintedText, lint_text, model_facts, script_kind
from ..atc.lint_configs import KIND_OF, config_kind
from ..atc.options import ModelFacts, Options, Problem, symbols
from ..case import Finding, Record
from ..errors import JumarError, TargetError, UsageError
from ..graph import load
from ..rules import find_rule
from ..targets import SocInfo, Target, find_target, soc_info, socs
from ..text import Text, say

LARGEST_FILE = 4 << 20
"""Bytes; scripts are smaller, and what is larger is something else."""
MOST_FILES = 20_000
"""Files looked at below a folder."""
_CONFIG_SUFFIXES = (".cfg", ".conf", ".config", ".ini", ".json")
_COMMAND = re.compile(r"(?:^|[\s/;&|])atc(?:\.bin)?\s+[-–—$]|(?:^|\s)--?[a-z]\w+[= ]")


@dataclass(frozen=True)
class _Source:
    """A text and where it stands. ``wanted`` is False for one that was found below a folder and may be about something else."""

    name: str
    text: str
    folder: Path | None = None
    wanted: bool = True


def lint(
    paths_or_text: str | Path | Sequence[str | Path],
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    model: str | Path | None = None,
) -> Record:
    """Judge calls of ATC by the rules of its public sources.

    Args:
        paths_or_text: files (shell scripts, makefiles, Python programs, Markdown, files with a command; configuration files: mixed
            precision lists, kept dtypes, operator precision, fusion switches, customised dtypes, compression, AIPP), folders with such
            files, or the text of a command or a script itself.
        soc, target, cann: the target. A call that leaves its chip open is judged for this one; a call for another is reported.
        model: an ONNX file to compare the calls about it with: names, ranks, sizes, nodes.

    Returns:
        A record without a model, with findings of the codes AT901 to AT913 and, for AIPP files, AI101 to AI107; each names file and line, and ATC's own code where ATC has
        one. ``data`` has ``files`` (``path``, ``kind``, ``calls``) and ``calls`` (``file``, ``line``, ``flags``). Values that only a run
        can tell (``${bs}``) are not judged; a note lists them.

    Raises:
        UsageError: no such file, no text, or nothing in it that ATC reads.
        TargetError: unknown target.
        ModelError: the model cannot be read.
    """
    found = _target(soc, target, cann)
    facts = None if model is None else model_facts(load(model), str(model))
    sources = list(_sources(paths_or_text))
    texts: list[tuple[_Source, LintedText]] = []
    seen: set[Path] = set()
    release = cann or (target.cann if isinstance(target, Target) else None)
    chip = None if found is None else found.soc.name
    for source in sources:
        linted = lint_text(source.text, source.name, cann=release, soc=chip, facts=facts)
        if linted.kind == "aipp":
            linted = _lint_aipp(source.text, None if found is None else found.soc, facts)
        texts.append((source, linted))
        texts += _beside(source, linted, facts, seen, None if found is None else found.soc)
    known = [(source, linted) for source, linted in texts if linted.kind is not None]
    empty = [source for source, linted in texts if linted.kind is None and source.wanted]
    if not known:
        raise _nothing(empty[0].name if empty else str(paths_or_text))
    return _record(known, empty, found if soc or target else None)


def _target(soc: str | None, target: str | Target | None, cann: str | None) -> Target | None:
    """The target where one is named; a release alone is only looked up."""
    if isinstance(target, Target):
        return target
    if soc is None and target is None:
        if cann is not None:
            find_target(socs()[0], cann=cann)
        return None
    return find_target(soc, profile=target, cann=cann)


def _record(known: list[tuple[_Source, LintedText]], empty: list[_Source], target: Target | None) -> Record:
    findings: list[Finding] = []
    calls: list[dict[str, Any]] = []
    open_values: dict[str, None] = {}
    for source, linted in known:
        findings += [_finding(problem, source.name, line) for line, problem in linted.problems]
        for call in linted.calls:
            findings += [_finding(problem, source.name, call.line) for problem in call.problems]
            calls.append({"file": source.name, "line": call.line, "flags": dict(call.options.values)})
            open_values |= dict.fromkeys(name for value in call.options.values.values() for name in symbols(value))
    notes = [say("calls of atc: {calls}; files: {files}", "atc 调用：{calls} 处；文件：{files} 个", calls=len(calls), files=len(known))]
    if open_values:
        names = ", ".join(list(open_values)[:20]) + (", ..." if len(open_values) > 20 else "")
        notes.append(say("not judged, known only when the command runs: {names}", "运行时才能确定，未作判断：{names}", names=names))
    notes += [say("nothing of ATC's in `{path}`", "`{path}` 中没有与 ATC 有关的内容", path=source.name) for source in empty]
    files = [{"path": source.name, "kind": linted.kind, "calls": len(linted.calls)} for source, linted in known]
    return Record(
        verb="lint",
        target=None if target is None else target.to_dict(),
        findings=tuple(sorted(findings, key=lambda finding: ("error", "warning", "info").index(finding.severity))),
        notes=tuple(notes),
        data={"files": files, "calls": calls},
    )


def _finding(problem: Problem, name: str, line: int) -> Finding:
    """A problem with its place; ATC's codes stand behind the reason."""
    place = f"{name}:{line}"
    why: Text = problem.why
    if problem.atc:
        why = say("{why} (ATC: {codes})", "{why}（ATC 错误码：{codes}）", why=problem.why, codes=", ".join(problem.atc))
    message = say("{place}: {message}", "{place}：{message}", place=place, message=problem.message)
    evidence = (*(f"ATC {code}" for code in problem.atc), *problem.evidence)
    return find_rule(problem.code).finding(message, why, problem.remedy, place=place, severity=problem.severity, evidence=evidence)


def _sources(given: str | Path | Sequence[str | Path]) -> Iterator[_Source]:
    items = [given] if isinstance(given, (str, Path)) else list(given)
    for item in items:
        if isinstance(item, str) and _is_text(item):
            yield _Source("command", item)
            continue
        path = Path(item)
        if path.is_dir():
            yield from _below(path)
        else:
            yield _Source(str(path), _read(path), path.parent)


def _is_text(item: str) -> bool:
    if "\n" in item:
        return True
    try:
        return _COMMAND.search(item) is not None and not Path(item).exists()
    except OSError:  # longer than a file name may be
        return True


def _read(path: Path) -> str:
    """The text of a file.

    Raises:
        UsageError: absent, unreadable, too large, or no text.
    """
    expected = say("expected a script, a configuration file, or a command", "应为脚本、配置文件或命令")
    try:
        if path.stat().st_size > LARGEST_FILE:
            found = say("`{path}` is larger than {size} MB", "`{path}` 大于 {size} MB", path=path, size=LARGEST_FILE >> 20)
            raise UsageError(found, expected, say("give the script itself", "请给出脚本本身"))
        if not path.is_file():
            raise UsageError(
                say("`{path}` is no regular file", "`{path}` 不是普通文件", path=path), expected, say("check the path", "请检查路径")
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        found = say("`{path}` cannot be read: {error}", "无法读取 `{path}`：{error}", path=str(path)[:200], error=reason)
        raise UsageError(found, expected, say("check the path", "请检查路径")) from error
    if b"\0" in data[:65536]:
        raise UsageError(
            say("`{path}` is no text", "`{path}` 不是文本", path=path),
            expected,
            say("for an ONNX model use `jumar check`", "ONNX 模型请用 `jumar check`"),
        )
    return data.decode("utf-8", "replace")


def _below(folder: Path) -> Iterator[_Source]:
    """Scripts and configuration files below a folder; hidden ones are left out."""
    count = 0
    for path in sorted(folder.rglob("*")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        count += 1
        if count > MOST_FILES:
            raise UsageError(
                say("`{path}` holds more than {count} files", "`{path}` 中的文件超过 {count} 个", path=folder, count=MOST_FILES),
                say("expected a folder of scripts", "应为存放脚本的目录"),
                say("name the scripts", "请指定脚本"),
            )
        suffix = path.suffix.lower()
        if not (suffix in (*SCRIPT_SUFFIXES, *_CONFIG_SUFFIXES) or script_kind(path.name)) or not path.is_file():
            continue
        try:
            text = _read(path)
        except UsageError:
            continue
        if "atc" in text if script_kind(path.name) else config_kind(text) is not None:
            yield _Source(str(path), text, path.parent, wanted=False)


def _lint_aipp(text: str, soc: SocInfo | None, facts: ModelFacts | None, options: Options | None = None) -> LintedText:
    inputs = () if facts is None else facts.inputs
    _, problems = lint_aipp(text, short=None if soc is None else soc.short, inputs=inputs, options=options)
    return LintedText("aipp", problems=tuple(problems))


def _soc_of(options: Options, default: SocInfo | None) -> SocInfo | None:
    """The chip of a call, where its name is one."""
    name = options.get("soc_version")
    if not name or symbols(name):
        return default
    try:
        return soc_info(name)
    except TargetError:
        return None


def _model_of(options: Options, folder: Path | None, facts: ModelFacts | None) -> ModelFacts | None:
    """What is known of the model of a call: as given, else read from the ONNX file that the call names, if it is there."""
    name = options.get("model")
    if facts is not None and (not name or symbols(name) or Path(name).name == Path(facts.file).name):
        return facts
    if folder is None or not name.endswith(".onnx") or symbols(name) or "\0" in name:
        return None
    try:
        path = folder / name
        return model_facts(load(path), str(path)) if path.is_file() else None
    except (JumarError, OSError):
        return None  # the model is not what is being judged


def _beside(
    source: _Source, linted: LintedText, facts: ModelFacts | None, seen: set[Path], soc: SocInfo | None
) -> list[tuple[_Source, LintedText]]:
    """The configuration files that calls name, where they are there: each once."""
    found: list[tuple[_Source, LintedText]] = []
    for path, flag, options in _named(linted, source.folder):
        resolved = path.resolve()
        if resolved in seen:
            continue
        seen.add(resolved)
        try:
            text = _read(path)
        except UsageError:
            continue
        item = _Source(str(path), text, path.parent)
        if KIND_OF[flag] == "aipp":
            found.append((item, _lint_aipp(text, _soc_of(options, soc), _model_of(options, source.folder, facts), options)))
        else:
            found.append((item, lint_text(text, str(path), kind=KIND_OF[flag], facts=facts)))
    return found


def _named(linted: LintedText, folder: Path | None) -> Iterator[tuple[Path, str, Options]]:
    for call in linted.calls:
        options: Options = call.options
        for flag in KIND_OF:
            value = options.get(flag)
            if value and not symbols(value) and "\0" not in value and folder is not None:
                path = folder / value
                try:
                    if path.is_file():
                        yield path, flag, options
                except OSError:
                    continue


def _nothing(name: str) -> UsageError:
    return UsageError(
        say("there is nothing of ATC's in `{name}`", "`{name}` 中没有与 ATC 有关的内容", name=name[:200]),
        say("expected a call of atc, or one of its configuration files", "应含有 atc 调用，或为其配置文件"),
        say("give a script, a command in quotes, or a configuration file", "请给出脚本、加引号的命令或配置文件"),
    )


def read_standard_input() -> str:
    """The text on standard input, up to the size of a file that is read here.

    Raises:
        UsageError: it is larger.
    """
    text = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise UsageError(
            say("standard input is larger than {size} MB", "标准输入大于 {size} MB", size=LARGEST_FILE >> 20),
            say("expected a script", "应为脚本"),
            say("give the script itself", "请给出脚本本身"),
        )
    return text.decode("utf-8", "replace") + "\n"
