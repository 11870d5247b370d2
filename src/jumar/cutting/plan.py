"""Where to cut: as much work as possible on the device, and few bytes on the way.

Every node gets one of three places (before, device, after) that never goes back along an edge, and no blocked node is on the device. With
two yes-or-no questions a node (is it on the device or later, is it later) this is a minimum cut, so that the answer is the best there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

import onnx_ir as ir

from ..graph import static_shape
from ..graph.ranges.mincut import SINK, SOURCE, UNLIMITED, Network
from ..graph.surgery.lookup import reads

_PER_BYTE = 4
"""Operations that a byte on the way between host and device is worth."""
_MOST = 1 << 40


@dataclass(frozen=True)
class Division:
    """The nodes of the three places.

    Attributes:
        host_share: estimated share of the work that the host does; None where it does products of sizes that depend on the data.
    """

    before: tuple[ir.Node, ...]
    device: tuple[ir.Node, ...]
    after: tuple[ir.Node, ...]
    host_share: float | None


def work_of(node: ir.Node) -> int:
    """Operations of a node, roughly: products of Conv, Gemm and MatMul, elements of anything else."""
    shapes = [static_shape(value) for value in node.outputs]
    elements = sum(math.prod(shape) for shape in shapes if shape is not None) or 1
    weight = static_shape(node.inputs[1]) if len(node.inputs) > 1 else None
    if node.op_type in ("Conv", "ConvTranspose") and weight is not None:
        return elements * math.prod(weight[1:])
    if node.op_type in ("Gemm", "MatMul") and weight is not None:
        first = static_shape(node.inputs[0])
        return elements * (first[-1] if first else 1)
    return elements


def _bytes(value: ir.Value) -> int:
    shape = static_shape(value)
    return 1 << 16 if shape is None or value.dtype is None else max(int(math.prod(shape) * value.dtype.itemsize), 1)


def divide(graph: ir.Graph, blocked: Set[ir.Node]) -> Division:
    """The best places for the nodes of a main graph when the device cannot take those that are blocked.

    Where moving the tensors costs more than the device saves, it still does what it can: that is what was asked for.
    """
    division = _divide(graph, blocked, _PER_BYTE)
    return division if division.device else _divide(graph, blocked, 0)


def _divide(graph: ir.Graph, blocked: Set[ir.Node], per_byte: int) -> Division:
    network = Network()
    nodes = list(graph)
    inside = set(nodes)
    for node in nodes:
        device, later = ("device", node), ("later", node)
        network.connect(later, device, UNLIMITED)
        if node in blocked:
            network.connect(device, later, UNLIMITED)
        else:
            work = min(work_of(node), _MOST) + 1
            network.connect(SOURCE, device, work)
            network.connect(later, SINK, work)
        for value in reads(node):
            maker = value.producer()
            if maker is None or maker not in inside:
                continue
            for place in ("device", "later"):
                network.connect((place, maker), (place, node), UNLIMITED)
                # A tensor that crosses is moved once, however many read it.
                network.connect((place, node), ("read", place, value), UNLIMITED)
                network.connect(("read", place, value), (place, maker), _bytes(value) * per_byte)
    chosen = network.source_side()
    before = tuple(node for node in nodes if ("device", node) not in chosen)
    after = tuple(node for node in nodes if ("later", node) in chosen)
    middle = tuple(node for node in nodes if ("device", node) in chosen and ("later", node) not in chosen)
    return Division(before, middle, after, _share(before, middle, after))


def _share(*places: Sequence[ir.Node]) -> float | None:
    products = [node for node in (*places[0], *places[2]) if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul")]
    if any(static_shape(node.outputs[0]) is None for node in products):
        return None
    before, device, after = (sum(map(work_of, place)) for place in places)
    total = before + device + after
    return (before + after) / total if total else 0.0
