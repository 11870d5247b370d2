"""Kernels that round after every step of a sum, written out so that each step is rounded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from ..graph import constant_of
from .rounding import Storage


def cumsum_in_steps(node: ir.Node, storage: Storage, fresh: Callable[[str], str]) -> ir.Node | None:
    """Replace a CumSum by a Scan whose running sum is rounded after each addition.

    CANN's kernel adds in the type of its input (its buffers have that type), so a long sum stops growing once an addend is below half a unit.

    Returns:
        The Scan, whose second result has taken the place of the CumSum's; None where the axis is not constant or the rank is unknown.
    """
    data, axis_value = node.inputs[0], constant_of(node.inputs[1])
    graph = node.graph
    if data is None or axis_value is None or data.shape is None or data.dtype is None or not isinstance(graph, ir.Graph):
        return None
    axis, reverse, exclusive = int(axis_value.reshape(-1)[0]), _flag(node, "reverse"), _flag(node, "exclusive")
    rank = len(data.shape)
    axis %= rank
    stem = node.name or node.outputs[0].name or "CumSum"
    kind = ir.TensorType(data.dtype)
    state, item = (ir.Value(name=fresh(f"{stem}~{word}"), type=kind) for word in ("state", "item"))
    total = ir.node("Add", [state, item], outputs=[ir.Value(name=fresh(f"{stem}~total"), type=kind)])
    half = ir.node("Cast", [total.outputs[0]], attributes={"to": storage.onnx}, outputs=[ir.Value(name=fresh(f"{stem}~half"))])
    back = ir.node("Cast", [half.outputs[0]], attributes={"to": data.dtype}, outputs=[ir.Value(name=fresh(f"{stem}~step"), type=kind)])
    shown = ir.node("Identity", [state if exclusive else back.outputs[0]], outputs=[ir.Value(name=fresh(f"{stem}~shown"), type=kind)])
    body = ir.Graph([state, item], [back.outputs[0], shown.outputs[0]], nodes=[total, half, back, shown], name=fresh(f"{stem}~body"))
    # The first state is a slice of zeros: the data minus itself would make NaN of infinity.
    first = [0] * rank
    first[axis] = 0
    zero = _constant(np.zeros((), data.dtype.numpy()), fresh(f"{stem}~zero"))
    index = _constant(np.zeros((), np.int64), fresh(f"{stem}~index"))
    slice_ = ir.node("Gather", [data, index.outputs[0]], attributes={"axis": axis}, outputs=[ir.Value(name=fresh(f"{stem}~slice"))])
    shape = ir.node("Shape", [slice_.outputs[0]], outputs=[ir.Value(name=fresh(f"{stem}~shape"))])
    start = ir.node("Expand", [zero.outputs[0], shape.outputs[0]], outputs=[ir.Value(name=fresh(f"{stem}~start"), type=kind)])
    last = ir.Value(name=fresh(f"{stem}~last"), type=kind)
    old = node.outputs[0]
    new = ir.Value(name=fresh(f"{stem}~sums"), shape=old.shape, type=old.type)
    scan = ir.node(
        "Scan",
        [start.outputs[0], data],
        attributes={
            "body": body,
            "num_scan_inputs": 1,
            "scan_input_axes": [axis],
            "scan_output_axes": [axis],
            "scan_input_directions": [reverse],
            "scan_output_directions": [reverse],
        },
        outputs=[last, new],
        name=fresh(f"{stem}~scan"),
    )
    plain = ir.node("Identity", [new], outputs=[ir.Value(name=fresh(f"{stem}~plain"), shape=old.shape, type=old.type)])
    graph.insert_after(node, [zero, index, slice_, shape, start, scan, plain])
    old.replace_all_uses_with(plain.outputs[0], replace_graph_outputs=True)
    name = old.name
    old.name = fresh(f"{stem}~unused")
    plain.outputs[0].name = name
    graph.remove([node], safe=True)
    return plain


def _flag(node: ir.Node, name: str) -> int:
    return node.attributes[name].as_int() if name in node.attributes else 0


def _constant(array: np.ndarray, name: str) -> ir.Node:
    tensor = ir.tensor(array, name=name)
    return ir.node("Constant", [], attributes={"value": tensor}, outputs=[ir.Value(name=name, type=ir.TensorType(tensor.dtype))])
