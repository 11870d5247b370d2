"""Whether a graph computes what the module computes: case by case, with ties among detections allowed for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from ..errors import JumarError
from ..graph import Evaluator
from ..proof import Interface
from ..proof.metrics import Comparison, compare_all, worst
from ..text import Text, say
from .samples import GIVEN

BOUND = 1e-4
"""Largest difference that is rounding: of a tensor, by its largest value."""
_ROWS = 4096


@dataclass
class Agreement:
    """How a graph did on all cases.

    Attributes:
        failed: case and output that differ, with the reason.
        tied: outputs that agree only when rows of equal scores may change places.
    """

    cases: int = 0
    largest: float = 0.0
    failed: list[tuple[str, str, Text]] = field(default_factory=list)
    tied: set[str] = field(default_factory=set)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def right(self) -> bool:
        return not self.failed

    @property
    def right_on_given(self) -> bool:
        return all(case != GIVEN for case, _, _ in self.failed)


def compare_with_eager(
    model: ir.Model,
    interface: Interface,
    cases: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]],
    evaluator: Evaluator,
) -> Agreement:
    """Run the graph on every case of the module and compare."""
    found = Agreement()
    try:
        session = evaluator.session(model)
    except JumarError as error:
        found.failed.append((GIVEN, "", error.found))
        return found
    with session:
        for word, feeds, expected in cases:
            found.cases += 1
            try:
                taken = {value.name for value in model.graph.inputs}
                feed = {name: array for name, array in interface.to_model(feeds).items() if name in taken}
                outputs = interface.to_caller(session.run(feed))
            except JumarError as error:
                found.failed.append((word, "", error.found))
                continue
            found.outputs[word] = outputs
            _judge(word, outputs, expected, found)
    return found


def _judge(word: str, outputs: Mapping[str, Any], expected: Mapping[str, Any], found: Agreement) -> None:
    compared = compare_all(outputs, expected)
    odd = {name: item for name, item in compared.items() if not passed(item)}
    found.largest = max([found.largest, *(item.max_scaled for name, item in compared.items() if name not in odd)])
    for names in _groups(expected):
        wrong = [name for name in names if name in odd]
        if wrong and all(name in outputs for name in names) and same_but_for_ties(names, outputs, expected):
            found.tied.update(wrong)
            for name in wrong:
                del odd[name]
    for name, item in odd.items():
        reason = item.reason or say("max_scaled {number:.3g}", "max_scaled 为 {number:.3g}", number=item.max_scaled)
        found.failed.append((word, name, reason))


def passed(item: Comparison) -> bool:
    return item.reason is None and item.max_scaled <= max(BOUND, item.unit)


def total(items: Sequence[Comparison]) -> Comparison:
    return worst(items)


def _groups(expected: Mapping[str, Any]) -> list[list[str]]:
    """Outputs that describe the same rows (boxes, scores, labels): those of one length."""
    found: dict[int, list[str]] = {}
    for name, array in expected.items():
        if np.ndim(array) and array.dtype.kind in "biuf" and 1 < len(array) <= _ROWS:
            found.setdefault(len(array), []).append(name)
    return list(found.values())


def same_but_for_ties(names: Sequence[str], outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether the rows of these outputs are the same when rows of equal score may change places.

    A score is an output of one float for each row, falling (as NonMaxSuppression and TopK leave them). Without one, no row may move.
    """
    scores = [
        name
        for name in names
        if expected[name].ndim == 1 and expected[name].dtype.kind == "f" and bool(np.all(np.diff(expected[name]) <= 0))
    ]
    if not scores or any(np.shape(outputs[name]) != expected[name].shape or outputs[name].dtype != expected[name].dtype for name in names):
        return False
    right = np.concatenate([_rows(expected[name]) for name in names], axis=1)
    other = np.concatenate([_rows(outputs[name]) for name in names], axis=1)
    scale = np.maximum(np.abs(np.where(np.isfinite(right), right, 0)).max(axis=0), 1e-30)
    score = expected[scores[0]].astype(np.float64)
    near = BOUND * max(float(np.abs(score).max()), 1e-30)
    free = np.ones(len(right), bool)
    for index, row in enumerate(right):
        may = np.flatnonzero(free & (np.abs(score - score[index]) <= near))
        fits = [place for place in may if np.allclose(other[place] / scale, row / scale, rtol=0, atol=BOUND, equal_nan=True)]
        if not fits:
            return False
        free[index if index in fits else fits[0]] = False
    return True


def _rows(array: Any) -> Any:
    return array.reshape(len(array), -1).astype(np.float64)
