"""Going through nodes one by one, into the branches of If too; and Constant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx_ir as ir

from .expr import Element
from .known import RULES, UNKNOWN, Array, Known, Walk, attribute, constant, rule

_NUMBERS: dict[str, Any] = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}


def visit_all(walk: Walk, nodes: Iterable[ir.Node]) -> None:
    for node in nodes:
        results = _visit(walk, node)
        for value, known in zip(node.outputs, results, strict=True):
            walk.known[value] = _believed(walk, value, known)


def _visit(walk: Walk, node: ir.Node) -> list[Known]:
    unknown = [UNKNOWN] * len(node.outputs)
    rule = RULES.get(f"{node.domain}:{node.op_type}" if node.domain else node.op_type)
    if rule is None or walk.opset < 7:
        return unknown
    try:
        found = rule(walk, node)
    except Exception:  # a node that breaks its operator's definition; the checker and ONNX Runtime say so, here nothing is known
        return unknown
    results = found if isinstance(found, list) else [found]
    return (results + unknown[len(results) :])[: len(unknown)]


def _believed(walk: Walk, value: ir.Value, known: Known) -> Known:
    """Unknown shapes filled in with inferred sizes, if the caller vouches for them. Declared outputs are the file's claims."""
    if known.shape is not None or not walk.inferred or value.shape is None or value.is_graph_output():
        return known
    dims = tuple(dim if isinstance(dim, int) and dim >= 0 else walk.fresh(value, axis) for axis, dim in enumerate(value.shape))
    return Known(dims)


@rule("Constant")
def _constant(_: Walk, node: ir.Node) -> Known:
    tensor = attribute(node, "value")
    if tensor is not None:
        return UNKNOWN if tensor.dtype == ir.DataType.STRING else constant(tensor.numpy())
    for name, dtype in _NUMBERS.items():
        found = attribute(node, name)
        if found is not None:
            return constant(np.array(found, dtype=dtype))
    return UNKNOWN


@rule("If")
def _if(walk: Walk, node: ir.Node) -> list[Known]:
    """The branch that runs, where that is decided; else what both branches have in common."""
    branches: dict[str, ir.Graph] = {name: node.attributes[name].as_graph() for name in ("then_branch", "else_branch")}
    condition = walk.numbers(node.inputs[0])
    if condition is not None and condition.size == 1:
        name = "then_branch" if bool(condition.ravel()[0]) else "else_branch"
        walk.decided[node] = name
        visit_all(walk, branches[name])
        for value in branches[name].outputs:
            walk.data(value)
        return [walk.get(value) for value in branches[name].outputs]
    for branch in branches.values():
        visit_all(walk, branch)
    one, other = (branch.outputs for branch in branches.values())
    return [_common(walk, out, a, b) for out, a, b in zip(node.outputs, one, other, strict=True)]


def _common(walk: Walk, out: ir.Value, one: ir.Value, other: ir.Value) -> Known:
    data, more = walk.data(one), walk.data(other)
    a, b = walk.get(one), walk.get(other)
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return UNKNOWN
    if data is not None and more is not None and a.dtype == b.dtype and _same(data, more):
        return a
    dims: list[Element] = [
        left if left == right else walk.fresh(out, axis) for axis, (left, right) in enumerate(zip(a.shape, b.shape, strict=True))
    ]
    return Known(tuple(dims))


def _same(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == object:
        return all(a is not None and a == b for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True))
    return one.tobytes() == other.tobytes()
