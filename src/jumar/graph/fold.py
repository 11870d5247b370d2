"""Constant folding: what does not depend on the inputs is computed once, here, by ONNX Runtime itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from ..errors import EvaluationError
from .evaluate import Evaluator
from .shapes import infer_shapes, static_shape
from .walk import bodies, model_opset, weight_bytes

DEFAULT_FOLD_LIMIT = 64 << 10
"""A fold may not turn small inputs into more than this many bytes (a ConstantOfShape must not explode the file)."""

_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
_MAX_ROUNDS = 12
Wanted = Callable[[str], bool]


def fold_constants(model: ir.Model, evaluator: Evaluator, limit: int = DEFAULT_FOLD_LIMIT, within: set[str] | None = None) -> list[str]:
    """Fold in place, to a fixed point (folded shapes make more shapes known, and so on).

    Args:
        limit: bytes a single result may have beyond the size of the constants it is made from.
        within: fold only these tensors (by name), each of which needs its own sources among them; None folds all.

    Returns:
        The names of the tensors that became constants.

    Raises:
        EvaluationError: ONNX Runtime crashed on a constant expression or took too long. One that it refuses stays as it is.
    """
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    wanted = _all if within is None else within.__contains__
    folded: list[str] = []
    for _ in range(_MAX_ROUNDS):
        infer_shapes(model)
        found = fold_shapes(model, wanted) + fold_round(model, evaluator, limit, wanted)
        if not found:
            break
        folded += found
    return folded


def _all(_name: str) -> bool:
    return True


def foldable_nodes(model: ir.Model, limit: int = DEFAULT_FOLD_LIMIT) -> list[ir.Node]:
    """Nodes of the main graph that need no input: computed from constants, or the shape of a tensor of known shape."""
    known: set[ir.Value] = set()
    found = []
    for node in model.graph:
        if node.op_type == "Constant" and node.domain == "":
            known.update(node.outputs)
        elif _shape_of_static(node) or _computable(node, known, limit):
            known.update(node.outputs)
            found.append(node)
    return found


def _is_weight(value: ir.Value) -> bool:
    """A graph input with a default value is none: the caller may override it."""
    return value.const_value is not None and value.is_initializer() and not value.is_graph_input()


def _shape_of_static(node: ir.Node) -> bool:
    return node.domain == "" and node.op_type in ("Shape", "Size") and bool(node.inputs) and static_shape(node.inputs[0]) is not None


def _computable(node: ir.Node, known: set[ir.Value], limit: int) -> bool:
    if node.domain != "" or node.op_type in _RANDOM or (node.op_type == "Identity" and node.outputs[0].is_graph_output()):
        return False
    if next(bodies(node), None) is not None:
        return False
    if not all(value is None or value in known or _is_weight(value) for value in node.inputs):
        return False
    if not node.inputs and node.op_type != "Constant":  # OptionalHasElement of nothing, say
        return False
    # Every output is a tensor we could write as an initializer, and is not known to be too large.
    for value in node.outputs:
        if isinstance(value.type, (ir.SequenceType, ir.OptionalType)):
            return False
        shape = static_shape(value)
        if (
            shape is not None
            and value.dtype is not None
            and value.dtype != ir.DataType.STRING
            and _too_large(node, math.prod(shape) * value.dtype.itemsize, limit)  # Python's integers do not overflow
        ):
            return False
    return True


def _too_large(node: ir.Node, size: float, limit: int) -> bool:
    """A result may replace constants that only this node reads; beyond them it may add ``limit`` bytes to the file."""
    freed = [value for value in node.inputs if value is not None and value.const_value is not None and len(value.uses()) == 1]
    return size > limit + sum(weight_bytes(value.const_value) for value in freed)


def fold_shapes(model: ir.Model, wanted: Wanted = _all, allows: Wanted = _all) -> list[str]:
    """Fold Shape and Size of tensors of known shape, in place. See :func:`fold_round`."""
    found = []
    for node in list(model.graph):
        if not _shape_of_static(node) or not _wanted(node, wanted):
            continue
        shape = static_shape(node.inputs[0]) or ()
        if node.op_type == "Shape":
            start, end = (node.attributes[key].as_int() if key in node.attributes else None for key in ("start", "end"))
            array = np.array(shape[slice(start, end)], dtype=np.int64)
        else:
            array = np.array(math.prod(shape), dtype=np.int64)
        found += make_constant(model.graph, node.outputs[0], array, allows)
    return found


def _wanted(node: ir.Node, wanted: Wanted) -> bool:
    return any(wanted(value.name or "") for value in node.outputs)


def fold_round(model: ir.Model, evaluator: Evaluator, limit: int, wanted: Wanted = _all, allows: Wanted = _all) -> list[str]:
    """Compute what depends on constants alone, in one run of ONNX Runtime, in place.

    Args:
        wanted: which tensors are looked at.
        allows: asked once for each tensor that is about to become a weight.

    Returns:
        The names of the tensors that became weights.
    """
    return [name for graph in list(model.graphs()) for name in _fold_graph(model, graph, evaluator, limit, wanted, allows)]


def _fold_graph(model: ir.Model, graph: ir.Graph, evaluator: Evaluator, limit: int, wanted: Wanted, allows: Wanted) -> list[str]:
    known: set[ir.Value] = set()
    nodes: list[ir.Node] = []
    for node in graph:
        if _computable(node, known, limit) and _wanted(node, wanted):
            known.update(node.outputs)
            nodes.append(node)
    refused: set[ir.Node] = set()
    while nodes:
        frontier = _frontier(nodes)
        if not frontier:
            return []
        arrays = _evaluate(model, nodes, evaluator)
        if arrays is None:
            refused.add(_first_refused(model, nodes, evaluator))
            nodes = _without_dependents(nodes, refused)
            continue
        large = {value.producer() for value in frontier if _too_large_result(value, arrays[value.name or ""], limit)} - {None}
        if not large:
            folded = [name for value in frontier for name in make_constant(graph, value, arrays[value.name or ""], allows)]
            _remove_unused(nodes)
            return folded
        # A result that is too large stays computed on the device; what it is made from may still fold.
        refused |= {node for node in large if node is not None}
        nodes = _without_dependents(nodes, refused)
    return []


def _evaluate(model: ir.Model, nodes: list[ir.Node], evaluator: Evaluator) -> dict[str, Any] | None:
    """The tensors that nodes outside of these read; None if ONNX Runtime refuses the expression."""
    try:
        return evaluator.run(_piece(model, nodes, _frontier(nodes)), {})
    except EvaluationError as error:
        if error.stopped:
            raise
        return None


def _first_refused(model: ir.Model, nodes: list[ir.Node], evaluator: Evaluator) -> ir.Node:
    """The first node, in order, that ONNX Runtime does not compute, by halving."""
    good, bad = 0, len(nodes)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if _evaluate(model, nodes[:middle], evaluator) is None else (middle, bad)
    return nodes[bad - 1]


def _too_large_result(value: ir.Value, array: object, limit: int) -> bool:
    producer = value.producer()
    return producer is None or not isinstance(array, np.ndarray) or _too_large(producer, array.nbytes, limit)


def _without_dependents(nodes: Iterable[ir.Node], refused: set[ir.Node]) -> list[ir.Node]:
    kept, gone = [], set(refused)
    for node in nodes:
        if node in gone or any(value is not None and value.producer() in gone for value in node.inputs):
            gone.add(node)
        else:
            kept.append(node)
    return kept


def _frontier(nodes: list[ir.Node]) -> list[ir.Value]:
    """Outputs of ``nodes`` that somebody outside of them reads."""
    inside = set(nodes)
    values = []
    for node in nodes:
        values += [value for value in node.outputs if value.is_graph_output() or any(use.node not in inside for use in value.uses())]
    return values


def _piece(model: ir.Model, nodes: list[ir.Node], frontier: list[ir.Value]) -> ir.Model:
    """A model of just these nodes, without inputs."""
    values: dict[str, ir.Value] = {}
    weights: list[ir.Value] = []
    copies: list[ir.Node] = []
    for node in nodes:
        inputs: list[ir.Value | None] = []
        for value in node.inputs:
            if value is None:
                inputs.append(None)
                continue
            name = value.name or ""
            if name not in values:
                values[name] = ir.Value(name=name, type=value.type, shape=value.shape, const_value=value.const_value)
                weights.append(values[name])
            inputs.append(values[name])
        outputs = [ir.Value(name=value.name, type=value.type) for value in node.outputs]
        values.update({value.name or "": value for value in outputs})
        copies.append(ir.Node(node.domain, node.op_type, inputs, list(node.attributes.values()), outputs=outputs, name=node.name))
    outputs = [values[value.name or ""] for value in frontier]
    graph = ir.Graph([], outputs, nodes=copies, initializers=weights, opset_imports={"": model_opset(model)}, name="constants")
    return ir.Model(graph, ir_version=model.ir_version)


def make_constant(graph: ir.Graph, value: ir.Value, array: object, allows: Wanted = _all) -> list[str]:
    """Give ``value``'s users an initializer of the same name. Graph outputs keep their node: ATC wants an operator there."""
    node = value.producer()
    if node is None or not isinstance(array, np.ndarray):
        return []
    name = value.name or ""
    if (value.is_graph_output() and node.op_type == "Identity") or not allows(name):
        return []
    if value.is_graph_output():
        weight = _initializer(graph, _unused_name(graph, f"{name}__constant"), array)
        copy = ir.node("Identity", [weight], outputs=[ir.Value(name=f"{name}__new", type=value.type, shape=value.shape)], name=node.name)
        graph.insert_before(node, [copy])
        value.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
        value.name = f"{name}__folded"
        copy.outputs[0].name = name
    else:
        value.name = f"{name}__folded"
        value.replace_all_uses_with(_initializer(graph, name, array))
    _remove_unused([node])
    return [name]


