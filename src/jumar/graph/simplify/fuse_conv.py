"""Convolutions take over what only scales, shifts or pads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from .affine import Affine, Channels, Numbers, Weight, affine_of, bias_numbers, rounded, weight_of
from .base import (
    Action,
    Edit,
    describe,
    given,
    integer,
    integers,
    known_shape,
    only_reader,
    producer,
    rank,
    simplification,
    small_constant,
    text,
)

_CONVOLUTIONS = ("Conv", "ConvTranspose")


def rebuilt(
    old: ir.Node,
    end: ir.Node,
    inputs: Sequence[ir.Value | Weight | npt.NDArray[np.generic] | None],
    kind: str,
    edit: Edit,
    *,
    op_type: str | None = None,
    before: ir.Node | None = None,
    **changes: Any,
) -> None:
    """Put a new form of ``old`` in its place, whose result takes the place of the first output of ``end`` (``old`` or its only reader).

    The new node keeps the old one's name, attributes and source line. Arrays among the inputs become weights.

    Args:
        op_type: the operator, if another.
        before: the node before which it is put, if not ``old``.
        changes: attributes to set.
    """
    builder = edit.at(before or old, kind)
    values = [
        item if item is None or isinstance(item, ir.Value) else item.emit(builder) if isinstance(item, Weight) else builder.const(item)
        for item in inputs
    ]
    new = builder.op(op_type or old.op_type, *values, **{**old.attributes, **changes})
    made, name, lines = builder.made[-1], old.name, dict(old.metadata_props)
    result = end.outputs[0]
    describe(new, known_shape(result) or known_shape(old.outputs[0]), result.dtype or old.outputs[0].dtype)
    builder.replace(result, new)
    edit.discard(end)
    if old.graph is None:
        made.name = name or made.name
    made.metadata_props.update((key, value) for key, value in lines.items() if key != "jumar.rule")


def _group(node: ir.Node) -> int:
    return integer(node, "group", 1)


def _output_channels(node: ir.Node, weight: Weight) -> Channels | None:
    if len(weight.dims) < 3:
        return None
    count = weight.dims[0] if node.op_type == "Conv" else weight.dims[1] * _group(node)
    return Channels(len(weight.dims), 1, count)


def _output_factor(node: ir.Node, weight: Weight, scale: Numbers) -> Numbers:
    """The scale of the output channels, laid out like the weight."""
    spatial = (1,) * (len(weight.dims) - 2)
    if scale.size == 1:
        return scale.reshape(1)
    if node.op_type == "Conv":
        return scale.reshape(-1, 1, *spatial)
    groups = _group(node)
    return np.repeat(scale.reshape(groups, -1), weight.dims[0] // groups, axis=0).reshape(weight.dims[0], -1, *spatial)


def _scaled_after(node: ir.Node, conv: ir.Node, index: int, kind: str, edit: Edit) -> Action | None:
    """``scale * conv(x) + shift`` as one convolution."""
    weight = weight_of(given(conv, 1))
    channels = None if weight is None else _output_channels(conv, weight)
    if weight is None or channels is None:
        return None
    affine, bias = affine_of(node, index, channels, edit), bias_numbers(given(conv, 2), channels.count)
    if affine is None or bias is None:
        return None
    new_weight = weight.times(_output_factor(conv, weight, affine.scale), edit)
    new_bias = rounded(bias * affine.scale + affine.shift, weight.dtype)
    if new_weight is None or new_bias is None:
        return None
    needed = new_bias.any() or given(conv, 2) is not None
    inputs = [conv.inputs[0], new_weight, *([new_bias] if needed else [])]
    return lambda: rebuilt(conv, node, inputs, kind, edit)


def _after_convolution(node: ir.Node, kind: str, edit: Edit) -> Action | None:
    for index in range(1 if node.op_type == "BatchNormalization" else min(2, len(node.inputs))):
        value = node.inputs[index]
        conv = producer(value, *_CONVOLUTIONS)
        if value is not None and conv is not None and only_reader(value) and conv.graph is node.graph:
            return _scaled_after(node, conv, index, kind, edit)
    return None


@simplification("conv-batch-norm", "BatchNormalization", exact=False)
def _conv_batch_norm(node: ir.Node, edit: Edit) -> Action | None:
    return _after_convolution(node, "conv-batch-norm", edit)


@simplification("conv-scale", "Mul", "Div", exact=False)
def _conv_scale(node: ir.Node, edit: Edit) -> Action | None:
    return _after_convolution(node, "conv-scale", edit)


@simplification("conv-shift", "Add", "Sub", exact=False)
def _conv_shift(node: ir.Node, edit: Edit) -> Action | None:
    return _after_convolution(node, "conv-shift", edit)


@simplification("scale-conv", "Conv", exact=False)
def _scale_conv(node: ir.Node, edit: Edit) -> Action | None:
    """``conv(scale * x + shift)`` as one convolution. Padding adds zeros after the shift, so that with padding only a scale can go."""
    value = node.inputs[0]
    before = producer(value, "BatchNormalization", "Mul", "Div", "Add", "Sub")
    weight = weight_of(given(node, 1))
    if value is None or before is None or weight is None or not only_reader(value) or len(weight.dims) < 3:
        return None
    channels = Channels(len(weight.dims), 1, weight.dims[1] * _group(node))
    bias = bias_numbers(given(node, 2), weight.dims[0])
    for index in range(1 if before.op_type == "BatchNormalization" else len(before.inputs)):
        # The constant alone must not decide the rank or the channels: the tensor has to have them already.
        source = before.inputs[index]
        known = known_shape(source)
        if source is None or known is None or len(known) != channels.rank or known[1] != channels.count:
            continue
        affine = affine_of(before, index, channels, edit)
        if affine is not None and bias is not None:
            return _scaled_before(node, source, weight, bias, affine, edit)
    return None


def _scaled_before(node: ir.Node, source: ir.Value, weight: Weight, bias: Numbers, affine: Affine, edit: Edit) -> Action | None:
    groups, spatial = _group(node), (1,) * (len(weight.dims) - 2)
    new_bias, shift = bias, np.broadcast_to(affine.shift, (weight.dims[1] * groups,))
    if shift.any():
        padding = integers(node, "pads") or []
        if any(padding) or text(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID") or weight.shape_input is not None:
            return None
        taps = weight.read().reshape(weight.dims[0], weight.dims[1], -1).sum(axis=2, dtype=np.float64)
        new_bias = bias + (taps * _by_output(shift, groups, weight.dims[0])).sum(axis=1)
    if affine.scale.size == 1:
        factor = affine.scale.reshape(1)
    else:
        factor = _by_output(affine.scale, groups, weight.dims[0]).reshape(weight.dims[0], -1, *spatial)
    new_weight, final_bias = weight.times(factor, edit), rounded(new_bias, weight.dtype)
    if new_weight is None or final_bias is None:
        return None
    needed = final_bias.any() or given(node, 2) is not None
    inputs: list[ir.Value | Weight | npt.NDArray[np.generic] | None] = [source, new_weight, *([final_bias] if needed else [])]
    return lambda: rebuilt(node, node, inputs, "scale-conv", edit)


def _by_output(numbers: Numbers, groups: int, outputs: int) -> Numbers:
    """Numbers per input channel as a row for each output channel, which reads those of its group."""
    return np.repeat(numbers.reshape(groups, -1), outputs // groups, axis=0)


# Padding


def _padding(node: ir.Node, edit: Edit, dims: int) -> tuple[list[int], float] | None:
    """Spatial padding (begins, then ends) and value of a constant Pad that touches neither batch nor channels and cuts nothing off."""
    pads = integers(node, "pads", 1)
    if edit.opset < 2 or pads is None or text(node, "mode", "constant") != "constant":
        return None
    value = 0.0
    if "value" in node.attributes:
        value = node.attributes["value"].as_float()
    elif given(node, 2) is not None:
        array = small_constant(given(node, 2))
        if array is None or array.size != 1:
            return None
        value = float(array.reshape(-1)[0])
    if given(node, 3) is not None:
        axes = small_constant(given(node, 3))
        if axes is None or len(pads) != 2 * axes.size:
            return None
        full = [0] * (2 * dims)
        for place, axis in enumerate(int(item) % dims for item in axes.reshape(-1)):
            full[axis], full[dims + axis] = pads[place], pads[place + axes.size]
        pads = full
    if len(pads) != 2 * dims or any(item < 0 for item in pads) or any(pads[axis] for axis in (0, 1, dims, dims + 1)):
        return None
    return [*pads[2:dims], *pads[dims + 2 :]], value


def _padded_input(node: ir.Node, edit: Edit) -> tuple[ir.Node, list[int], float] | None:
    """The Pad before a node with explicit padding, and the padding of both together."""
    value = node.inputs[0]
    pad = producer(value, "Pad")
    if value is None or pad is None or not only_reader(value) or text(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    dims = rank(value) or rank(pad.inputs[0])
    found = None if dims is None else _padding(pad, edit, dims)
    if dims is None or found is None:
        return None
    own = integers(node, "pads") if text(node, "auto_pad", "NOTSET") == "NOTSET" else None
    own = own or [0] * (2 * dims - 4)
    if len(own) != len(found[0]) or any(item < 0 for item in own):
        return None
    return pad, [a + b for a, b in zip(own, found[0], strict=True)], found[1]


@simplification("pad-conv", "Conv")
def _pad_conv(node: ir.Node, edit: Edit) -> Action | None:
    found = _padded_input(node, edit)
    if found is None or found[2] != 0.0:
        return None
    pad, pads, _ = found
    return lambda: rebuilt(node, node, [pad.inputs[0], *node.inputs[1:]], "pad-conv", edit, auto_pad="NOTSET", pads=pads)


@simplification("pad-max-pool", "MaxPool")
def _pad_max_pool(node: ir.Node, edit: Edit) -> Action | None:
    """Padding that can never be the largest: minus infinity, or zero where nothing is negative.

    The pool's own padding counts for nothing. Each window has to touch a real element, which padding smaller than the kernel ensures.
    (Pad and AveragePool stay: ATC is known not to count padding.)
    """
    found = _padded_input(node, edit)
    kernel = integers(node, "kernel_shape")
    if found is None or kernel is None or any(output.name for output in node.outputs[1:]) or integer(node, "ceil_mode", 0):
        return None
    pad, pads, value = found
    source = pad.inputs[0]
    spread = any(item != 1 for item in integers(node, "dilations") or [])
    if source is None or spread or any(size >= kernel[place % len(kernel)] for place, size in enumerate(pads)):
        return None
    if value != -np.inf and (value != 0.0 or producer(source, "Relu", "Sigmoid", "HardSigmoid", "Softmax", "Abs") is None):
        return None
    return lambda: rebuilt(node, node, [source], "pad-max-pool", edit, auto_pad="NOTSET", pads=pads)
