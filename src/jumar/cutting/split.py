"""A model in parts: each node in one of them, as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from ..graph.surgery.cut import extract
from ..graph.surgery.lookup import reads
from .plan import Division, constant_nodes


@dataclass(frozen=True)
class Boundary:
    """Names of the tensors that a part reads (inputs of the whole, and what parts before it made), and of those that it gives."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """The parts of a model, before the device part is fixed on its own; None where there is nothing in one."""

    before: ir.Model | None
    device: ir.Model
    after: ir.Model | None


def boundaries(model: ir.Model, division: Division) -> tuple[Boundary, Boundary, Boundary]:
    """What goes in and out of ``before``, ``device`` and ``after``.

    A tensor that several parts read is given to each of them. An output of the model that constants alone make comes from a part for the
    host.
    """
    places = (division.before, division.device, division.after)
    placed = {node for nodes in places for node in nodes}
    constant = constant_nodes(model.graph, placed)
    sides = [_boundary(nodes, placed, constant) for nodes in places]
    fixed = [value.name or "" for value in model.graph.outputs if _is_constant(value, constant)]
    if fixed:
        host = 2 if division.after else 0
        sides[host] = Boundary(sides[host].inputs, (*sides[host].outputs, *fixed))
    return sides[0], sides[1], sides[2]


def _is_constant(value: ir.Value, constant: set[ir.Node]) -> bool:
    return value.producer() in constant or (value.is_initializer() and not value.is_graph_input())


def _boundary(nodes: Sequence[ir.Node], placed: set[ir.Node], constant: set[ir.Node]) -> Boundary:
    own = set(nodes)
    inputs: dict[str, None] = {}
    for node in nodes:
        # In the order of the operands; what bodies capture comes last, by name.
        operands = [value for value in node.inputs if value is not None]
        captured = sorted(reads(node) - set(operands), key=lambda value: value.name or "")
        for value in (*operands, *captured):
            maker = value.producer()
            given = value.is_graph_input() and not value.is_initializer() if maker is None else maker not in own and maker not in constant
            if given:
                inputs[value.name or ""] = None
    elsewhere = {value for node in placed - own for value in reads(node)}
    outputs = [value for node in nodes for value in node.outputs if value.name and (value in elsewhere or value.is_graph_output())]
    return Boundary(tuple(inputs), tuple(value.name or "" for value in outputs))


def split(model: ir.Model, division: Division) -> Split:
    """The parts as models. Weights are shared with ``model``, which stays as it is.

    Raises:
        UsageError: dtype or rank of a tensor at a boundary is not known.
    """
    before, device, after = (extract(model, side.inputs, side.outputs) if side.outputs else None for side in boundaries(model, division))
    if device is None:
        raise ValueError("nothing is left for the device")
    return Split(before, device, after)
