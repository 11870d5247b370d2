"""Reading a graph: all nodes at every depth, the model's opset, and where a node came from."""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx_ir as ir

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
SOURCE, MODULE = "jumar.source_line", "jumar.module"
"""Entries of a node's metadata: the Python line that made it, and the path of the torch module it belongs to."""
_LIBRARY = ("site-packages", "dist-packages", "/torch/", "<frozen", "<string>")


def all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Every node of the main graph, of the bodies of If/Loop/Scan at any depth, and of local functions."""
    yield from ir.traversal.RecursiveGraphIterator(model.graph)
    for function in model.functions.values():
        yield from ir.traversal.RecursiveGraphIterator(function)


def model_opset(model: ir.Model) -> int:
    """The version of the standard operator set the model imports (0 when it imports none)."""
    return model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))


def node_place(node: ir.Node) -> str:
    """A name to find the node by: its own, or its first output's where the exporter left it empty."""
    if node.name:
        return node.name
    first = next((output.name for output in node.outputs if output.name), None)
    return f"{node.op_type} -> {first}" if first else node.op_type


def source_line(node: ir.Node) -> str | None:
    """The Python line that made the node (``file:line``): as `jumar export` noted it, or the user's own innermost one in the exporter's stack trace."""
    noted = node.metadata_props.get(SOURCE)
    if noted:
        return noted
    trace = node.metadata_props.get("pkg.torch.onnx.stack_trace", "")
    frames = [match for match in _FRAME.finditer(trace) if not any(part in match["file"] for part in _LIBRARY)]
    return f"{frames[-1]['file']}:{frames[-1]['line']}" if frames else None


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among a node's attributes (of If, Loop and Scan)."""
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def weight_bytes(tensor: ir.TensorProtocol | None) -> int:
    """Bytes of a weight's data; 0 for strings, which have no fixed size, and for no tensor."""
    return 0 if tensor is None or tensor.dtype == ir.DataType.STRING else tensor.nbytes
