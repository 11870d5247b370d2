"""Serve a request of any shape with the gears that an .om has: which gear, how much padding, in how many runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..errors import ShapeError
from ..text import Text, say

_MOST_ITEMS = 1_000_000  # of the batch of one request


@dataclass(frozen=True)
class Service:
    """How a request is run.

    Attributes:
        runs: the gear of each run, in order; the batch is dealt out to them.
        padding: the part of what is computed that is padding, 0 to 1.
    """

    runs: tuple[tuple[int, ...], ...]
    padding: float

    def note(self) -> Text | None:
        """What is worth saying of it: several runs, or more padding than request; None of a plain one."""
        if len(self.runs) > 1:
            return say(
                "it takes {count} runs, with {padding} padding",
                "需要运行 {count} 次，填充占 {padding}",
                count=len(self.runs),
                padding=f"{self.padding:.0%}",
            )
        if self.padding > 0.5:
            return say("{padding} of the run is padding", "运行中 {padding} 为填充", padding=f"{self.padding:.0%}")
        return None


def serve(request: Sequence[int], gears: Sequence[Sequence[int]], *, batch: int | None = None) -> Service:
    """The runs that compute least for a request.

    Args:
        request: its size in each gear dimension (1 or more).
        gears: sizes in the same dimensions.
        batch: index of the dimension that may be dealt out to several runs, or None.

    Raises:
        ShapeError: a size is larger than in every gear that could hold it, or the request has another number of sizes.
    """
    wanted = tuple(int(size) for size in request)
    known = [tuple(int(size) for size in gear) for gear in gears]
    rest = [index for index in range(len(wanted)) if index != batch]
    misfit = not wanted or any(size < 1 for size in wanted) or any(len(gear) != len(wanted) for gear in known)
    fitting = [] if misfit else [gear for gear in known if all(gear[index] >= wanted[index] for index in rest)]
    if not fitting or (batch is not None and wanted[batch] > _MOST_ITEMS):
        raise ShapeError(
            say("no gear holds {request}", "没有档位能容纳 {request}", request=list(wanted)),
            say(
                "expected sizes within one of: {gears}", "大小应不超过其中之一：{gears}", gears=", ".join(str(list(gear)) for gear in known)
            ),
            say("cut or resize the input, or compile with a larger gear", "请裁剪或缩放输入，或编译更大的档位"),
        )
    runs = [min(fitting, key=prod)] if batch is None else _dealt(wanted[batch], fitting, batch)
    return Service(tuple(runs), 1 - prod(wanted) / sum(prod(gear) for gear in runs))


def _dealt(count: int, gears: Sequence[tuple[int, ...]], batch: int) -> list[tuple[int, ...]]:
    """The cheapest gears that hold ``count`` items together; of equal costs the fewest runs. Exact: the best of each smaller count is known."""
    cost: list[tuple[int, int]] = [(0, 0)]
    last: list[tuple[int, ...]] = [()]
    for items in range(1, count + 1):
        best = min((cost[max(0, items - gear[batch])][0] + prod(gear), cost[max(0, items - gear[batch])][1] + 1, gear) for gear in gears)
        cost.append(best[:2])
        last.append(best[2])
    runs = []
    while count > 0:
        runs.append(last[count])
        count = max(0, count - last[count][batch])
    return runs
