"""``jumar targets``: the fact tables, readable."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ..case import Record
from ..errors import TargetError
from ..reports.table import Cell, table_lines
from ..targets import cann_states, default_cann, profiles, soc_info, socs
from ..targets.survey import state_basis
from ..text import Text, say
from .targets_show import find_operator, near_operators, show_operator, unknown_name
from .targets_words import BASES, KERNELS


def list_targets() -> Record:
    """All soc_version names with family and products, the profiles and the CANN states with what is known of each.

    They are in ``data["socs"]``, ``data["profiles"]`` and ``data["cann_states"]`` (``data["cann"]`` has their names).
    """
    rows: list[dict[str, Any]] = []
    for name in socs():
        info = soc_info(name)
        rows.append(
            {
                "soc": name,
                "family": info.family,
                "operator_table": info.kernels is not None,
                "products": [item["text"] for item in info.products],
            }
        )
    states = [
        {
            "cann": basis.cann,
            "default": basis.cann == default_cann(),
            "parser": basis.parser,
            "kernels": basis.kernels,
            "opset_min": basis.opset_min,
            "opset_max": basis.opset_max,
            "confidence": basis.confidence,
            "source": basis.source,
        }
        for basis in map(state_basis, cann_states())
    ]
    data = {"socs": rows, "profiles": profiles(), "cann": list(cann_states()), "cann_states": states}
    return Record(verb="targets", data=data, notes=(*_soc_lines(rows), *_profile_lines(), *_state_lines(states)))


def _soc_lines(rows: Sequence[Mapping[str, Any]]) -> list[Text]:
    return [
        say(
            "{soc:<18} {family}{products}{table}",
            "{soc:<18} {family}{products}{table}",
            soc=row["soc"],
            family=row["family"],
            products=f" [{'; '.join(row['products'])}]" if row["products"] else "",
            table=""
            if row["operator_table"]
            else say(" (no public operator table: verdicts are unknown)", "（没有公开的算子表：结论均为未知）"),
        )
        for row in rows
    ]


def _profile_lines() -> list[Text]:
    return [
        say(
            "{name:<18} profile: {soc}, opset up to {opset} (confidence {confidence})",
            "{name:<18} 配置：{soc}，opset 上限 {opset}（可信度 {confidence}）",
            name=name,
            soc=profile["soc"],
            opset=profile["opset_max"],
            confidence=profile["confidence"],
        )
        for name, profile in profiles().items()
    ]


def _state_lines(states: Sequence[Mapping[str, Any]]) -> tuple[Text, ...]:
    cells: list[tuple[Cell, ...]] = []
    for state in states:
        default = say(" (default)", "（默认）") if state["default"] else ""
        cells.append(
            (
                say("{state}{default}", "{state}{default}", state=f"CANN {state['cann']}", default=default),
                f"opset {state['opset_min']}-{state['opset_max']}",
                say("parser: {words}", "解析器：{words}", words=BASES[state["parser"]]),
                say("kernels: {words}", "算子表：{words}", words=KERNELS[state["kernels"]]),
            )
        )
    return table_lines(cells, indent="")


def show_target(name: str, *, soc: str | None = None, cann: str | None = None) -> Record:
    """Facts of one SoC or profile, or all that is known of one operator.

    Args:
        name: a soc_version, a profile, or an operator (``NonZero``, ``npu::NPUGru``; case does not matter).
        soc: for an operator, only this SoC.
        cann: for an operator, only this CANN version.

    Raises:
        TargetError: neither a SoC, a profile nor an operator; a family name is answered with its members.
    """
    if name in profiles():
        found = profiles()[name]
        return _show_soc(found["soc"], {"profile": name, **found})
    operator = None if name in socs() else find_operator(name)
    if operator is not None:
        return show_operator(operator, soc=soc, cann=cann)
    near = near_operators(name)
    if near and not _like_a_soc(name, near[0]):
        raise unknown_name(name, near)
    try:
        return _show_soc(name, {})
    except TargetError as error:
        hint = unknown_name(name, near or [name])
        raise TargetError(error.found, error.expected, hint.remedy) from error


def _like_a_soc(name: str, operator: str) -> bool:
    """Whether a name is nearer to a SoC or a family than to an operator."""

    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()

    return max(likeness(other) for soc in socs() for other in (soc, soc_info(soc).short)) >= likeness(operator)


def _show_soc(name: str, extra: dict[str, Any]) -> Record:
    info = soc_info(name)
    data = {
        "soc": info.name,
        "family": info.family,
        "ai_cores": info.ai_cores,
        "ai_cpus": info.ai_cpus,
        "memory_bytes": info.memory_bytes,
        "peak_fp16_tflops_derived": info.peak_fp16_tflops,
        "peak_int8_tops_derived": info.peak_int8_tops,
        "aicpu_package": info.aicpu_package,
        "operator_table": info.kernels,
        "products": [dict(item) for item in info.products],
        "source": info.source,
        **extra,
    }
    lines = [say("{key}: {value}", "{key}: {value}", key=key, value=_value(value)) for key, value in data.items()]
    if info.caution is not None:
        lines.append(say("caution: {fact}", "注意：{fact}", fact=info.caution))
    return Record(verb="targets", data=data, notes=tuple(lines))


def _value(value: Any) -> Text | str:
    """A fact in words: numbers nobody published are said to be so."""
    if value is None or value == []:
        return say("not public", "未公开")
    if isinstance(value, list):
        return "; ".join(f"{item['text']} ({item['confidence']})" for item in value)
    return str(value)
