"""targets import: the operator tables of an installed CANN."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..case import Artifact, Record
from ..errors import UsageError
from ..graph import write_atomic
from ..targets import declared, overlay, soc_info, socs
from ..targets.encode import pack
from ..targets.installation import ImportedTable, Installation, find_installation
from ..text import Text, say


def import_targets(path: str | Path, *, cann: str | None = None) -> Record:
    """Read the operator tables of an installed CANN into the folder of your own facts, where they win over the packaged ones.

    Args:
        path: the toolkit folder (``ascend-toolkit/latest``), a folder around it, or its ``opp``. Nothing outside is read.
        cann: the release, where the installation does not say it.

    Returns:
        ``data["tables"]``: of each table the SoCs it serves, its operators by engine, and the file; ``data["skipped"]``: SoCs of the
        installation that no soc_version belongs to.

    Raises:
        UsageError: no CANN there, or a file that is not what CANN ships.
        OutputError: the folder cannot be written.
    """
    found = find_installation(path, cann)
    serves: dict[str, list[str]] = {}
    for name in socs():
        serves.setdefault(soc_info(name).short.lower(), []).append(name)
    wanted = [folder for folder in found.folders if folder in serves]
    if not wanted:
        raise UsageError(
            say("`{path}` has tables of {socs} only", "`{path}` 只有 {socs} 的算子表", path=found.opp, socs=", ".join(found.folders)),
            say("expected those of a SoC of `jumar targets list`", "应含 `jumar targets list` 中某个 SoC 的算子表"),
            say("nothing was imported", "未导入任何内容"),
        )
    tables = list(found.tables(wanted))  # all are read before one is written
    rows, artifacts = [], []
    for table in tables:
        file, raw = overlay.imported_file(found.cann, table.kernels), pack(table.data)
        write_atomic(file, raw)
        rows.append(_row(table, serves[table.kernels], file))
        artifacts.append(Artifact(str(file), hashlib.sha256(raw).hexdigest(), "table"))
    overlay.forget()
    declared.forget()
    skipped = [folder for folder in found.folders if folder not in serves]
    data = {
        "cann": found.cann,
        "installation": str(found.opp),
        "tables": rows,
        "skipped": skipped,
        "vendors": list(found.vendors),
        "inactive_vendors": list(found.inactive),
    }
    return Record(verb="targets", artifacts=tuple(artifacts), data=data, notes=tuple(_notes(found, rows, skipped)))


def _row(table: ImportedTable, names: list[str], file: Path) -> dict[str, Any]:
    return {"table": table.kernels, "socs": names, **table.counts, "vendors": list(table.vendors), "file": str(file)}


def _notes(found: Installation, rows: list[dict[str, Any]], skipped: list[str]) -> Iterator[Text]:
    yield say("CANN {cann}, read from {opp}", "CANN {cann}，读自 {opp}", cann=found.cann, opp=found.opp)
    for row in rows:
        yield say(
            "{table:<14} {aicore} AI Core, {aicpu} AI CPU, {aicpu_tf} TensorFlow kernels; for {names}",
            "{table:<14} AI Core {aicore}、AI CPU {aicpu}、TensorFlow {aicpu_tf} 个算子；用于 {names}",
            names=", ".join(row["socs"]),
            **{key: row[key] for key in ("table", "aicore", "aicpu", "aicpu_tf")},
        )
    if found.vendors:
        yield say("operator packages, first wins: {names}", "算子包（靠前者优先）：{names}", names=", ".join(found.vendors))
    if found.inactive:
        yield say(
            "not imported, since vendors/config.ini does not name them and CANN does not load them: {names}",
            "未导入（vendors/config.ini 未列出，CANN 不会加载）：{names}",
            names=", ".join(found.inactive),
        )
    if skipped:
        yield say(
            "not imported, since no soc_version uses them: {names}", "未导入（没有对应的 soc_version）：{names}", names=", ".join(skipped)
        )
    yield say(
        "answers for --cann {cann} on these SoCs now come from your installation; delete the files to undo this",
        "这些 SoC 在 --cann {cann} 下的结论现在来自您的安装；删除这些文件即可恢复",
        cann=found.cann,
    )
