"""The run of all simplifications over a model, to a fixed point."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass, LiftConstantsToInitializersPass, RemoveInitializersFromInputsPass

from ..evaluate import Evaluator
from ..fold import DEFAULT_FOLD_LIMIT
from ..opset.schemas import find_schema
from ..shapes import infer_shapes
from . import constants, duplicates
from . import gears as gear_targets
from .base import Edit, Journal, Simplification, matches_of, node_place, soon_rounded
from .carried import settle_shapes

_MAX_ROUNDS = 8
_MAX_SWEEPS = 24
_OLDEST_OPSET = 7


def simplify_graph(
    model: ir.Model,
    evaluator: Evaluator | None = None,
    *,
    journal: Journal | None = None,
    fold_limit: int = DEFAULT_FOLD_LIMIT,
    gears: gear_targets.Gears = (),
) -> Journal:
    """Simplify a model in place, its bodies included; local functions are inlined first.

    Inputs and outputs keep names, dtypes and order.

    Args:
        evaluator: computes constants that need ONNX Runtime; without it those stay computed.
        journal: what may be done; what was done is appended to it.
        fold_limit: bytes by which folding one tensor may enlarge the model.
        gears: the only sets of input shapes the result has to be right for; open sizes stay open.

    Returns:
        The journal.

    Raises:
        EvaluationError: ONNX Runtime crashed on a constant expression or took too long. One that it refuses stays as it is.
    """
    journal = journal or Journal()
    if model.functions and journal.allows("inline-functions", ""):
        InlinePass()(model)
    if (model.ir_version or 0) < 4:  # that version had no other way to write a weight than among the inputs
        RemoveInitializersFromInputsPass()(model)
        model.ir_version = 4
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    declared = _forget_outputs(model)
    infer_shapes(model, forget=True)
    settle_shapes(model)
    edit = Edit(model, journal, fold_limit)
    for _ in range(_MAX_ROUNDS):
        before = len(journal.rewrites)
        constants.fold(edit, evaluator)
        _sweep_all(edit)
        duplicates.merge(edit)
        if gears:
            gear_targets.fold(edit, gears)
        if len(journal.rewrites) == before:
            break
        infer_shapes(model)
        edit.look()
    duplicates.drop_unused(edit)
    _restore_outputs(model, declared)
    return journal


def _forget_outputs(model: ir.Model) -> list[ir.Shape | None]:
    """Open the sizes of all outputs: what the file says of an output is a claim, where that of an input is a contract."""
    declared = [value.shape for value in model.graph.outputs]
    for value in model.graph.outputs:
        if value.producer() is not None and value.shape is not None:
            value.shape = ir.Shape([None] * len(value.shape))
    return declared


def _restore_outputs(model: ir.Model, declared: list[ir.Shape | None]) -> None:
    """Give outputs the shape the file declared, unless it contradicts what was found."""
    for value, shape in zip(model.graph.outputs, declared, strict=True):
        found = value.shape
        if shape is None or found is None:
            value.shape = shape or found
        elif len(shape) == len(found) and all(
            one == other or not (isinstance(one, int) and isinstance(other, int)) for one, other in zip(shape, found, strict=True)
        ):
            value.shape = shape


def _sweep_all(edit: Edit) -> None:
    for _ in range(_MAX_SWEEPS):
        before = len(edit.journal.rewrites)
        for graph in list(edit.model.graphs()):
            for node in graph:
                _simplify_node(node, edit)
        if len(edit.journal.rewrites) == before:
            return


def _simplify_node(node: ir.Node, edit: Edit) -> None:
    """Make the first change that applies; the next sweep looks again."""
    for entry in _entries(node, edit):
        if not edit.journal.wants(entry.kind):
            continue
        action = entry.match(node, edit)
        if action is not None and edit.journal.allows(entry.kind, node_place(node), entry.exact):
            action()
            return


def _entries(node: ir.Node, edit: Edit) -> list[Simplification]:
    """The simplifications that may start from a node. A node that is not what ONNX says of its operator is left alone."""
    entries = matches_of(node.op_type) if node.domain in ("", "ai.onnx") else []
    schema = find_schema(node.op_type, edit.opset) if entries else None
    if schema is None or schema.deprecated or edit.opset < _OLDEST_OPSET or not schema.min_input <= len(node.inputs) <= schema.max_input:
        return []
    given = node.attributes
    if any(item.required and name not in given for name, item in schema.attributes.items()):
        return []
    if all(entry.exact for entry in entries) or not soon_rounded(node):
        return entries
    return [entry for entry in entries if entry.exact]


def applicable(model: ir.Model, kinds: frozenset[str]) -> list[tuple[str, str]]:
    """What :func:`simplify_graph` would begin with, by kind and place of the node. Nothing is rewritten; shapes
    that follow from the inputs are filled in.

    One change often makes the next possible, so that it is a lower bound of what there is to do.
    """
    edit = Edit(model, Journal(kinds=kinds), DEFAULT_FOLD_LIMIT)
    found = []
    for graph in model.graphs():
        for node in graph:
            if "unused-node" in kinds and duplicates.is_unused(node):
                found.append(("unused-node", node_place(node)))
                continue
            first = next((entry for entry in _entries(node, edit) if entry.kind in kinds and entry.match(node, edit)), None)
            if first is not None:
                found.append((first.kind, node_place(node)))
        if "duplicate-node" in kinds:
            found += [("duplicate-node", node_place(node)) for node, _ in duplicates.twins(graph)]
    return found
