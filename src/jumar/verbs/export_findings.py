"""What an export found out, as findings: what was done to the module, what may be frozen, and why an export was thrown away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..case import Finding, Severity
from ..exporting.agreement import passed
from ..exporting.audit import Event
from ..exporting.blame import Blame, find_blame
from ..exporting.dynamic import Dynamic, Sizes
from ..exporting.eager import in_double
from ..exporting.isolation import Limits
from ..exporting.samples import GIVEN
from ..graph import Evaluator
from ..proof import compare
from ..rules import find_rule
from ..text import Text, say

if TYPE_CHECKING:
    from .export import Candidate, Outcome

_VALUES = frozenset({"random", "mirrored", "other", "counted"})
_SHOWN = 6


def findings_of(outcome: Outcome, evaluator: Evaluator, limits: Limits) -> tuple[Finding, ...]:
    """Errors where nothing was exported; where something was, what went wrong on the way is worth knowing only."""
    found = [*_of_module(outcome), *_of_ports(outcome)]
    blamed: list[Finding] = []
    for candidate in outcome.candidates:
        if not candidate.right:
            blamed += _of_wrong(outcome, candidate, evaluator, limits)
    for made in outcome.refused:
        line = made.line or _line_of(made.operator, outcome.eager.events)
        blamed.append(_topic("EX108", *_refusal(made.label, made.operator, made.reason), place=made.operator, line=line))
    if outcome.winner is not None:
        blamed = [replace(finding, severity="info") for finding in blamed]
    found += blamed
    if not any(finding.code == "EX105" and finding.severity == "error" for finding in found):
        found += _of_numbers(outcome)
    return tuple(found)


def declared_open(findings: Sequence[Finding], dynamic: Dynamic) -> tuple[Finding, ...]:
    """The target's findings; a dimension that was opened on purpose is none of its errors, but needs gears."""
    if not dynamic:
        return tuple(findings)
    gears = "; ".join(f"{name}[{axis}] {_gears(sizes)}" for name, axes in dynamic.axes.items() for axis, sizes in axes.items())
    remedy = say(
        'compile with --gears "{gears}", or pin it with fix --shape', '请用 --gears "{gears}" 编译，或用 fix --shape 固定', gears=gears
    )
    return tuple(
        replace(finding, severity="info", remedy=remedy) if finding.code == "SH201" and finding.node in dynamic.axes else finding
        for finding in findings
    )


def _gears(sizes: Sizes) -> str:
    """Few sizes that cover a range: its ends, and powers of two between."""
    between = [1 << power for power in range(31) if sizes.low < 1 << power < sizes.high][-4:]
    return ",".join(map(str, sizes.choices or dict.fromkeys((sizes.low, *between, sizes.high))))


def _topic(
    code: str,
    message: Text,
    why: Text,
    remedy: Text,
    *,
    place: str | None = None,
    line: str | None = None,
    severity: Severity | None = None,
) -> Finding:
    return replace(find_rule(code).finding(message, why, remedy, place=place, severity=severity), source_line=line)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:_SHOWN]) + (f" (+{len(names) - _SHOWN})" if len(names) > _SHOWN else "")


def _of_module(outcome: Outcome) -> Iterator[Finding]:
    eager = outcome.eager
    if outcome.training:
        yield _topic(
            "EX101",
            say(
                "{count} modules were in training mode: {names}",
                "有 {count} 个模块处于训练模式：{names}",
                count=len(outcome.training),
                names=_listed([f"{path} ({kind})" for path, kind in outcome.training]),
            ),
            say("in training mode they compute something else", "它们在训练模式下的计算不同"),
            say("exported in eval mode; your module was left as it was", "已在 eval 模式下导出；原模块保持不变"),
            place=outcome.training[0][0],
        )
    if not eager.steady:
        draws = [event for event in eager.events if event.kind == "draw"]
        yield _topic(
            "EX111",
            say(
                "two runs on the same inputs gave different results{where}",
                "两次以相同输入运行的结果不同{where}",
                where=f" ({draws[0].name})" if draws else "",
            ),
            say("there is nothing to hold a graph to", "没有可供对照的基准"),
            say("pass random numbers and states in as inputs", "请把随机数和状态作为输入传入"),
            line=draws[0].line if draws else None,
        )
    for name in eager.changed:
        write = next((event for event in eager.events if event.kind == "write"), None)
        yield _topic(
            "EX112",
            say("forward writes into its input `{name}`", "forward 改写了输入 `{name}`", name=name),
            say("a graph never changes its inputs", "计算图不会改变输入"),
            say("return the changed tensor, or write into a copy", "请返回修改后的张量，或在副本上写入"),
            place=name,
            line=None if write is None else write.line,
        )
    if len(eager.cases) < 2 and eager.refused:
        yield _topic(
            "EX114",
            say(
                "compared on the given inputs only: the module refused the others ({reason})",
                "只在给定输入上做了对比：其余输入被模块拒绝（{reason}）",
                reason=eager.refused[0][1],
            ),
            say("a frozen branch or number would not show", "被固定的分支或数值不会暴露"),
            say("state the values of integer inputs with --range", "请用 --range 说明整数输入的取值"),
        )


