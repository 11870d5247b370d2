"""Outputs of the model with all places: those that are there first, then zeros, and an output that says how many there are."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from .base import Look, Packed, rank_of


@dataclass(frozen=True)
class Padded:
    """An output whose ``axis`` has ``size`` places, of which the first ones, as many as the output ``count`` says, are there."""

    name: str
    axis: int
    size: int
    count: str


def pad_out(look: Look, model: ir.Model, value: ir.Value, item: Packed) -> Padded:
    """Give an output all its places."""
    assert item.mask is not None
    assert item.axis is not None
    step, mask, name = look.step, item.mask, value.name or ""
    compact = look.compact(item)
    dtype = compact.dtype or ir.DataType.FLOAT
    zeros = step.const(0, dtype.numpy(), "nothing")
    there = look.along(look.capped(mask, mask.size), item.axis, rank_of(compact))
    whole = step.op("Where", there, compact, zeros)
    whole.type = whole.type or value.type
    shape, step_shape = whole.shape, value.shape
    step.replace(value, whole)
    whole.shape = shape or step_shape
    existing = mask.derived.get(("count",))
    if existing is None or not existing.value.is_graph_output():
        count = step.op("Identity", look.total(mask))
        count.name = look.step.fresh(f"{name}_count")
        count.type, count.shape = ir.TensorType(ir.DataType.INT32), ir.Shape([1])
        model.graph.outputs.append(count)
        existing = look.derive(("count",), mask, lambda: count, 1)
    return Padded(name, item.axis, mask.size, existing.value.name or "")
