"""Sparse initializers are written out when a model is read: nothing behind the loader (onnx_ir, ONNX Runtime's child, ATC) knows them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

_LIMIT = 1 << 31  # bytes of one dense tensor: what a protobuf holds


def make_dense(proto: onnx.ModelProto, folder: Path) -> None:
    """Replace the sparse initializers of all graphs by dense ones, in place.

    Raises:
        ValueError: a dense tensor would not fit a protobuf, or indices lead outside it.
    """
    _graph(proto.graph, folder)
    for function in proto.functions:
        for node in function.node:
            _bodies(node, folder)


def _graph(graph: onnx.GraphProto, folder: Path) -> None:
    graph.initializer.extend(_dense(sparse, folder) for sparse in graph.sparse_initializer)
    graph.ClearField("sparse_initializer")
    for node in graph.node:
        _bodies(node, folder)


def _bodies(node: onnx.NodeProto, folder: Path) -> None:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            _graph(attribute.g, folder)
        for graph in attribute.graphs:
            _graph(graph, folder)


def _dense(sparse: onnx.SparseTensorProto, folder: Path) -> onnx.TensorProto:
    values = numpy_helper.to_array(sparse.values, str(folder))
    indices = numpy_helper.to_array(sparse.indices, str(folder)).astype(np.int64)
    dims = tuple(sparse.dims)
    if any(dim < 0 for dim in dims) or math.prod(dims) * max(values.itemsize, 1) > _LIMIT:
        raise ValueError(f"sparse initializer {sparse.values.name} is too large to be written out ({list(dims)})")
    dense = np.zeros(dims, values.dtype)
    # One index per value counts through the tensor, one row per value gives its coordinates.
    places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), dims)
    dense.reshape(-1)[places] = values
    return numpy_helper.from_array(dense, sparse.values.name)
