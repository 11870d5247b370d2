"""``jumar simplify``: the same function with fewer nodes, for any target."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir

from .. import __version__
from ..case import Artifact, Case, Measure, Measurement, Proof, Step
from ..errors import UsageError
from ..graph import Digester, Evaluator, copy_model, save, shared_or_new
from ..graph.digest import file_sha256
from ..graph.fold import DEFAULT_FOLD_LIMIT
from ..graph.simplify import KINDS, Journal, Rewrite, simplify_graph
from ..graph.surgery.lookup import must_pass_checker
from ..proof import FeedSet, Interface, Prover, load_feeds, make_feeds
from ..proof.leave_out import leave_out_failures
from ..text import say
from .at_gears import gear_feeds
from .check import pinned
from .common import ModelLike, Progress, Shapes, check_shapes, generated_feeds, must_not_overwrite, open_case, silent

ROUNDING_BOUND = 1e-5
"""Allowed ``max_scaled`` of a simplification that rounds differently (float32): of each changed piece, and of the whole model."""


def simplify(
    model: ModelLike,
    *,
    shapes: Shapes | None = None,
    gears: Sequence[Shapes] = (),
    prove: bool = True,
    exact: bool = False,
    without: Sequence[str] = (),
    feeds: str | Path | FeedSet | None = None,
    fold_limit: int = DEFAULT_FOLD_LIMIT,
    output: str | Path | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Fold, merge and remove nodes; names, dtypes and order of inputs and outputs stay.

    Args:
        shapes: sizes of dynamic inputs, written into the model.
        gears: several sets of sizes, for which the model stays one with open sizes. The result is right (and proven) for these alone.
        prove: compare with the original: the changed pieces of what rounds differently on tensors captured from the model, then the whole
            model. A rewrite that fails is found by halving and left out. False also leaves out the hashes and the check of the result.
        exact: only what keeps every element equal (no Conv+BatchNormalization and the like, which round differently).
        without: kinds not to do (:data:`jumar.graph.simplify.KINDS` has the names).
        feeds: ``.npz`` with real inputs; without it inputs are generated.
        fold_limit: bytes by which folding one tensor may enlarge the model.
        output: where to write the model.
        evaluator: one to share with other calls.

    Returns:
        A case with the simplified model. Its record has one step with proof for the exact and one for the rounding simplifications, one
        rolled-back step for each rewrite that failed its proof, and the numbers of nodes before and after.

    Raises:
        JumarError: bad input, an unknown kind, a model that cannot be run while a proof is asked for, an output that cannot be written.
    """
    must_not_overwrite(model, output)
    unknown = sorted(set(without) - set(KINDS))
    if unknown:
        raise UsageError(
            say("there is no simplification `{name}`", "没有名为 `{name}` 的简化", name=unknown[0]),
            say("expected one of: {names}", "应为其中之一：{names}", names=", ".join(sorted(KINDS))),
            say("correct --without", "请修正 --without"),
        )
    case = open_case(model, "simplify", need_target=False, quick=not prove)
    sizes = check_shapes(case.model, shapes or {})
    checked = tuple(check_shapes(case.model, gear) for gear in gears)
    if sizes and checked:
        raise UsageError(
            say("shapes and gears are both given", "同时给出了固定形状和多个档位"),
            say("expected one of them", "两者只能取其一"),
            say("name the shape as one more gear", "请将该形状作为另一个档位"),
        )
    with shared_or_new(evaluator) as running:
        start = pinned(case.model, sizes) if sizes else copy_model(case.model) if isinstance(model, Case) else case.model
        run = _Run(case, start, running, fold_limit, frozenset(without), checked, progress)
        result = run.execute(feeds, prove, exact)
    if output is not None:
        if prove:
            must_pass_checker(result.model)
        files = save(result.model, output)
        artifacts = tuple(
            Artifact(str(path), file_sha256(path) if prove else None, "model" if path == files[0] else "weights") for path in files
        )
        result = result.replace(record=result.record.extend(artifacts=artifacts))
    return result


@dataclass(frozen=True)
class _Attempt:
    model: ir.Model
    journal: Journal


