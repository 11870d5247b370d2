"""The record in a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text as Line

from ..case import Finding, Record
from ..text import Lang, say, visible
from .words import FIXES, HEADINGS, SEVERITIES, STATUS, command_of, grouped, new_port, outputs_table, proof_text, rewrites, verdict_text

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue", "ready": "green", "warnings": "yellow", "blocked": "red"}


def text_report(record: Record, console: Console, lang: Lang = "en", verbose: int = 0) -> None:
    """Print a record. ``verbose`` 1 adds each finding of a group, info findings' reasons and the evidence."""
    for line in _parts(record, lang, verbose):
        # Lines only, no tables or paddings: those are cut off at the width of the terminal.
        line.plain = visible(line.plain)
        console.print(line, soft_wrap=True)


def _parts(record: Record, lang: Lang, verbose: int) -> Iterator[Line]:
    if record.model is not None:
        target = "" if record.target is None else f" -> {record.target['soc']}, CANN {record.target['cann']}"
        yield Line(f"{record.model.path or '-'} (opset {record.model.opset}){target}", style="bold")
    if record.target is not None or record.findings or "precision" in record.data:
        yield Line.assemble((verdict_text(record).render(lang), f"bold {_COLOURS[record.verdict]}"))
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
        rows = [
            (
                str(step.code),
                step.name,
                STATUS[step.status].render(lang),
                say("{count} nodes", "{count} 个节点", count=len(step.nodes)).render(lang),
                proof_text(step.proof, lang),
            )
            for step in steps
        ]
        yield from _aligned(rows)
    outputs = outputs_table(record)
    if outputs:
        yield _heading("outputs", lang)
        for name, row in outputs.items():
            yield Line(f"  {name}: max_abs {row['max_abs']:.3g}, max_rel {row['max_rel']:.3g}, cosine {row['cosine']:.9f}")
    if record.placement is not None:
        counts = ", ".join(f"{name} {count}" for name, count in record.placement.to_dict().items() if count)
        yield Line(f"{HEADINGS['placement'].render(lang)}{'：' if lang == 'zh' else ': '}{counts}")
    yield from _ends(record, lang)


def _heading(key: str, lang: Lang) -> Line:
    return Line(HEADINGS[key].render(lang), style="bold underline")


def _times(count: int) -> str:
    return "" if count == 1 else f"({count}x) "


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    """Columns as wide as their widest cell (a Chinese character takes two places), two blanks apart; the last one is open."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row[:-1], widths, strict=False)]
        yield Line("  " + "  ".join((*cells, row[-1])))


def _detail(text: str, style: str = "") -> Line:
    return Line(f"        {text}", style=style)


def _findings(findings: tuple[Finding, ...], lang: Lang, verbose: int) -> Iterator[Line]:
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
            yield _detail(comma.join((finding.why.render(lang), finding.remedy.render(lang), FIXES[finding.fix].render(lang))))
        if finding.source_line:
            yield _detail(finding.source_line)
        if verbose:
            for fact in finding.evidence:
                yield _detail(fact, "dim")


def _ends(record: Record, lang: Lang) -> Iterator[Line]:
    changed = [item for side in ("inputs", "outputs") for item in record.interface.get(side, ())]
    if changed:
        yield _heading("interface", lang)
        for item in changed:
            yield Line(f"  {item['original']} ({item['original_dtype']}) -> {new_port(item)}")
    command = command_of(record)
    if command:
        yield _heading("command", lang)
        yield Line(f"  {shlex.join(command)}")
    for note in record.notes:
        for text in note.render(lang).split("\n"):
            yield Line(text, style="" if record.verb in ("explain", "targets", "inspect", "diagnose", "doctor") else "dim")
    if record.artifacts:
        yield _heading("artifacts", lang)
        for artifact in record.artifacts:
            yield Line(f"  {artifact.path} ({artifact.kind})")
