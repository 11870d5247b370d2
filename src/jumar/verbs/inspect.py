"""``jumar inspect``: what a file says of itself. A compiled model (.om), an ONNX model, or a bundle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..case import Record
from ..errors import UsageError
from ..om import OmFile, check_fits, looks_like_om
from ..om import read as read_om
from ..om.read import digest
from ..reports.table import Cell, table_lines
from ..targets import Target, find_target
from ..text import Text, say
from .inspect_bundle import inspect_bundle
from .inspect_om import om_notes, one_line

if TYPE_CHECKING:
    from ..graph.lineage import Origin


def inspect(
    path: str | Path,
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    operators: bool = False,
    source: bool = False,
) -> Record:
    """What a file says of itself; nothing in it is executed.

    Args:
        path: an .om file, an .onnx file, or the directory of a bundle.
        soc, target, cann: a target. With it, the record has findings on whether an .om fits it (CP710 to CP713).
        operators: list every operator in the text, not their counts alone (``data`` always has all of an .om).
        source: of an ONNX model, list each node with the module and the Python line that made it, as far as it knows them.

    Returns:
        A record without a model for an .om; for ONNX its ``model``. ``data`` has ``kind`` (``om``, ``onnx`` or ``bundle``), ``path`` and,
        for a file, ``sha256``; for an .om also ``header``, ``soc_version``, ``atc_version``, ``command_line``, ``weights_bytes``
        (bytes), ``models`` (each with ``partitions``, ``inputs``, ``outputs``, ``gears``, ``aipp``, ``operators``, ``engines``) and
        ``images`` (the same for images inside it). Shapes have null for an open dimension.

    Raises:
        ModelError: the file is absent, truncated, or no such model.
        TargetError: unknown target.
        UsageError: a target was named for what is no .om.
    """
    found = _target(soc, target, cann)
    place = Path(path)
    om = looks_like_om(place)
    if found is not None and not om:
        raise UsageError(
            say("a target says nothing of `{path}`, which is no .om", "`{path}` 不是 .om，目标对它没有意义", path=place),
            say("expected an .om file with --soc", "--soc 只用于 .om 文件"),
            say("for an ONNX model use `jumar check`", "ONNX 模型请用 `jumar check`"),
        )
    if om:
        return _om(place, found, operators)
    if place.is_dir():
        return inspect_bundle(place, operators)
    return _onnx(place, operators, source)


def _target(soc: str | None, target: str | Target | None, cann: str | None) -> Target | None:
    if isinstance(target, Target):
        return target
    if soc is None and target is None and cann is None:
        return None
    return find_target(soc, profile=target, cann=cann)


def om_record(path: Path, om: OmFile, target: Target | None, operators: bool) -> Record:
    """The record of an .om that has been read."""
    data: dict[str, Any] = {"kind": "om", "path": str(path), "sha256": digest(path), **om.to_dict()}
    return Record(
        verb="inspect",
        target=None if target is None else target.to_dict(),
        findings=() if target is None else tuple(check_fits(om, target)),
        notes=(say("{path}", "{path}", path=path), *om_notes(om, operators)),
        data=data,
    )


def _om(path: Path, target: Target | None, operators: bool) -> Record:
    return om_record(path, read_om(path), target, operators)


def _onnx(path: Path, every: bool, source: bool) -> Record:
    from ..graph import all_nodes, model_info
    from ..graph.lineage import node_origins
    from .common import open_case

    case = open_case(str(path), "inspect", need_target=False, quick=True)
    model = case.model
    info = model_info(model, path)
    nodes = [
        (f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type, node.name or "-")
        for node in all_nodes(model)
    ]
    counts = Counter(kind for kind, _ in nodes)
    weights = [value.const_value for graph in model.graphs() for value in graph.initializers.values() if value.const_value is not None]
    size = sum(int(weight.nbytes) for weight in weights)
    producer = " ".join(part for part in (model.producer_name, model.producer_version) if part)
    imports = {name or "ai.onnx": version for name, version in model.opset_imports.items()}
    notes: list[Text] = []
    for title, tensors in ((say("Inputs", "输入"), info.inputs), (say("Outputs", "输出"), info.outputs)):
        notes.append(title)
        notes += table_lines([(tensor.name, tensor.dtype, _dims(tensor.shape)) for tensor in tensors] or [("-", "", "")])
    rows: list[tuple[Cell, Cell]] = [
        ("opset", ", ".join(f"{name} {version}" for name, version in imports.items())),
        (say("producer", "导出工具"), producer or "-"),
        (say("weights", "权重"), say("{count} tensors, {size} bytes", "{count} 个张量，{size} 字节", count=len(weights), size=size)),
        (
            say("operators", "算子"),
            say(
                "{count}: {kinds}",
                "{count} 个：{kinds}",
                count=len(nodes),
                kinds=", ".join(f"{kind} {count}" for kind, count in counts.most_common()) or "-",
            ),
        ),
    ]
    notes += table_lines(rows, indent="")
    if every and nodes:
        notes += table_lines(nodes)
    origins = node_origins(model) if source else []
    if source:
        notes += _origins(origins)
    data = {
        "kind": "onnx",
        "path": str(path),
        "sha256": info.sha256,
        "ir_version": model.ir_version,
        "opset_imports": imports,
        "producer": producer,
        "weights_bytes": size,
        "operator_counts": dict(counts.most_common()),
        **({"sources": [asdict(origin) for origin in origins]} if source else {}),
    }
    return Record(verb="inspect", model=info, notes=tuple(map(one_line, notes)), data=data)


def _origins(origins: Sequence[Origin]) -> list[Text]:
    known = [origin for origin in origins if origin.line is not None]
    title = say(
        "Source lines: of {known} of {count} nodes", "源代码行：{count} 个节点中有 {known} 个已知", known=len(known), count=len(origins)
    )
    return [title, *table_lines([(origin.op, origin.node, origin.module or "-", origin.line or "-") for origin in origins] or [("-",) * 4])]


def _dims(shape: tuple[int | str | None, ...] | None) -> str:
    return "[...]" if shape is None else "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"
