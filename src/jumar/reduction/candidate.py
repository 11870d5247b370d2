"""Parts of a model that consist of chosen nodes: what the others gave becomes an input, with the values it had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from ..graph import Evaluator, copy_model, extract, infer_shapes
from ..graph.bind import bind_inputs
from ..graph.surgery.lookup import reads
from ..proof import FeedSet, Interface, Prover

_CHUNK = 64
"""Tensors that are looked at in one run: of a large model not all fit into memory at once."""
_MOST_BOUND = 1024
"""Elements of a tensor of integers that becomes a weight where it is cut off: a shape, axes, a bound. More are data."""


@dataclass(frozen=True)
class Candidate:
    """A part of the model, and what its inputs were in the whole."""

    model: ir.Model
    inputs: Mapping[str, Any]


@dataclass
class Cuts:
    """A model that can be cut between any two nodes.

    Attributes:
        model: a copy, in which the types and sizes of the tensors are those of the run.
        prover: what ran the model; None if it cannot be run, and then sizes are what inference knows and inputs have no values.
        items: nodes by position, in groups that cannot be taken apart (what passes between them is no tensor of a known type).
    """

    model: ir.Model
    prover: Prover | None
    items: list[tuple[int, ...]] = field(init=False)
    _small: dict[str, Any] = field(init=False, default_factory=dict)

    @classmethod
    def of(cls, model: ir.Model, evaluator: Evaluator, feeds: FeedSet | None) -> Cuts:
        own = copy_model(model)
        infer_shapes(own)
        return cls(own, None if feeds is None else Prover(own, evaluator, FeedSet(feeds.cases[:1], feeds.origin)))

    def __post_init__(self) -> None:
        if self.prover is not None:
            self._look()
        self.items = self._groups()

    def _look(self) -> None:
        """Types, sizes and small integers of all tensors, from one run."""
        assert self.prover is not None
        values = {value.name: value for node in self.model.graph for value in node.outputs if value.name}
        names = [name for name, value in values.items() if isinstance(value.type, ir.TensorType) or value.type is None]
        ports = Interface.of(self.model)
        for begin in range(0, len(names), _CHUNK):
            captured = self.prover.capture(self.model, ports, names[begin : begin + _CHUNK], 1)[0]
            for name in names[begin : begin + _CHUNK]:
                array = captured.get(name)
                if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufcV":
                    continue
                value = values[name]
                value.type = value.type or ir.TensorType(ir.DataType.from_numpy(array.dtype))
                value.shape = ir.Shape(list(array.shape))
                if array.dtype.kind in "biu" and array.size <= _MOST_BOUND:
                    self._small[name] = array

    def _groups(self) -> list[tuple[int, ...]]:
        nodes = list(self.model.graph)
        place = {node: number for number, node in enumerate(nodes)}
        first = list(range(len(nodes)))

        def root(number: int) -> int:
            while first[number] != number:
                number = first[number]
            return number

        for node in nodes:
            for value in reads(node):
                maker = value.producer()
                if maker in place and not _can_be_input(value):
                    one, other = sorted((root(place[maker]), root(place[node])))
                    first[other] = one
        groups: dict[int, list[int]] = {}
        for number in range(len(nodes)):
            groups.setdefault(root(number), []).append(number)
        return [tuple(members) for members in groups.values()]

    def take(self, items: Sequence[tuple[int, ...]], with_values: bool) -> Candidate:
        """The part of the model made of these nodes.

        Args:
            with_values: also give the values of its inputs.
        """
        wanted = {number for item in items for number in item}
        nodes = [node for number, node in enumerate(self.model.graph) if number in wanted]
        made = {value for node in nodes for value in node.outputs if value.name}
        read = {value for node in nodes for value in reads(node)}
        given = [value for value in self.model.graph.inputs if value in read and not value.is_initializer()]
        cut = [value for node in self.model.graph for value in node.outputs if value in read and value not in made]
        ends = [value for node in nodes for value in node.outputs if value.name and (value.is_graph_output() or value not in read)]
        names = [value.name or "" for value in (*given, *cut)]
        part = extract(self.model, names, [value.name or "" for value in ends])
        bound = {value.name or "": self._small[value.name or ""] for value in cut if value.name in self._small}
        if bound:
            part = bind_inputs(part, bound)[0]
        return Candidate(part, self._values([name for name in names if name not in bound]) if with_values else {})

    def _values(self, names: Sequence[str]) -> dict[str, Any]:
        if self.prover is None:
            return {}
        captured = self.prover.capture(self.model, Interface.of(self.model), names, 1)[0]
        return {name: captured[name] for name in names if name in captured}


def _can_be_input(value: ir.Value) -> bool:
    return bool(value.name) and isinstance(value.type, ir.TensorType) and value.shape is not None
