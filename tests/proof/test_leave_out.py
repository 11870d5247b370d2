"""A wrong rewrite among many is found by halving and left out; the rest is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jumar.case import Proof
from jumar.graph.simplify import Rewrite
from jumar.proof.leave_out import leave_out_failures


def proof(passed: bool) -> Proof:
    return Proof(1, 0.0, 0.0, 1.0, 0.0, passed)


class Job:
    """Makes rewrites numbered from 0; those in ``wrong`` fail the proof."""

    def __init__(self, count: int, wrong: set[int]) -> None:
        self.names, self.wrong, self.proofs, self.finals = [str(number) for number in range(count)], wrong, 0, 0

    def attempt(self, budget: int | None, refused: frozenset[tuple[str, str]]) -> list[Rewrite] | None:
        made = [Rewrite("kind", name, True) for name in self.names if ("kind", name) not in refused][:budget]
        return made or None

    def prove(self, made: list[Rewrite], final: bool) -> Proof:
        self.proofs += 1
        self.finals += final
        return proof(not any(int(rewrite.place) in self.wrong for rewrite in made))


@given(st.integers(2, 60), st.sets(st.integers(0, 59), max_size=3))
def test_exactly_the_wrong_ones_are_left_out(count: int, wrong: set[int]) -> None:
    wrong = {number for number in wrong if number < count}
    job = Job(count, wrong)
    outcome = leave_out_failures(job.attempt, lambda made: made, job.prove)
    kept = [] if outcome.kept is None else [int(rewrite.place) for rewrite in outcome.kept]
    left = sorted(set(range(count)) - wrong)
    if outcome.failed is not None:  # a single wrong one that is left has nobody to be told from
        assert len(outcome.failed) == 1
        assert not left
    else:
        assert kept == left
        assert sorted(int(rewrite.place) for rewrite, _ in outcome.guilty) == sorted(wrong)
    assert job.proofs <= (len(wrong) + 1) * 8


def test_one_rewrite_alone_fails_as_a_whole() -> None:
    job = Job(1, {0})
    outcome = leave_out_failures(job.attempt, lambda made: made, job.prove)
    assert outcome.kept is None
    assert outcome.failed is not None
    assert outcome.proof is not None
    assert not outcome.proof.passed
    assert not outcome.guilty


def test_too_many_wrong_ones_give_all_up() -> None:
    job = Job(60, set(range(0, 60, 2)))
    outcome = leave_out_failures(job.attempt, lambda made: made, job.prove)
    assert outcome.kept is None
    assert outcome.failed is not None
    assert len(outcome.guilty) == 4


def test_nothing_to_do() -> None:
    job = Job(0, set())
    outcome = leave_out_failures(job.attempt, lambda made: made, job.prove)
    assert (outcome.kept, outcome.failed, outcome.proof) == (None, None, None)
    assert job.proofs == 0
