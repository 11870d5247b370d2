"""The accuracy gate: how much is lost, which layers lose it, and which go back to floats until no more is lost than allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .quality import Score

SENSITIVITY_SAMPLES = 12
"""Samples on which each layer is tried alone."""
_TAKEN_BACK = 8
"""Layers that are tried in int8 again after the gate holds, the costliest first."""
_SHOWN_PARTS = (0.25, 0.5, 0.75)


class Judging(Protocol):
    """What the gate asks; see :class:`jumar.quant.quality.Judge`."""

    reference: float

    def score(self, chosen: frozenset[str], most: int | None = None) -> Score: ...


@dataclass(frozen=True)
class Cost:
    """What a layer saves in int8: multiply-adds, and bytes of the file."""

    work: int
    size: int


@dataclass(frozen=True)
class Point:
    """One choice of layers on the trade-off curve.

    Attributes:
        quantised: number of layers in int8; ``work``: their share of all multiply-adds.
        size: bytes of weights and biases; ``drop``: lost quality.
        speed: how much faster matrix products are than in float16, if int8 is twice as fast on the Cube: an estimate from counts alone.
    """

    quantised: int
    work: float
    size: int
    quality: float
    drop: float
    speed: float


@dataclass
class Verdict:
    """What the gate decided.

    Attributes:
        chosen: layers in int8; ``returned``: those put back, in the order in which they were, with what each loses alone.
        full: everything in int8, before anything was put back.
        held: whether the drop is within what is allowed (always so when all layers are floats).
    """

    chosen: frozenset[str]
    returned: tuple[str, ...]
    reference: float
    full: Score
    final: Score
    held: bool
    sensitivity: dict[str, float] = field(default_factory=dict)
    curve: tuple[Point, ...] = ()

    @property
    def drop(self) -> float:
        return self.reference - self.final.quality


class Gate:
    """Searches the choice of layers."""

    def __init__(
        self,
        judge: Judging,
        costs: Mapping[str, Cost],
        total: Cost,
        max_drop: float,
        progress: Callable[[float], None] = lambda _fraction: None,
    ) -> None:
        """``costs``: of each layer; ``total``: multiply-adds of the whole model, and bytes of its weights in floats."""
        self._judge, self._costs, self._total, self._max_drop, self._progress = judge, costs, total, max_drop, progress
        self._known: dict[frozenset[str], Score] = {}

    def decide(self, fallback: bool = True) -> Verdict:
        """Everything in int8 if that is good enough; else put layers back."""
        everything = frozenset(self._costs)
        full = self._score(everything)
        if self._holds(full) or not fallback or not everything:
            return self._verdict(everything, (), full)
        sensitivity = self._sensitivity()
        order = sorted(self._costs, key=lambda name: sensitivity[name] / self._price(name), reverse=True)
        count = self._least(order)
        returned = self._take_back(order[:count])
        for part in _SHOWN_PARTS:
            self._score(everything - set(order[: round(part * len(order))]))
        verdict = self._verdict(everything - set(returned), returned, full)
        verdict.sensitivity = sensitivity
        return verdict

    def _score(self, chosen: frozenset[str]) -> Score:
        if chosen not in self._known:
            self._known[chosen] = self._judge.score(chosen) if chosen else Score(self._judge.reference, 0.0)
        return self._known[chosen]

    def _holds(self, score: Score) -> bool:
        return self._judge.reference - score.quality <= self._max_drop

    def _sensitivity(self) -> dict[str, float]:
        """What each layer loses when it alone is in int8."""
        found = {}
        for index, name in enumerate(self._costs):
            found[name] = self._judge.score(frozenset((name,)), SENSITIVITY_SAMPLES).loss
            self._progress(0.7 * (index + 1) / len(self._costs))
        return found

    def _price(self, name: str) -> float:
        """What putting a layer back gives away: its share of the multiply-adds and of the bytes."""
        cost = self._costs[name]
        return cost.work / max(self._total.work, 1) + cost.size / max(self._total.size, 1) + 1e-9

    def _least(self, order: Sequence[str]) -> int:
        """The fewest layers of the order that must go back: doubled until the gate holds, then halved in between."""
        everything = frozenset(self._costs)

        def holds(count: int) -> bool:
            return self._holds(self._score(everything - set(order[:count])))

        below, above = 0, 1
        while above < len(order) and not holds(above):
            below, above = above, above * 2
        above = min(above, len(order))
        while above - below > 1:
            middle = (above + below) // 2
            below, above = (below, middle) if holds(middle) else (middle, above)
        return above

    def _take_back(self, returned: Sequence[str]) -> tuple[str, ...]:
        """Put the costliest of the returned layers into int8 again where the gate still holds without them."""
        kept = list(returned)
        for index, name in enumerate(sorted(returned, key=self._price, reverse=True)[:_TAKEN_BACK]):
            rest = [item for item in kept if item != name]
            if self._holds(self._score(frozenset(self._costs) - set(rest))):
                kept = rest
            self._progress(0.7 + 0.3 * (index + 1) / _TAKEN_BACK)
        return tuple(kept)

    def _verdict(self, chosen: frozenset[str], returned: tuple[str, ...], full: Score) -> Verdict:
        final = self._score(chosen)
        self._score(frozenset())
        return Verdict(chosen, returned, self._judge.reference, full, final, self._holds(final), curve=self._curve())

    def _curve(self) -> tuple[Point, ...]:
        points = [self._point(chosen, score) for chosen, score in self._known.items()]
        return tuple(sorted(points, key=lambda point: (point.quantised, point.work)))

    def _point(self, chosen: frozenset[str], score: Score) -> Point:
        work = sum(self._costs[name].work for name in chosen)
        share = work / max(self._total.work, 1)
        size = self._total.size - sum(self._costs[name].size for name in chosen)
        drop = self._judge.reference - score.quality
        return Point(len(chosen), share, size, score.quality, drop, 1.0 / (1.0 - share / 2))
