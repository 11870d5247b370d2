"""Findings of a log: clues of one cause together, the one that explains most first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..case import Finding
from ..rules import find_rule
from ..targets import Target
from ..text import say
from .codes import Code, status_code
from .operators import PARSER_CODES, Verdict, kernel_verdict, parser_verdict
from .scan import Clue, Log, read_text
from .words import REMEDIES, Group, Told, words_of

RULES = {
    "operator": "LG801",
    "option": "LG802",
    "model": "LG803",
    "file": "LG804",
    "environment": "LG805",
    "load": "LG806",
    "device": "LG807",
    "call": "LG808",
    "memory": "LG809",
    "timeout": "LG810",
    "compiler": "LG811",
    "silent": "LG812",
    "inner": "LG813",
    "unknown": "LG813",
    "health": "LG814",
}
"""The kinds of trouble, and the finding that each becomes."""

CAUSE = 6
"""Clues of this tier and above name a cause; the others repeat that something failed."""
MOST_GROUPS = 20
_ONE_OF_A_KIND = ("device", "memory", "load", "timeout", "silent")


@dataclass(frozen=True)
class Named:
    """A finding and what it was made of. ``verdict``: of the support list, for operators."""

    finding: Finding
    group: Group
    verdict: Verdict | None = None


def groups_of(log: Log) -> list[Group]:
    """The causes a log names, best first; where it names none, the best line it has."""
    ordered = log.ordered()
    causes = [clue for clue in ordered if clue.tier >= CAUSE]
    if not causes:
        return [Group(ordered[0].kind, (ordered[0],))] if ordered else []
    best = max(clue.tier for clue in causes if clue.kind != "silent") if any(clue.kind != "silent" for clue in causes) else 0
    if best >= 8:  # a crash or an exit status after a named cause is its consequence
        causes = [clue for clue in causes if clue.kind != "silent"]
    found: dict[tuple[object, ...], list[Clue]] = {}
    for clue in causes:
        found.setdefault(_key(clue), []).append(clue)
    return [Group(clues[0].kind, tuple(clues)) for clues in found.values()]


def _key(clue: Clue) -> tuple[object, ...]:
    if clue.kind == "operator" and (clue.op or clue.node):
        return (clue.kind, clue.op or clue.node, clue.opset)
    if clue.kind == "compiler" and (clue.op or clue.node):
        return (clue.kind, clue.node or clue.op)
    if clue.kind in _ONE_OF_A_KIND:
        return (clue.kind,)
    code = clue.code.code if clue.code else None
    return (clue.kind, clue.pattern, code, clue.what.render() if clue.what else None)


def log_findings(log: Log, target: Target | None = None, status: int | None = None) -> list[Named]:
    """The findings of a log, the root cause first.

    Args:
        target: for what the support list says of the operators named.
        status: exit status of the process that wrote it, if known (minus the number of a signal, or 128 plus it).

    Returns:
        Empty where nothing failed. A run that ended in success after its errors makes warnings of them.
    """
    groups = groups_of(log)[:MOST_GROUPS]
    ended = None if status is None else status_code(status)
    if ended is not None and not any(group.head.tier >= 8 for group in groups):
        return [Named(_death(ended, log, status or 0), Group("silent", tuple(log.ordered()[:1])))]
    named = [_named(group, log, target) for group in groups]
    if not named and status not in (None, 0):
        return [Named(_wordless(log, status or 0), Group("unknown", ()))]
    if not named and log.started and not log.ended:
        return [Named(_unfinished(log), Group("silent", ()))]
    if log.succeeded and status in (None, 0):
        return [replace(item, finding=replace(item.finding, severity="warning")) for item in named]
    return named


def failure_findings(text: str, returncode: int, target: Target | None = None) -> tuple[Finding, ...]:
    """What the output of a failed run of ATC says, the root cause first; never empty for a status other than 0.

    Args:
        text: all that the program wrote.
        returncode: its exit status, minus the number of the signal that ended it.
    """
    found = [item.finding for item in log_findings(read_text(text, "atc.log"), target, returncode)]
    return tuple(found)


def quote(clue: Clue) -> str:
    """``file:line: text``, shortened."""
    return f"{clue.file}:{clue.line}: {clue.text[:300]}"


def _named(group: Group, log: Log, target: Target | None) -> Named:
    head = group.head
    verdict = _verdict(head, target) if group.kind == "operator" else None
    message, why, remedy = words_of(Told(group, log, verdict))
    rule = find_rule(RULES[group.kind])
    evidence = [quote(clue) for clue in group.clues[:8]]
    evidence += [code.source for code in group.codes if code.source][:3]
    finding = replace(
        rule.finding(message, why, remedy, place=next((clue.node for clue in group.clues if clue.node), None), evidence=tuple(evidence)),
        op=next((clue.op for clue in group.clues if clue.op), None),
        fix="none",
    )
    return Named(finding, group, verdict)


def _verdict(clue: Clue, target: Target | None) -> Verdict | None:
    if clue.op is None:
        return None
    if clue.pattern == "no-parser" or (clue.code is not None and clue.code.code in PARSER_CODES):
        return parser_verdict(clue.op, clue.opset, target)
    return kernel_verdict(clue.op, target)


def _death(code: Code, log: Log, status: int) -> Finding:
    last = next((reading.last for reading in reversed(log.readings) if reading.last), "")
    message = say(
        "the process ended by {name} (status {status}): {cause}",
        "进程因 {name} 结束（状态 {status}）：{cause}",
        name=code.name,
        status=status,
        cause=code.cause,
    )
    why = say("its last line: {last}", "最后一行：{last}", last=last[:300] or "-")
    kind = "memory" if code.name == "SIGKILL" and any(clue.kind == "memory" for clue in log.clues) else "silent"
    return find_rule(RULES[kind]).finding(message, why, code.remedy, evidence=(last[:300],) if last else ())


def _wordless(log: Log, status: int) -> Finding:
    message = say("the process ended with status {status} and said nothing of why", "进程以状态 {status} 结束，没有说明原因", status=status)
    last = next((reading.last for reading in reversed(log.readings) if reading.last), "")
    return find_rule("LG813").finding(message, say("its last line: {last}", "最后一行：{last}", last=last[:300] or "-"), REMEDIES["inner"])


def _unfinished(log: Log) -> Finding:
    last = next((reading.last for reading in reversed(log.readings) if reading.last), "")
    return find_rule("LG812").finding(
        say(
            "the log stops without a result: ATC was killed, hung, crashed or is still at work",
            "日志中断，没有结果：ATC 被终止、卡住、崩溃，或仍在运行",
        ),
        say(
            "ATC started, and neither success nor failure follows; the last line: {last}",
            "ATC 已启动，之后既没有成功也没有失败；最后一行：{last}",
            last=last[:300],
        ),
        say(
            "give its exit status with --status (`echo $?`): 137 is the out-of-memory killer, 139 a crash; see `dmesg | grep -i -e oom -e segfault`",
            "用 --status 给出退出状态（`echo $?`）：137 为 OOM killer，139 为崩溃；查看 `dmesg | grep -i -e oom -e segfault`",
        ),
        evidence=(last[:300],),
    )


def codes_named(named: Sequence[Named]) -> tuple[Code, ...]:
    """The codes of all findings, each once."""
    found = {code.code: code for item in named for code in item.group.codes}
    return tuple(found.values())
