"""The record as one self-contained page: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from html import escape

from ..case import Finding, Record
from ..text import Lang, say
from .words import FIXES, HEADINGS, SEVERITIES, STATUS, command_of, grouped, new_port, outputs_table, proof_text, rewrites, verdict_text

_STYLE = """
body{font:15px/1.5 system-ui,"Noto Sans CJK SC","Microsoft YaHei",sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.5rem;margin:0 0 .3rem}h2{font-size:1.1rem;margin:2rem 0 .5rem;border-bottom:1px solid #d0d7de}
.verdict{display:inline-block;padding:.3rem .8rem;border-radius:.4rem;font-weight:600;color:#fff}
.ready{background:#1a7f37}.warnings{background:#9a6700}.blocked{background:#cf222e}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #eaeef2;overflow-wrap:anywhere}
th{font-weight:600;white-space:nowrap}.error{color:#cf222e}.warning{color:#9a6700}.info{color:#0969da}.small{color:#57606a;font-size:.87rem}
pre{background:#f6f8fa;padding:.8rem;border-radius:.4rem;white-space:pre-wrap;overflow-wrap:anywhere}code{font-family:ui-monospace,monospace;font-size:.9em}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}td,th,h2{border-color:#30363d}.small{color:#8b949e}}
"""


def html_report(record: Record, lang: Lang = "en") -> str:
    """The page. Everything that came from a model or a log is escaped."""
    title = say("Migration report", "迁移报告").render(lang)
    parts = [f"<h1>{title}</h1>", *_head(record, lang)]
    if record.findings:
        parts += [_heading("findings", lang), _findings(record.findings, lang)]
    if record.resolved:
        parts += [_heading("resolved", lang), _findings(record.resolved, lang)]
    parts += _steps(record, lang)
    outputs = outputs_table(record)
    if outputs:
        rows = [[escape(name), f"{row['max_abs']:.3g}", f"{row['max_rel']:.3g}", f"{row['cosine']:.9f}"] for name, row in outputs.items()]
        parts += [_heading("outputs", lang), _table(["", "max_abs", "max_rel", "cosine"], rows)]
    if record.placement is not None:
        counts = record.placement.to_dict()
        parts += [_heading("placement", lang), _table(list(counts), [[str(count) for count in counts.values()]])]
    parts += _ends(record, lang)
    return (
        f'<!DOCTYPE html>\n<html lang="{"zh-CN" if lang == "zh" else "en"}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title><style>{_STYLE}</style></head><body>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _heading(key: str, lang: Lang) -> str:
    return f"<h2>{HEADINGS[key].render(lang)}</h2>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _head(record: Record, lang: Lang) -> list[str]:
    parts = []
    if record.model is not None:
        target = "" if record.target is None else f" &rarr; {escape(record.target['soc'])}, CANN {escape(record.target['cann'])}"
        parts.append(f"<p><code>{escape(record.model.path or '-')}</code> (opset {record.model.opset}){target}</p>")
        shapes = [
            [escape(item.name), escape(item.dtype), escape(str(list(item.shape or ())))]
            for item in (*record.model.inputs, *record.model.outputs)
        ]
        parts.append(_table(["", "dtype", "shape"], shapes))
    parts.append(f'<p><span class="verdict {record.verdict}">{verdict_text(record).render(lang)}</span></p>')
    return parts


def _findings(findings: tuple[Finding, ...], lang: Lang) -> str:
    rows = []
    for finding, count in grouped(findings):
        times = "" if count == 1 else f" &times;{count}"
        where = f"<br><code>{escape(finding.source_line)}</code>" if finding.source_line else ""
        evidence = "".join(f'<br><span class="small">{escape(fact)}</span>' for fact in finding.evidence)
        text = f"{escape(finding.message.render(lang))}<br><span class='small'>{escape(finding.why.render(lang))}; {escape(finding.remedy.render(lang))}; {FIXES[finding.fix].render(lang)}</span>{where}{evidence}"
        rows.append([f'<b class="{finding.severity}">{finding.code}</b>{times}', SEVERITIES[finding.severity].render(lang), text])
    return _table(["", "", ""], rows)


def _steps(record: Record, lang: Lang) -> list[str]:
    steps = rewrites(record)
    if not steps:
        return []
    rows = [
        [
            str(step.code),
            escape(step.name),
            STATUS[step.status].render(lang),
            str(len(step.nodes)),
            escape(proof_text(step.proof, lang)),
            f"<code>{(step.output_sha256 or '')[:12]}</code>",
        ]
        for step in steps
    ]
    nodes = say("nodes", "节点数").render(lang)
    proof = say("proof on this model", "在本模型上的证明").render(lang)
    return [_heading("steps", lang), _table(["", "", "", nodes, proof, "sha256"], rows)]


def _ends(record: Record, lang: Lang) -> list[str]:
    parts = []
    changed = [
        [escape(item["original"]), escape(item["original_dtype"]), escape(new_port(item))]
        for side in ("inputs", "outputs")
        for item in record.interface.get(side, ())
    ]
    if changed:
        parts += [_heading("interface", lang), _table(["", "dtype", "&rarr;"], changed)]
    command = command_of(record)
    if command:
        parts += [_heading("command", lang), f"<pre>{escape(shlex.join(command))}</pre>"]
    if record.artifacts:
        rows = [[escape(item.path), escape(item.kind), f"<code>{item.sha256}</code>"] for item in record.artifacts]
        parts += [_heading("artifacts", lang), _table(["", "", "sha256"], rows)]
    if record.notes:
        parts += [_heading("notes", lang), *(f"<p>{escape(note.render(lang))}</p>" for note in record.notes)]
    return parts
