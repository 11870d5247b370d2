"""Choose gears from the shapes that really occur, so that padding costs least.

The cost of a request is the number of input elements that are computed for it, which is those of the smallest gear that holds it. With one
varying size the choice is exact (dynamic programming); with more, gears are merged greedily and then improved, which is good but not proven
to be the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ShapeError
from ..text import Text, say
from .gear_words import Axis, Dims, Stated
from .gears import Size, facts

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_CANDIDATES = 512
"""Shapes among which the greedy choice merges; more are rounded up to coarser steps first."""
DEFAULT_COUNT = 8
"""Gears that a plan may have, if the user says nothing: each one is compiled."""


@dataclass(frozen=True)
class Histogram:
    """Shapes that occur: for each row the shape of every input, and how often it occurs."""

    rows: tuple[Mapping[str, tuple[int, ...]], ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """Gears chosen from a histogram.

    Attributes:
        stated: as if the user had stated them.
        padding: elements computed in vain, as a fraction of those asked for, over the whole histogram.
        worst: the same of the request that is worst served.
        without: padding if every request ran at the largest gear.
        exact: whether no other choice of as many gears pads less.
        fixed: dimensions that never vary in the histogram, and were left fixed.
    """

    stated: Stated
    padding: float
    worst: float
    without: float
    exact: bool
    fixed: tuple[Axis, ...]

    def note(self) -> Text:
        """What padding costs, as a sentence."""
        return say(
            "{count} gears pad {padding} of the elements asked for ({kind}; the worst request {worst}); the largest gear alone would pad {without}",
            "{count} 个档位的填充量为所需元素的 {padding}（{kind}；最差的请求为 {worst}）；若只用最大档位则为 {without}",
            count=len(self.stated.shapes),
            padding=f"{self.padding:.1%}",
            worst=f"{self.worst:.1%}",
            without=f"{self.without:.1%}",
            kind=say("the least possible", "已是最少") if self.exact else say("a good choice, not proven the best", "较优，但未证明最优"),
        )


def plan_gears(inputs: Mapping[str, Dims], histogram: Histogram, count: int = DEFAULT_COUNT, multiple: int | None = None) -> Plan:
    """Choose at most ``count`` gears that hold every shape of the histogram.

    Args:
        inputs: shapes as the model declares them.
        multiple: round sizes up to multiples of it, except first dimensions; None rounds to 16 (64 where all sizes are large), as the
            kernels work in such blocks. A size is never rounded beyond the largest that occurs: tables in the model may end there.

    Raises:
        ShapeError: a shape does not fit the model.
    """
    places = [(name, axis) for name, dims in inputs.items() for axis, size in enumerate(dims) if not isinstance(size, int)]
    table = np.array([[row[name][axis] for name, axis in places] for row in _checked(inputs, histogram)], np.int64).reshape(-1, len(places))
    weights = np.array(histogram.counts, np.int64)
    columns, groups = _groups(table, places)
    varying = [group for group in range(len(groups)) if len(set(columns[:, group])) > 1]
    fixed = tuple(place for group in range(len(groups)) if group not in varying for place in groups[group])
    rounded = columns.copy()
    for group in varying:
        first = all(axis == 0 for _, axis in groups[group])
        rounded[:, group] = _rounded(columns[:, group], 1 if first and multiple is None else multiple)
    volume = _Volume(inputs, groups)
    gears, exact = _choose(rounded, weights, varying, volume, count)
    asked = volume.of(columns)
    cost, largest = _assigned(columns, gears, volume), volume.of(columns.max(axis=0, keepdims=True))[0]
    total = float((asked * weights).sum())
    return Plan(
        _stated(inputs, gears, groups, varying),
        padding=float((cost * weights).sum()) / total - 1,
        worst=float((cost / asked).max()) - 1,
        without=largest * float(weights.sum()) / total - 1,
        exact=exact,
        fixed=fixed,
    )


def _checked(inputs: Mapping[str, Dims], histogram: Histogram) -> Sequence[Mapping[str, tuple[int, ...]]]:
    for row in histogram.rows:
        for name, dims in inputs.items():
            shape = row.get(name)
            if shape is None and all(isinstance(dim, int) for dim in dims):
                continue
            fits = shape is not None and len(shape) == len(dims)
            if not fits or any(size < 1 or (isinstance(dim, int) and dim != size) for dim, size in zip(dims, shape or (), strict=True)):
                raise ShapeError(
                    say(
                        "a shape of the histogram does not fit input `{name}`: {shape}",
                        "直方图中的形状与输入 `{name}` 不符：{shape}",
                        name=name,
                        shape=shape,
                    ),
                    say("expected {dims}", "应为 {dims}", dims=list(dims)),
                    say("correct the file of --gears-from", "请修正 --gears-from 的文件"),
                )
    return histogram.rows


def _groups(table: Ints, places: Sequence[Axis]) -> tuple[Ints, list[list[Axis]]]:
    """Dimensions that have the same size in every row are one number."""
    groups: dict[bytes, list[Axis]] = {}
    for index, place in enumerate(places):
        groups.setdefault(table[:, index].tobytes(), []).append(place)
    first = [places.index(group[0]) for group in groups.values()]
    return table[:, first], list(groups.values())


def _rounded(sizes: Ints, multiple: int | None) -> Ints:
    """Sizes rounded up, none beyond the largest."""
    if multiple is None:
        blocks = facts()["multiples"]
        multiple = int(blocks["wide"] if sizes.min() >= blocks["wide_from"] else blocks["narrow"] if sizes.max() > blocks["narrow"] else 1)
    rounded: Ints = np.minimum(-(-sizes // multiple) * multiple, sizes.max())
    return rounded


class _Volume:
    """Elements of all inputs as a function of the group sizes."""

    def __init__(self, inputs: Mapping[str, Dims], groups: Sequence[Sequence[Axis]]) -> None:
        group_of = {place: index for index, group in enumerate(groups) for place in group}
        self.terms: list[tuple[float, list[int]]] = []
        for name, dims in inputs.items():
            factors = [group_of[(name, axis)] for axis, size in enumerate(dims) if not isinstance(size, int)]
            if factors:
                self.terms.append((float(np.prod([float(size) for size in dims if isinstance(size, int)])), factors))

    def of(self, sizes: Ints) -> Floats:
        total = np.zeros(len(sizes))
        for constant, factors in self.terms:
            total += constant * np.prod(sizes[:, factors].astype(np.float64), axis=1)
        return total


def _choose(rounded: Ints, weights: Ints, varying: Sequence[int], volume: _Volume, count: int) -> tuple[Ints, bool]:
    candidates, where = np.unique(rounded, axis=0, return_inverse=True)
    amount = _amounts(where, weights, len(candidates))
    if len(candidates) <= count:
        return candidates, True
    if len(varying) == 1:
        ends = _exact(volume.of(candidates), amount, count)
        return candidates[ends], True
    factor = 2
    while len(candidates) > MOST_CANDIDATES:  # coarser steps, so that all pairs can be compared
        coarse = rounded.copy()
        for group in varying:
            step = max(1, int(np.ptp(rounded[:, group])) * factor // MOST_CANDIDATES)
            coarse[:, group] = np.minimum(-(-rounded[:, group] // step) * step, rounded[:, group].max())
        candidates, where = np.unique(coarse, axis=0, return_inverse=True)
        amount = _amounts(where, weights, len(candidates))
        factor *= 2
    exact_points = np.unique(rounded, axis=0)
    return _improved(_merged(candidates, amount, volume, count), exact_points, volume), False


def _amounts(where: Ints, weights: Ints, count: int) -> Floats:
    """How often each candidate occurs."""
    total = np.zeros(count)
    np.add.at(total, where.reshape(-1), weights)
    return total


def _exact(costs: Floats, weights: Floats, count: int) -> list[int]:
    """Indices of the gears among candidates of rising cost that make the total least, and no more of them than that needs.

    ``best[j]`` with k gears is the least over i of ``best[i]`` with k-1 gears plus ``costs[j]`` times the weight between: lines whose slopes
    fall with i, asked at rising costs, so that each round is linear (convex hull trick). Integers keep it exact.
    """
    cost = [int(value) for value in costs]
    before = [0]
    for value in weights:
        before.append(before[-1] + int(value))
    size = len(cost)
    best: list[int | None] = [0, *[None] * size]
    totals, choices = [], []
    for _ in range(count):
        best, chosen = _round(best, cost, before)
        totals.append(best[size])
        choices.append(chosen)
    rounds = min(range(count), key=lambda k: (totals[k] if totals[k] is not None else float("inf"), k))
    ends, end = [], size
    for k in range(rounds, -1, -1):
        ends.append(end - 1)
        end = choices[k][end]
    return ends[::-1]


def _round(best: Sequence[int | None], cost: Sequence[int], before: Sequence[int]) -> tuple[list[int | None], list[int]]:
    """One more gear: the least cost up to each end, and where the last gear's group begins."""
    hull: list[tuple[int, int, int]] = []  # slope, intercept, index
    result: list[int | None] = [None]
    chosen = [0]
    head = 0
    for end in range(1, len(best)):
        start = best[end - 1]
        if start is not None:
            line = (-before[end - 1], start, end - 1)
            while len(hull) - head >= 2 and _hidden(hull[-2], hull[-1], line):
                hull.pop()
            hull.append(line)
        price = cost[end - 1]
        while len(hull) - head >= 2 and hull[head + 1][0] * price + hull[head + 1][1] <= hull[head][0] * price + hull[head][1]:
            head += 1
        if len(hull) > head:
            slope, intercept, index = hull[head]
            result.append(slope * price + intercept + price * before[end])
            chosen.append(index)
        else:
            result.append(None)
            chosen.append(0)
    return result, chosen


