"""``jumar fix --cut`` of a model with operators that nothing here can run: they are cut off first, and the rest is fixed and proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from ..case import Case, Finding, Proof, Record
from ..cutting import Chain, Part, Reason, outward, split
from ..errors import UsageError
from ..graph import Evaluator, copy_model, infer_shapes, node_place
from ..graph.surgery.lookup import bodies_of
from ..proof import FeedSet, Interface, Prover, piece_feeds
from ..reference import operators
from ..rules import find_rule, operator_name
from ..rules.cut.custom_operator import KNOWN_DOMAINS
from ..text import say
from .cut_parts import Cutter, FixDevice, divided, must_cut, prove_chain, told_options, written
from .cut_words import cut_findings

FixMiddle = Callable[[ir.Model, FeedSet], Case]


@dataclass(frozen=True)
class _Inner:
    """What became of the model without its custom operators: the case of the device part, and all parts by the names of the original."""

    device: Case
    parts: tuple[Part, ...]
    proof: Proof
    before_device: Record | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class OuterCut:
    """Cuts off custom operators.

    Attributes:
        result: the case as checked: nothing could be rewritten, because the model could not be run.
        model: its model with the given shapes; ``interface`` is that of the original.
        fix_middle: fixes what is left, ``fix_device`` the device part of that if it must be cut again.
    """

    result: Case
    model: ir.Model
    interface: Interface
    evaluator: Evaluator
    fix_middle: FixMiddle
    fix_device: FixDevice
    aicpu: bool = False

    def cut(self, feeds: str | Path | FeedSet | None, output: Path | None) -> Case | None:
        """The device part, the others beside it; None where the model has no custom operator, so that this is not what is in the way.

        Raises:
            UsageError: nothing would be left for the device, a custom operator is declared for the device (so that its part cannot be
                proven), or the rest cannot be cut.
            EvaluationError: the rest does not run either.
        """
        start = time.perf_counter()
        model = copy_model(self.model)
        infer_shapes(model)
        foreign = {node: Reason("OP101") for node in model.graph if any(_is_foreign(item, model) for item in _with_bodies(node))}
        if not foreign:
            return None
        _must_be_errors(foreign, self.result.record)
        division = divided(model, foreign)
        parts = split(model, division)
        inner = self._inner(parts.device, piece_feeds(feeds, model, parts.device, self.evaluator))
        first = [] if parts.before is None else [Part("custom-before", parts.before, Interface.of(parts.before))]
        last = [] if parts.after is None else [Part("custom-after", parts.after, Interface.of(parts.after))]
        chain = Chain((*first, *inner.parts, *last), tuple(port.name for port in self.interface.outputs.values()))
        names = sorted({operator_name(item) for node in foreign for item in _with_bodies(node) if _is_foreign(item, model)})
        findings = (*cut_findings(division, foreign, parts.device), *inner.findings, _not_run(names))
        told = inner.before_device
        steps, notes = ((), inner.device.record.notes) if told is None else (told.steps, told.notes)
        known = replace(self.result, record=self.result.record.extend(steps=steps, notes=notes))
        device = next(part.model for part in inner.parts if part.name == "device")
        return written(known, inner.device, chain, told_options(division, device), inner.proof, findings, start, output)

    def _inner(self, middle: ir.Model, feeds: FeedSet) -> _Inner:
        case = self.fix_middle(middle, feeds)
        prover = Prover(middle, self.evaluator, feeds)
        ends = Interface.of(middle).changed(case.record.interface or {})
        if not must_cut(case.record, self.aicpu):
            only = (Part("device", case.model, ends),)
            return _Inner(case, only, self._proof(prover, only, middle))
        attempt, _ = Cutter(case, ends, prover, self.evaluator, self.fix_device, self.aicpu).best()
        parts = tuple(outward(part, ends) for part in attempt.chain.parts)
        # Its share is one of the middle, not of the whole: that is unknown, since the work of custom operators is.
        found = cut_findings(replace(attempt.division, host_share=None), attempt.blocked, attempt.parts.device)
        return _Inner(attempt.device, parts, self._proof(prover, parts, middle), case.record, found)

    def _proof(self, prover: Prover, parts: tuple[Part, ...], middle: ir.Model) -> Proof:
        ends = Interface.of(middle)
        return prove_chain(prover, Chain(parts, tuple(ends.outputs)), ends, self.evaluator)


def _with_bodies(node: ir.Node) -> Iterator[ir.Node]:
    yield node
    for _, graphs in bodies_of(node):
        for graph in graphs:
            for each in (graph, *graph.subgraphs()):
                yield from each


def _is_foreign(node: ir.Node, model: ir.Model) -> bool:
    """Whether neither the runtime nor the reference implementation has the operator."""
    if not node.domain or node.domain.startswith(KNOWN_DOMAINS) or node.op_identifier() in model.functions:
        return False
    return not any((item.op_domain, item.__name__) == (node.domain, node.op_type) for item in operators())


def _must_be_errors(foreign: dict[ir.Node, Reason], record: Record) -> None:
    wrong = {finding.node for finding in record.findings if finding.severity == "error"}
    fine = [node_place(node) for node in foreign if not wrong & {node_place(item) for item in _with_bodies(node)}]
    if fine:
        raise UsageError(
            say(
                "`{node}` cannot be run here, and the device is said to take it",
                "`{node}` 无法在此执行，而其被声明为设备支持",
                node=fine[0],
            ),
            say("expected parts that can be proven", "各部分应可证明"),
            say("cut the model by hand around it (`jumar.graph.cut`)", "请手工在其前后切分模型（`jumar.graph.cut`）"),
        )


def _not_run(names: list[str]) -> Finding:
    return find_rule("CU853").finding(
        say(
            "the parts with {names} were not run: nothing here implements these operators",
            "含 {names} 的部分未运行：此处没有这些算子的实现",
            names=", ".join(names),
        ),
        say(
            "what lies between them is proven; these parts hold the nodes of the original, unchanged",
            "其间的部分已经证明；这些部分原样保留原模型的节点",
        ),
        say("try the whole chain where the operators are installed", "请在安装了这些算子的环境中验证整条链"),
    )
