"""Convolutions with strides or kernels that are longer than kernels of them are documented for, as transforms of speech and music have them.

63 and 255 are what CANN's public operator list (5.1 era) documents for strides and kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import section
from ..opset.step import Step
from .base import expands
from .common import reshape, transposed
from .forms import conv_pads

_STRIDE, _KERNEL = 63, 255
_PIECES = 16
"""Pieces that a kernel may be taken apart to."""


def _form(step: Step) -> tuple[list[int], list[int], list[int], list[int]]:
    """Kernel, strides, dilations and pads of the node."""
    kernel = list(step.static(1))[2:]
    strides, dilations = (list(step.attr(name, (1,) * len(kernel))) for name in ("strides", "dilations"))
    if 0 in step.static() or 0 in step.static(1):
        step.refuse(say("it may be empty", "它可能为空"))
    return kernel, strides, dilations, conv_pads(step, step.static(1), strides, dilations)


def _results(sizes: list[int], kernel: list[int], strides: list[int], dilations: list[int], pads: list[int]) -> list[int]:
    """How many places a kernel stands on along each axis."""
    count = len(kernel)
    return [
        (sizes[axis] + pads[axis] + pads[axis + count] - (kernel[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
        for axis in range(count)
    ]


@expands("Conv")
def strides_as_channels(step: Step) -> None:
    """The elements of a stride become channels, so that the kernel moves by one; it is filled up with zeros to whole strides."""
    kernel, strides, dilations, pads = _form(step)
    long = [axis for axis, stride in enumerate(strides) if stride > _STRIDE]
    if not long:
        step.refuse(say("its strides are documented", "其步长在文档范围内"))
    if any(dilations[axis] > 1 and kernel[axis] > 1 for axis in long):
        step.refuse(say("its kernel is dilated along the stride", "其卷积核在步长方向上有膨胀"))
    count = len(kernel)
    shape, weight_shape = list(step.static()), list(step.static(1))
    results = _results(shape[2:], kernel, strides, dilations, pads)
    data, weight = step.needed(0), step.needed(1)
    for axis in long:
        stride, blocks = strides[axis], -(-kernel[axis] // strides[axis])
        length = (results[axis] - 1 + blocks) * stride
        data, shape = _framed(step, data, shape, axis + 2, stride, (pads[axis], length - shape[axis + 2] - pads[axis]))
        weight, weight_shape = _framed(step, weight, weight_shape, axis + 2, stride, (0, blocks * stride - kernel[axis]))
        strides[axis], dilations[axis], pads[axis], pads[axis + count] = 1, 1, 0, 0
    bias = [value for value in step.node.inputs[2:3] if value is not None]
    form: dict[str, Any] = {"kernel_shape": weight_shape[2:], "strides": strides, "dilations": dilations, "pads": pads}
    step.finish(step.op("Conv", data, weight, *bias, group=int(step.given("group")), **form))


def _framed(step: Step, data: ir.Value, shape: list[int], axis: int, stride: int, more: tuple[int, int]) -> tuple[ir.Value, list[int]]:
    """Zeros put before and after an axis (fewer than none: elements left out), and its strides taken for channels."""
    before, after = more
    if shape[axis] + after <= 0:
        step.refuse(say("it meets the padding only", "它只覆盖填充部分"))
    if after < 0:
        data = section(step, data, axis, 0, shape[axis] + after)
    if before or after > 0:
        amounts = [before if place == axis else max(after, 0) if place == axis + len(shape) else 0 for place in range(2 * len(shape))]
        data = step.op("Pad", data, pads=amounts) if step.version < 11 else step.op("Pad", data, step.ints(amounts, "pads"))
    shape = list(shape)
    shape[axis] += before + after
    apart = [*shape[:axis], shape[axis] // stride, stride, *shape[axis + 1 :]]
    order = [0, 1, axis + 1, *(place for place in range(2, len(apart)) if place != axis + 1)]
    joined = [shape[0], shape[1] * stride, *shape[2:axis], shape[axis] // stride, *shape[axis + 1 :]]
    return reshape(step, transposed(step, reshape(step, data, apart), order), joined), joined


@expands("Conv")
def kernel_in_pieces(step: Step) -> None:
    """The sum of what pieces of the kernel give, each over the part of the data that it meets."""
    kernel, strides, dilations, pads = _form(step)
    long = [axis for axis, size in enumerate(kernel) if size > _KERNEL]
    if not long:
        step.refuse(say("its kernel is documented", "其卷积核在文档范围内"))
    axis, count = long[0], len(kernel)
    pieces = -(-kernel[axis] // _KERNEL)
    if pieces > _PIECES:
        step.refuse(say("its kernel would be {count} pieces", "其卷积核需拆成 {count} 段", count=pieces))
    size, results = step.dim(axis + 2), _results(list(step.static())[2:], kernel, strides, dilations, pads)[axis]
    bias = [value for value in step.node.inputs[2:3] if value is not None]
    total: ir.Value | None = None
    for part in np.array_split(np.arange(kernel[axis]), pieces):
        first, last = int(part[0]), int(part[-1])
        begin = first * dilations[axis] - pads[axis]
        end = begin + (results - 1) * strides[axis] + (last - first) * dilations[axis] + 1
        if begin >= size or end <= 0:  # it meets the padding only
            continue
        form, sides = list(kernel), list(pads)
        form[axis], sides[axis], sides[axis + count] = len(part), max(-begin, 0), max(end - size, 0)
        low, high = max(begin, 0), min(end, size)
        data = step.needed(0) if (low, high) == (0, size) else section(step, step.needed(0), axis + 2, low, high)
        weight = section(step, step.needed(1), axis + 2, first, last + 1)
        written: dict[str, Any] = {"kernel_shape": form, "strides": strides, "dilations": dilations, "pads": sides}
        result = step.op("Conv", data, weight, *(bias if total is None else ()), group=int(step.given("group")), **written)
        total = result if total is None else step.op("Add", total, result)
    if total is None:
        step.refuse(say("it meets the padding only", "它只覆盖填充部分"))
    step.finish(total)
