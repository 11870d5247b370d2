"""Which gears a request runs on: the ones that compute least for nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..text import Text, say
from .gears import text_of

Shapes = Mapping[str, tuple[int, ...]]
MOST_ROWS = 1 << 16
"""Rows of a request that may be divided over several runs."""


@dataclass(frozen=True)
class GearRun:
    """One run: the gear's shapes, and which rows of the request it takes (first and how many; the rest of the gear is padding).

    ``rows`` is None where the inputs have no first dimension in common: then the run takes all there is.
    """

    gear: Shapes
    first: int
    rows: int | None


@dataclass(frozen=True)
class GearChoice:
    """How a request runs.

    Attributes:
        runs: one, or several that divide the rows (the first dimension of every input).
        padding: share of the elements of all inputs that is padding, 0 to 1.
    """

    runs: tuple[GearRun, ...]
    padding: float

    def note(self) -> Text:
        return say(
            "{count} x gear {gears}, {padding} padding",
            "{count} 次，档位 {gears}，填充 {padding}",
            count=len(self.runs),
            gears=" | ".join(dict.fromkeys(text_of(run.gear) for run in self.runs)),
            padding=f"{self.padding:.1%}",
        )


def choose_gears(gears: Sequence[Shapes], request: Shapes, *, split: bool = False) -> GearChoice:
    """The gears that a request runs on with the fewest elements in all, and of these with the fewest runs.

    Args:
        gears: the input shapes under each gear, as :meth:`jumar.atc.gears.Gears.shapes` gives them.
        request: the shapes of the arrays that are there.
        split: whether the rows may be divided over several runs, which is right only for a model that treats each row by itself.

    Raises:
        UsageError: other inputs or ranks than the gears have, or no gear is large enough.
    """
    for gear in gears:
        if {name: len(shape) for name, shape in gear.items()} != {name: len(shape) for name, shape in request.items()}:
            raise UsageError(
                say("the request is {request}", "请求为 {request}", request=text_of(request)),
                say("expected the inputs and ranks of {gear}", "应与 {gear} 的输入和维数一致", gear=text_of(gear)),
                say("correct the arrays", "请修正数组"),
            )
    rows = _rows(request)
    divisible = split and rows is not None and 1 < rows <= MOST_ROWS
    able = [gear for gear in gears if _holds(gear, request, whole=not divisible or _rows(gear) is None)]
    if not able:
        raise _too_large(gears, request)
    runs = _divided(able, rows) if divisible and rows is not None else None
    if runs is None:
        whole = [gear for gear in able if _holds(gear, request, whole=True)]
        if not whole:
            raise _too_large(gears, request)
        runs = [GearRun(min(whole, key=_volume), 0, rows)]
    asked, computed = _volume(request), sum(_volume(run.gear) for run in runs)
    return GearChoice(tuple(runs), 1 - asked / computed if computed else 0.0)


def _rows(shapes: Shapes) -> int | None:
    """The first dimension, where all inputs have the same; None where they do not."""
    found = {shape[0] if shape else None for shape in shapes.values()}
    return found.pop() if len(found) == 1 else None


def _volume(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def _holds(gear: Shapes, request: Shapes, *, whole: bool) -> bool:
    """Whether the request fits into a gear; but for its number of rows if not ``whole``."""
    start = 0 if whole else 1
    return all(all(have >= need for have, need in zip(gear[name][start:], request[name][start:], strict=True)) for name in request)


def _divided(gears: Sequence[Shapes], rows: int) -> list[GearRun] | None:
    """The cheapest runs that together take all rows: the least elements for 1, 2, ... rows, each by the best last run."""
    sizes = [(size, _volume(gear), gear) for gear in gears if (size := _rows(gear))]
    best: list[tuple[int, int, Shapes | None, int]] = [(0, 0, None, 0)]
    for wanted in range(1, rows + 1):
        options = []
        for size, volume, gear in sizes:
            before = best[max(wanted - size, 0)]
            options.append((before[0] + volume, before[1] + 1, gear, min(size, wanted)))
        if not options:
            return None
        best.append(min(options, key=lambda option: option[:2]))
    runs, left = [], rows
    while left:
        _, _, chosen, taken = best[left]
        assert chosen is not None
        left -= taken
        runs.append(GearRun(chosen, left, taken))
    return runs[::-1]


def _too_large(gears: Sequence[Shapes], request: Shapes) -> UsageError:
    return UsageError(
        say("no gear holds {request}", "没有档位能容纳 {request}", request=text_of(request)),
        say("expected no more than one of: {gears}", "不应超过以下之一：{gears}", gears=" | ".join(text_of(gear) for gear in gears)),
        say("make the input smaller, or compile with a larger gear", "请缩小输入，或用更大的档位编译"),
    )
