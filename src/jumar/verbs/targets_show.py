"""``jumar targets show OP``: one operator over SoCs, CANN states and opsets."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import onnx

from ..case import Record
from ..errors import TargetError
from ..reports.table import Cell, table_lines
from ..targets import Status, Target, cann_states, default_cann, find_target, socs, support
from ..targets.kernels import tables_for
from ..targets.limits import Limit, limits_of
from ..targets.parser import registration
from ..targets.survey import (
    Answer,
    KernelTypes,
    answers,
    is_extension,
    is_registered,
    kernel_types,
    parser_source,
    registered,
    registered_operators,
    soc_groups,
    split_key,
    state_basis,
)
from ..targets.tables import opset_text
from ..text import Text, say
from .targets_words import BASES, EFFECTS, ENGINES, STATUSES

DEFAULT_SOC = "Ascend310P3"
"""Whose input types are shown when no SoC is named."""

Reasons = dict[str, tuple[int, Text]]
"""What is not known, with the number under which a table refers to it."""


def find_operator(name: str) -> str | None:
    """The key (``op`` or ``domain::op``) of an operator of any known registration or of the ONNX standard, whatever the case."""
    plain = name.removeprefix("ai.onnx::")
    keys = _operators()
    return plain if plain in keys else {key.lower(): key for key in sorted(keys)}.get(plain.lower())


def near_operators(name: str) -> list[str]:
    """Operators whose name is like this one, or is this one in another domain; the nearest first."""
    wanted = name.rpartition("::")[2].lower()
    short: dict[str, list[str]] = {}
    for key in sorted(_operators()):
        short.setdefault(split_key(key)[1].lower(), []).append(key)
    return [key for near in difflib.get_close_matches(wanted, short, n=3, cutoff=0.75) for key in short[near]][:5]


def _operators() -> set[str]:
    standard = {f"{schema.domain}::{schema.name}" if schema.domain else schema.name for schema in onnx.defs.get_all_schemas()}
    return {*standard, *registered_operators()}


def show_operator(key: str, *, soc: str | None = None, cann: str | None = None) -> Record:
    """All that is known of one operator.

    ``data`` has ``operator``, ``extension``, ``parser`` (opsets by CANN state), ``targets`` (the answer for each SoC at the newest opset
    of ``cann``), ``engines`` (the answers for each kernel table, CANN state and stretch of opsets), ``dtypes`` (of ``soc``), ``limits`` and
    ``sources``.

    Args:
        key: ``op`` or ``domain::op`` as :func:`find_operator` gives it.
        soc: only this SoC; without it all SoCs, and the input types of Ascend310P3.
        cann: only this CANN state; without it all of them, and limits and input types of the default one.
    """
    target = find_target(soc or DEFAULT_SOC, cann=cann)
    states = (cann,) if cann else cann_states(soc)
    groups = ((soc,),) if soc else soc_groups(key)
    types = kernel_types(key, _newest(key, target), target)
    parser = [_parser_row(key, state) for state in states]
    engines = [_engine_row(key, group, state) for group in groups for state in states]
    sources = _sources(key, types, target)
    data = {
        "operator": key,
        "extension": is_extension(key),
        "cann": target.cann,
        "parser": parser,
        "targets": [_target_row(key, find_target(name, cann=target.cann)) for name in ((soc,) if soc else socs())],
        "engines": engines,
        "dtypes": {"soc": target.soc.name, "cann": target.cann, "kernels": [_types_row(item) for item in types]},
        "limits": [_limit_row(limit, target) for limit in _limits(key)],
        "sources": sources,
    }
    notes = (
        _title(key),
        *_state_lines(key, parser, soc),
        *(() if soc else _engine_lines(key, states)),
        *_types_lines(types, target),
        *_limit_lines(_limits(key), target),
        *_source_lines(sources),
    )
    return Record(verb="targets", data=data, notes=notes)


def _newest(key: str, target: Target) -> int:
    """The newest opset at which the operator is or may be registered for the target; without one, the target's own."""
    found = registration(key, target.cann)
    known = set() if found is None else {*found.accepted, *found.maybe}
    return max((opset for opset in known if target.opset_min <= opset <= target.opset_max), default=target.opset_max)


def _title(key: str) -> Text:
    if is_extension(key):
        return say("{op}: an operator of CANN, not of the ONNX standard", "{op}：CANN 自有算子，不属于 ONNX 标准", op=key)
    return say("{op}", "{op}", op=key)