def _unused_name(graph: ir.Graph, name: str) -> str:
    """The name, or a longer one that no tensor of the graph or of its bodies has: the node may have been folded before."""
    names = {value.name for each in (graph, *graph.subgraphs()) for node in each for value in node.outputs}
    names.update(value.name for each in (graph, *graph.subgraphs()) for value in (*each.inputs, *each.initializers.values()))
    while name in names:
        name += "_"
    return name


def _remove_unused(nodes: list[ir.Node]) -> None:
    """Remove those of the nodes (in order of the graph) whose outputs nobody reads any more."""
    for node in reversed(nodes):
        if isinstance(node.graph, ir.Graph) and not any(output.uses() or output.is_graph_output() for output in node.outputs):
            node.graph.remove(node, safe=True)


def _initializer(graph: ir.Graph, name: str, array: np.ndarray) -> ir.Value:
    tensor = _strings(array, name) if array.dtype.kind in "OUS" else ir.tensor(np.array(array), name=name)
    value = ir.Value(name=name, const_value=tensor, shape=ir.Shape(list(array.shape)), type=ir.TensorType(tensor.dtype))
    graph.register_initializer(value)
    return value


def _strings(array: np.ndarray, name: str) -> ir.StringTensor:
    """A tensor of strings, which onnx_ir wants as bytes."""
    encoded = [item.encode() if isinstance(item, str) else bytes(item) for item in array.reshape(-1).tolist()]
    return ir.StringTensor(np.array(encoded, dtype=object).reshape(array.shape), shape=ir.Shape(array.shape), name=name)