@dataclass
class _Run:
    """One simplification of one model."""

    case: Case
    model: ir.Model
    evaluator: Evaluator
    fold_limit: int
    without: frozenset[str]
    gears: tuple[dict[str, tuple[int, ...]], ...]
    progress: Progress
    steps: list[Step] = field(default_factory=list)
    refused: frozenset[tuple[str, str]] = frozenset()
    digester: Digester = field(default_factory=Digester)

    def execute(self, feeds: str | Path | FeedSet | None, prove: bool, exact: bool) -> Case:
        before = _count(self.model)
        self.interface = Interface.of(self.model)
        self.progress(say("reference run", "参考运行"), 0.1)
        prover = self._prover(feeds) if prove else None
        every = frozenset(KINDS) - self.without
        exact_kinds = frozenset(kind for kind in every if KINDS[kind])
        if prover is not None or exact:  # without a proof there is nothing to tell apart
            self.progress(say("exact simplifications", "精确简化"), 0.3)
            self._stage("GR504", "exact", exact_kinds, prover, 0.0)
        if not exact:
            self.progress(say("simplifications that round differently", "舍入不同的简化"), 0.6)
            self._stage("GR505", "rounding" if prover else "all", every, prover, ROUNDING_BOUND)
        self.progress(say("done", "完成"), 1.0)
        after = _count(self.model)
        notes = [say("{before} nodes became {after}", "节点数由 {before} 变为 {after}", before=before, after=after)]
        if self.gears:
            notes.append(say("right for the {count} gears given, not beyond", "仅对给出的 {count} 个档位有效", count=len(self.gears)))
        if prover is None:
            notes.append(say("nothing was proven: the proof was switched off", "未做证明：证明已关闭"))
        elif prover.feeds.origin == "generated":
            notes.append(generated_feeds(prover.feeds))
        counts = (
            Measurement(name, float(count), "nodes", "reference") for name, count in (("nodes before", before), ("nodes after", after))
        )
        return Case(self.model, None, self.case.record.extend(steps=tuple(self.steps), measurements=tuple(counts), notes=tuple(notes)))

    def _prover(self, feeds: str | Path | FeedSet | None) -> Prover:
        if isinstance(feeds, (str, Path)):
            feeds = load_feeds(feeds, self.model)
        if feeds is None and self.gears:
            feeds = gear_feeds(self.model, self.gears, self.evaluator)
        return Prover(self.model, self.evaluator, feeds or make_feeds(self.model, self.evaluator))

    def _stage(self, code: str, name: str, kinds: frozenset[str], prover: Prover | None, bound: float) -> None:
        """Make all rewrites of some kinds, leaving out those that fail."""
        start = time.perf_counter()
        pieces: Proof | None = None

        def attempt(budget: int | None, refused: frozenset[tuple[str, str]]) -> _Attempt | None:
            candidate, journal = copy_model(self.model) if prover else self.model, Journal(budget, refused | self.refused, kinds)
            simplify_graph(candidate, self.evaluator, journal=journal, fold_limit=self.fold_limit, gears=self.gears)
            return _Attempt(candidate, journal) if journal.rewrites else None

        def prove(made: _Attempt, final: bool) -> Proof | None:
            nonlocal pieces
            if prover is None:
                return None
            measure: Measure = "max_scaled" if bound else "max_rel"
            pieces = prover.prove_pieces(made.model, self.interface, bound, measure) if bound else None
            if pieces is not None and not pieces.passed:  # an error in a piece may vanish on the way to the outputs
                return pieces
            constants, magnified = made.journal.constants, pieces is not None
            return prover.prove_model(made.model, self.interface, bound, constants, measure, accept=final, magnified=magnified)

        outcome = leave_out_failures(attempt, lambda made: made.journal.rewrites, prove)
        for rewrite, proof in outcome.guilty:
            self.refused |= {(rewrite.kind, rewrite.place)}
            self._record(code, rewrite.kind, start, None, [rewrite], proof, None)
        if outcome.kept is not None:
            self._record(code, name, start, outcome.kept.model, outcome.kept.journal.rewrites, outcome.proof, pieces)
            self.model = outcome.kept.model
        elif outcome.failed is not None:
            self._record(code, name, start, None, outcome.failed.journal.rewrites, outcome.proof, None)

    def _record(
        self,
        code: str,
        name: str,
        start: float,
        candidate: ir.Model | None,
        rewrites: Sequence[Rewrite],
        proof: Proof | None,
        pieces: Proof | None,
    ) -> None:
        # Without a proof there is nothing to tie to a model, and hashing gigabytes takes longer than all the rest.
        digest = self.digester.model(self.model) if proof is not None else None
        counts: dict[str, int] = {}
        for rewrite in rewrites:
            counts[rewrite.kind] = counts.get(rewrite.kind, 0) + 1
        self.steps.append(
            Step(
                name=name,
                code=code,
                version=__version__,
                input_sha256=digest,
                output_sha256=digest if candidate is None or digest is None else self.digester.model(candidate),
                seconds=round(time.perf_counter() - start, 4),
                options=counts,
                proof=proof,
                status="rolled-back" if candidate is None else "applied",
                nodes=tuple(dict.fromkeys(rewrite.place for rewrite in rewrites if rewrite.place)),
                subgraphs=pieces,
            )
        )


def _count(model: ir.Model) -> int:
    return sum(len(graph) for graph in model.graphs())
