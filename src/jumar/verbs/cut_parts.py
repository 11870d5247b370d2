"""``jumar fix --cut``: what the device cannot do becomes models for the host, proven as a chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..case import Artifact, Case, Finding, Proof, Record, Step
from ..cutting import Chain, Division, Part, Reason, Split, blocked_nodes, boundaries, divide, split, still_wrong
from ..errors import UsageError
from ..graph import Evaluator, copy_model, load, node_place, save
from ..graph.digest import file_sha256
from ..graph.ranges import is_integer, whole
from ..proof import FeedSet, Interface, Prover
from ..proof.metrics import proof_of
from ..rules import Context
from ..text import say
from .cut_words import crossing_bytes, cut_findings, told_parts
from .verify import compare_chain, excused_outputs

BOUND = 1e-4
"""Allowed ``max_rel`` of the chain against the original."""
_MOST_ROUNDS = 3
_NO_WORK = frozenset({"Constant", "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
_OPEN = say(
    "the model's inputs have open sizes, and so has what crosses the cut: give them with --shape",
    "模型输入的大小未定，切分处的张量也随之未定：请用 --shape 给出",
)
FixDevice = Callable[[ir.Model, FeedSet, Mapping[str, tuple[int, int]]], Case]
"""Fixes a device part on the tensors that reach it, given between which numbers its integer inputs lie."""


@dataclass(frozen=True)
class Attempt:
    """One way to cut: the device part is fixed, nothing is written yet."""

    division: Division
    blocked: Mapping[ir.Node, Reason]
    parts: Split
    device: Case
    chain: Chain


@dataclass
class Cutter:
    """Cuts a model that was fixed as far as it goes.

    Attributes:
        result: the model and its findings; ``interface`` is what became of the inputs and outputs of the original.
        aicpu: with it, nodes that the AI Core does not take for certain are moved too.
        declared: ranges of the model's integer inputs, as the user states them.
        model: a copy of the result's model, for what is learnt of its tensors.
    """

    result: Case
    interface: Interface
    prover: Prover
    evaluator: Evaluator
    fix_device: FixDevice
    aicpu: bool = False
    declared: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    model: ir.Model = field(init=False)

    def __post_init__(self) -> None:
        self.model = copy_model(self.result.model)

    def cut(self, output: Path | None) -> Case:
        """The device part, with the steps that led there; the host's parts are written beside it.

        Raises:
            UsageError: nothing is blocked, nothing would be left for the device, or the chain does not give what the original gives.
            EvaluationError: a part does not run.
        """
        start = time.perf_counter()
        attempt, proof = self.best()
        findings = cut_findings(attempt.division, attempt.blocked, attempt.parts.device)
        return written(
            self.result, attempt.device, attempt.chain, told_options(attempt.division, attempt.parts.device), proof, findings, start, output
        )

    def best(self) -> tuple[Attempt, Proof]:
        """The cut that leaves most to the device, and the proof of its chain.

        Raises:
            UsageError, EvaluationError: as :meth:`cut`.
        """
        attempt = self._attempt({})
        more: dict[str, str] = {}
        for _ in range(_MOST_ROUNDS - 1):
            # Cut off from what came before, a node may be in the way that was not before: it goes to the host as well.
            made = {value.name for node in attempt.division.device for value in node.outputs if value.name}
            wrong = still_wrong(attempt.device.model, attempt.device.record.findings, made)
            if not wrong:
                break
            more |= wrong
            attempt = self._attempt(more)
        proof = prove_chain(self.prover, attempt.chain, self.interface, self.evaluator)
        return attempt, proof

    def _attempt(self, more: Mapping[str, str]) -> Attempt:
        target = self.result.target
        context = Context(self.model, target) if self.aicpu and target is not None else None
        blocked = blocked_nodes(self.model, self.result.record.findings, context, more)
        division = divided(self.model, blocked)
        self._know_types(division)
        parts = split(self.model, division)
        chain, known = [], [self.interface.to_model(feed) for feed in self.prover.feeds.cases]
        if parts.before is not None:
            part = Part("before", parts.before, Interface.of(parts.before))
            chain.append(part)
            with self.evaluator.session(part.model) as session:
                known = [{**feed, **session.run({name: feed[name] for name in part.interface.inputs})} for feed in known]
        ends = Interface.of(parts.device)
        reaching = FeedSet(tuple({name: feed[name] for name in ends.inputs} for feed in known), self.prover.feeds.origin)
        device = self.fix_device(parts.device, reaching, self._ranges(ends.inputs))
        chain.append(Part("device", device.model, ends.changed(device.record.interface or {})))
        if parts.after is not None:
            chain.append(Part("after", parts.after, Interface.of(parts.after)))
        outputs = tuple(port.name for port in self.interface.outputs.values())
        return Attempt(division, blocked, parts, device, Chain(tuple(chain), outputs))

    def _know_types(self, division: Division) -> None:
        """Dtypes and ranks of tensors at the boundaries that inference knows nothing of, from one run."""
        values = {value.name or "": value for node in self.model.graph for value in node.outputs}
        names = {name for side in boundaries(self.model, division) for name in (*side.inputs, *side.outputs) if name in values}
        unknown = [values[name] for name in sorted(names) if values[name].type is None or values[name].shape is None]
        if not unknown:
            return
        captured = self.prover.capture(self.model, self.interface, [value.name or "" for value in unknown], 1)[0]
        for value in unknown:
            array = captured.get(value.name or "")
            if isinstance(array, np.ndarray):
                if value.type is None:
                    text = array.dtype.kind in "OUS"
                    value.type = ir.TensorType(ir.DataType.STRING if text else ir.DataType.from_numpy(array.dtype))
                value.shape = ir.Shape([None] * array.ndim)

    def _ranges(self, names: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Between which numbers the integer tensors lie that reach the device: what the model before them says is not lost."""
        given = {value.name for value in self.model.graph.inputs}
        wanted = {name for name in names if name not in given or name in self.declared}
        values = [*self.model.graph.inputs, *(value for node in self.model.graph for value in node.outputs)]
        integers = [value for value in values if value.name in wanted and is_integer(value.dtype) and value.dtype != ir.DataType.BOOL]
        if not integers or self.result.target is None:
            return {}
        ranges = Context(self.model, self.result.target, declared=self.declared).ranges()
        limits = {value.name or "": ranges.of(value) for value in integers if ranges.of(value) != whole(value.dtype)}
        return {name: (int(found.lo), int(found.hi)) for name, found in limits.items()}


