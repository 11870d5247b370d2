"""The table of a model: for each tensor the error that has come together up to it, the error of its node alone, and its range."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from ..graph import Evaluator, node_place, source_line, static_shape
from .lanes import ALONE, DEFAULT_CHUNK_BYTES, DEVICE, LaneBuilder, Lanes, chunks_of, read_by
from .plan import Plan
from .units import rule_of


@dataclass(frozen=True)
class Errors:
    """One tensor against the right one; see :func:`jumar.child.measures.measured` for each number.

    For integers only ``differ`` says something.
    """

    differ: float = 0.0
    cosine: float = 1.0
    centred: float = 1.0
    similarity: float = 1.0
    max_abs: float = 0.0
    euclid: float = 0.0
    kl: float = 0.0
    rmse: float = 0.0
    mean_abs: float = 0.0
    sqnr: float = 999.0
    overflow: float = 0.0
    underflow: float = 0.0
    subnormal: float = 0.0

    @classmethod
    def of(cls, numbers: Mapping[str, float]) -> Errors:
        return cls(**{key: value for key, value in numbers.items() if key in _FIELDS})

    def worse(self, other: Errors) -> Errors:
        """The worse of each number."""
        return Errors(**{key: (min if key in _HIGH_IS_GOOD else max)(getattr(self, key), getattr(other, key)) for key in _FIELDS})


_FIELDS = tuple(Errors.__dataclass_fields__)
_HIGH_IS_GOOD = ("cosine", "centred", "similarity", "sqnr")


@dataclass(frozen=True)
class Row:
    """One tensor.

    Attributes:
        entire: error of the whole emulation up to here; None where nothing can be compared (sequences, strings).
        single: error of this node alone, fed with right inputs; None where it makes none by itself.
        low, high, least: of the right values: least, largest, and smallest magnitude above zero.
    """

    index: int
    node: str
    op: str
    tensor: str
    dtype: str
    shape: tuple[int, ...] | None
    decision: str
    unit: str
    confidence: str
    entire: Errors | None
    single: Errors | None
    low: float = 0.0
    high: float = 0.0
    least: float = 0.0
    source_line: str | None = None

    def worse(self, other: Row) -> Row:
        """Of the same tensor on other inputs."""
        return replace(
            self,
            entire=_worse(self.entire, other.entire),
            single=_worse(self.single, other.single),
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            least=min((value for value in (self.least, other.least) if value), default=0.0),
        )


def _worse(one: Errors | None, other: Errors | None) -> Errors | None:
    if one is None or other is None:
        return one or other
    return one.worse(other)


@dataclass(frozen=True)
class Table:
    """All rows in the order of execution, and the outputs of the model on each case: as they should be, and as the device would give them."""

    rows: tuple[Row, ...]
    right: tuple[Mapping[str, Any], ...]
    device: tuple[Mapping[str, Any], ...]


def per_node(
    model: ir.Model,
    plan: Plan,
    evaluator: Evaluator,
    feeds: Sequence[Mapping[str, Any]],
    *,
    single: bool = True,
    chunk_bytes: int = DEFAULT_CHUNK_BYTES,
    progress: Callable[[float], None] = lambda _fraction: None,
) -> Table:
    """Run the model chunk by chunk, each node three times, and compare. Tensors live no longer than their chunk and their readers.

    Args:
        model: with inferred types and shapes and without local functions; ``plan`` is made for it.
        single: whether each node runs alone too.

    Raises:
        EvaluationError: the model does not run.
    """
    alive = [dict(feed) for feed in feeds]
    outputs = [value.name or "" for value in model.graph.outputs]
    split: frozenset[str] = frozenset()
    rows: list[Row] = []
    chunks = chunks_of(model, chunk_bytes)
    last_use = _last_uses(chunks)
    for number, nodes in enumerate(chunks):
        lanes = LaneBuilder(model, plan, nodes, split, single).build()
        found: list[Row] = []
        with evaluator.session(lanes.model) as session:
            for case, tensors in enumerate(alive):
                fresh = _run(session, lanes, tensors, plan, len(rows))
                found = fresh if case == 0 else [one.worse(other) for one, other in zip(found, fresh, strict=True)]
        rows += found
        split |= lanes.split
        for tensors in alive:
            for name in [key for key in tensors if last_use.get(key.removesuffix(DEVICE), -1) <= number]:
                if name.removesuffix(DEVICE) not in outputs:
                    del tensors[name]
        progress((number + 1) / len(chunks))
    return Table(
        tuple(rows),
        tuple({name: tensors[name] for name in outputs if name in tensors} for tensors in alive),
        tuple({name: tensors.get(f"{name}{DEVICE}", tensors.get(name)) for name in outputs if name in tensors} for tensors in alive),
    )


def _last_uses(chunks: Sequence[Sequence[ir.Node]]) -> dict[str, int]:
    return {value.name or "": number for number, nodes in enumerate(chunks) for node in nodes for value in read_by(node)}


def _run(session: Any, lanes: Lanes, tensors: dict[str, Any], plan: Plan, start: int) -> list[Row]:
    feed = {name: tensors[name] for name in lanes.right} | {f"{name}{DEVICE}": tensors[f"{name}{DEVICE}"] for name in lanes.device}
    pairs = [(name, f"{name}{DEVICE}") for _, name, _ in lanes.results]
    pairs += [(name, f"{name}{ALONE}") for _, name, alone in lanes.results if alone]
    leaving = [*lanes.leaving, *(f"{name}{DEVICE}" for name in lanes.split)]
    numbers, arrays = session.measure(feed, pairs, leaving, plan.mode.storage.normal)
    tensors.update(arrays)
    entire, alone_numbers = numbers[: len(lanes.results)], iter(numbers[len(lanes.results) :])
    rows = []
    for index, ((node, name, alone), found) in enumerate(zip(lanes.results, entire, strict=True)):
        own = next(alone_numbers) if alone else {}
        value = next(output for output in node.outputs if output.name == name)
        rule = rule_of(node)
        rows.append(
            Row(
                start + index,
                node_place(node),
                node.op_type,
                name,
                "" if value.dtype is None else value.dtype.name.lower(),
                static_shape(value),
                plan.of(node),
                rule.unit,
                rule.confidence,
                Errors.of(found) if found else None,
                Errors.of(own) if own else None,
                found.get("low", 0.0),
                found.get("high", 0.0),
                found.get("least", 0.0),
                source_line(node),
            )
        )
    return rows


CSV_COLUMNS = (
    *("Index", "OpType", "GroundTruth", "Tensor", "DataType", "Shape"),
    *("CosineSimilarity", "MaxAbsoluteError", "RelativeEuclideanDistance", "KullbackLeiblerDivergence"),
    *("RootMeanSquareError", "MeanAbsoluteError"),
    *("SingleCosineSimilarity", "SingleMaxAbsoluteError", "SingleRelativeEuclideanDistance", "SingleKullbackLeiblerDivergence"),
    *("CentredCosineSimilarity", "Sqnr", "Differ", "OverFlow", "Underflow", "Subnormal"),
    *("Low", "High", "Least", "Decision", "Unit", "Confidence", "SourceLine"),
)
"""msit's names where msit has the number: GroundTruth is the node of the ONNX model."""


def table_csv(rows: Iterable[Row]) -> str:
    """The rows as CSV. What has no value is empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        whole, alone = row.entire, row.single
        shape = "" if row.shape is None else "x".join(str(size) for size in row.shape)
        cells: list[Any] = [row.index, row.op, row.node, row.tensor, row.dtype, shape]
        keys = ("cosine", "max_abs", "euclid", "kl", "rmse", "mean_abs")
        cells += ["" if whole is None else repr(getattr(whole, key)) for key in keys]
        cells += ["" if alone is None else repr(getattr(alone, key)) for key in keys[:4]]
        cells += [
            "" if whole is None else repr(getattr(whole, key))
            for key in ("centred", "sqnr", "differ", "overflow", "underflow", "subnormal")
        ]
        cells += [repr(row.low), repr(row.high), repr(row.least), row.decision, row.unit, row.confidence, row.source_line or ""]
        writer.writerow(cells)
    return text.getvalue()
