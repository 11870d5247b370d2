"""Matrix products take over what only scales, shifts or transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from .affine import FLOATS, Channels, affine_of, bias_numbers, rounded, weight_of
from .base import Action, Edit, given, integer, integers, known_shape, only_reader, producer, rank, simplification, static_shape
from .fuse_conv import rebuilt


def _real(node: ir.Node, name: str, default: float) -> float:
    return node.attributes[name].as_float() if name in node.attributes else default


def _product_before(node: ir.Node, index: int, *ops: str) -> ir.Node | None:
    """The matrix product that makes an input of a node, when nobody else reads it."""
    value = node.inputs[index] if index < len(node.inputs) else None
    product = producer(value, *ops)
    return product if value is not None and product is not None and only_reader(value) and product.graph is node.graph else None


def _gemm_after(node: ir.Node, kind: str, edit: Edit) -> Action | None:
    """``scale * gemm(a, b, c) + shift`` as one Gemm; the scale goes into a constant b."""
    for index in range(1 if node.op_type == "BatchNormalization" else min(2, len(node.inputs))):
        gemm = _product_before(node, index, "Gemm")
        weight = None if gemm is None else weight_of(given(gemm, 1))
        if gemm is None or weight is None or len(weight.dims) != 2:
            continue
        columns = 0 if integer(gemm, "transB", 0) else 1
        count = weight.dims[columns]
        affine, bias = affine_of(node, index, Channels(2, 1, count), edit), bias_numbers(given(gemm, 2), count)
        if affine is None or bias is None:
            continue
        factor = affine.scale.reshape(-1, 1) if columns == 0 else affine.scale.reshape(1, -1)
        new_weight = weight.times(factor, edit)
        new_bias = rounded(_real(gemm, "beta", 1.0) * bias * affine.scale + affine.shift, weight.dtype)
        if new_weight is not None and new_bias is not None:
            inputs = [gemm.inputs[0], new_weight, new_bias]
            return lambda: rebuilt(gemm, node, inputs, kind, edit, beta=1.0)
    return None


@simplification("gemm-batch-norm", "BatchNormalization", exact=False)
def _gemm_batch_norm(node: ir.Node, edit: Edit) -> Action | None:
    return _gemm_after(node, "gemm-batch-norm", edit) or _matmul_batch_norm(node, edit)


@simplification("gemm-scale", "Mul", "Div", exact=False)
def _gemm_scale(node: ir.Node, edit: Edit) -> Action | None:
    return _gemm_after(node, "gemm-scale", edit)


@simplification("gemm-shift", "Add", "Sub", exact=False)
def _gemm_shift(node: ir.Node, edit: Edit) -> Action | None:
    return _gemm_after(node, "gemm-shift", edit)


def _matmul_batch_norm(node: ir.Node, edit: Edit) -> Action | None:
    """Of two matrices only: there the channels are the columns."""
    product = _product_before(node, 0, "MatMul")
    weight = None if product is None else weight_of(product.inputs[1])
    if product is None or weight is None or len(weight.dims) != 2 or rank(product.inputs[0]) != 2:
        return None
    affine = affine_of(node, 0, Channels(2, 1, weight.dims[1]), edit)
    new_weight = None if affine is None else weight.times(affine.scale.reshape(1, -1), edit)
    new_bias = None if affine is None else rounded(np.broadcast_to(affine.shift, (weight.dims[1],)), weight.dtype)
    if new_weight is None or new_bias is None:
        return None
    inputs = [product.inputs[0], new_weight, new_bias]
    return lambda: rebuilt(product, node, inputs, "gemm-batch-norm", edit, op_type="Gemm")


@simplification("matmul-scale", "Mul", "Div", exact=False)
def _matmul_scale(node: ir.Node, edit: Edit) -> Action | None:
    """``scale * (x @ w)`` with the scale in the constant: one number, or one per column where the constant is on the right."""
    for index in range(min(2, len(node.inputs))):
        product = _product_before(node, index, "MatMul")
        if product is None:
            continue
        for side in (1, 0):
            weight = weight_of(product.inputs[side])
            dims = known_shape(node.inputs[index])
            if weight is None or dims is None or len(weight.dims) < 2 or not len(dims):
                continue
            columns = weight.dims[-1] if side == 1 else 1
            affine = affine_of(node, index, Channels(len(dims), len(dims) - 1, columns), edit)
            new_weight = None if affine is None else weight.times(affine.scale, edit)
            if new_weight is not None:
                inputs = [new_weight, product.inputs[1]] if side == 0 else [product.inputs[0], new_weight]
                return lambda: rebuilt(product, node, inputs, "matmul-scale", edit)
    return None


# Bias


def _addend(node: ir.Node, index: int, columns: int) -> ir.Value | None:
    """The other operand of an Add, if a Gemm can take it as C: it must not enlarge the result."""
    other, result = node.inputs[1 - index], static_shape(node.inputs[index])
    dims = static_shape(other)
    if other is None or dims is None or len(dims) > 2:
        return None
    if dims in ((), (1,), (columns,), (1, 1), (1, columns)):
        return other
    return other if result is not None and dims in (result, (result[0], 1)) else None


def _columns(value: ir.Value | None, transposed: int) -> tuple[int, int] | None:
    """Rows and columns of a right operand that is a matrix of known size."""
    dims = static_shape(value)
    if dims is None or len(dims) != 2 or 0 in dims:
        return None
    return (dims[1], dims[0]) if transposed else (dims[0], dims[1])


@simplification("matmul-bias", "Add", exact=False)
def _matmul_bias(node: ir.Node, edit: Edit) -> Action | None:
    """The product of two matrices plus a bias is a Gemm."""
    if edit.opset < 7 or len(node.inputs) != 2 or node.outputs[0].dtype not in FLOATS:
        return None
    for index in (0, 1):
        product = _product_before(node, index, "MatMul")
        size = None if product is None else _columns(product.inputs[1], 0)
        if product is None or size is None or rank(product.inputs[0]) != 2:
            continue
        bias = _addend(node, index, size[1])
        if bias is not None:
            return lambda: _with_bias(product, node, bias, "matmul-bias", edit)
    return None


@simplification("gemm-bias", "Add", exact=False)
def _gemm_bias(node: ir.Node, edit: Edit) -> Action | None:
    """A Gemm without C takes what is added to it."""
    if edit.opset < 7 or len(node.inputs) != 2 or node.outputs[0].dtype not in FLOATS:
        return None
    for index in (0, 1):
        gemm = _product_before(node, index, "Gemm")
        size = None if gemm is None else _columns(gemm.inputs[1], integer(gemm, "transB", 0))
        if gemm is None or size is None or given(gemm, 2) is not None:
            continue
        bias = _addend(node, index, size[1])
        if bias is not None:
            return lambda: _with_bias(gemm, node, bias, "gemm-bias", edit)
    return None


def _with_bias(product: ir.Node, node: ir.Node, bias: ir.Value, kind: str, edit: Edit) -> None:
    """Made where the Add is: the bias may be computed between the two."""
    rebuilt(product, node, [product.inputs[0], product.inputs[1], bias], kind, edit, op_type="Gemm", before=node, beta=1.0)


@simplification("gemm-transpose", "Gemm", exact=False)
def _gemm_transpose(node: ir.Node, edit: Edit) -> Action | None:
    """A transposed operand by transA or transB."""
    for index, attribute in ((0, "transA"), (1, "transB")):
        value = node.inputs[index]
        transpose = producer(value, "Transpose")
        if value is None or transpose is None or not only_reader(value) or rank(transpose.inputs[0]) != 2:
            continue
        if integers(transpose, "perm") in (None, [1, 0]):
            inputs = list(node.inputs)
            inputs[index] = transpose.inputs[0]
            changes: dict[str, Any] = {attribute: 1 - integer(node, attribute, 0)}
            return lambda: rebuilt(node, node, inputs, "gemm-transpose", edit, **changes)
    return None