def must_cut(record: Record, aicpu: bool) -> bool:
    """Whether something is left that a cut could move."""
    placement = record.placement
    doubtful = 0 if placement is None else placement.aicpu + placement.unknown
    return record.verdict == "blocked" or (aicpu and doubtful > 0)


def prove_chain(prover: Prover, chain: Chain, interface: Interface, evaluator: Evaluator) -> Proof:
    """The chain against the original on all cases; an output may differ by what it moves for rounding alone (see ``Prover.noise``).

    Raises:
        UsageError: it does not give what the original gives.
    """
    comparisons = compare_chain(prover, chain, interface, evaluator)
    count = len(prover.feeds.cases)
    excused = excused_outputs(prover, comparisons, BOUND)
    rest = [item for name, item in comparisons.items() if name not in excused]
    proof = proof_of(rest, count, BOUND)
    if excused and (proof.passed or not rest):
        proof = proof_of((comparisons[name] for name in excused), count, max(excused.values()), "max_scaled")
    if proof.passed:
        return proof
    raise UsageError(
        say(
            "the cut model does not give what the original gives: {reason}",
            "切分后的模型与原模型结果不一致：{reason}",
            reason=proof.reason or say("max_rel is {value}", "max_rel 为 {value}", value=f"{proof.max_rel:.3g}"),
        ),
        say("expected equal outputs", "应得到相同的输出"),
        say("give real inputs with --feeds, or leave --cut out", "请用 --feeds 提供真实输入，或去掉 --cut"),
    )


