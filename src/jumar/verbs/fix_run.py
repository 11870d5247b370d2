"""One pass of ``jumar fix`` over a model: rule after rule, each rewrite proven before it is kept."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..case import Case, Finding, Proof, Record, Step
from ..errors import EvaluationError, JumarError, UsageError
from ..graph import Builder, Digester, Evaluator, all_nodes, copy_model, extract_model, infer_shapes, node_place
from ..graph.lineage import inherit_lines
from ..proof import FeedSet, Interface, Prover, load_feeds, make_feeds
from ..proof.leave_out import leave_out_failures
from ..proof.metrics import Comparison, proof_of
from ..rules import Change, Context, ModelRule, NodeRule, Refused, fixers, operator_name
from ..text import Text, say
from .accepted import told_by
from .at_gears import Gear, as_they_stand, examine_gears, gear_feeds, gears_of, present_gears
from .check import examine, pinned
from .common import Progress, generated_feeds
from .meaning import restore_meaning
from .one_step import Stepped
from .verify import nothing_chosen, unverified

_MAX_ROUNDS = 4


@dataclass(frozen=True)
class _Attempt:
    """A rewritten copy of the model, what was done to it, and the proof of the single nodes."""

    model: ir.Model
    change: Change
    pieces: Proof | None = None


@dataclass
class Run:
    """One pass of the fixer over one model."""

    case: Case
    evaluator: Evaluator
    sizes: dict[str, tuple[int, ...]]
    chosen: set[str] | None
    allowed: set[str]
    fold_limit: int
    progress: Progress
    declared: dict[str, tuple[int, int]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    notes: list[Text] = field(default_factory=list)
    unproven: tuple[Finding, ...] = ()
    seen: list[Finding] = field(default_factory=list)
    gave_up: set[tuple[str, str]] = field(default_factory=set)
    """Rules and places not to be tried again: for good after a failed proof, until the model has changed after a refusal."""
    refusals: dict[tuple[str, str], Step] = field(default_factory=dict)
    left_out: frozenset[tuple[str, str]] = frozenset()
    digester: Digester = field(default_factory=Digester)
    bound: tuple[Case, Interface, Step] | None = None
    stepped: Stepped | None = None
    gears: tuple[Gear, ...] = ()
    """Sets of sizes for which the model stays open, by the names its inputs are given with."""
    prover: Prover | None = None

    def execute(self, feeds: str | Path | FeedSet | None) -> Case:
        self.model = self.case.model
        self.interface = Interface.of(self.model)
        if self.bound is not None:
            _, self.interface, step = self.bound
            self.steps.append(step)
        if self.stepped is not None:
            self.steps.append(self.stepped.step)
            self.notes.append(self.stepped.note)
        self.progress(say("check", "检查"), 0.0)
        before = self._examine()
        self.model, meant = restore_meaning(self.case, self.allowed)
        self.case = self.case.replace(model=self.model)  # from here on this is the model that proofs compare with
        self.steps += meant
        prover = self.prover = self._prover(feeds)
        if prover is not None:
            self._apply_all(prover)
        after = as_they_stand(self._examine()) if self.gears else self._examine()
        left = {_identity(finding) for finding in after.findings}
        found = {_identity(finding): finding for finding in (*self.seen, *before.findings)}
        record = after.extend(
            findings=self.unproven,
            steps=tuple(self.steps),
            notes=tuple(self.notes),
            resolved=tuple(finding for key, finding in found.items() if key not in left),
            interface=self.interface.to_dict(),
        )
        self.progress(say("done", "完成"), 1.0)
        return Case(self.model, self.case.target, record)

    def _context(self, model: ir.Model, *, unsafe: bool = False, whole: Context | None = None) -> Context:
        if self.case.target is None:
            raise ValueError("a target is needed")
        gears = present_gears(model, self.interface, self.gears)
        return Context(
            model, self.case.target, self.sizes, self.fold_limit, self.evaluator, unsafe, declared=self.declared, whole=whole, gears=gears
        )

    def _examine(self) -> Record:
        case = Case(self.model, self.case.target, replace(self.case.record, findings=()))
        if self.gears:
            return examine_gears(case, present_gears(self.model, self.interface, self.gears), self._context)
        return examine(case, self._context(self.model)).record

    def _prover(self, feeds: str | Path | FeedSet | None) -> Prover | None:
        """Run the original once. A model that cannot be run cannot be proven, so nothing is rewritten."""
        self.progress(say("reference run", "参考运行"), 0.05)
        reference = pinned(self.case.model, self.sizes) if self.sizes else self.case.model
        if isinstance(feeds, (str, Path)):
            feeds = load_feeds(feeds, reference, {name for name, port in self.interface.inputs.items() if port.constant is not None})
        if self.gears and feeds is not None:
            gears_of(feeds, self.gears)  # what is wrong with them is no finding
        try:
            if self.gears:
                feeds = gear_feeds(reference, self.gears, self.evaluator, feeds)
            feeds = feeds or make_feeds(reference, self.evaluator)
            prover = Prover(reference, self.evaluator, feeds)
        except (EvaluationError, UsageError) as error:
            self.unproven = (unverified(error),)
            return None
        if feeds.origin == "generated":
            self.notes.append(generated_feeds(feeds))
        if prover.engine != "onnxruntime":
            self.notes.append(
                say(
                    "the reference results are those of ONNX's reference implementation: ONNX Runtime does not implement this model",
                    "参考结果来自 ONNX 参考实现：ONNX Runtime 没有实现该模型",
                )
            )
        self._type(prover)
        return prover

    def _type(self, prover: Prover) -> None:
        """Dtypes, and shapes where those of the inputs are fixed, of tensors that shape inference knows nothing of (behind custom operators)."""
        untyped = {value.name: value for node in self.model.graph for value in node.outputs if value.type is None and value.name}
        if not untyped:
            return
        fixed = all(value.shape is not None and value.shape.is_static() for value in self.model.graph.inputs)
        try:
            captured = prover.capture(self.model, self.interface, untyped, 1)[0]
        except EvaluationError:
            return
        for name, value in untyped.items():
            array = captured.get(name)
            if isinstance(array, np.ndarray) and array.dtype.kind in "biufV":
                value.type = ir.TensorType(ir.DataType.from_numpy(array.dtype))
                if value.shape is None:
                    value.shape = ir.Shape(list(array.shape) if fixed else [None] * array.ndim)

    def _apply_all(self, prover: Prover) -> None:
        rules = [rule for rule in fixers() if self.chosen is None or rule.code in self.chosen]
        for number in range(_MAX_ROUNDS):
            count = len([step for step in self.steps if step.status == "applied"])
            for index, rule in enumerate(rules):
                share = 0.1 + 0.85 * (number + index / len(rules)) / _MAX_ROUNDS
                self.progress(say("{code} {name}", "{code} {name}", code=rule.code, name=rule.name), share)
                self._apply(rule, prover)
            if count == len([step for step in self.steps if step.status == "applied"]):
                break
            self.gave_up -= self.refusals.keys()
        self.steps += self.refusals.values()

    def _apply(self, rule: NodeRule | ModelRule, prover: Prover) -> None:
        start = time.perf_counter()
        allowed = {"safe", "unsafe"} if rule.code in self.allowed else {"safe"}

        def attempt(budget: int | None, refused: frozenset[tuple[str, str]]) -> _Attempt | None:
            if isinstance(rule, NodeRule):
                return self._rewrite_nodes(rule, prover, allowed)
            return self._rewrite_model(rule, allowed, budget, refused)

        def prove(made: _Attempt, final: bool) -> Proof:
            return self._prove(rule, made, prover, final)

        try:
            outcome = leave_out_failures(attempt, lambda made: made.change.rewrites, prove)
        except Refused as refusal:
            self._give_up(rule, "", refusal.reason, start)
            return
        except JumarError as error:
            self._give_up(rule, "", error.found, start)
            return
        for rewrite, failure in outcome.guilty:
            self.left_out |= {(rewrite.kind, rewrite.place)}
            self.steps.append(self._step(rule, start, None, failure, (rewrite.place,), {rewrite.kind: 1}))
        made = outcome.kept or outcome.failed
        if made is None or outcome.proof is None:
            return
        kept = made.model if outcome.kept else None
        if kept is not None:
            inherit_lines(kept)
        chosen = self._chosen(made.change.chosen, prover) if kept is not None and made.change.chosen else {}
        step = self._step(rule, start, kept, outcome.proof, made.change.nodes, {**made.change.options, **chosen})
        self.steps.append(replace(step, subgraphs=made.pieces))
        if kept is None:
            self.gave_up.add((rule.code, ""))
        else:
            self.refusals.pop((rule.code, ""), None)
            self.model, self.interface = kept, self.interface.then(made.change.inputs, made.change.outputs)

    def _chosen(self, names: Sequence[str], prover: Prover) -> dict[str, Any]:
        """How much was chosen in each case of the proof, for the record; where it never was anything, a finding says so."""
        captured = prover.capture(self.model, self.interface, names)
        counts = {name: [int(np.asarray(case[name]).size) for case in captured] for name in names}
        idle = [name for name, found in counts.items() if not any(found)]
        if idle:
            self.unproven += (nothing_chosen(idle, len(captured)),)
        return {"chosen_elements": counts}

    def _prove(self, rule: NodeRule | ModelRule, made: _Attempt, prover: Prover, final: bool) -> Proof:
        """The whole candidate against the model as last accepted, after its changed pieces where it rounds differently in many places."""
        infer_shapes(made.model)
        interface = self.interface.then(made.change.inputs, made.change.outputs)
        try:
            magnified = made.pieces is not None
            if rule.bound and made.change.rewrites:
                pieces = prover.prove_pieces(made.model, interface, rule.bound, rule.measure)
                if pieces is not None and not pieces.passed:
                    return pieces
                magnified = pieces is not None
            constants = made.change.constants
            return prover.prove_model(
                made.model, interface, rule.allowed, constants, rule.measure, accept=final, magnified=magnified, steps=rule.steps
            )
        except UsageError as error:  # the inputs hold values the narrowed interface does not: rolled back like any failed proof
            return Proof(len(prover.feeds.cases), 0.0, 1.0, 0.0, rule.bound, False, error.found, 1.0, rule.measure)

    def _step(
        self,
        rule: NodeRule | ModelRule,
        start: float,
        candidate: ir.Model | None,
        proof: Proof,
        nodes: Iterable[str],
        options: Mapping[str, Any] | None = None,
    ) -> Step:
        digest = self.digester.model(self.model)
        return Step(
            name=rule.name,
            version=__version__,
            code=rule.code,
            input_sha256=digest,
            output_sha256=digest if candidate is None else self.digester.model(candidate),
            seconds=round(time.perf_counter() - start, 4),
            options=dict(options or {}) | told_by(rule),
            proof=proof,
            status="rolled-back" if candidate is None else "applied",
            nodes=tuple(nodes),
        )

    def _give_up(self, rule: NodeRule | ModelRule, place: str, reason: Text, start: float, proof: Proof | None = None) -> None:
        """Remember a refusal (the last of a place is recorded) or a failed proof; the finding stays."""
        self.gave_up.add((rule.code, place))
        failed = proof or Proof(0, 0.0, 0.0, 1.0, rule.bound, False, reason)
        step = self._step(rule, start, None, failed, (place,) if place else ())
        if proof is None:
            self.refusals[rule.code, place] = step
        else:
            self.steps.append(step)

    def _rewrite_model(
        self, rule: ModelRule, allowed: set[str], budget: int | None, refused: frozenset[tuple[str, str]]
    ) -> _Attempt | None:
        if (rule.code, "") in self.gave_up:
            return None
        findings = [finding for finding in rule.check(self._context(self.model)) if finding.fix in allowed]
        if not findings:
            return None
        self.seen += findings
        candidate = copy_model(self.model)
        context = replace(self._context(candidate, unsafe="unsafe" in allowed), budget=budget, refused=refused | self.left_out)
        change = rule.rewrite(candidate, context)
        return None if change is None else _Attempt(candidate, change)

    def _rewrite_nodes(self, rule: NodeRule, prover: Prover, allowed: set[str]) -> _Attempt | None:
        """Prove the rewrite of each node on tensors captured around it, then apply the ones that passed to a copy of the model.

        Tensors inside the bodies of control flow cannot be captured: a node there is rewritten only by a rule that keeps every element equal,
        and the whole model is its proof.
        """
        whole = self._context(self.model)
        every = list(all_nodes(self.model))
        wanted = [node for node in every if (node.graph is self.model.graph or not rule.bound) and self._wants(rule, node, allowed, whole)]
        matches = [node for node in wanted if node.graph is self.model.graph]
        inner = {place for place, node in enumerate(every) if node.graph is not self.model.graph and node in set(wanted)}
        if not wanted:
            return None
        unsafe = "unsafe" in allowed
        captured = prover.capture(self.model, self.interface, {name for node in matches for name in _boundary(node)})
        proofs: dict[int, Proof] = {}  # by position: two nodes may have the same name, and a copy keeps the order
        positions = {node: position for position, node in enumerate(self.model.graph)}
        for node in matches:
            start = time.perf_counter()
            try:
                proof = self._prove_node(rule, node, prover, captured, unsafe, whole)
            except Refused as refusal:
                self._give_up(rule, node_place(node), refusal.reason, start)
                continue
            if proof.passed:
                proofs[positions[node]] = proof
            else:
                self._give_up(rule, node_place(node), proof.reason or say("", ""), start, proof)
        if not proofs and not inner:
            return None
        candidate = copy_model(self.model)
        changed = [node for position, node in enumerate(candidate.graph) if position in proofs]
        changed += [node for place, node in enumerate(all_nodes(candidate)) if place in inner]
        context = self._context(candidate, unsafe=unsafe, whole=whole)
        places = []
        for node in changed:
            place = node_place(node)
            try:
                _rewrite(rule, node, context)
            except Refused as refusal:
                self._give_up(rule, place, refusal.reason, time.perf_counter())
            else:
                places.append(place)
        if not places:
            return None
        _drop_unused_weights(candidate.graph)
        pieces = _together(proofs.values(), rule) if proofs else None
        return _Attempt(candidate, Change(tuple(places)), pieces)

    def _wants(self, rule: NodeRule, node: ir.Node, allowed: set[str], whole: Context) -> bool:
        if operator_name(node) not in rule.ops or (rule.code, node_place(node)) in self.gave_up:
            return False
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            return False  # nobody can tell what it computes
        return any(finding.fix in allowed for finding in rule.check(node, whole))

    def _prove_node(
        self, rule: NodeRule, node: ir.Node, prover: Prover, captured: Sequence[dict[str, object]], unsafe: bool, whole: Context
    ) -> Proof:
        outputs = [value.name or "" for value in node.outputs if value.uses() or value.is_graph_output()]
        before = extract_model(self.model, _boundary(node), outputs)
        after = copy_model(before)
        twin = next(item for item in after.graph if item.op_type == node.op_type and item.outputs[0].name == node.outputs[0].name)
        _rewrite(rule, twin, self._context(after, unsafe=unsafe, whole=whole))
        return prover.prove_piece(before, after, captured, rule.bound, rule.measure, rule.steps)


def _rewrite(rule: NodeRule, node: ir.Node, context: Context) -> None:
    builder = Builder(context.model, node, rule.code)
    rule.rewrite(builder, node, context)
    if node.graph is not None:
        builder.remove(node)


def _drop_unused_weights(graph: ir.Graph) -> None:
    """A rewrite leaves weights behind that nobody reads any more."""
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del graph.initializers[name]


def _boundary(node: ir.Node) -> list[str]:
    """Names of the tensors a node reads that are computed (weights travel with the piece)."""
    names = [value.name or "" for value in node.inputs if value is not None and (value.producer() is not None or value.is_graph_input())]
    return list(dict.fromkeys(names))


def _together(proofs: Iterable[Proof], rule: NodeRule) -> Proof:
    items = list(proofs)
    comparisons = [Comparison(item.max_abs, item.max_rel, item.cosine, max_scaled=item.max_scaled) for item in items]
    bound = max([rule.bound, *(item.bound for item in items)])
    return proof_of(comparisons, sum(item.cases for item in items), bound, rule.measure)


def _identity(finding: Finding) -> tuple[str, str | None]:
    """The same problem before and after: by code and place (counts in the text of a whole-model finding may differ)."""
    return finding.code, finding.node