def _parser_row(key: str, cann: str) -> dict[str, Any]:
    found, basis = registration(key, cann), state_basis(cann)
    accepted, maybe = registered(key, cann)
    return {
        "cann": cann,
        "opsets": accepted,
        "maybe": maybe,
        "basis": basis.parser,
        "source": basis.source,
        "documented_range": f"{basis.opset_min}-{basis.opset_max}",
        "confidence": None if found is None else found.confidence,
        "evidence": [] if found is None else list(found.evidence),
    }


def _target_row(key: str, target: Target) -> dict[str, Any]:
    opset = _newest(key, target)
    answer = support(*split_key(key), opset, target)
    return {
        "soc": target.soc.name,
        "cann": target.cann,
        "opset": opset,
        "status": answer.status.value,
        "engine": answer.engine,
        "opsets": answer.opsets,
        "confidence": answer.confidence,
        "reason": None if answer.reason is None else answer.reason.to_dict(),
        "evidence": list(answer.evidence),
    }


def _engine_row(key: str, group: Sequence[str], cann: str) -> dict[str, Any]:
    target = find_target(group[0], cann=cann)
    rows = [
        {
            "opsets": opset_text(item.opsets),
            "status": item.status.value,
            "engine": item.engine,
            "confidence": item.confidence,
            "reason": None if item.reason is None else item.reason.to_dict(),
        }
        for item in answers(*split_key(key), target)
    ]
    return {"kernels": target.soc.kernels, "socs": list(group), "cann": cann, "basis": state_basis(cann).kernels, "answers": rows}


def _types_row(item: KernelTypes) -> dict[str, Any]:
    inputs = [{"name": one.name, "types": list(one.types), "at_most": one.at_most, "optional": one.optional} for one in item.inputs]
    return {"ir": item.ir, "of": item.of, "engine": item.engine, "source": item.source, "inputs": inputs}


def _limits(key: str) -> tuple[Limit, ...]:
    return () if "::" in key else limits_of(key)


def _limit_row(limit: Limit, target: Target) -> dict[str, Any]:
    return {
        "effect": limit.effect,
        "text": limit.text.to_dict(),
        "when": dict(limit.when),
        "opsets": opset_text(limit.opsets),
        "cann": [name for name in cann_states() if name in limit.states],
        "applies": target.cann in limit.states,
        "source": limit.source,
        "confidence": limit.confidence,
    }


def _sources(key: str, types: Sequence[KernelTypes], target: Target) -> list[str]:
    """The plug-in that parses the operator and the kernel tables that speak for the target, its own kernels' first."""
    plugin = parser_source(key)
    tables = [item.source for item in tables_for(target.cann, target.soc)[0]] if plugin else []
    return list(dict.fromkeys([*([plugin] if plugin else []), *(item.source for item in types), *tables]))


def _state_lines(key: str, rows: Sequence[dict[str, Any]], soc: str | None) -> tuple[Text, ...]:
    """One line for each CANN state: opsets, the engine if one SoC was named, and what the state rests on."""
    if not any(row["opsets"] or row["maybe"] for row in rows):
        return (say("Parser: registered in none of these CANN versions", "解析器：这些 CANN 版本都没有注册"),)
    reasons: Reasons = {}
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        default = say("{cann} (default)", "{cann}（默认）", cann=row["cann"]) if row["cann"] == default_cann() else row["cann"]
        maybe = say("; unknown at {opsets}", "；{opsets} 未知", opsets=row["maybe"]) if row["maybe"] else ""
        opsets = say("{opsets}{maybe}", "{opsets}{maybe}", opsets=f"opset {row['opsets'] or '-'}", maybe=maybe)
        engine = () if soc is None else (_cell(key, soc, row["cann"], reasons),)
        basis = say("{basis}: {source}", "{basis}：{source}", basis=BASES[row["basis"]], source=row["source"])
        lines.append((default, opsets, *engine, basis))
    title = say("Parser: opsets at which it is registered", "解析器：注册的 opset")
    if soc is not None:
        title = say("Parser, and engine on {soc}", "解析器，以及在 {soc} 上的引擎", soc=soc)
    return (title, *table_lines(lines), *_footnotes(reasons))


