"""Whether outputs are good enough: a metric, a bound, and the outputs it is not met by."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..child.measures import measured
from ..errors import UsageError
from ..text import say

Arrays = Mapping[str, Any]
UserMetric = Callable[[Arrays, Arrays], float]
"""Takes the right outputs and those of the device, by name; larger is better."""


@dataclass(frozen=True)
class Metric:
    """A number for a pair of outputs.

    Attributes:
        larger: whether larger is better.
        bound: what is asked for where the user asks for nothing.
    """

    name: str
    larger: bool
    bound: float
    measure: Callable[[np.ndarray, np.ndarray], float]

    def met(self, value: float, bound: float) -> bool:
        return value >= bound if self.larger else value <= bound


def _number(key: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def measure(right: np.ndarray, device: np.ndarray) -> float:
        numbers = measured(right, device)
        return numbers.get(key, 1.0 - numbers.get("differ", 0.0) if key == "similarity" else 0.0)

    return measure


def top_agreement(right: np.ndarray, device: np.ndarray, k: int) -> float:
    """Share of rows (last axis) in which the ``k`` best are the same set. A tie at the border counts for either."""
    size = right.shape[-1] if right.ndim else 1
    if size <= k or right.size == 0:
        return 1.0
    rows, others = right.reshape(-1, size), device.reshape(-1, size)
    least = np.partition(rows, size - k, axis=-1)[:, size - k, None]
    chosen = np.argpartition(others, size - k, axis=-1)[:, size - k :]
    return float((np.take_along_axis(rows, chosen, axis=-1) >= least).all(axis=-1).mean())


def segment_overlap(right: np.ndarray, device: np.ndarray) -> float:
    """Mean over classes (axis 1) of the intersection over union of the pixels given to it."""
    if right.ndim < 3 or right.shape[1] < 2:
        one, other = right > 0.5, device > 0.5
        union = np.count_nonzero(one | other)
        return 1.0 if not union else float(np.count_nonzero(one & other)) / union
    one, other = right.argmax(axis=1), device.argmax(axis=1)
    found = []
    for label in np.unique(one):
        union = np.count_nonzero((one == label) | (other == label))
        found.append(np.count_nonzero((one == label) & (other == label)) / union)
    return float(np.mean(found))


def text_agreement(right: np.ndarray, device: np.ndarray) -> float:
    """1 minus the edit distance of the texts, by their length: the best class of each step, repeats and class 0 (blank) dropped."""

    def decoded(scores: np.ndarray) -> list[list[int]]:
        best = scores.argmax(axis=-1).reshape(-1, scores.shape[-2])
        return [[int(item) for index, item in enumerate(row) if item and (index == 0 or item != row[index - 1])] for row in best]

    if right.ndim < 2:
        return 1.0
    pairs = list(zip(decoded(right), decoded(device), strict=True))
    distance = sum(edit_distance(one, other) for one, other in pairs)
    return 1.0 - distance / max(sum(max(len(one), len(other)) for one, other in pairs), 1)


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """Fewest insertions, deletions and changes from one to the other."""
    before = list(range(len(other) + 1))
    for row, item in enumerate(one, 1):
        line = [row]
        for column, letter in enumerate(other, 1):
            line.append(min(before[column] + 1, line[-1] + 1, before[column - 1] + (item != letter)))
        before = line
    return before[-1]


def _scaled(right: np.ndarray, device: np.ndarray) -> float:
    numbers = measured(right, device)
    size = max(abs(numbers.get("low", 0.0)), abs(numbers.get("high", 0.0)))
    return numbers.get("max_abs", 0.0) / size if size else numbers.get("max_abs", 0.0)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("similarity", True, 0.999, _number("similarity")),
        Metric("cosine", True, 0.999, _number("cosine")),
        Metric("max_abs", False, 1e-2, _number("max_abs")),
        Metric("max_scaled", False, 1e-2, _scaled),
        Metric("euclid", False, 0.05, _number("euclid")),
        Metric("sqnr", True, 30.0, _number("sqnr")),
        Metric("top1", True, 0.99, lambda right, device: top_agreement(right, device, 1)),
        Metric("top5", True, 0.99, lambda right, device: top_agreement(right, device, 5)),
        Metric("iou", True, 0.99, segment_overlap),
        Metric("text", True, 0.99, text_agreement),
    )
}


_LOST = 1e9
_LARGEST = sys.float_info.max


def _worst(numbers: Iterable[float], larger: bool) -> float:
    """The worst of them, finite so that a record can hold it. NaN is worse than any: ``min`` would keep it only if it came first."""
    last = -_LARGEST if larger else _LARGEST
    known = [last if math.isnan(number) else max(-_LARGEST, min(number, _LARGEST)) for number in numbers]
    return (min if larger else max)(known)


@dataclass(frozen=True)
class Goal:
    """What the outputs shall reach.

    Attributes:
        metric: one of :data:`METRICS`, or None where ``user`` decides.
        outputs: only these (default: all of floats).
    """

    metric: Metric | None
    bound: float
    user: UserMetric | None = None
    outputs: frozenset[str] = frozenset()

    def values(self, right: Sequence[Arrays], device: Sequence[Arrays]) -> dict[str, float]:
        """The worst value of each output over all cases; of a user's metric, under the name ``-``."""
        if self.user is not None:
            return {"-": _worst((float(self.user(one, other)) for one, other in zip(right, device, strict=True)), larger=True)}
        if self.metric is None:
            raise ValueError("a goal has a metric")
        found: dict[str, float] = {}
        for one, other in zip(right, device, strict=True):
            for name, value in one.items():
                if self._judges(name, value):
                    number = self._number(self.metric, value, np.asarray(other[name]))
                    found[name] = _worst((found.get(name, number), number), self.metric.larger)
        return found

    def missed(self, values: Mapping[str, float]) -> list[str]:
        """Names of the outputs that do not reach it."""
        if self.metric is None:
            return [name for name, value in values.items() if not value >= self.bound]
        return [name for name, value in values.items() if not self.metric.met(value, self.bound)]

    @staticmethod
    def _number(metric: Metric, right: np.ndarray, device: np.ndarray) -> float:
        # Another shape (fewer boxes, say) or a new NaN cannot be good enough, whatever the metric: ranks and sets do not see a NaN.
        if device.shape != right.shape or bool((np.isnan(device) & ~np.isnan(right)).any()):
            return 0.0 if metric.larger and metric.name != "sqnr" else (-_LOST if metric.larger else _LOST)
        return metric.measure(right, device)

    def _judges(self, name: str, value: Any) -> bool:
        is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return is_float and (not self.outputs or name in self.outputs)


def make_goal(metric: str | UserMetric | None = None, bound: float | None = None) -> Goal:
    """The goal for a metric by name, or for the user's own function.

    Raises:
        UsageError: no such metric, or no bound for one's own.
    """
    if callable(metric):
        return Goal(None, 0.0 if bound is None else bound, metric)
    found = METRICS.get(metric or "similarity")
    if found is None:
        raise UsageError(
            say("`{metric}` is no metric", "`{metric}` 不是指标", metric=metric),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(METRICS)),
            say("correct --metric", "请修正 --metric"),
        )
    return Goal(found, found.bound if bound is None else bound)
