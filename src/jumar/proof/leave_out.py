"""Many rewrites proven at once: when the proof fails, the guilty ones are found and left out, and the rest is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..case import Proof
from ..graph.simplify import Rewrite

# So many guilty rewrites are looked for one by one before all are given up.
_MOST_GUILTY = 4

T = TypeVar("T")
Refused = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What came of it.

    Attributes:
        kept: the attempt that passed (None: nothing is left to do, or it failed as a whole).
        failed: the attempt that failed as a whole.
        proof: of either.
        guilty: the rewrites left out, with the proofs they failed.
    """

    kept: T | None = None
    failed: T | None = None
    proof: Proof | None = None
    guilty: tuple[tuple[Rewrite, Proof], ...] = ()


def leave_out_failures(
    attempt: Callable[[int | None, Refused], T | None],
    rewrites: Callable[[T], Sequence[Rewrite]],
    prove: Callable[[T, bool], Proof | None],
) -> Outcome[T]:
    """Make rewrites, prove them together, and leave out those with which the proof fails.

    Args:
        attempt: makes at most so many rewrites (None: all), without the refused ones; the same ones in the same order every time. None if
            there is nothing to do.
        rewrites: those an attempt made. With fewer than two there is nothing to choose from, and a failure ends it.
        prove: the proof of an attempt, None for no proof wanted; the flag says whether a passed one is final.
    """
    refused: Refused = frozenset()
    guilty: list[tuple[Rewrite, Proof]] = []
    while True:
        made = attempt(None, refused)
        if made is None:
            return Outcome(guilty=tuple(guilty))
        proof = prove(made, True)
        if proof is None or proof.passed:
            return Outcome(made, proof=proof, guilty=tuple(guilty))
        count = len(rewrites(made))
        if count < 2 or len(guilty) == _MOST_GUILTY:
            return Outcome(failed=made, proof=proof, guilty=tuple(guilty))
        culprit = _first_failing(attempt, rewrites, prove, refused, count)
        guilty.append((culprit, proof))
        refused |= {(culprit.kind, culprit.place)}


def _first_failing(
    attempt: Callable[[int | None, Refused], T | None],
    rewrites: Callable[[T], Sequence[Rewrite]],
    prove: Callable[[T, bool], Proof | None],
    refused: Refused,
    count: int,
) -> Rewrite:
    """The rewrite with which the proof begins to fail, by halving."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        made = attempt(middle, refused)
        proof = None if made is None else prove(made, False)
        good, bad = (middle, bad) if proof is None or proof.passed else (good, middle)
    made = attempt(bad, refused)
    if made is None:
        raise ValueError("an attempt must make the same rewrites every time")
    return rewrites(made)[bad - 1]
