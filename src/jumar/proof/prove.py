"""Prove a rewrite on the user's own model: the piece that changed, on tensors captured from the model, and the whole model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..case import Measure, Proof
from ..errors import EvaluationError
from ..graph import Evaluator, capture_model, copy_model
from .feeds import FeedSet
from .interface import Interface
from .metrics import Comparison, compare, compare_all, proof_of
from .pieces import piece_batches

# Bytes of weights that are sent to the evaluator for a proof.
_FED_LIMIT = 1 << 30
# Pieces with more bytes of tensors than this are compared on the first case alone.
_ONCE_LIMIT = 4 << 20
# Times what the outputs move by themselves, and the most that is ever allowed for that reason.
_NOISE_FACTOR = 4.0
_MOST_NOISE = 0.05


class Prover:
    """Holds the outputs of the last accepted model, so that each rewrite costs one run of the new model.

    Args:
        original: the model the caller gave; its outputs are the reference.
        feeds: inputs in the original's names and dtypes.

    Attributes:
        engine: what computed the reference: ``onnxruntime`` or ``onnx-reference``.
    """

    def __init__(self, original: ir.Model, evaluator: Evaluator, feeds: FeedSet) -> None:
        self.feeds = feeds
        self._evaluator = evaluator
        with evaluator.session(original) as session:
            self.reference = list(feeds.outputs) if feeds.made_for is original else [session.run(feed) for feed in feeds.cases]
            # A kernel may find out only while it runs that it has no implementation.
            self.engine = feeds.engine if feeds.made_for is original else session.engine
        self._accepted = self.reference
        self._accepted_model, self._accepted_interface = original, Interface.of(original)

    def prove_model(
        self,
        model: ir.Model,
        interface: Interface,
        bound: float,
        constants: Sequence[str] = (),
        measure: Measure = "max_rel",
        accept: bool = True,
        magnified: bool = False,
        steps: int = 0,
    ) -> Proof:
        """Compare a candidate with the last accepted model on all cases; a passed proof makes the candidate the accepted one.

        A candidate that does not run at all has failed its proof.

        A ``max_scaled`` bound speaks of the rewrite. Where the model itself magnifies rounding (a Sigmoid far out, say), its outputs may
        differ by four times what they move when the inputs change in their last bit; the proof then states that bound.

        Args:
            accept: False to try only.
            magnified: whether that is allowed: only where the changed pieces have been proven one by one.
            steps: by how much integers may differ (rewrites that are not safe).
            constants: weights the rewrite computed. ONNX Runtime may choose another kernel for a weight than for a computed tensor
                (prepacking), so an exact proof that fails is tried with them fed as tensors, as they were before.
        """
        try:
            found = self.run(model, interface)
        except EvaluationError as error:
            return Proof(len(self.feeds.cases), 0.0, 1.0, 0.0, bound, False, error.found, 1.0, measure)
        pairs = _pairs(found, self._accepted)
        proof = proof_of(pairs, len(self.feeds.cases), bound, measure, steps)
        if not proof.passed and magnified and measure == "max_scaled" and proof.max_scaled < 1.0:
            proof = proof_of(pairs, len(self.feeds.cases), max(bound, *self.noise().values()), measure)
        if not proof.passed and bound == 0.0:
            proof = self._prove_with_fed(model, interface, constants) or self._prove_with_weights_fed(model, interface) or proof
        if proof.passed and accept:
            self._accepted = found
            self._accepted_model, self._accepted_interface = model, interface
        return proof

    def noise(self) -> dict[str, float]:
        """By how much (``max_scaled``) each output of the accepted model may differ for rounding alone: see :func:`prove_model`.

        Four times what it moves when every float input moves by its last bit, and 5 % at most.
        """
        moved = [
            {name: np.nextafter(array, np.inf) if array.dtype.kind == "f" else array for name, array in feed.items()}
            for feed in self.feeds.cases
        ]
        with self._evaluator.session(self._accepted_model) as session:
            found = [self._accepted_interface.to_caller(session.run(self._accepted_interface.to_model(feed))) for feed in moved]
        pairs = [compare_all(one, other) for one, other in zip(found, self._accepted, strict=True)]
        return {name: min(_NOISE_FACTOR * max(pair[name].max_scaled for pair in pairs), _MOST_NOISE) for name in pairs[0]}

    def _prove_with_fed(self, model: ir.Model, interface: Interface, constants: Sequence[str]) -> Proof | None:
        """An exact proof in which the weights that a rewrite computed are fed; None if it does not pass either."""
        if not constants:
            return None
        try:
            found = self.run(model, interface, constants)
        except EvaluationError:  # some operators insist on constant weights
            return None
        proof = proof_of(_pairs(found, self._accepted), len(self.feeds.cases), 0.0)
        return proof if proof.passed else None

    def _prove_with_weights_fed(self, model: ir.Model, interface: Interface) -> Proof | None:
        """An exact proof in which neither model has constant weights; None if it does not pass either.

        A rewrite that puts a weight where a computed tensor was (an Identity removed, say) lets ONNX Runtime take a prepacked kernel that
        rounds differently. With all weights fed as inputs both models run on the same kernels, and equal structure gives equal bits.
        """
        sides = ((self._accepted_model, self._accepted_interface), (model, interface))
        names = [
            [name for name, value in side.graph.initializers.items() if value.shape is not None and len(value.shape) > 1]
            for side, _ in sides
        ]
        weights = [value.const_value for side, _ in sides for value in side.graph.initializers.values()]
        if sum(weight.nbytes for weight in weights if weight is not None) > _FED_LIMIT:
            return None
        try:
            before, after = (self.run(side, ports, fed) for (side, ports), fed in zip(sides, names, strict=True))
        except EvaluationError:  # some operators insist on constant weights
            return None
        proof = proof_of(_pairs(after, before), len(self.feeds.cases), 0.0)
        return proof if proof.passed else None

    def run(self, model: ir.Model, interface: Interface, constants: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Outputs of a rewritten model on all cases, in the caller's names and dtypes."""
        copy, fed = _with_fed_constants(model, constants) if constants else (model, {})
        with self._evaluator.session(copy) as session:
            return [interface.to_caller(session.run({**interface.to_model(feed), **fed})) for feed in self.feeds.cases]

    def against_original(self, model: ir.Model, interface: Interface) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """(found, reference) outputs on all cases."""
        return list(zip(self.run(model, interface), self.reference, strict=True))

    def capture(self, model: ir.Model, interface: Interface, names: Iterable[str], cases: int | None = None) -> list[dict[str, Any]]:
        """Intermediate tensors of the model's main graph on all cases (or the first few), by name (inputs of the model included)."""
        wanted = set(names)
        fed = [interface.to_model(feed) for feed in self.feeds.cases[:cases]]
        inside = [name for name in wanted if name not in {value.name for value in model.graph.inputs}]
        if not inside:
            return fed
        with self._evaluator.session(capture_model(model, inside)) as session:
            return [{**feed, **session.run(feed, inside)} for feed in fed]

    def prove_pieces(self, model: ir.Model, interface: Interface, bound: float, measure: Measure = "max_rel") -> Proof | None:
        """Compare every piece in which a candidate differs from the last accepted model, on tensors captured from the latter.

        Returns:
            The proof over all pieces, each of which starts from exact values, so that no error hides behind another; None if no piece lies
            between tensors of both models (the whole-model comparison then says all).
        """
        before, ports = self._accepted_model, self._accepted_interface
        comparisons: list[Comparison] = []
        worst_pair: tuple[Any, Any] = (None, None)
        try:
            for batch in piece_batches(before, model):
                captured = self.capture(before, ports, {*batch.inputs, *batch.outputs}, 1 if batch.size > _ONCE_LIMIT else None)
                with self._evaluator.session(batch.model) as session:
                    for tensors in captured:
                        found = session.run({name: tensors[name] for name in batch.inputs})
                        for name, own in batch.outputs.items():
                            item = compare(found.get(own), tensors[name], cosine=False)
                            if all(item.max_scaled > other.max_scaled for other in comparisons):
                                worst_pair = found.get(own), tensors[name]
                            comparisons.append(item)
        except EvaluationError as error:
            return Proof(0, 0.0, 1.0, 0.0, bound, False, error.found, 1.0, measure)
        comparisons += [compare(*worst_pair)] if comparisons else []  # the cosine of a proof is that of the worst piece
        return proof_of(comparisons, len(self.feeds.cases), bound, measure) if comparisons else None

    def prove_piece(
        self,
        before: ir.Model,
        after: ir.Model,
        captured: Sequence[Mapping[str, Any]],
        bound: float,
        measure: Measure = "max_rel",
        steps: int = 0,
    ) -> Proof:
        """Compare two small models with the same inputs and outputs on captured tensors. ``steps``: see :meth:`prove_model`."""
        names = [value.name or "" for value in before.graph.inputs]
        pairs = []
        try:
            with self._evaluator.session(before) as old, self._evaluator.session(after) as new:
                for tensors in captured:
                    feed = {name: tensors[name] for name in names}
                    expected, found = old.run(feed), new.run(feed)
                    pairs += [compare(found.get(name), value) for name, value in expected.items()]
        except EvaluationError as error:
            return Proof(len(captured), 0.0, 1.0, 0.0, bound, False, error.found, 1.0, measure)
        return proof_of(pairs, len(captured), bound, measure, steps)


def _pairs(found: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [item for one, other in zip(found, reference, strict=True) for item in compare_all(one, other).values()]


def _with_fed_constants(model: ir.Model, names: Sequence[str]) -> tuple[ir.Model, dict[str, Any]]:
    """A copy of the model in which the named weights are inputs, and their values."""
    copy = copy_model(model)
    fed = {}
    for name in names:
        value = copy.graph.initializers.get(name)
        if value is None or value.const_value is None or not value.uses():
            continue
        fed[name] = value.const_value.numpy()
        del copy.graph.initializers[name]
        value.const_value = None
        copy.graph.inputs.append(value)
    return copy, fed
