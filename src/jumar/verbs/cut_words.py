"""What the record says of a cut: the parts, what flows between them, and the findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx_ir as ir

from ..case import Finding
from ..cutting import Chain, Division, Reason, bytes_of, causes, followers, is_counted
from ..graph import all_nodes
from ..graph.load import tensor_info
from ..rules import find_rule, operator_name
from ..text import Text, say

_NAMED = 5
"""Nodes and operators that a finding names."""


def told_parts(chain: Chain, files: Mapping[str, tuple[str, str | None]]) -> list[dict[str, Any]]:
    """The parts in order, as the manifest has them: ``part``, ``file``, ``sha256``, ``inputs`` and ``outputs`` (dtypes by name), ``shapes``,
    ``sources`` (which part makes an input; ``input`` is the caller), ``nodes``, ``interface`` (what the part itself changed at its ends),
    ``results`` (the outputs of the whole).
    """
    told = []
    makers: dict[str, str] = {}
    for part in chain.parts:
        file, digest = files.get(part.name, (None, None))
        infos = {info.name: info for info in map(tensor_info, (*part.model.graph.inputs, *part.model.graph.outputs))}
        ports = {**part.interface.inputs, **part.interface.outputs}
        shapes = {name: infos[port.name].to_dict()["shape"] for name, port in ports.items() if port.name in infos}
        told.append(
            {
                "part": part.name,
                "file": file,
                "sha256": digest,
                "inputs": {name: port.outside for name, port in part.interface.inputs.items()},
                "outputs": {name: port.outside for name, port in part.interface.outputs.items()},
                "shapes": shapes,
                "sources": {name: makers.get(name, "input") for name in part.interface.inputs},
                "interface": part.interface.to_dict(),
                "nodes": sum(1 for _ in all_nodes(part.model)),
                "results": list(chain.outputs),
            }
        )
        makers |= dict.fromkeys(part.interface.outputs, part.name)
    return told


def crossing_bytes(device: ir.Model) -> int | None:
    """Bytes that go in and out of the device part in a run; None where a size is open."""
    sizes = [bytes_of(value) for value in (*_inputs(device), *device.graph.outputs)]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _inputs(model: ir.Model) -> list[ir.Value]:
    return [value for value in model.graph.inputs if value.name not in model.graph.initializers]


def cut_findings(division: Division, blocked: Mapping[ir.Node, Reason], device: ir.Model) -> tuple[Finding, ...]:
    """CU850: what was cut and why. CU851: the host does most of the work."""
    found = causes(blocked)
    size = crossing_bytes(device)
    total = len(division.host) + len(division.device)
    finding = find_rule("CU850").finding(
        say(
            "{before} nodes run on the host before the device and {after} after it (of {total}, {share} of the work), because of {ops}{other}",
            "{before} 个节点在设备之前、{after} 个节点在设备之后由主机执行（共 {total} 个节点，占计算量的 {share}），原因：{ops}{other}",
            before=len(division.before),
            after=len(division.after),
            total=total,
            share=_percent(division.host_share),
            ops=_listed(found),
            other=_other(division),
        ),
        say("the device takes none of these operators in this form", "设备不支持这些算子的这种形式"),
        say(
            "run the parts one after the other; {size} bytes pass in and out of the device part",
            "请依次运行各部分；进出设备部分的数据为 {size} 字节",
            size=say("an open number of", "大小不定的") if size is None else size,
        ),
        evidence=tuple(_evidence(found, blocked)),
    )
    warned = _warned(division, found)
    return (finding,) if warned is None else (finding, warned)


def _warned(division: Division, found: Mapping[tuple[str, str], list[str]]) -> Finding | None:
    remedy = say("replace before export: {ops}", "请在导出前替换：{ops}", ops=_listed(found))
    if division.host_share is not None:
        if division.host_share <= 0.5:
            return None
        message = say("about {share} of the work stays on the host", "约 {share} 的计算留在主机上", share=_percent(division.host_share))
        return find_rule("CU851").finding(message, say("the device would do the smaller part", "设备只承担较小的部分"), remedy)
    open_work = sorted({operator_name(node) for node in division.host if not is_counted(node)})
    if not open_work:
        return None
    return find_rule("CU851").finding(
        say("work that cannot be estimated stays on the host: {ops}", "无法估算的计算留在主机上：{ops}", ops=", ".join(open_work)),
        say("its sizes are open, or nothing is known of the operator", "其大小未定，或算子未知"),
        remedy,
    )


def _percent(share: float | None) -> Text:
    if share is None:
        return say("an unknown share", "未知比例")
    return say("less than 1 %", "不足 1 %") if share < 0.01 else say("{share} %", "{share} %", share=round(100 * share))


def _listed(found: Mapping[tuple[str, str], list[str]]) -> Text:
    texts = [
        say("{item} ({code})", "{item}（{code}）", item=f"{op} x {len(places)}", code=code or _DATA) for (op, code), places in found.items()
    ]
    shown = texts[:_NAMED]
    if len(texts) > _NAMED:
        shown.append(say("{count} more kinds", "另有 {count} 种", count=len(texts) - _NAMED))
    return Text(", ".join(text.en for text in _plain(shown)), "、".join(text.zh for text in _plain(shown)))


_DATA = say("its size depends on the data", "大小依赖数据")


def _plain(texts: Iterable[Text]) -> list[Text]:
    """With the parameters filled in, so that braces of names stay what they are."""
    return [Text(text.render("en"), text.render("zh")) for text in texts]


def _other(division: Division) -> Text:
    if not division.other:
        return say("", "")
    return say(
        "; {count} of these nodes ({share} of the work) the device could do instead of its part, but not both, because what cannot run there lies between",
        "；其中 {count} 个节点（占计算量的 {share}）也可由设备执行，但不能与现有部分同时，因为中间隔着设备不支持的节点",
        count=len(division.other),
        share=_percent(division.other_share),
    )


def _evidence(found: Mapping[tuple[str, str], list[str]], blocked: Mapping[ir.Node, Reason]) -> Iterable[str]:
    for (op, code), places in found.items():
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        yield f"{op} ({code or _DATA.en}): {', '.join(places[:_NAMED])}{more}"
    behind = followers(blocked)
    if behind:
        yield f"read sizes that depend on the data: {', '.join(f'{op} x {count}' for op, count in behind.most_common())}"
