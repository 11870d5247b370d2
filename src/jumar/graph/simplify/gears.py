"""Shape arithmetic that comes out the same for a few known sets of input shapes (gears), while the sizes stay open in the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..fold import make_constant
from ..symbolic import per_profile, shape_operands
from .base import Edit, integer, node_place, small_constant

Gears = Sequence[Mapping[str, tuple[int, ...]]]
KIND = "gear-target"


def fold(edit: Edit, gears: Gears) -> None:
    """Make weights of computed sizes, axes and bounds that every gear agrees on; a Reshape may copy a size (0) and leave one open (-1)."""
    profiles = per_profile(edit.model, gears, limit=edit.fold_limit)
    for node in list(edit.model.graph):
        for value in shape_operands(node) if node.graph is not None else ():
            maker = value.producer()
            if maker is None or small_constant(value) is not None:
                continue
            array = profiles.constant_for_all(value)
            if array is not None and edit.journal.allows(KIND, value.name or ""):
                edit.journal.constants += make_constant(edit.model.graph, value, array)
                edit.discard(maker)
                continue
            target = profiles.reshape_target(node) if node.op_type == "Reshape" and not integer(node, "allowzero", 0) else None
            if target is not None and edit.journal.allows(KIND, node_place(node)):
                node.replace_input_with(1, edit.at(node, KIND).const(target, np.int64, "shape"))
                edit.discard(maker)