def _engine_lines(key: str, states: Sequence[str]) -> tuple[Text, ...]:
    """All SoCs against the states that have kernel tables of their own, or the one that was named."""
    if not is_registered(key, default_cann()):
        return ()
    reasons: Reasons = {}
    shown = states if len(states) == 1 else [name for name in states if state_basis(name).kernels == "exact"]
    rows: list[tuple[Cell, ...]] = [(*shown, "soc_version")]
    rows += [(*(_cell(key, group[0], cann, reasons) for cann in shown), ", ".join(group)) for group in soc_groups(key)]
    title = say("Engine by CANN and SoC", "各 CANN 版本、SoC 上的引擎")
    return (title, *table_lines(rows), *_footnotes(reasons))


def _footnotes(reasons: Reasons) -> tuple[Text, ...]:
    return tuple(say("  [{number}] {reason}", "  [{number}] {reason}", number=number, reason=text) for number, text in reasons.values())


def _cell(key: str, soc: str, cann: str, reasons: Reasons) -> Text:
    """The answers of one SoC at one state in a few words; what is unknown gets a number that is explained below."""
    found = answers(*split_key(key), find_target(soc, cann=cann))
    if not found:
        return say("not parsed", "不可解析")
    if not any(item.table for item in found):
        return say("no table", "无算子表")
    words = [_words(item, reasons, with_opsets=len(found) > 1) for item in found]
    return Text(", ".join(word.render("en") for word in words), "，".join(word.render("zh") for word in words))


def _words(item: Answer, reasons: Reasons, *, with_opsets: bool) -> Text:
    number: Cell = ""
    if item.reason is not None:
        index, _ = reasons.setdefault(str(item.reason), (len(reasons) + 1, item.reason))
        number = f" [{index}]"
    opsets = f" {opset_text(item.opsets)}" if with_opsets else ""
    inferred = say(" (inferred)", "（推断）") if item.confidence == "inferred" and item.status is not Status.UNKNOWN else ""
    return say(
        "{word}{opsets}{inferred}{number}",
        "{word}{opsets}{inferred}{number}",
        word=STATUSES[item.status],
        opsets=opsets,
        inferred=inferred,
        number=number,
    )


def _types_lines(types: Sequence[KernelTypes], target: Target) -> tuple[Text, ...]:
    if not types:
        return ()
    rows: list[tuple[Cell, ...]] = []
    for item in types:
        ir = item.ir if item.ir == item.of else f"{item.of} > {item.ir}"
        same: dict[tuple[bool, str], list[str]] = {}
        for one in item.inputs:
            same.setdefault((one.at_most, ", ".join(one.types)), []).append(f"{one.name}?" if one.optional else one.name)
        for (at_most, listed), names in same.items():
            shown = listed or say("not listed", "未列出")
            taken = say("at most {types}", "至多 {types}", types=shown) if at_most and listed else say("{types}", "{types}", types=shown)
            rows.append((ir, ENGINES[item.engine], ", ".join(names), taken))
    title = say(
        "Input types on {target} (? = optional; at most = chosen when the operator is compiled)",
        "{target} 上的输入类型（? 为可选；“至多”表示算子编译时再确定）",
        target=target.label,
    )
    return (title, *table_lines(rows)) if rows else ()


def _limit_lines(limits: Sequence[Limit], target: Target) -> tuple[Text, ...]:
    applying = [limit for limit in limits if target.cann in limit.states]
    if not applying:
        return ()
    rows: list[tuple[Cell, ...]] = []
    for limit in applying:
        opsets = f"opset {opset_text(limit.opsets)}: " if limit.opsets else ""
        line = say(
            "{opsets}{text} ({confidence}: {source})",
            "{opsets}{text}（{confidence}：{source}）",
            opsets=opsets,
            text=limit.text,
            confidence=limit.confidence,
            source=limit.source,
        )
        rows.append((EFFECTS[limit.effect], line))
    return (say("Limits at CANN {cann}", "CANN {cann} 的限制", cann=target.cann), *table_lines(rows))


def _source_lines(sources: Sequence[str]) -> tuple[Text, ...]:
    return (say("Sources", "来源"), *table_lines([(source,) for source in sources])) if sources else ()


def unknown_name(name: str, near: Sequence[str]) -> TargetError:
    """The error for a name that is nothing, but near to an operator."""
    return TargetError(
        say("`{name}` is neither a SoC, a profile nor an operator", "`{name}` 不是 SoC、目标配置或算子", name=name),
        say("expected perhaps {near}", "也许应为 {near}", near=", ".join(near)),
        say(
            "name a SoC, a profile or an ONNX operator (`jumar targets list`)",
            "请给出 SoC、目标配置或 ONNX 算子（`jumar targets list`）",
        ),
    )
