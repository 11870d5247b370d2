"""Image operators of ONNX Runtime's own domain: channels last, and what its optimiser of diffusion models writes.

Weights of NhwcConv are [out, height, width, in / group], as that optimiser stores them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce, section
from ..opset.step import Step
from .base import expands
from .common import attributes_of, reshape, sizes
from .microsoft import DOMAIN, gelu_of

_WINDOW = ("auto_pad", "ceil_mode", "dilations", "group", "kernel_shape", "pads", "strides")


def _first(step: Step, data: ir.Value, rank: int) -> ir.Value:
    """Channels moved from the last place to the second."""
    return step.op("Transpose", data, perm=[0, rank - 1, *range(1, rank - 1)])


def _last(step: Step, data: ir.Value, rank: int) -> ir.Value:
    """Channels moved from the second place to the last."""
    return step.op("Transpose", data, perm=[0, *range(2, rank), 1])


@expands(DOMAIN + "NhwcConv")
def convolution(step: Step) -> None:
    """A Conv between two Transposes."""
    rank, kept = step.rank(), attributes_of(step, _WINDOW)
    weight = step.op("Transpose", step.needed(1), perm=[0, rank - 1, *range(1, rank - 1)])
    bias = step.input(2)
    result = step.op("Conv", _first(step, step.needed(0), rank), weight, *([] if bias is None else [bias]), **kept)
    step.finish(_last(step, result, rank))


@expands(DOMAIN + "NhwcMaxPool")
def max_pool(step: Step) -> None:
    """A MaxPool of bytes between two Transposes, in float32, which holds them."""
    rank, kept = step.rank(), attributes_of(step, _WINDOW)
    data = step.cast(_first(step, step.needed(0), rank), ir.DataType.FLOAT)
    step.finish(step.cast(_last(step, step.op("MaxPool", data, **kept), rank), step.dtype()))


def _grouped(step: Step, data: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Normalised over the places and the channels of each group, in float32; scaled, moved, and activated as the node says."""
    last, groups = bool(step.attr("channels_last", 1)), int(step.attr("groups"))
    rank, batch = len(shape), shape[0]
    wide = step.cast(data, ir.DataType.FLOAT)
    moved = _first(step, wide, rank) if last else wide
    channels = sizes(step, moved)
    flat = reshape(step, moved, [batch, groups, math.prod(channels[1:]) // groups])
    centred = step.op("Sub", flat, reduce(step, "ReduceMean", flat, [2]))
    square = reduce(step, "ReduceMean", step.op("Mul", centred, centred), [2])
    epsilon = step.const(float(step.attr("epsilon", 1e-5)), np.float32, "epsilon")
    even = reshape(step, step.op("Div", centred, step.op("Sqrt", step.op("Add", square, epsilon))), channels)
    along = [1, channels[1], *[1] * (rank - 2)]
    result = step.op("Add", step.op("Mul", even, reshape(step, step.needed(1), along)), reshape(step, step.needed(2), along))
    if int(step.attr("activation")) == 1:
        result = step.op("Mul", result, step.op("Sigmoid", result))
    return step.cast(_last(step, result, rank) if last else result, step.dtype())


@expands(DOMAIN + "GroupNorm")
def group_norm(step: Step) -> None:
    """Normalised over the places and channels of each group; then x * sigmoid(x) if the node says so."""
    step.finish(_grouped(step, step.needed(0), step.static()))


@expands(DOMAIN + "SkipGroupNorm")
def skip_group_norm(step: Step) -> None:
    """A sum with what was skipped, then the normalisation; the sum is the second output."""
    shape, skip = step.static(), step.needed(3)
    if len(sizes(step, skip)) == 2:
        if not step.attr("channels_last", 1):
            step.refuse(say("a skip of [batch, channels] with channels second", "通道在第二维时的 [batch, channels] 跳连"))
        skip = reshape(step, skip, [shape[0], *[1] * (len(shape) - 2), shape[-1]])
    total = step.op("Add", step.needed(0), skip)
    if step.input(4) is not None:
        total = step.op("Add", total, step.needed(4))
    step.finish(_grouped(step, total, shape), total)


@expands(DOMAIN + "BiasAdd")
def bias_add(step: Step) -> None:
    """Data, bias and skip added."""
    step.finish(step.op("Add", step.op("Add", step.needed(0), step.needed(1)), step.needed(2)))


@expands(DOMAIN + "BiasSplitGelu")
def bias_split_gelu(step: Step) -> None:
    """A bias added; the first half times the Gelu of the second."""
    total = step.op("Add", step.needed(0), step.needed(1))
    half, axis = step.dim(-1) // 2, step.rank() - 1
    step.finish(step.op("Mul", section(step, total, axis, 0, half), gelu_of(step, section(step, total, axis, half, 2 * half))))


@expands(DOMAIN + "BiasDropout")
def bias_dropout(step: Step) -> None:
    """Outside training: data, bias and what was skipped added."""
    training = step.constant(4, "training_mode")
    if training is not None and bool(training.any()):
        step.refuse(say("it is in training mode", "它处于训练模式"))
    total = step.op("Add", step.needed(0), step.needed(1))
    step.finish(total if step.input(2) is None else step.op("Add", total, step.needed(2)))