def _hidden(first: tuple[int, int, int], middle: tuple[int, int, int], last: tuple[int, int, int]) -> bool:
    """Whether the middle line is nowhere below both others (slopes fall)."""
    return (last[1] - first[1]) * (first[0] - middle[0]) <= (middle[1] - first[1]) * (first[0] - last[0])


def _merged(candidates: Ints, weights: Floats, volume: _Volume, count: int) -> Ints:
    """Merge the two gears whose union costs least, until few enough are left."""
    gears, amount = candidates.copy(), weights.copy()
    own = volume.of(gears) * amount
    union = np.maximum(gears[:, None, :], gears[None, :, :])
    number = len(gears)
    price = (
        volume.of(union.reshape(number * number, -1)).reshape(number, number) * (amount[:, None] + amount[None, :])
        - own[:, None]
        - own[None, :]
    )
    np.fill_diagonal(price, np.inf)
    alive = np.ones(number, bool)
    for _ in range(number - count):
        one, other = np.unravel_index(int(np.argmin(price)), price.shape)
        gears[one] = np.maximum(gears[one], gears[other])
        amount[one] += amount[other]
        own[one] = volume.of(gears[one : one + 1])[0] * amount[one]
        alive[other] = False
        price[other, :] = price[:, other] = np.inf
        fresh = volume.of(np.maximum(gears, gears[one])) * (amount + amount[one]) - own - own[one]
        fresh[~alive] = np.inf
        fresh[one] = np.inf
        price[one, :] = price[:, one] = fresh
    return gears[alive]


