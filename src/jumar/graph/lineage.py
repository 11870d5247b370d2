"""Where nodes come from, kept when rewrites put others in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from .walk import MODULE, SOURCE, all_nodes, node_place, source_line


@dataclass(frozen=True)
class Origin:
    """A node, the path of the torch module that it belongs to, and the Python line that made it."""

    node: str
    op: str
    module: str | None
    line: str | None


def node_origins(model: ir.Model) -> list[Origin]:
    """What every node knows of its origin."""
    return [Origin(node_place(node), node.op_type, node.metadata_props.get(MODULE), source_line(node)) for node in all_nodes(model)]


def inherit_lines(model: ir.Model) -> None:
    """Give nodes that a rewrite made without saying where from the line of what they compute from, or for, in place.

    Only a model that has lines at all is touched. A node between two lines gets that of what feeds it: the line whose value it changes.
    """
    nodes = list(all_nodes(model))
    if not any(source_line(node) for node in nodes):
        return
    for order, around in ((nodes, _before), (nodes[::-1], _behind)):
        for node in order:
            if source_line(node):
                continue
            origin = next((other for other in around(node) if source_line(other)), None)
            if origin is None:
                continue
            node.metadata_props[SOURCE] = source_line(origin) or ""
            if MODULE in origin.metadata_props:
                node.metadata_props.setdefault(MODULE, origin.metadata_props[MODULE])


def _before(node: ir.Node) -> Iterator[ir.Node]:
    yield from (producer for value in node.inputs if value is not None and (producer := value.producer()) is not None)


def _behind(node: ir.Node) -> Iterator[ir.Node]:
    yield from (reader for value in node.outputs for reader, _ in value.uses())
