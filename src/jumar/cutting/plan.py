"""Where to cut: as much work as possible on the device, and few bytes on the way.

Every node gets one of three places (before, device, after) that never goes back along an edge, and no blocked node is on the device. With
two yes-or-no questions a node (is it on the device or later, is it later) this is a minimum cut, so that the answer is the best there is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass

import onnx_ir as ir

from ..graph import static_shape
from ..graph.ranges.mincut import SINK, SOURCE, UNLIMITED, Network
from ..graph.surgery.lookup import behind, bodies_of, reads
from .work import is_counted, work_of

_PER_BYTE = 4
"""Operations that a byte on the way between host and device is worth."""
_MOST = 1 << 40
_WORTH_TELLING = 0.02
"""Share of the work from which on another cut is told."""
_UNKNOWN_BYTES = 1 << 16
# What these make is another tensor every time: they are never made twice, once in each part.
_RANDOM = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"})


@dataclass(frozen=True)
class Division:
    """The nodes of the three places. What only constants make has no place: it goes with its readers. What no output needs has none either.

    Attributes:
        host_share: estimated share of the work that the host does; None where some of the work cannot be counted.
        other: what could be on the device instead of its part, where that is work worth telling and all work can be counted.
        other_share: its estimated share of the work.
    """

    before: tuple[ir.Node, ...]
    device: tuple[ir.Node, ...]
    after: tuple[ir.Node, ...]
    host_share: float | None
    other: tuple[ir.Node, ...] = ()
    other_share: float = 0.0

    @property
    def host(self) -> tuple[ir.Node, ...]:
        return (*self.before, *self.after)


def bytes_of(value: ir.Value) -> int | None:
    """Bytes of a tensor; None where its size or the length of its strings is not known."""
    shape = static_shape(value)
    if shape is None or value.dtype is None or value.dtype == ir.DataType.STRING:
        return None
    return int(math.prod(shape) * value.dtype.itemsize)


def constant_nodes(graph: ir.Graph, blocked: Collection[ir.Node] = ()) -> set[ir.Node]:
    """Nodes that make the same from constants alone, so that every part may have its own copy."""
    found = set[ir.Node]()
    for node in graph:
        if node in blocked or node.op_type in _RANDOM or node.domain not in ("", "ai.onnx") or any(bodies_of(node)):
            continue
        if all(_is_weight(value) or value.producer() in found for value in reads(node)):
            found.add(node)
    return found


def _is_weight(value: ir.Value) -> bool:
    return value.is_initializer() and not value.is_graph_input()


def divide(graph: ir.Graph, blocked: Set[ir.Node]) -> Division:
    """The best places for the nodes of a main graph when the device cannot take those that are blocked.

    Where moving the tensors costs more than the device saves, it still does what it can: that is what was asked for.
    """
    constant = constant_nodes(graph, blocked)
    needed = set(behind(graph.outputs))
    nodes = [node for node in graph if node in needed and node not in constant]
    before, device, after = _places(nodes, blocked, _PER_BYTE)
    if not device:
        before, device, after = _places(nodes, blocked, 0)
    if not device or not all(map(is_counted, nodes)):
        return Division(before, device, after, None if device else 1.0)
    total = sum(map(work_of, nodes))
    host_share = sum(map(work_of, (*before, *after))) / total
    other = _places(nodes, {*blocked, *device}, _PER_BYTE)[1] if host_share >= _WORTH_TELLING else ()
    other_share = sum(map(work_of, other)) / total
    return Division(before, device, after, host_share, *((other, other_share) if other_share >= _WORTH_TELLING else ()))


def _places(nodes: Sequence[ir.Node], blocked: Set[ir.Node], per_byte: int) -> tuple[tuple[ir.Node, ...], ...]:
    network = Network()
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
            size = bytes_of(value)
            for place in ("device", "later"):
                network.connect((place, maker), (place, node), UNLIMITED)
                # A tensor that crosses is moved once, however many read it.
                network.connect((place, node), ("read", place, value), UNLIMITED)
                network.connect(("read", place, value), (place, maker), (_UNKNOWN_BYTES if size is None else max(size, 1)) * per_byte)
    chosen = network.source_side()
    before = tuple(node for node in nodes if ("device", node) not in chosen)
    after = tuple(node for node in nodes if ("later", node) in chosen)
    return before, tuple(node for node in nodes if ("device", node) in chosen and ("later", node) not in chosen), after
