"""Where an error is born and where it merely arrives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from ..graph import Evaluator, node_place
from .emulator import emulated
from .lanes import read_by
from .metrics import Arrays, Goal
from .patterns import Pattern, pattern_of
from .plan import Plan
from .table import Errors, Row

DEFAULT_SIMILARITY = 0.999
"""Least similarity of an output that counts as right."""


@dataclass(frozen=True)
class Culprit:
    """A node that makes an error which reaches a bad output.

    Attributes:
        row: its tensor.
        pattern: what kind of computation it is part of, with the remedy.
        node: the node in the model the table was made of.
    """

    row: Row
    pattern: Pattern
    node: ir.Node
    alone: Mapping[str, float] = field(default_factory=dict)
    """The metric of each output when nothing but this node is narrowed, where that was tried."""


@dataclass(frozen=True)
class Localisation:
    """Attributes:
    culprits: nodes where an error is born, in the order of execution; empty where it comes together from many small ones.
    arrives: number of nodes that pass an error on.
    largest: where nothing is born, the rows with the largest errors of their own.
    """

    culprits: tuple[Culprit, ...]
    arrives: int
    largest: tuple[Row, ...]


def loss_of(errors: Errors | None) -> float:
    """0 for a right tensor, 1 for a lost one."""
    if errors is None:
        return 0.0
    if errors.overflow:
        return 1.0
    return min(max(1.0 - errors.similarity, 0.0), 1.0)


def localise(
    model: ir.Model, plan: Plan, rows: Sequence[Row], bad: Collection[str], limit: float = 1.0 - DEFAULT_SIMILARITY
) -> Localisation:
    """Find the nodes whose own rounding makes the bad outputs bad.

    A tensor is lossy when its loss is over the limit. An error is born at a lossy tensor of which no input is lossy, or that is lossy when its
    node runs alone on right inputs; elsewhere it arrives.

    Args:
        bad: names of the outputs out of bound. Only what they depend on is looked at.
        limit: loss from which on a tensor is lossy; lowered to half the smallest loss of a bad output.
    """
    by_tensor = {row.tensor: row for row in rows}
    losses = [loss_of(by_tensor[name].entire) for name in bad if name in by_tensor]
    limit = min([limit, *(loss / 2 for loss in losses if loss > 0)])
    culprits: list[Culprit] = []
    arrives = 0
    upstream = _upstream(model, bad)
    for node in model.graph:
        if node not in upstream:
            continue
        mine = [by_tensor[value.name] for value in node.outputs if value.name in by_tensor]
        lossy = [row for row in mine if loss_of(row.entire) > limit]
        if not lossy:
            continue
        given = [by_tensor[value.name] for value in read_by(node) if value.name in by_tensor]
        worst = max(lossy, key=lambda row: loss_of(row.entire))
        arrived = any(loss_of(row.entire) > limit for row in given)
        if plan.of(node) != "own" and (not arrived or loss_of(worst.single) > limit):
            culprits.append(Culprit(worst, pattern_of(node, worst, by_tensor, plan.mode.storage), node))
        else:
            arrives += 1
    largest: tuple[Row, ...] = ()
    if not culprits:
        names = {node_place(node) for node in upstream}
        largest = tuple(sorted((row for row in rows if row.single is not None and row.node in names), key=_own_error, reverse=True)[:5])
    return Localisation(tuple(culprits), arrives, largest)


def _own_error(row: Row) -> float:
    return 0.0 if row.single is None else row.single.euclid


def _upstream(model: ir.Model, names: Collection[str]) -> set[ir.Node]:
    """Nodes of the main graph that the named outputs depend on."""
    waiting = [value for value in model.graph.outputs if value.name in names]
    found: set[ir.Node] = set()
    while waiting:
        node = waiting.pop().producer()
        if node is not None and node not in found:
            found.add(node)
            waiting += read_by(node)
    return found


def guilty(
    found: Localisation,
    model: ir.Model,
    plan: Plan,
    goal: Goal,
    feeds: Sequence[Arrays],
    right: Sequence[Arrays],
    evaluator: Evaluator,
    most: int = 16,
) -> Localisation:
    """Of the places where an error is born, those that matter: narrowed alone, in a model that is right elsewhere, they miss the goal.

    A lossy tensor may be harmless (a gate that is nearly constant). Where none misses the goal by itself, all are left as they were found.
    """
    tried = []
    for culprit in found.culprits[:most]:
        with evaluator.session(emulated(model, plan.only(culprit.node))) as session:
            tried.append(replace(culprit, alone=goal.values(right, [session.run(feed) for feed in feeds])))
    bad = tuple(item for item in tried if goal.missed(item.alone))
    return replace(found, culprits=bad or (*tried, *found.culprits[most:]))
