"""The triage of a log: operator, support list, constraint or alternative, export again; and the rules that apply to a given model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..case import Finding, Record
from ..targets import Target
from ..text import Text, say

if TYPE_CHECKING:
    from ..logs.report import Named
    from .common import ModelLike

_DOMAINS = "E16005"  # more operator domains than one


def model_findings(record: Record, named: Sequence[Named], model: ModelLike, target: Target | None) -> tuple[Record, list[Finding]]:
    """The model's own findings that bear on what the log names."""
    from ..errors import TargetError
    from .check import check

    if target is None:
        raise TargetError(
            say("no target was named", "没有指定目标"),
            say("expected --soc NAME or --target PROFILE beside --model", "--model 应与 --soc 名称 或 --target 配置名 一起使用"),
            say("name the chip the log speaks of", "请指定日志所涉及的芯片"),
        )
    own = check(model, target=target).record
    nodes = {clue.node for item in named for clue in item.group.clues if clue.node}
    ops = {_bare(clue.op) for item in named for clue in item.group.clues if clue.op}
    wanted = {code for item in named for code in _checks(item)}
    silent = any(item.finding.code == "LG812" for item in named)
    domains = any(code.code == _DOMAINS for item in named for code in item.group.codes)
    bearing = [
        finding
        for finding in own.findings
        if finding.node in nodes
        or (finding.op is not None and _bare(finding.op) in ops)
        or (finding.code in wanted and finding.op is None)
        or (silent and finding.severity == "error")
        or (domains and "::" in (finding.op or ""))
    ]
    return replace(record, model=own.model), bearing


def _checks(item: Named) -> tuple[str, ...]:
    return tuple(check for code in item.group.codes for check in code.checks)


def _bare(op: str | None) -> str:
    return (op or "").rpartition("::")[2]


def with_repair(item: Named, repairs: Sequence[Finding]) -> Finding:
    """The finding, with the rule that repairs it where the model's own findings name one."""
    nodes = {clue.node for clue in item.group.clues if clue.node}
    ops = {_bare(clue.op) for clue in item.group.clues if clue.op}
    at_node = [finding for finding in repairs if finding.node in nodes]
    of_op = [finding for finding in repairs if finding.op is not None and _bare(finding.op) in ops]
    # A finding of the whole model (its opset, its domains) bears on an operator only where the opset is what it lacks.
    of_model = [finding for finding in repairs if finding.op is None and finding.code in _checks(item)]
    if item.verdict is not None and item.verdict.kind != "opset":
        of_model = []
    if any(code.code == _DOMAINS for code in item.group.codes) and any("::" in (finding.op or "") for finding in repairs):
        of_model = []  # the other domains are in use: dropping unused ones is not enough
    able = [finding for finding in (*(at_node or of_op), *of_model) if finding.fix != "none"]
    if not able:
        return item.finding
    best = min(able, key=lambda finding: finding.fix != "safe")
    remedy = say(
        "{code} ({name}) rewrites it: `jumar fix MODEL -o OUT.onnx {option}`; else {remedy}",
        "{code}（{name}）可改写：`jumar fix MODEL -o OUT.onnx {option}`；否则{remedy}",
        code=best.code,
        name=best.name,
        option=f"--select {best.code}" if best.fix == "safe" else f"--unsafe {best.code}",
        remedy=item.finding.remedy,
    )
    return replace(item.finding, remedy=remedy, fix=best.fix)


def triage(named: Sequence[Named], with_model: bool, repairs: Sequence[Finding]) -> list[Text]:
    """The five steps: log, operator, support list, constraint or alternative, export again."""
    if not named:
        return []
    first = named[0]
    head = first.group.clues[0] if first.group.clues else None
    line = (
        say(
            "1 log: {file} line {line}: {text}", "1 日志：{file} 第 {line} 行：{text}", file=head.file, line=head.line, text=head.text[:200]
        )
        if head
        else say("1 log: no line says why", "1 日志：没有一行说明原因")
    )
    operators = [item for item in named if item.group.kind in ("operator", "compiler") and (item.finding.node or item.finding.op)]
    if not operators:
        return [
            line,
            say(
                "2 operator: none is the cause; support list, alternative and new export do not apply",
                "2 算子：原因不在某个算子；支持列表、替代和重新导出均不适用",
            ),
        ]
    names = list(dict.fromkeys(item.finding.op or item.finding.node or "" for item in operators))
    verdicts = [item.verdict.fact for item in operators if item.verdict is not None]
    listed = _joined(verdicts[:5]) if verdicts else say("not asked: name the chip with --soc", "未查询：请用 --soc 指定芯片")
    fixes = list(dict.fromkeys(f"{finding.code} ({finding.fix})" for finding in repairs))
    if fixes:
        alternative = say("findings of the model: {codes}", "模型的检查结果：{codes}", codes=", ".join(fixes))
    else:
        alternative = _joined(list({item.finding.remedy.render(): item.finding.remedy for item in operators}.values())[:5])
    return [
        line,
        say("2 operator: {names}", "2 算子：{names}", names=", ".join(names[:10])),
        say("3 support list: {facts}", "3 支持列表：{facts}", facts=listed),
        say("4 constraint or alternative: {words}", "4 约束或替代：{words}", words=alternative),
        say(
            "5 export again, then `jumar check` and compile; or `jumar fix` on the present model",
            "5 重新导出，再运行 `jumar check` 并编译；或对现有模型运行 `jumar fix`",
        )
        if with_model
        else say(
            "5 export again; `jumar diagnose LOG --model M.onnx --soc S` names the rewrites that apply",
            "5 重新导出；`jumar diagnose LOG --model M.onnx --soc S` 可给出适用的改写",
        ),
    ]


def _joined(texts: Sequence[Text]) -> Text:
    joined = texts[0]
    for text in texts[1:]:
        joined = say("{first}; {second}", "{first}；{second}", first=joined, second=text)
    return joined
