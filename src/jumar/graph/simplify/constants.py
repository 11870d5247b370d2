"""Constant folding within a simplification."""

from __future__ import annotations

import onnx_ir as ir

from ..evaluate import Evaluator
from ..fold import fold_round, make_constant
from ..shapes import infer_shapes
from ..walk import weight_bytes
from .base import Edit

_MAX_ROUNDS = 12


def fold(edit: Edit, evaluator: Evaluator | None) -> None:
    """Make weights of all tensors that are the same in every run: shape arithmetic in this process, the rest by ONNX Runtime."""
    journal = edit.journal
    if not journal.wants("fold-constants"):
        return

    def allows(name: str) -> bool:
        return journal.allows("fold-constants", name)

    for _ in range(_MAX_ROUNDS):
        _fold_known(edit)
        found = [] if evaluator is None else fold_round(edit.model, evaluator, edit.fold_limit, allows=allows)
        if not found:
            return
        journal.constants += found
        infer_shapes(edit.model)
        edit.look()


def _fold_known(edit: Edit) -> None:
    """From the end: what is read by a node that stays becomes a weight, and what computed it goes before it is looked at."""
    constants, journal = edit.known.constants, edit.journal
    for node in reversed(list(edit.model.graph)):
        for value in node.outputs if node.graph is not None else ():
            array = constants.get(value.name or "")
            if array is None or not (value.uses() or value.is_graph_output()):
                continue
            if value.is_graph_output() and node.op_type == "Identity":  # an output must be made by a node
                continue
            if array.nbytes > edit.fold_limit and array.nbytes > edit.fold_limit + _freed(node):
                continue
            if journal.allows("fold-constants", value.name or ""):
                journal.constants += make_constant(edit.model.graph, value, array)
                edit.discard(node)


def _freed(node: ir.Node) -> int:
    """Bytes of the weights that nothing reads any more once the node's outputs are weights themselves."""
    going, waiting, freed = {node}, [node], 0
    while waiting:
        for value in filter(None, waiting.pop().inputs):
            maker = value.producer()
            if value.is_graph_output() or not all(use.node in going for use in value.uses()):
                continue
            if maker is not None:
                going.add(maker)
                waiting.append(maker)
            elif value.const_value is not None and not value.is_graph_input():
                freed += weight_bytes(value.const_value)
    return freed
