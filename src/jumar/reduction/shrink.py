"""Delta debugging: a small subset of things with which a test still fails (Zeller and Hildebrandt, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


class Spent(Exception):  # noqa: N818 - an end, not an error
    """No further test is allowed."""


def shrink(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A subset, in order, that fails and of which no single item can be left out.

    One guilty item among n takes at most about 2 log2(n) tests; several that must come together take more.

    Args:
        items: what fails together; this is not tested again.
        fails: the test of a subset. It may raise :class:`Spent`: the smallest subset found so far is then the result.
    """
    current, parts = list(items), 2
    try:
        while len(current) > 1:
            smaller = _smaller(current, parts, fails)
            if smaller is not None:
                was_part = len(smaller) <= -(-len(current) // parts)
                current, parts = smaller, 2 if was_part else max(parts - 1, 2)
            elif parts < len(current):
                parts = min(2 * parts, len(current))
            else:
                break
    except Spent:
        pass
    return current


def _smaller(current: list[T], parts: int, fails: Callable[[Sequence[T]], bool]) -> list[T] | None:
    """One part alone that fails, else all but one part."""
    edges = [len(current) * number // parts for number in range(parts + 1)]
    spans = list(pairwise(edges))
    for begin, end in spans:
        if fails(current[begin:end]):
            return current[begin:end]
    for begin, end in spans if parts > 2 else ():
        rest = current[:begin] + current[end:]
        if fails(rest):
            return rest
    return None
