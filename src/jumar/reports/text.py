"""The record in a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Line

from ..case import Finding, Record
from ..text import Lang, say
from .words import FIXES, HEADINGS, SEVERITIES, STATUS, VERDICTS, command_of, grouped, outputs_table, proof_text, rewrites

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue", "ready": "green", "warnings": "yellow", "blocked": "red"}


def text_report(record: Record, console: Console, lang: Lang = "en", verbose: int = 0) -> None:
    """Print a record. ``verbose`` 1 adds each finding of a group, info findings' reasons and the evidence."""
    console.print(Group(*_parts(record, lang, verbose)), soft_wrap=True)


def _parts(record: Record, lang: Lang, verbose: int) -> Iterator[RenderableType]:
    if record.model is not None:
        target = "" if record.target is None else f" -> {record.target['soc']}, CANN {record.target['cann']}"
        yield Line(f"{record.model.path or '-'} (opset {record.model.opset}){target}", style="bold")
    if record.target is not None or record.findings:
        yield Line.assemble((VERDICTS[record.verdict].render(lang), f"bold {_COLOURS[record.verdict]}"))
    if record.findings:
        yield _heading("findings", lang)
        yield from _findings(record.findings, lang, verbose)
    if record.resolved:
        yield _heading("resolved", lang)
        for finding, count in grouped(record.resolved):
            yield Line(f"  {finding.code} {_times(count)}{finding.message.render(lang)}")
    steps = rewrites(record)
    if steps:
        yield _heading("steps", lang)
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
        for step in steps:
            nodes = say("{count} nodes", "{count} 个节点", count=len(step.nodes)).render(lang)
            table.add_row(f"  {step.code}", step.name, STATUS[step.status].render(lang), nodes, escape(proof_text(step.proof, lang)))
        yield table
    outputs = outputs_table(record)
    if outputs:
        yield _heading("outputs", lang)
        for name, row in outputs.items():
            yield Line(f"  {name}: max_abs {row['max_abs']:.3g}, max_rel {row['max_rel']:.3g}, cosine {row['cosine']:.9f}")
    if record.placement is not None:
        counts = ", ".join(f"{name} {count}" for name, count in record.placement.to_dict().items() if count)
        yield Line(f"{HEADINGS['placement'].render(lang)}: {counts}")
    yield from _ends(record, lang)


def _heading(key: str, lang: Lang) -> Line:
    return Line(HEADINGS[key].render(lang), style="bold underline")


def _times(count: int) -> str:
    return "" if count == 1 else f"({count}x) "


def _findings(findings: tuple[Finding, ...], lang: Lang, verbose: int) -> Iterator[RenderableType]:
    items = [(finding, 1) for finding in findings] if verbose else grouped(findings)
    for finding, count in items:
        head = Line.assemble(
            "  ",
            (f"{finding.code} {SEVERITIES[finding.severity].render(lang)}", _COLOURS[finding.severity]),
            f" {_times(count)}{finding.message.render(lang)}",
        )
        yield head
        if finding.severity != "info" or verbose:
            comma = "；" if lang == "zh" else "; "
            yield Padding(
                Line(comma.join((finding.why.render(lang), finding.remedy.render(lang), FIXES[finding.fix].render(lang)))), (0, 0, 0, 8)
            )
        if finding.source_line:
            yield Padding(Line(finding.source_line), (0, 0, 0, 8))
        if verbose:
            for fact in finding.evidence:
                yield Padding(Line(fact, style="dim"), (0, 0, 0, 8))


def _ends(record: Record, lang: Lang) -> Iterator[RenderableType]:
    changed = [item for side in ("inputs", "outputs") for item in record.interface.get(side, ())]
    if changed:
        yield _heading("interface", lang)
        for item in changed:
            yield Line(f"  {item['original']} ({item['original_dtype']}) -> {item['name']} ({item['dtype']})")
    command = command_of(record)
    if command:
        yield _heading("command", lang)
        yield Line(f"  {shlex.join(command)}")
    for note in record.notes:
        yield Line(f"{note.render(lang)}", style="dim" if record.verb != "explain" else "")
    if record.artifacts:
        yield _heading("artifacts", lang)
        for artifact in record.artifacts:
            yield Line(f"  {artifact.path} ({artifact.kind})")
