"""BatchNormalization takes over the scales and shifts around it."""

from __future__ import annotations

import onnx_ir as ir

from .affine import Channels, Numbers, affine_of, per_channel, rounded
from .base import Action, Edit, given, known_shape, only_reader, producer, simplification
from .fuse_conv import rebuilt


def _channels(value: ir.Value | None) -> Channels | None:
    """Channels of a tensor, on axis 1."""
    dims = known_shape(value)
    if dims is None or len(dims) < 2 or not isinstance(dims[1], int):
        return None
    return Channels(len(dims), 1, dims[1])


def _numbers(node: ir.Node, index: int, channels: Channels) -> Numbers:
    """A parameter of a normalisation that is known to be constant."""
    found = per_channel(given(node, index), Channels(1, 0, channels.count))
    if found is None:
        raise ValueError("the parameter must be a constant")
    return found


def _after_norm(node: ir.Node, kind: str, edit: Edit) -> Action | None:
    """``scale * norm(x) + shift``: gamma and beta take both; mean and variance stay what they were."""
    for index in range(1 if node.op_type == "BatchNormalization" else min(2, len(node.inputs))):
        value = node.inputs[index]
        norm = producer(value, "BatchNormalization")
        channels = None if norm is None else _channels(norm.inputs[0])
        if value is None or norm is None or channels is None or not only_reader(value) or norm.graph is not node.graph:
            continue
        outer, parameter = affine_of(node, index, channels, edit), given(norm, 1)
        if outer is None or parameter is None or parameter.dtype is None or affine_of(norm, 0, channels, edit) is None:
            continue
        gamma = rounded(_numbers(norm, 1, channels) * outer.scale, parameter.dtype)
        beta = rounded(_numbers(norm, 2, channels) * outer.scale + outer.shift, parameter.dtype)
        if gamma is not None and beta is not None:
            inputs = [norm.inputs[0], gamma, beta, *norm.inputs[3:5]]
            return lambda: rebuilt(norm, node, inputs, kind, edit)
    return None


@simplification("batch-norm-scale", "Mul", "Div", exact=False)
def _batch_norm_scale(node: ir.Node, edit: Edit) -> Action | None:
    return _after_norm(node, "batch-norm-scale", edit)


@simplification("batch-norm-shift", "Add", "Sub", exact=False)
def _batch_norm_shift(node: ir.Node, edit: Edit) -> Action | None:
    return _after_norm(node, "batch-norm-shift", edit)


@simplification("batch-norm-twice", "BatchNormalization", exact=False)
def _batch_norm_twice(node: ir.Node, edit: Edit) -> Action | None:
    return _after_norm(node, "batch-norm-twice", edit)


@simplification("scale-batch-norm", "BatchNormalization", exact=False)
def _scale_batch_norm(node: ir.Node, edit: Edit) -> Action | None:
    """``norm(scale * x + shift)``: gamma takes the scale, and the mean is moved by the shift."""
    value = node.inputs[0]
    before = producer(value, "Mul", "Div", "Add", "Sub")
    if value is None or before is None or not only_reader(value) or before.graph is not node.graph:
        return None
    for index, source in enumerate(before.inputs):
        channels, parameter, mean = _channels(source), given(node, 1), given(node, 3)
        if channels is None or parameter is None or mean is None or parameter.dtype is None or mean.dtype is None:
            continue
        inner = affine_of(before, index, channels, edit)
        if inner is None or not bool(inner.scale.all()) or affine_of(node, 0, channels, edit) is None:
            continue
        gamma = rounded(_numbers(node, 1, channels) * inner.scale, parameter.dtype)
        moved = rounded((_numbers(node, 3, channels) - inner.shift) / inner.scale, mean.dtype)
        if gamma is not None and moved is not None:
            inputs = [source, gamma, node.inputs[2], moved, node.inputs[4]]
            return lambda: rebuilt(node, node, inputs, "scale-batch-norm", edit)
    return None
