"""Rows filled up to a fixed number: a Pad whose amount is that number less the rows that are there."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..opset.known import compute
from ..opset.lower.common import is_float, section
from ..opset.schemas import attribute_value
from ..opset.step import Array
from ..shapes import constant_of
from .base import INT32, Look, Mask, Packed, rank_of

_MOST_PLACES = 1024
_DEPTH = 40
_LIMIT = 1 << 16


def filled_up(look: Look, item: Packed) -> ir.Value | None:
    """The rows that are there and the padding behind them, in a fixed shape. None where the amount is not that for every number of rows."""
    mask, axis, step = item.mask, item.axis, look.step
    amounts, value = step.input(1), look.constant(2)
    if mask is None or axis is None or amounts is None or mask.size > _MOST_PLACES or len(look.node.inputs) > 3:
        return None
    if step.attr("mode", "constant") != "constant" or (step.input(2) is not None and (value is None or value.size != 1)):
        return None
    rank = rank_of(item.dense)
    total = _total(look, mask, amounts, axis, rank)
    if total is None or total < 1:
        return None
    data = look.compact(item)
    dtype = data.dtype or ir.DataType.FLOAT
    if not is_float(dtype) and dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        return None
    number = 0 if value is None else value.reshape(-1)[0]
    there = look.along(look.capped(mask, mask.size), axis, rank)
    whole = step.op("Where", there, data, step.const(number, dtype.numpy(), "filling"))
    if total <= mask.size:
        return section(step, whole, axis, 0, total)
    pads = [0] * (2 * rank)
    pads[axis + rank] = total - mask.size
    return step.op("Pad", whole, step.ints(pads, "pads"), step.const(number, dtype.numpy(), "filling"))


def _total(look: Look, mask: Mask, amounts: ir.Value, axis: int, rank: int) -> int | None:
    """How many rows there are with the padding, if that is the same for every number of rows that could be there."""
    totals = set()
    for count in range(mask.size + 1):
        known = _computed(amounts, {look.counted(mask): np.full(mask.size, count, INT32)}, 0)
        if known is None or known.size != 2 * rank:
            return None
        pads = known.reshape(-1).tolist()
        behind = pads.pop(axis + rank)
        if any(pads):
            return None
        totals.add(int(behind) + count)
    return totals.pop() if len(totals) == 1 else None


def _computed(value: ir.Value, known: dict[ir.Value, Array], depth: int) -> Array | None:
    """What is computed from ``known`` and constants alone."""
    if value in known:
        return known[value]
    found, node = constant_of(value), value.producer()
    if found is not None or node is None or depth > _DEPTH or len(node.outputs) != 1 or node.domain not in ("", "ai.onnx"):
        return found
    arrays = [None if operand is None else _computed(operand, known, depth + 1) for operand in node.inputs]
    if any(operand is not None and array is None for operand, array in zip(node.inputs, arrays, strict=True)):
        return None
    attributes = {name: attribute_value(attribute) for name, attribute in node.attributes.items()}
    if node.op_type == "Slice" and len(arrays) == 5:
        found = _turned(arrays)
    elif node.op_type == "ReduceMax" and arrays[0] is not None:  # of the counts up to each place
        found = np.asarray(arrays[0].max(keepdims=bool(attributes.get("keepdims", 1))))
    if found is None:
        found = compute(node.op_type, arrays, attributes, _LIMIT)
    if found is not None:
        known[value] = found
    return found


def _turned(arrays: list[Array | None]) -> Array | None:
    """The first axis backwards, as exporters of padding write it."""
    data, *bounds = arrays
    if data is None or any(item is None or item.size != 1 for item in bounds):
        return None
    start, end, axis, pace = (int(item.reshape(-1)[0]) for item in bounds if item is not None)
    return data[::-1] if (start, axis, pace) == (-1, 0, -1) and end < -data.shape[0] else None