def _of_ports(outcome: Outcome) -> Iterator[Finding]:
    for path, value in outcome.program.bound.items():
        yield _topic(
            "EX102",
            say("`{path}` = {value} is baked in", "`{path}` = {value} 已固定在计算图中", path=path, value=repr(value)[:60]),
            say("it is no tensor", "它不是张量"),
            say("pass a tensor if it shall vary", "若需要变化，请传入张量"),
            place=path,
        )
    for old, new in outcome.renamed.items():
        yield _topic(
            "EX103",
            say("`{old}` is called `{new}` in the model", "`{old}` 在模型中的名称为 `{new}`", old=old, new=new),
            say("the name is taken, or ATC does not take it", "该名称已被占用，或 ATC 不接受"),
            say("use this name, or choose another", "请使用该名称，或另选名称"),
            place=new,
        )
    for path, value in outcome.eager.dropped.items():
        yield _topic(
            "EX113",
            say("result `{path}` is {value}, no tensor", "结果 `{path}` 为 {value}，不是张量", path=path or "-", value=value),
            say("a graph returns tensors only", "计算图只返回张量"),
            say("return a tensor if it varies", "若会变化，请返回张量"),
            place=path or None,
        )
    winner = outcome.winner
    if winner is None:
        return
    for name in winner.attempt.vanished:
        yield _topic(
            "EX110",
            say("the graph does not read input `{name}`", "计算图没有读取输入 `{name}`", name=name),
            say("no input that was tried made a difference through it", "所尝试的输入都未通过它产生差异"),
            say("leave it out of the arguments if forward ignores it", "若 forward 忽略它，请从参数中去掉"),
            place=name,
        )
    if winner.raw.tied:
        yield _topic(
            "EX115",
            say(
                "{names}: equal when rows of equal score may change places",
                "{names}：允许得分相同的行互换位置时相等",
                names=_listed(sorted(winner.raw.tied)),
            ),
            say("the order of ties is not defined", "并列项的次序没有定义"),
            say("do not compare them row by row", "请勿逐行比较"),
        )


def _of_wrong(outcome: Outcome, candidate: Candidate, evaluator: Evaluator, limits: Limits) -> list[Finding]:
    """Why an export that is not right was thrown away, with the line."""
    attempt = candidate.attempt
    wrong = candidate.raw if candidate.raw.failed or candidate.final is None else candidate.final
    if attempt.model is None or not wrong.failed:
        return []
    word, name, reason = wrong.failed[0]
    feeds = next(feed for case, feed, _ in outcome.eager.cases if case == word)
    blame = find_blame(outcome.program, attempt.model, feeds, evaluator, limits)
    where = _call(blame)
    if blame is not None and blame.event.kind == "write":
        return [_lost_write(attempt.label, blame)]
    if word == GIVEN:
        return [
            _topic(
                "EX107",
                say(
                    "{label}: output `{name}` is not what the module computes ({reason}){where}",
                    "{label}：输出 `{name}` 与模块的计算结果不同（{reason}）{where}",
                    label=attempt.label,
                    name=name or "-",
                    reason=reason,
                    where=where,
                ),
                say("the exporter reported no error{rounding}", "导出器没有报错{rounding}", rounding=_rounding(outcome, word, limits)),
                say("write this line with other operators", "请用其他算子改写该行"),
                place=name or None,
                line=None if blame is None else blame.event.line,
            )
        ]
    code = "EX105" if word in _VALUES else "EX106"
    numbers = tuple(event for event in outcome.eager.events if event.kind == "number")
    said = [line for line, _ in attempt.said if line]
    causes = list(dict.fromkeys([f"{event.name} {event.line}" for event in numbers if event.line]))
    lines = (
        [event.line for event in numbers if event.line] or said or ([blame.event.line] if blame is not None and blame.event.line else [])
    )
    gone = (
        say("; the graph does not read {names}", "；计算图没有读取 {names}", names=_listed(list(attempt.vanished)))
        if attempt.vanished
        else say("", "")
    )
    return [
        _topic(
            code,
            say(
                "{label}: right on the given inputs, wrong on other ones ({case}): `{name}`, {reason}{where}{gone}",
                "{label}：在给定输入上正确，在其他输入（{case}）上错误：`{name}`，{reason}{where}{gone}",
                label=attempt.label,
                case=word,
                name=name or "-",
                reason=reason,
                where=where,
                gone=gone,
            ),
            say("frozen at: {causes}", "固定之处：{causes}", causes=", ".join(causes or lines) or "?"),
            say(
                "compute with the tensor there: torch.where, a mask, a fixed number of steps",
                "请在该处用张量计算：torch.where、掩码、固定步数",
            ),
            place=name or None,
            line=lines[0] if lines else None,
        )
    ]


