"""Shapes and constants: what is known of a tensor before anything runs."""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

Array = npt.NDArray[np.generic]


def infer_shapes(model: ir.Model, *, forget: bool = False) -> None:
    """Fill in types and shapes of intermediate tensors, in place, with ONNX's own inference and data propagation.

    Args:
        forget: drop what the file says of intermediate tensors first (needed after inputs were pinned: stale symbolic
            shapes would win). Declared outputs keep their rank and dtype.

    A model whose inference fails keeps what it had: unknown shapes are reported as unknown, not as an error.
    """
    if forget:
        for graph in model.graphs():
            kept = {id(value) for value in graph.inputs} | {id(value) for value in graph.initializers.values()}
            for node in graph:
                for value in node.outputs:
                    if id(value) not in kept:
                        value.shape = None
    # Inference errors are the model's problem elsewhere (checker, ONNX Runtime); here they only mean "not known".
    with contextlib.suppress(Exception):
        ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)


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


def onnx_dtype(value: ir.Value | None) -> ir.DataType | None:
    return None if value is None else value.dtype


def newest_opset() -> int:
    """The newest operator set the installed ``onnx`` package knows."""
    return onnx.defs.onnx_opset_version()
