"""How good the outputs of a quantised model are, sample by sample, on samples that calibration has not seen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import onnx_ir as ir

from ..child.measures import measured
from ..errors import UsageError
from ..graph import Evaluator, Session
from ..precision.metrics import METRICS, Metric
from ..text import say
from .plan import Plan
from .qdq import SWITCH, qdq_model
from .samples import Samples

SampleMetric = Callable[[int, Mapping[str, Any]], float]
"""Takes the number of a sample and the outputs on it; larger is better. Labels are the caller's to look up."""
AGREEMENTS = tuple(name for name, metric in METRICS.items() if metric.larger and name != "sqnr")
"""Metrics that compare with the float model, and are 1 where both agree."""


@dataclass(frozen=True)
class Score:
    """Attributes:
    quality: mean over the samples; of an agreement, 1 is perfect.
    loss: mean over the samples of the squared difference to the float outputs, in parts of their square: finer than the quality, and what
        layers are ranked by.
    """

    quality: float
    loss: float


def find_metric(metric: str | SampleMetric | None) -> tuple[str, Metric | None, SampleMetric | None]:
    """Name and function of a metric.

    Raises:
        UsageError: no such metric, or one that is no agreement.
    """
    if callable(metric):
        return "user", None, metric
    name = metric or "similarity"
    if name not in AGREEMENTS:
        raise UsageError(
            say("`{metric}` is no metric of agreement", "`{metric}` 不是一致性指标", metric=name),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(AGREEMENTS)),
            say("correct --metric", "请修正 --metric"),
        )
    return name, METRICS[name], None


class Switchboard:
    """Runs a model with any choice of its layers in integers, one loaded model at a time.

    None and all of them have models of their own, which are faster than the switched one that stands for every other choice.
    """

    def __init__(self, evaluator: Evaluator, model: ir.Model, plan: Plan) -> None:
        self._evaluator, self._model, self._plan = evaluator, model, plan
        self._kind = ""
        self._session: Session | None = None

    def __enter__(self) -> Switchboard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(self._plan.items)

    def run(self, feeds: Mapping[str, Any], chosen: frozenset[str]) -> dict[str, Any]:
        """The outputs with these layers in integers."""
        kind = "none" if not chosen else "all" if len(chosen) == len(self.layers) else "some"
        if kind != self._kind or self._session is None:
            self._close()
            self._session, self._kind = self._evaluator.session(self._made(kind)), kind
        if kind == "some":
            feeds = {**feeds, SWITCH: np.array([name in chosen for name in self.layers], np.bool_)}
        return self._session.run(feeds)

    def _made(self, kind: str) -> ir.Model:
        return self._model if kind == "none" else qdq_model(self._model, self._plan, switched=kind == "some")


class Judge:
    """Runs a model on samples with any choice of layers, and compares with the float model. Float outputs are kept in files, not in memory."""

    def __init__(
        self,
        board: Switchboard,
        samples: Samples,
        numbers: Sequence[int],
        metric: Metric | None,
        user: SampleMetric | None,
    ) -> None:
        self._board, self._samples, self._numbers = board, samples, tuple(numbers)
        self._metric, self._user = metric, user
        self._folder = tempfile.TemporaryDirectory(prefix="jumar-", ignore_cleanup_errors=True)
        self._names: list[str] = []
        self.runs = 0
        try:
            self.reference = self._refer()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._folder.cleanup()

    def _refer(self) -> float:
        """Run the float model, and keep what it gives; its quality."""
        total = 0.0
        for place, number in enumerate(self._numbers):
            found = self._board.run(self._samples.feeds(number), frozenset())
            self._names = [name for name, value in found.items() if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"]
            np.savez(self._file(place), **{f"o{index}": found[name] for index, name in enumerate(self._names)})
            total += self._user(number, found) if self._user is not None else 1.0
        return total / len(self._numbers)

    def _file(self, place: int) -> Path:
        return Path(self._folder.name) / f"{place}.npz"

    def score(self, chosen: frozenset[str], most: int | None = None) -> Score:
        """With these layers quantised, over all samples or ``most`` of them, spread evenly."""
        places = range(len(self._numbers)) if most is None else spread(len(self._numbers), most)
        quality = loss = 0.0
        for place in places:
            number = self._numbers[place]
            found = self._board.run(self._samples.feeds(number), chosen)
            with np.load(self._file(place), allow_pickle=False) as archive:
                right = {name: archive[f"o{index}"] for index, name in enumerate(self._names)}
            quality += self._quality(number, right, found)
            loss += _loss(right, found)
            self.runs += 1
        return Score(quality / len(places), loss / len(places))

    def _quality(self, number: int, right: Mapping[str, Any], found: Mapping[str, Any]) -> float:
        if self._user is not None:
            return float(self._user(number, found))
        assert self._metric is not None
        values = []
        for name, value in right.items():
            if value.dtype.kind != "f":
                continue
            same = np.asarray(found[name]).shape == value.shape
            values.append(self._metric.measure(value, found[name]) if same else 0.0)
        if not values:  # only integers come out: the share of equal ones
            values = [float(np.mean(value == found[name])) if value.shape == found[name].shape else 0.0 for name, value in right.items()]
        return min(values, default=1.0)


def spread(count: int, most: int) -> list[int]:
    """Places of at most ``most`` of ``count`` items, evenly spread."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(count, most)).round()})


def _loss(right: Mapping[str, Any], found: Mapping[str, Any]) -> float:
    """Squared difference in parts of the squared reference, over all outputs; 1 at most for each."""
    parts = []
    for name, value in right.items():
        other = np.asarray(found[name])
        if value.shape != other.shape:
            parts.append(1.0)
        elif value.dtype.kind == "f":
            numbers = measured(value, other)
            parts.append(min(numbers.get("euclid", 0.0) ** 2, 1.0))
        else:
            parts.append(float(np.mean(value != other)) if value.size else 0.0)
    return float(np.mean(parts)) if parts else 0.0
