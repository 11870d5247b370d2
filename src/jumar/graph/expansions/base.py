"""The list of expansions, and the model of a single node on which they are tried."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from ...text import say
from ..opset.expand import expand
from ..opset.step import Step

Expansion = Callable[[Step], None]
"""Puts other nodes in the place of the step's node, or raises :class:`~jumar.graph.opset.step.Unconvertible`."""

_EXPANSIONS: dict[str, list[Expansion]] = {}
RUNTIME_OPERATORS = frozenset(("LayerNormalization", "SimplifiedLayerNormalization"))
"""Operators that ONNX Runtime registers in the standard's domain at opsets where the standard has none of that name."""


def expands(*operators: str) -> Callable[[Expansion], Expansion]:
    """Register an expansion of operators (``Mish``, ``com.microsoft::BiasGelu``); the first one registered is tried first."""

    def register(expansion: Expansion) -> Expansion:
        for operator in operators:
            _EXPANSIONS.setdefault(operator, []).append(expansion)
        return expansion

    return register


def expansions_of(operator: str) -> tuple[Expansion, ...]:
    """What is registered for an operator, in the order in which it is tried; the function body of its ONNX schema comes last."""
    own = tuple(_EXPANSIONS.get(operator, ()))
    return (*own, by_schema) if operator in schema_functions() else own


def operators_of(domain: str) -> frozenset[str]:
    """Operators of a domain other than the standard's that have an expansion, as ``domain::Operator``."""
    return frozenset(name for name in _EXPANSIONS if name.startswith(f"{domain}::"))


@cache
def schema_functions() -> frozenset[str]:
    """Standard operators whose schema has a function body at some version."""
    found: list[Any] = list(onnx.defs.get_all_schemas_with_history())  # the stubs of ONNX leave function bodies out
    return frozenset(
        schema.name for schema in found if schema.domain == "" and (schema.has_function or schema.has_context_dependent_function)
    )


def by_schema(step: Step) -> None:
    """The operator's function body, as the ONNX standard has it for the model's opset."""
    if not expand(step, step.source, step.version):
        step.refuse(
            say(
                "its ONNX schema has no function body at opset {version}", "其 ONNX 定义在 opset {version} 没有函数体", version=step.version
            )
        )


def miniature(model: ir.Model, node: ir.Node) -> ir.Model:
    """A model of this node alone: weights stay weights (shared, not copied), computed operands become inputs, unread outputs are none."""
    twins: dict[ir.Value, ir.Value] = {}
    inputs, weights = [], []
    for value in node.inputs:
        if value is None or value in twins:
            continue
        tensor = None if value.is_graph_input() else ir.convenience.get_const_tensor(value)
        twin = twins[value] = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=tensor)
        if tensor is None:
            inputs.append(twin)
        else:
            twin.shape, twin.type = ir.Shape(tensor.shape.numpy()), ir.TensorType(tensor.dtype)
            weights.append(twin)
    outputs = [ir.Value(name=value.name, type=value.type, shape=value.shape) for value in node.outputs]
    copy = ir.Node(
        node.domain,
        node.op_type,
        [None if value is None else twins[value] for value in node.inputs],
        list(node.attributes.values()),
        overload=node.overload,
        outputs=outputs,
        name=node.name,
    )
    read = [new for new, old in zip(outputs, node.outputs, strict=True) if old.uses() or old.is_graph_output()]
    graph = ir.Graph(inputs, read, nodes=[copy], initializers=weights, opset_imports=dict(model.opset_imports), name="miniature")
    return ir.Model(graph, ir_version=model.ir_version or 10)
