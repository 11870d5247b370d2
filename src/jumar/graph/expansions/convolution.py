"""Transposed convolutions as plain ones over an image with zeros between its elements."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import section
from ..opset.step import Step
from .base import expands
from .common import reshape, take, transposed
from .forms import declare_transposed, transposed_pads

_IMAGE_LIMIT = 1 << 26


@expands("ConvTranspose")
def by_zeros(step: Step) -> None:
    """Zeros between the elements, and the kernel turned round: what a transposed convolution is.

    It computes stride times as many products along each axis, most of them with zeros; so it comes last.
    """
    shape, weight = step.static(), step.static(1)
    spatial, group = len(weight) - 2, int(step.given("group"))
    strides, dilations = (list(step.attr(name, (1,) * spatial)) for name in ("strides", "dilations"))
    pads, extra = transposed_pads(step, weight, strides, dilations)
    declare_transposed(step, weight, (strides, dilations, pads, extra))
    if math.prod(size * stride for size, stride in zip(shape[2:], strides, strict=True)) * shape[0] * shape[1] > _IMAGE_LIMIT:
        step.refuse(say("its image with zeros would be too large", "插入零后的图像过大"))
    image, sizes = step.needed(0), list(shape)
    for axis, stride in enumerate(strides, 2):
        image = _spread(step, image, sizes, axis, stride)
        sizes[axis] = (sizes[axis] - 1) * stride + 1
    reach = [(size - 1) * dilation for size, dilation in zip(weight[2:], dilations, strict=True)]
    before = [wide - pad for wide, pad in zip(reach, pads[:spatial], strict=True)]
    after = [wide - pad + more for wide, pad, more in zip(reach, pads[spatial:], extra, strict=True)]
    for axis, (low, high) in enumerate(zip(before, after, strict=True), 2):
        if low < 0 or high < 0:
            image = section(step, image, axis, max(-low, 0), sizes[axis] - max(-high, 0))
    kernel = _turned(step, weight, group)
    form = [max(pad, 0) for pad in (*before, *after)]
    ones = [1] * spatial
    bias = [value for value in step.node.inputs[2:3] if value is not None]
    size = list(weight[2:])
    step.finish(step.op("Conv", image, kernel, *bias, pads=form, strides=ones, dilations=dilations, group=group, kernel_shape=size))


def _spread(step: Step, image: ir.Value, sizes: list[int], axis: int, stride: int) -> ir.Value:
    """``stride`` - 1 zeros between neighbours of an axis."""
    if stride == 1 or sizes[axis] == 1:
        return image
    rows = reshape(step, image, [math.prod(sizes[: axis + 1]), 1, math.prod(sizes[axis + 1 :])])
    amounts = [0, 0, 0, 0, stride - 1, 0]
    wide = step.op("Pad", rows, pads=amounts) if step.version < 11 else step.op("Pad", rows, step.ints(amounts, "pads"))
    joined = reshape(step, wide, [*sizes[:axis], sizes[axis] * stride, *sizes[axis + 1 :]])
    return section(step, joined, axis, 0, (sizes[axis] - 1) * stride + 1)


def _turned(step: Step, weight: tuple[int, ...], group: int) -> ir.Value:
    """[in, out of a group, ...] reversed along each spatial axis, as [out, in of a group, ...]."""
    inner, outer, *size = weight
    kernel = step.needed(1)
    for axis, length in enumerate(size, 2):
        if length > 1:
            kernel = take(step, kernel, axis, np.arange(length - 1, -1, -1))
    if group == 1:
        return transposed(step, kernel, [1, 0, *range(2, len(weight))])
    split = reshape(step, kernel, [group, inner // group, outer, math.prod(size)])
    return reshape(step, transposed(step, split, [0, 2, 1, 3]), [group * outer, inner // group, *size])
