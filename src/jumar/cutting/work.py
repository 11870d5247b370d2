"""How much work a node is: multiply-adds where it multiplies, else one operation for each element that it makes.

Both are counted from sizes. That is what the arithmetic asks for, and no time: memory, launches and kernels are not in it.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from ..graph import constant_of, static_shape
from ..graph.surgery.lookup import bodies_of

_CONVOLUTIONS = {"Conv": 1, "ConvTranspose": 1, "DeformConv": 1, "FusedConv": 1, "ConvInteger": 1, "QLinearConv": 3}
"""Convolutions, with the place of their weight."""
_MATRIX_PRODUCTS = frozenset(
    {
        "Gemm",
        "MatMul",
        "FusedGemm",
        "FusedMatMul",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "DynamicQuantizeMatMul",
        "QLinearMatMul",
        "QGemm",
    }
)
_RECURRENT = frozenset({"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"})
_ENDLESS = 1 << 31
"""A trip count from which on it stands for "until the condition says so"."""
_STANDARD = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")


def work_of(node: ir.Node) -> int:
    """Operations of a node; what cannot be counted (see :func:`is_counted`) is left out of the sum, which is 1 at least."""
    made = sum(math.prod(shape) for value in node.outputs if (shape := static_shape(value)) is not None)
    return max(_multiply_adds(node) or _in_bodies(node) or made, 1)


def is_counted(node: ir.Node) -> bool:
    """Whether :func:`work_of` says all there is: not so for products of open sizes, loops of unknown length around anything, attention
    (which is not counted), and operators of domains that nobody here knows. An elementwise operator of an open size is not held against it."""
    if node.domain not in _STANDARD or "Attention" in node.op_type:
        return False
    if _trips(node) is None or not all(is_counted(inner) for inner in _inside(node)):
        return False
    return _multiply_adds(node) is not None


def _multiply_adds(node: ir.Node) -> int | None:
    """0 for what does not multiply, None where a size is open."""
    made = next((static_shape(value) for value in node.outputs if value.name), None)
    first = _shape(node, 0)
    if node.op_type in _CONVOLUTIONS:
        weight = _shape(node, _CONVOLUTIONS[node.op_type])
        # Each element of the input (ConvTranspose) or of the output meets one filter.
        elements = first if node.op_type == "ConvTranspose" else made
        return None if weight is None or elements is None else math.prod(elements) * math.prod(weight[1:])
    if node.op_type in _MATRIX_PRODUCTS:
        transposed = node.attributes.get_int("transA", 0)
        return None if made is None or not first else math.prod(made) * first[-2 if transposed else -1]
    if node.op_type in _RECURRENT:
        weights = [_shape(node, 1), _shape(node, 2)]
        # Every step of every sequence (in either layout) meets all elements of both weights, of all directions.
        return None if first is None or None in weights else math.prod(first[:2]) * sum(math.prod(shape or ()) for shape in weights)
    return 0


def _in_bodies(node: ir.Node) -> int:
    """The larger branch of an If, the body of a loop in all its trips."""
    bodies = [sum(map(work_of, graph)) for _, graphs in bodies_of(node) for graph in graphs]
    return max(bodies, default=0) * (_trips(node) or 1)


def _inside(node: ir.Node) -> list[ir.Node]:
    return [inner for _, graphs in bodies_of(node) for graph in graphs for inner in graph]


def _trips(node: ir.Node) -> int | None:
    """How often the bodies run at most; None where that is not known."""
    if not _inside(node) or node.op_type == "If":
        return 1
    if node.op_type == "Loop" and node.inputs:
        count = constant_of(node.inputs[0])
        return int(count.item()) if count is not None and count.size == 1 and count.item() < _ENDLESS else None
    if node.op_type == "Scan" and node.inputs:
        # All scanned inputs are equally long; they come last.
        axis = (node.attributes.get_ints("scan_input_axes") or (0,))[-1]
        scanned = static_shape(node.inputs[-1]) or ()
        return scanned[axis] if -len(scanned) <= axis < len(scanned) else None
    return None


def _shape(node: ir.Node, place: int) -> tuple[int, ...] | None:
    value = node.inputs[place] if place < len(node.inputs) else None
    return None if value is None else static_shape(value)
