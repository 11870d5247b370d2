"""Shapes inside the bodies of loops: what holds in every trip, not what the file says of the first."""

from __future__ import annotations

import onnx_ir as ir

from ..shapes import infer_shapes
from .base import bodies, known_shape

_MAX_PASSES = 6
Dims = tuple[int | str | None, ...]


def settle_shapes(model: ir.Model) -> None:
    """Give the tensors that loops carry the shape that holds in every trip, in place; call it after inference.

    A file may declare the shape of the first trip, and ONNX takes its word. Here a carried tensor starts with the shape of its initial
    value, and loses what the body does not give back, until nothing changes.
    """
    loops = [node for graph in model.graphs() for node in graph if node.op_type == "Loop" and node.domain in ("", "ai.onnx")]
    if not loops:
        return
    for node in loops:
        body = node.attributes["body"].as_graph()
        for value, initial in zip(body.inputs[2:], node.inputs[2:], strict=True):
            _set(value, _dims(initial))
    for _ in range(_MAX_PASSES):
        _open_outputs(model)
        infer_shapes(model, forget=True)
        if not sum(_weaken(node) for node in loops):  # every loop is looked at, each time
            return
    for node in loops:
        for value in node.attributes["body"].as_graph().inputs[2:]:
            value.shape = None
    _open_outputs(model)
    infer_shapes(model, forget=True)


def sound_shapes(model: ir.Model) -> None:
    """Infer all shapes anew, in place, from those of the model's inputs alone: nothing that the file says of inner tensors is believed."""
    _open_outputs(model)
    infer_shapes(model, forget=True)
    settle_shapes(model)


def _open_outputs(model: ir.Model) -> None:
    """What a body declares of its outputs is a claim too; of the model's own outputs it is not ours to judge."""
    for graph in model.graphs():
        for node in graph:
            for body in bodies(node):
                for value in body.outputs:
                    if value.producer() is not None:
                        value.shape = None


def _weaken(node: ir.Node) -> bool:
    """Drop what a trip does not keep of the shapes of carried tensors; whether there was any."""
    body = node.attributes["body"].as_graph()
    changed = False
    for value, initial, output in zip(body.inputs[2:], node.inputs[2:], body.outputs[1:], strict=False):
        before = _dims(value)
        after = _common(_common(before, _dims(initial)), _dims(output))
        if after != before:
            _set(value, after)
            changed = True
    return changed


def _dims(value: ir.Value | None) -> Dims | None:
    """The shape without the names that inference makes up: each run counts them anew."""
    shape = known_shape(value)
    return None if shape is None else tuple(None if isinstance(dim, str) and dim.startswith("unk__") else dim for dim in shape)


def _common(first: Dims | None, second: Dims | None) -> Dims | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(one if one == other else None for one, other in zip(first, second, strict=True))


def _set(value: ir.Value, shape: Dims | None) -> None:
    if not isinstance(value.type, (ir.SequenceType, ir.OptionalType)):
        value.shape = None if shape is None else ir.Shape(shape)


__all__ = ["settle_shapes", "sound_shapes"]
