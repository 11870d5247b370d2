"""Which nodes the device cannot take, and why: the same answers that `check` gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import onnx_ir as ir

from ..case import Finding
from ..graph import node_place, static_shape
from ..graph.surgery.lookup import bodies_of
from ..rules import Context, operator_name
from ..targets import engine_of

_DOUBTFUL = {"aicpu": "OP104", "unknown": "OP105"}


@dataclass(frozen=True)
class Reason:
    """Why a node is blocked.

    Attributes:
        code: of the finding that speaks of it; empty where a size depends on the data.
        follows: True where the node itself is fine, but a tensor that it reads has a size that depends on the data.
    """

    code: str
    follows: bool = False


def blocked_nodes(
    model: ir.Model, findings: Iterable[Finding], certain: Context | None = None, more: Mapping[str, str] | None = None
) -> dict[ir.Node, Reason]:
    """Nodes of the main graph that the device cannot take.

    Those are the nodes of error findings (a node with a body for what is inside it), and those that read or make a tensor without a fixed
    shape though every input of the model has one: its size depends on the data.

    Args:
        certain: with it, nodes are blocked too that the AI Core does not take for certain: those on the AI CPU, and unknown ones.
        more: codes by the name of a tensor: its maker is blocked as well.
    """
    wrong = {finding.node: finding.code for finding in findings if finding.severity == "error" and finding.node}
    fixed = all(value.shape is not None and value.shape.is_static() for value in model.graph.inputs)
    extra = more or {}
    found: dict[ir.Node, Reason] = {}
    for node in model.graph:
        every = [node, *_inside(node)]
        code = next((wrong[node_place(item)] for item in every if node_place(item) in wrong), None)
        code = code or next((extra[value.name] for value in node.outputs if value.name and value.name in extra), None)
        if code is None and certain is not None:
            code = next((_DOUBTFUL[engine] for item in every if (engine := engine_of(certain.judge(item))) in _DOUBTFUL), None)
        if code is not None:
            found[node] = Reason(code)
        elif fixed and any(map(_is_open, node.inputs)):
            found[node] = Reason("", follows=True)
        elif fixed and any(map(_is_open, node.outputs)):
            found[node] = Reason("")
    return found


def _inside(node: ir.Node) -> list[ir.Node]:
    return [item for _, graphs in bodies_of(node) for graph in graphs for each in (graph, *graph.subgraphs()) for item in each]


def _is_open(value: ir.Value | None) -> bool:
    return value is not None and bool(value.name) and isinstance(value.type, ir.TensorType) and static_shape(value) is None


def causes(blocked: Mapping[ir.Node, Reason]) -> dict[tuple[str, str], list[str]]:
    """Places of the nodes that are themselves in the way, by operator and code; the most frequent first."""
    found: dict[tuple[str, str], list[str]] = {}
    for node, reason in blocked.items():
        if not reason.follows:
            found.setdefault((operator_name(node), reason.code), []).append(node_place(node))
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def followers(blocked: Mapping[ir.Node, Reason]) -> Counter[str]:
    """Operators that are blocked only for what they read."""
    return Counter(operator_name(node) for node, reason in blocked.items() if reason.follows)


def still_wrong(device: ir.Model, findings: Iterable[Finding], known: Set[str]) -> dict[str, str]:
    """Codes of the errors of a fixed device part, by names of tensors that were there before it was fixed.

    A tensor made for another keeps its name, so that the first known tensor from an error on belongs to the node that became it.
    """
    wrong = {finding.node: finding.code for finding in findings if finding.severity == "error" and finding.node}
    found: dict[str, str] = {}
    for node in device.graph:
        code = next((wrong[node_place(item)] for item in (node, *_inside(node)) if node_place(item) in wrong), None)
        if code is None:
            continue
        waiting, seen = [node], set[ir.Node]()
        while waiting:
            item = waiting.pop()
            if item in seen:
                continue
            seen.add(item)
            names = {value.name for value in item.outputs if value.name} & known
            found.update(dict.fromkeys(names, code))
            if not names:
                waiting += [use.node for value in item.outputs for use in value.uses() if use.node.graph is device.graph]
    return found
