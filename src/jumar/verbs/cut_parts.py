"""``jumar fix --cut``: what the device cannot do becomes models for the host, proven as a chain."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from .. import __version__
from ..case import Case, Finding, Proof, Record, Step
from ..cutting import Chain, Division, Part, divide
from ..errors import UsageError
from ..graph import Evaluator, all_nodes, cut, node_place, static_shape
from ..graph.surgery.lookup import bodies_of, reads
from ..proof import FeedSet, Interface
from ..proof.metrics import compare_all, proof_of
from ..rules import find_rule
from ..text import say

BOUND = 1e-4
"""Allowed ``max_rel`` of the chain against the original."""


@dataclass(frozen=True)
class Pieces:
    """A cut model before its device part is fixed on its own."""

    before: ir.Model | None
    device: ir.Model
    after: ir.Model | None
    division: Division
    blocked: dict[str, int]


def blocked_nodes(model: ir.Model, record: Record) -> dict[ir.Node, str]:
    """Nodes of the main graph that the device cannot take, with the code of the reason.

    Those are the nodes of error findings (a node with a body for what is inside it), and those whose output has no fixed shape though
    every input of the model has one: their size depends on the data.
    """
    wrong = {finding.node: finding.code for finding in record.findings if finding.severity == "error" and finding.node}
    fixed = all(value.shape is not None and value.shape.is_static() for value in model.graph.inputs)
    found: dict[ir.Node, str] = {}
    for node in model.graph:
        inner = [node, *_inside(node)]
        code = next((wrong[node_place(item)] for item in inner if node_place(item) in wrong), None)
        if code is None and fixed and any(isinstance(value.type, ir.TensorType) and static_shape(value) is None for value in node.outputs):
            code = "SH202"
        if code is not None:
            found[node] = code
    return found


def _inside(node: ir.Node) -> list[ir.Node]:
    return [item for _, graphs in bodies_of(node) for graph in graphs for each in (graph, *graph.subgraphs()) for item in each]


def cut_model(model: ir.Model, record: Record) -> Pieces:
    """Cut a model so that nothing blocked is in the device part.

    Raises:
        UsageError: nothing is blocked, or nothing would be left for the device.
    """
    blocked = blocked_nodes(model, record)
    if not blocked:
        raise UsageError(
            say("no operator is in the way that could be cut away", "没有可切除的受阻算子"),
            say("expected an error finding at a node", "应有针对节点的错误结果"),
            say("mend what `jumar check` lists, or leave --cut out", "请修复 `jumar check` 列出的问题，或去掉 --cut"),
        )
    division = divide(model.graph, blocked.keys())
    heavy = [node for node in division.device if node.op_type not in ("Constant", "Identity")]
    if not heavy:
        raise UsageError(
            say("after the cut nothing would be left for the device", "切分后设备上没有剩余的计算"),
            say("expected work that only blocked operators do not surround", "应有不完全被受阻算子包围的计算"),
            say(
                "replace these operators before export: {ops}",
                "请在导出前替换这些算子：{ops}",
                ops=", ".join(sorted({n.op_type for n in blocked})),
            ),
        )
    rest, before, after = model, None, None
    first = _frontier(model, set(division.before), set(division.device) | set(division.after))
    if first:
        before, rest = cut(model, first)
    late = {node.outputs[0].name for node in division.after}
    device = rest
    if late:
        ends = set(late)
        last = _frontier(
            rest, {n for n in rest.graph if n.outputs[0].name not in ends}, {n for n in rest.graph if n.outputs[0].name in ends}
        )
        makers = [(value, value.producer()) for value in rest.graph.outputs]
        last += [value.name or "" for value, maker in makers if maker is not None and maker.outputs[0].name not in ends]
        device, after = cut(rest, list(dict.fromkeys(last)))
    return Pieces(before, device, after, division, dict(Counter(node.op_type for node in blocked)))


def _frontier(model: ir.Model, front: set[ir.Node], back: set[ir.Node]) -> list[str]:
    """Names of tensors that one side makes and the other reads, in order."""
    read = {value for node in back for value in reads(node)}
    return [value.name or "" for node in model.graph if node in front for value in node.outputs if value in read]


def finish_cut(
    pieces: Pieces,
    interface: Interface,
    reference: list[dict[str, Any]],
    feeds: FeedSet,
    evaluator: Evaluator,
    fix_device: Callable[[ir.Model, FeedSet], Case],
    output: Path | None,
) -> tuple[Case, Step, Chain, tuple[Finding, ...]]:
    """Fix the device part on the tensors that reach it, and prove the chain against the original.

    Returns:
        The device part's case, the step that says what was cut, the chain, and findings on the cut.

    Raises:
        UsageError: the chain does not give what the original gives.
        EvaluationError: a part does not run.
    """
    start = time.perf_counter()
    inside = [interface.to_model(feed) for feed in feeds.cases]
    parts: list[Part] = []
    known = [dict(feed) for feed in inside]
    if pieces.before is not None:
        part = Part("before", pieces.before, Interface.of(pieces.before))
        parts.append(part)
        for feed in known:
            feed |= evaluator.run(part.model, {name: feed[name] for name in part.interface.inputs})
    names = [value.name or "" for value in pieces.device.graph.inputs if value.name not in pieces.device.graph.initializers]
    _pin(pieces.device, known[0], all(value.shape is not None and value.shape.is_static() for value in pieces.device.graph.inputs))
    case = fix_device(pieces.device, FeedSet(tuple({name: feed[name] for name in names} for feed in known), feeds.origin))
    changed = Interface.of(pieces.device).changed(case.record.interface or {})
    parts.append(Part("device", case.model, changed))
    if pieces.after is not None:
        parts.append(Part("after", pieces.after, Interface.of(pieces.after)))
    outputs = tuple(port.name for port in interface.outputs.values())
    chain = Chain(tuple(parts), outputs)
    comparisons = [
        item
        for feed, expected in zip(inside, reference, strict=True)
        for item in compare_all(interface.to_caller(chain.run(evaluator, feed)), expected).values()
    ]
    proof = proof_of(comparisons, len(inside), BOUND)
    step = _step(pieces, chain, case, proof, start, output, outputs)
    if not proof.passed:
        raise UsageError(
            say(
                "the cut model does not give what the original gives: {reason}",
                "切分后的模型与原模型结果不一致：{reason}",
                reason=proof.reason or say("", ""),
            ),
            say("expected equal outputs", "应得到相同的输出"),
            say("give real inputs with --feeds, or leave --cut out", "请用 --feeds 提供真实输入，或去掉 --cut"),
        )
    return case, step, chain, _findings(pieces)


def _pin(device: ir.Model, feed: Mapping[str, Any], already: bool) -> None:
    """Tensors that reach the device get the ranks they have, where the model leaves them open."""
    if already:
        return
    for value in device.graph.inputs:
        array = feed.get(value.name or "")
        if array is not None and value.shape is None:
            value.shape = ir.Shape([None] * array.ndim)


def _step(pieces: Pieces, chain: Chain, case: Case, proof: Proof, start: float, output: Path | None, results: tuple[str, ...]) -> Step:
    told, share = [], pieces.division.host_share
    for part in chain.parts:
        file = None if output is None else part_file(output, part.name).name
        told.append(
            {
                "part": part.name,
                "file": file,
                "inputs": {name: port.outside for name, port in part.interface.inputs.items()},
                "outputs": {name: port.outside for name, port in part.interface.outputs.items()},
                "interface": part.interface.to_dict(),
                "nodes": sum(1 for _ in all_nodes(part.model)),
                "results": list(results),
            }
        )
    return Step(
        name="cut",
        version=__version__,
        code="CU850",
        input_sha256=None,
        output_sha256=case.record.steps[-1].output_sha256 if case.record.steps else None,
        seconds=round(time.perf_counter() - start, 4),
        options={"cut": told, "host_share": None if share is None else round(share, 4)},
        proof=proof,
        status="applied" if proof.passed else "rolled-back",
        nodes=tuple(node_place(node) for node in (*pieces.division.before, *pieces.division.after)),
    )


def part_file(output: Path, part: str) -> Path:
    """Where a part is written: the device part as ``output`` itself."""
    return output if part == "device" else output.with_name(f"{output.stem}.{part}{output.suffix or '.onnx'}")


def _findings(pieces: Pieces) -> tuple[Finding, ...]:
    division = pieces.division
    ops = ", ".join(f"{op} x {count}" for op, count in sorted(pieces.blocked.items()))
    crossing = [value for value in pieces.device.graph.inputs if value.name not in pieces.device.graph.initializers]
    size = sum(_size(value) for value in (*crossing, *pieces.device.graph.outputs))
    rule = find_rule("CU850")
    found = [
        rule.finding(
            say(
                "{before} nodes run on the host before the device and {after} after it, because of {ops}",
                "因 {ops}，{before} 个节点在设备之前、{after} 个节点在设备之后由主机执行",
                before=len(division.before),
                after=len(division.after),
                ops=ops,
            ),
            say("the device takes none of these operators", "设备不支持这些算子"),
            say(
                "run the parts one after the other; {size} bytes pass in and out of the device part",
                "请依次运行各部分；进出设备部分的数据为 {size} 字节",
                size=size,
            ),
        )
    ]
    if division.host_share is None or division.host_share > 0.5:
        found.append(
            find_rule("CU851").finding(
                say("products of sizes that depend on the data stay on the host", "大小依赖数据的矩阵乘或卷积留在主机上")
                if division.host_share is None
                else say(
                    "about {share}% of the work stays on the host", "约 {share}% 的计算留在主机上", share=round(100 * division.host_share)
                ),
                say("the device would do the smaller part", "设备只承担较小的部分"),
                say("replace the operators named by the cut before export", "请在导出前替换切分所列的算子"),
            )
        )
    return tuple(found)


def _size(value: ir.Value) -> int:
    shape = static_shape(value)
    return 0 if shape is None or value.dtype is None else int(_product(shape) * value.dtype.itemsize)


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