def told_options(division: Division, device: ir.Model) -> dict[str, Any]:
    """What the step says in numbers."""
    return {
        "host_share": None if division.host_share is None else round(division.host_share, 4),
        "other_share": round(division.other_share, 4),
        "crossing_bytes": crossing_bytes(device),
    }


def written(
    result: Case,
    device: Case,
    chain: Chain,
    options: Mapping[str, Any],
    proof: Proof,
    findings: Sequence[Finding],
    start: float,
    output: Path | None,
) -> Case:
    """The parts in files, and the case of the device part with all that was done.

    Args:
        result: what was cut: its steps and interface are told before those of the device part.
    """
    files: dict[str, tuple[Artifact, ...]] = {}
    if output is not None:
        files = {part.name: artifacts(save(part.model, part_file(output, part.name))) for part in chain.parts}
    hosts = [part for part in chain.parts if part.name != "device"]
    step = Step(
        name="cut",
        version=__version__,
        code="CU850",
        input_sha256=None,
        output_sha256=device.record.steps[-1].output_sha256 if device.record.steps else None,
        seconds=round(time.perf_counter() - start, 4),
        options={"cut": told_parts(chain, {name: (Path(found[0].path).name, found[0].sha256) for name, found in files.items()}), **options},
        proof=proof,
        status="applied",
        nodes=tuple(node_place(node) for part in hosts for node in part.model.graph),
    )
    standing = {(item.code, item.node) for item in device.record.findings}
    cured = tuple(item for item in result.record.findings if item.severity == "error" and (item.code, item.node) not in standing)
    made = tuple(item for found in files.values() for item in found)
    notes = () if _is_static(result.model) else (_OPEN,)
    record = result.record.extend(steps=(*device.record.steps, step), resolved=cured, artifacts=made, notes=notes)
    record = replace(record, findings=_sorted((*device.record.findings, *findings)), placement=device.record.placement)
    return Case(device.model if output is None else load(output), result.target, record)


def divided(model: ir.Model, blocked: Mapping[ir.Node, Reason]) -> Division:
    if not blocked:
        raise UsageError(
            say("no operator is in the way that could be cut away", "没有可切除的受阻算子"),
            say("expected an error finding at a node", "应有针对节点的错误结果"),
            say("mend what `jumar check` lists, or leave --cut out", "请修复 `jumar check` 列出的问题，或去掉 --cut"),
        )
    division = divide(model.graph, blocked.keys())
    if all(node.op_type in _NO_WORK for node in division.device):
        raise UsageError(
            say("after the cut nothing would be left for the device", "切分后设备上没有剩余的计算"),
            say("expected work that only blocked operators do not surround", "应有不完全被受阻算子包围的计算"),
            say(
                "replace these operators before export: {ops}",
                "请在导出前替换这些算子：{ops}",
                ops=", ".join(sorted({node.op_type for node in blocked})),
            ),
        )
    return division


def _is_static(model: ir.Model) -> bool:
    return all(value.shape is not None and value.shape.is_static() for value in model.graph.inputs)


def part_file(output: Path, part: str) -> Path:
    """Where a part is written: the device part as ``output`` itself."""
    return output if part == "device" else output.with_name(f"{output.stem}.{part}{output.suffix or '.onnx'}")


def artifacts(files: Sequence[Path]) -> tuple[Artifact, ...]:
    """The first file is the model, the others hold its weights."""
    return tuple(Artifact(str(path), file_sha256(path), "model" if path == files[0] else "weights") for path in files)


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    rank = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(findings, key=lambda item: rank[item.severity]))
