"""Digests: of a file, and of a model in memory (structure and weights, not cosmetics)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir


def file_sha256(path: str | Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _blocks(tensor: ir.ExternalTensor) -> Iterator[bytes]:
    """The bytes of a weight on disk, read rather than mapped: mapped pages would all count as this process's memory."""
    left = tensor.nbytes
    with Path(tensor.path).open("rb") as file:
        file.seek(tensor.offset or 0)
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            left -= len(block)
            yield block


class Digester:
    """Digests of model states. Weights are shared between the states of one run, so each is hashed once.

    The digest covers opset imports, inputs, outputs, nodes, attributes, bodies, functions and weights; it leaves out shapes of
    intermediate tensors, documentation and metadata, which do not change what the model computes.
    """

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[Any, str]] = {}

    def model(self, model: ir.Model) -> str:
        parts: list[Any] = [sorted(model.opset_imports.items()), self._graph(model.graph)]
        for key, function in sorted(model.functions.items()):
            parts.append(
                (key, [value.name for value in function.inputs], self._nodes(function), [value.name for value in function.outputs])
            )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _graph(self, graph: ir.Graph) -> list[Any]:
        weights = [
            (name, "" if value.const_value is None else self._tensor(value.const_value))
            for name, value in sorted(graph.initializers.items())
        ]
        ends = [[(value.name, str(value.type), str(value.shape)) for value in values] for values in (graph.inputs, graph.outputs)]
        return [ends, weights, self._nodes(graph)]

    def _nodes(self, graph: ir.Graph | ir.Function) -> list[Any]:
        return [
            (
                node.domain,
                node.op_type,
                node.overload,
                [value.name if value is not None else "" for value in node.inputs],
                [value.name for value in node.outputs],
                [(name, self._attribute(attribute)) for name, attribute in sorted(node.attributes.items())],
            )
            for node in graph
        ]

    def _attribute(self, attribute: ir.Attr) -> Any:
        if attribute.is_ref():
            return f"@{attribute.ref_attr_name}"
        if attribute.type == ir.AttributeType.GRAPH:
            return self._graph(attribute.as_graph())
        if attribute.type == ir.AttributeType.GRAPHS:
            return [self._graph(graph) for graph in attribute.as_graphs()]
        if attribute.type == ir.AttributeType.TENSOR:
            return self._tensor(attribute.as_tensor())
        if attribute.type == ir.AttributeType.TENSORS:
            return [self._tensor(tensor) for tensor in attribute.as_tensors()]
        return repr(attribute.value)

    def _tensor(self, tensor: ir.TensorProtocol) -> str:
        known = self._tensors.get(id(tensor))
        if known is None:
            digest = hashlib.sha256(f"{tensor.dtype} {tensor.shape}".encode())
            if isinstance(tensor, ir.ExternalTensor):
                for block in _blocks(tensor):
                    digest.update(block)
            elif tensor.dtype == ir.DataType.STRING:
                digest.update(repr(tensor.numpy().tolist()).encode())
            else:
                digest.update(np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data)
            # Holding the tensor keeps its id from being reused.
            known = self._tensors[id(tensor)] = (tensor, digest.hexdigest())
        return known[1]
