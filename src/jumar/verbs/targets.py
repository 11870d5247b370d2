"""``jumar targets``: the fact tables, readable."""

from __future__ import annotations

from typing import Any

import onnx

from ..case import Record
from ..errors import TargetError
from ..targets import cann_states, find_target, profiles, soc_info, socs, support
from ..text import say


def list_targets() -> Record:
    """All soc_version names with family and products, and the profiles, in ``data["socs"]`` and ``data["profiles"]``."""
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
    lines = [
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
    for name, profile in profiles().items():
        lines.append(
            say(
                "{name:<18} profile: {soc}, opset up to {opset} (confidence {confidence})",
                "{name:<18} 配置：{soc}，opset 上限 {opset}（可信度 {confidence}）",
                name=name,
                soc=profile["soc"],
                opset=profile["opset_max"],
                confidence=profile["confidence"],
            )
        )
    return Record(verb="targets", data={"socs": rows, "profiles": profiles(), "cann": list(cann_states())}, notes=tuple(lines))


def show_target(name: str, *, soc: str | None = None) -> Record:
    """Facts of one SoC or profile, or the support of one ONNX operator (at the newest accepted opset) on every SoC with a table.

    Raises:
        TargetError: neither a SoC, a profile nor an operator; a family name is answered with its members.
    """
    if name in profiles():
        target = find_target(profile=name)
        return _show_soc(target.soc.name, {"profile": name, **profiles()[name]})
    if any(schema.name == name for schema in onnx.defs.get_all_schemas()):
        return _show_operator(name, (soc,) if soc else socs())
    try:
        return _show_soc(name, {})
    except TargetError as error:
        raise TargetError(
            error.found,
            error.expected,
            say(
                "name a SoC, a profile or an ONNX operator (`jumar targets list`)",
                "请给出 SoC、目标配置或 ONNX 算子（`jumar targets list`）",
            ),
        ) from error


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
    return Record(
        verb="targets", data=data, notes=tuple(say("{key}: {value}", "{key}: {value}", key=key, value=value) for key, value in data.items())
    )


def _show_operator(op: str, names: tuple[str, ...]) -> Record:
    rows: list[dict[str, Any]] = []
    for name in names:
        target = find_target(name)
        if target.soc.kernels is None:
            continue
        answer = support("", op, target.opset_max, target)
        rows.append(
            {
                "soc": name,
                "cann": target.cann,
                "opset": target.opset_max,
                "status": answer.status.value,
                "engine": answer.engine,
                "opsets": answer.opsets,
                "evidence": list(answer.evidence),
            }
        )
    lines = [
        say(
            "{soc:<18} {status:<20} parser at opset {opsets}",
            "{soc:<18} {status:<20} 解析器支持的 opset：{opsets}",
            soc=row["soc"],
            status=row["status"],
            opsets=row["opsets"] or "-",
        )
        for row in rows
    ]
    facts = rows[0]["evidence"] if rows else []
    return Record(
        verb="targets", data={"operator": op, "targets": rows}, notes=(*lines, *(say("{fact}", "{fact}", fact=fact) for fact in facts))
    )
