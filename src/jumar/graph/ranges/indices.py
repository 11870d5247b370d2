"""What the use of an integer says of it: an index lies within its axis, or the model does not run."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from .interval import LARGEST_EXTENT, Interval
from .view import Dims, extent_of

_STANDARD = ("", "ai.onnx")
# Every element of the first input (of any input of a Concat) is an element of the output.
_KEEPS_ALL = frozenset(("Concat", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
# (operator, input position) whose values index one axis; and those that index several.
_ONE_AXIS = frozenset({("Gather", 1), ("GatherElements", 1), ("Scatter", 1), ("ScatterElements", 1)})
_SEVERAL = frozenset({("GatherND", 1), ("ScatterND", 1)})


def implied_range(model: ir.Model, value: ir.Value, shape_of: Callable[[ir.Value | None], Dims | None]) -> Interval | None:
    """The interval outside of which an input cannot be, because some operator that always runs would fail; None if none says so."""
    if value.name in model.graph.initializers:
        return None
    needed: set[ir.Value] | None = None
    waiting, seen = [value], {value}
    lo, hi, found = -(2**63), 2**63 - 1, False
    while waiting:
        current = waiting.pop()
        for node, index in current.uses():
            if node.graph is not model.graph or node.domain not in _STANDARD:
                continue  # a body may never run
            if node.op_type in _KEEPS_ALL and (index == 0 or node.op_type == "Concat"):
                output = node.outputs[0]
                if output not in seen:
                    seen.add(output)
                    waiting.append(output)
                continue
            limits = _index_limits(node, index, shape_of)
            if limits is None:
                continue
            needed = _needed(model) if needed is None else needed
            if node.outputs[0] in needed:
                lo, hi, found = max(lo, int(limits.lo)), min(hi, int(limits.hi)), True
    return Interval(lo, hi) if found and lo <= hi else None


def _index_limits(node: ir.Node, index: int, shape_of: Callable[[ir.Value | None], Dims | None]) -> Interval | None:
    data = shape_of(node.inputs[0])
    if (node.op_type, index) in _ONE_AXIS:
        attribute = node.attributes.get("axis")
        axis = 0 if attribute is None else attribute.as_int()
        extent = extent_of(data[axis]) if data is not None and -len(data) <= axis < len(data) else Interval(0, LARGEST_EXTENT)
    elif (node.op_type, index) in _SEVERAL:
        extents = [int(extent_of(dim).hi) for dim in data] if data is not None else [LARGEST_EXTENT]
        extent = Interval(0, max(extents, default=LARGEST_EXTENT))
    else:
        return None
    return Interval(-extent.hi, max(extent.hi - 1, 0))


def _needed(model: ir.Model) -> set[ir.Value]:
    """Tensors that some output of the model is computed from. (A node nobody needs may be left out, and then fails for nobody.)"""
    needed: set[ir.Value] = set(model.graph.outputs)
    for node in reversed(model.graph):
        if any(value in needed for value in node.outputs):
            needed.update(value for value in node.inputs if value is not None)
            for attribute in node.attributes.values():
                for body in [attribute.as_graph()] if attribute.type == ir.AttributeType.GRAPH else ():
                    for inner in ir.traversal.RecursiveGraphIterator(body):
                        needed.update(value for value in inner.inputs if value is not None)
                    needed.update(body.outputs)
    return needed