def _improved(gears: Ints, points: Ints, volume: _Volume) -> Ints:
    """Give each shape its cheapest gear and shrink the gears to what they hold, until nothing changes."""
    for _ in range(100):
        owner = _owners(points, gears, volume)
        tight = np.array([points[owner == index].max(axis=0) for index in range(len(gears)) if (owner == index).any()], np.int64)
        if tight.shape == gears.shape and (tight == gears).all():
            break
        gears = tight
    return np.unique(gears, axis=0)


def _owners(points: Ints, gears: Ints, volume: _Volume) -> Ints:
    cost = np.where((points[:, None, :] <= gears[None, :, :]).all(axis=2), volume.of(gears)[None, :], np.inf)
    owners: Ints = np.argmin(cost, axis=1)
    return owners


def _assigned(points: Ints, gears: Ints, volume: _Volume) -> Floats:
    return volume.of(gears)[_owners(points, gears, volume)]


def _stated(inputs: Mapping[str, Dims], gears: Ints, groups: Sequence[Sequence[Axis]], varying: Sequence[int]) -> Stated:
    group_of = {place: index for index, group in enumerate(groups) for place in group}
    shapes: tuple[dict[str, tuple[Size, ...]], ...] = tuple(
        {
            name: tuple(size if isinstance(size, int) else int(gear[group_of[(name, axis)]]) for axis, size in enumerate(dims))
            for name, dims in inputs.items()
        }
        for gear in gears
    )
    return Stated(shapes, frozenset(place for index in varying for place in groups[index]))
