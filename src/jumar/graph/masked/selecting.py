"""NonMaxSuppression as an operator that chooses: its rows with all the places there could be."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..expansions.detection import Selection, select, select_by_kernel
from ..shapes import constant_of, static_shape
from .base import Look, Mask, Packed, Result, masks, refuse
from .elements import again

_OF_MARKS = frozenset(("Add", "Cast", "Gather", "Greater", "Less", "Mul", "Reshape", "Where"))


def is_settled(node: ir.Node) -> bool:
    """Whether the rows of a NonMaxSuppression are read by nothing but a table of the boxes that are chosen (:func:`selected_by_kernel`)."""
    return _marks_only(node.outputs[0], _table(node))


def _table(node: ir.Node) -> int | None:
    """Size of a table of all boxes and one place in front of it."""
    shape = static_shape(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if shape is None or len(shape) != 3 else math.prod(shape) + 1


def _marks_only(value: ir.Value, table: int | None) -> bool:
    """Whether what is made of rows is a table of the boxes that are chosen, and nothing else."""
    if table is None or value.is_graph_output():
        return False
    for node, _ in value.uses():
        if node.op_type == "ScatterND":
            known = None if node.inputs[0] is None else constant_of(node.inputs[0])
            if known is None or known.shape != (table,):
                return False
        elif node.op_type not in _OF_MARKS or not all(_marks_only(output, table) for output in node.outputs):
            return False
    return bool(value.uses())


def written_out(look: Look) -> list[Result]:
    """The selection without a NonMaxSuppression."""
    return [_rows(look, select(look.step))]


def selected_by_kernel(look: Look) -> list[Result]:
    """The selection by a NonMaxSuppression whose rows go nowhere but into a table of all boxes."""
    if is_settled(look.node):
        refuse(say("its rows do no more than mark boxes", "其输出行仅用于标记框"))
    return [_rows(look, select_by_kernel(look.step))]


def _rows(look: Look, selection: Selection) -> Packed:
    """Rows that come in order already, those that are there first."""
    mask = Mask(look.step.place(selection.valid), selection.most, {look.node.outputs[0].name or ""})
    mask.order = look.step.place(look.int32(np.arange(selection.most)))
    mask.derived["capped", selection.most] = mask
    return Packed(look.step.place(look.step.cast(selection.rows, ir.DataType.INT64)), 0, mask)


@masks("RoiAlign")
def regions(look: Look) -> list[Result]:
    """Each region for itself. Those that are not there are a point of the first image."""
    image, boxes, owners = look.plain(0), look.packed(1), look.packed(2)
    if boxes is None or owners is None or boxes.mask is None or boxes.mask is not owners.mask or (boxes.axis, owners.axis) != (0, 0):
        refuse(say("its regions and their images are chosen by different masks", "其区域与所属图像由不同的掩码选取"))
    return [Packed(again(look, [image, look.filled(boxes, 0), look.filled(owners, 0)]), 0, boxes.mask)]