def _rounding(outcome: Outcome, word: str, limits: Limits) -> Text:
    """Words for a module whose own results change by more than the bound when it computes in double precision."""
    feeds, expected = next((feed, result) for case, feed, result in outcome.eager.cases if case == word)
    wide = in_double(outcome.program, feeds, limits)
    if wide is None or len(wide) != len(expected):
        return say("", "")
    pairs = [(one.astype(other.dtype) if one.dtype.kind == "f" else one, other) for one, other in zip(wide, expected.values(), strict=True)]
    if all(passed(compare(one, other)) for one, other in pairs):
        return say("", "")
    return say(
        "; rounding decides: in double precision the module itself gives other results",
        "；结果由舍入决定：改用双精度时模块自身的结果也不同",
    )


def _call(blame: Blame | None) -> Text:
    if blame is None:
        return say("", "")
    return say("; first at {call}", "；最早出现在 {call}", call=f"{blame.event.name} ({blame.event.line})")


def _lost_write(label: str, blame: Blame) -> Finding:
    return _topic(
        "EX109",
        say(
            "{label}: the write in place {call} is not in the graph",
            "{label}：原地写入 {call} 不在计算图中",
            label=label,
            call=f"`{blame.event.name}`",
        ),
        say("the graph goes on with the old values", "计算图会继续使用旧值"),
        say("write into a new tensor: torch.where, torch.cat, scatter", "请写入新的张量：torch.where、torch.cat、scatter"),
        line=blame.event.line,
    )


def _line_of(operator: str | None, events: Sequence[Event]) -> str | None:
    """The line of the first call that an operator of ATen is named after."""
    name = re.split(r"::|\.", operator or "")[1:2]
    return next((event.line for event in events if name and event.name.strip("_") == name[0].strip("_")), None)


def _refusal(label: str, operator: str | None, reason: Text | None) -> tuple[Text, Text, Text]:
    return (
        say(
            "{label} refused{operator}: {reason}",
            "{label} 拒绝导出{operator}：{reason}",
            label=label,
            operator=f" {operator}" if operator else "",
            reason=reason or "-",
        ),
        say("there is no graph to compile", "没有可供编译的计算图"),
        say("write this line with other operators", "请用其他算子改写该行"),
    )


def _of_numbers(outcome: Outcome) -> Iterator[Finding]:
    """Places at which the winner may have frozen something, though no input that was tried shows it."""
    events: dict[tuple[str, str | None], Event] = {}
    for event in outcome.eager.events:
        if event.kind == "number" and event.line is not None:
            events.setdefault((event.name, event.line), event)
    for event in events.values():
        yield _topic(
            "EX104",
            say("`{name}` turns a tensor into a Python number", "`{name}` 把张量变成了 Python 数值", name=event.name),
            say(
                "what follows from it may be frozen; no input that was tried shows it", "由它得出的内容可能被固定；所尝试的输入没有显示出来"
            ),
            say("compute with the tensor, or pass a number and bake it in openly", "请用张量计算，或传入数值并明确固定"),
            line=event.line,
        )
