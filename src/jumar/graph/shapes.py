"""Shapes and constants: what is known of a tensor before anything runs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

Array = npt.NDArray[np.generic]

# Weights up to this many bytes may be shapes, axes or sizes, whose values inference propagates.
_WEIGHT_LIMIT = 1000


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
    with contextlib.suppress(Exception):
        _take_over(model, _inferred(model))


def _inferred(model: ir.Model) -> ir.Model:
    """What ONNX infers for the model. Large weights take part by type and shape only, so that a protobuf can hold the rest."""
    light = model.clone()
    for name, value in list(light.graph.initializers.items()):
        tensor = value.const_value
        if tensor is not None and tensor.nbytes > _WEIGHT_LIMIT:
            value.type, value.shape = ir.TensorType(tensor.dtype), ir.Shape(list(tensor.shape.numpy()))
            value.const_value = None
            del light.graph.initializers[name]
            if not value.is_graph_input():
                light.graph.inputs.append(value)
    proto = onnx.shape_inference.infer_shapes(ir.to_proto(light), check_type=False, strict_mode=False, data_prop=True)
    return ir.from_proto(proto)


def _take_over(model: ir.Model, inferred: ir.Model) -> None:
    for graph, other in zip(model.graphs(), inferred.graphs(), strict=True):
        known = ir.convenience.create_value_mapping(other)
        for name, value in ir.convenience.create_value_mapping(graph).items():
            found = known.get(name)
            if found is None:
                continue
            if found.type is not None and found.type != value.type:
                value.type = found.type
            if found.shape is not None and found.shape != value.shape:
                value.shape = found.shape


def pin_shapes(model: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Write sizes into the inputs, in place, and infer the rest anew.

    A symbol that the sizes give a value (``n`` of ``[n, 3]`` pinned to ``2,3``) is filled in wherever inputs and outputs use it. One
    that they give two values (exporters reuse names) stands for nothing and is not.

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


def symbol_values(model: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Sizes of the symbolic dimensions that follow from the shapes of some inputs."""
    sizes: dict[str, set[int]] = {}
    for value in model.graph.inputs:
        shape, given = known_shape(value), shapes.get(value.name or "")
        if shape is not None and given is not None:
            for dim, size in zip(shape, given, strict=True):
                if isinstance(dim, str):
                    sizes.setdefault(dim, set()).add(size)
    return {dim: found.pop() for dim, found in sizes.items() if len(found) == 1}


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
