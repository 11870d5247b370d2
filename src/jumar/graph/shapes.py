"""Shapes and constants: what is known of a tensor before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from . import native
from .evaluate import ChildFailure
from .runtime_shapes import stand_in

Array = npt.NDArray[np.generic]

# Weights up to this many bytes may be shapes, axes or sizes, whose values inference propagates.
_WEIGHT_LIMIT = 1000
_GAVE_UP = "jumar.inference_gave_up"


def infer_shapes(model: ir.Model, *, forget: bool = False) -> None:
    """Fill in types and shapes of intermediate tensors, in place, with ONNX's own inference and data propagation.

    Args:
        forget: drop what the file says of intermediate tensors first (needed after inputs were pinned: stale symbolic
            shapes would win). Declared outputs keep their rank and dtype.

    A model whose inference fails keeps what it had: unknown shapes are reported as unknown, not as an error.
    """
    if forget:
        for graph in model.graphs():
            for node in graph:
                for value in node.outputs:
                    # ONNX wants the rank of an output to be declared, even where inference cannot tell it.
                    open_dims = [dim if isinstance(dim, int) else None for dim in value.shape or ()]
                    value.shape = ir.Shape(open_dims) if value.is_graph_output() and value.shape is not None else None
    # Inference errors are the model's problem elsewhere (checker, ONNX Runtime); here they only mean "not known".
    if model.meta.get(_GAVE_UP):
        return
    try:
        inferred = _inferred(model)
    except ChildFailure as failure:
        if failure.stopped:
            model.meta[_GAVE_UP] = True  # it would take as long every time
    except Exception:
        return
    else:
        _take_over(model.graph, inferred)


def _inferred(model: ir.Model) -> onnx.GraphProto:
    """What ONNX infers for the model. Large weights take part by type and shape only, so that a protobuf can hold the rest."""
    held = {value: value.const_value for value in model.graph.initializers.values() if value.const_value is not None}
    try:
        # A tensor that is elsewhere is written by its type and shape alone. (To clone the model for this takes as long as all the rest.)
        for value, tensor in held.items():
            if tensor.nbytes > _WEIGHT_LIMIT:
                value.const_value = ir.ExternalTensor(
                    "elsewhere", 0, 0, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=value.name or ""
                )
            elif isinstance(tensor, ir.ExternalTensor):
                value.const_value = ir.tensor(tensor.numpy(), dtype=tensor.dtype, name=value.name)
        proto = ir.to_proto(model)
    finally:
        for value, tensor in held.items():
            value.const_value = tensor
    graph = proto.graph
    named = {item.name for item in graph.input}
    weights = list(graph.initializer)
    graph.ClearField("initializer")
    for weight in weights:
        if weight.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(weight)
        elif weight.name not in named:
            graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims)))
    stand_in(proto)
    return native.infer_shapes(proto).graph


def _take_over(graph: ir.Graph, inferred: onnx.GraphProto) -> None:
    """Write the inferred types and shapes into a graph and its bodies. (Only these are read: a whole model takes ten times as long.)"""
    known = {item.name: item.type for item in (*inferred.input, *inferred.value_info, *inferred.output) if item.HasField("type")}
    for value in (*graph.inputs, *(output for node in graph for output in node.outputs)):
        found = known.get(value.name or "")
        if found is not None:
            _take_type(value, found)
    for node, other in zip(graph, inferred.node, strict=True):
        for attribute in other.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _take_over(node.attributes[attribute.name].as_graph(), attribute.g)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for body, inner in zip(node.attributes[attribute.name].as_graphs(), attribute.graphs, strict=True):
                    _take_over(body, inner)


def _take_type(value: ir.Value, found: onnx.TypeProto) -> None:
    kind = ir.serde.deserialize_type_proto_for_type(found)
    if kind is not None and kind != value.type:
        value.type = kind
    shape = ir.serde.deserialize_type_proto_for_shape(found)
    if shape is not None and shape != value.shape:
        value.shape = shape


def pin_shapes(model: ir.Model, shapes: Mapping[str, tuple[int | str | None, ...]]) -> list[str]:
    """Write sizes into the inputs, in place, and infer the rest anew.

    A symbol that the sizes give a value (``n`` of ``[n, 3]`` pinned to ``2,3``) is filled in wherever inputs and outputs use it. One
    that they give two values (exporters reuse names) stands for nothing and is not. What is no number stays open.

    Returns:
        Names of the inputs whose shape changed.
    """
    values = symbol_values(model, shapes)
    pinned = []
    for value in model.graph.inputs:
        shape, given = known_shape(value), shapes.get(value.name or "")
        if given is None and shape is not None:
            given_dims: tuple[int | str | None, ...] = tuple(values.get(dim, dim) if isinstance(dim, str) else dim for dim in shape)
        else:
            given_dims = given or ()
        if (given is not None or shape is not None) and given_dims != shape:
            value.shape = ir.Shape(given_dims)
            pinned.append(value.name or "")
    for value in model.graph.outputs:
        # Symbols without a value no longer mean anything: they are inferred from the sizes.
        shape = known_shape(value)
        if shape is not None:
            value.shape = ir.Shape([values.get(dim) if isinstance(dim, str) else dim for dim in shape])
    infer_shapes(model, forget=True)
    return pinned


def symbol_values(model: ir.Model, shapes: Mapping[str, tuple[int | str | None, ...]]) -> dict[str, int]:
    """Sizes of the symbolic dimensions that follow from the shapes of some inputs."""
    sizes: dict[str, set[int]] = {}
    for value in model.graph.inputs:
        shape, given = known_shape(value), shapes.get(value.name or "")
        if shape is not None and given is not None:
            for dim, size in zip(shape, given, strict=True):
                if isinstance(dim, str) and isinstance(size, int):
                    sizes.setdefault(dim, set()).add(size)
    return {dim: found.pop() for dim, found in sizes.items() if len(found) == 1}


def agreed_shapes(model: ir.Model, gears: Sequence[Mapping[str, tuple[int, ...]]]) -> dict[str, tuple[int | str | None, ...]]:
    """Shapes of the open inputs in which the gears give a dimension one size; where they do not, it stays as it is."""
    agreed: dict[str, tuple[int | str | None, ...]] = {}
    for value in model.graph.inputs:
        name, shape = value.name or "", known_shape(value)
        given = [gear[name] for gear in gears if name in gear]
        if len(given) < len(gears) or not given:
            continue
        declared = shape if shape is not None else (None,) * len(given[0])
        found = tuple(sizes[0] if len(set(sizes)) == 1 else dim for dim, sizes in zip(declared, zip(*given, strict=True), strict=True))
        if found != shape and any(isinstance(dim, int) for dim in found):
            agreed[name] = found
    return agreed


def known_shape(value: ir.Value | None) -> tuple[int | str | None, ...] | None:
    """Shape as ints, names and None; None when not even the rank is known."""
    if value is None or value.shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else dim.value for dim in value.shape)


def static_shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The shape if every dimension is a number, else None."""
    shape = known_shape(value)
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    return tuple(int(dim) for dim in shape if isinstance(dim, int))


def constant_of(value: ir.Value | None) -> Array | None:
    """The value of an initializer or a Constant node's output, else None.

    A graph input with a default value is no constant: the caller may override it.
    """
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()
