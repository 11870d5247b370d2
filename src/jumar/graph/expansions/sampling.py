"""Deformable convolution and pooling of regions: places and weights by arithmetic, neighbours gathered from the flattened image."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.lower.sampled import Line, clamped, linear, number, sample, within_or_border, within_or_zero
from ..opset.step import Array, Step
from .base import expands
from .common import reshape


@expands("DeformConv")
def deform_conv(step: Step) -> None:
    """Every tap of the kernel sampled at its own moved place, then one product with the weights."""
    data, weight, offset = step.static(0), step.static(1), step.static(2)
    if len(data) != 4:
        step.refuse(say("it is not 2-D", "它不是二维"))
    batch, channels, height, width = data
    out, each, *kernel = weight
    strides, dilations, pads = step.attr("strides", (1, 1)), step.attr("dilations", (1, 1)), step.attr("pads", (0, 0, 0, 0))
    groups, moved = int(step.attr("group", 1)), int(step.attr("offset_group", 1))
    size = offset[2:]
    taps, places = math.prod(kernel), math.prod(size)
    if 0 in data or 0 in weight or not places:
        step.refuse(say("one of its operands is empty", "某个操作数为空"))
    dtype = step.dtype(2).numpy()
    moves = reshape(step, step.needed(2), [batch * moved, taps, 2, places])
    lines = []
    for axis, length in ((0, height), (1, width)):
        base = _base(size, tuple(kernel), (strides[axis], dilations[axis], pads[axis]), axis)
        shift = step.op("Gather", moves, step.ints(axis, "axis"), axis=2)
        centre = reshape(step, step.op("Add", shift, step.const(base, dtype, "grid")), [batch * moved, 1, taps * places])
        lines.append(linear(step, centre, within_or_zero(step, length)))
    mask, last = step.input(4), lines[1]
    if mask is not None and last.weights is not None:
        factor = step.op("Mul", last.weights, reshape(step, mask, [batch * moved, 1, taps * places]))
        lines[1] = Line(last.places, factor, last.inside)
    values = sample(step, step.needed(0), (batch * moved, channels // moved, height, width), lines, taps * places)
    # [batch, groups, channels of a group * taps, places] times [groups, out of a group, channels of a group * taps]
    columns = reshape(step, values, [batch, groups, each * taps, places])
    kernels = reshape(step, step.needed(1), [1, groups, out // groups, each * taps])
    result = reshape(step, step.op("MatMul", kernels, columns), [batch, out, *size])
    bias = step.input(3)
    step.finish(result if bias is None else step.op("Add", result, reshape(step, bias, [1, out, 1, 1])))


def _base(size: tuple[int, ...], kernel: tuple[int, ...], form: tuple[int, int, int], axis: int) -> Array:
    """Where each tap would be without offsets: [taps, places]."""
    stride, dilation, pad = form
    starts = np.arange(size[axis]) * stride - pad
    steps = np.arange(kernel[axis]) * dilation
    grid = steps[:, None] + starts[None]
    shape = [kernel[0], kernel[1], size[0], size[1]]
    view = grid[:, None, :, None] if axis == 0 else grid[None, :, None, :]
    return np.broadcast_to(view, shape).reshape(kernel[0] * kernel[1], size[0] * size[1])


@expands("RoiAlign")
def roi_align(step: Step) -> None:
    """The samples of every bin, and their average or largest product. The number of samples must be fixed."""
    shape, regions = step.static(0), step.static(1)
    batch, channels, height, width = shape
    count, samples = regions[0], int(step.attr("sampling_ratio", 0))
    if samples <= 0:
        step.refuse(say("sampling_ratio is 0: the number of samples depends on the data", "sampling_ratio 为 0：采样点数依赖数据"))
    if step.attr("mode", "avg") != "avg":
        step.refuse(say("mode max, which ONNX and ONNX Runtime define differently", "max 模式，ONNX 与 ONNX Runtime 的定义不同"))
    rows, columns = int(step.attr("output_height", 1)), int(step.attr("output_width", 1))
    places = rows * samples * columns * samples
    scale = float(step.attr("spatial_scale", 1.0))
    default = "half_pixel" if step.version >= 16 else "output_half_pixel"
    half = step.attr("coordinate_transformation_mode", default) == "half_pixel"
    dtype = step.dtype().numpy()
    boxes = step.op("Mul", step.needed(1), step.const(scale, dtype, "scale"))
    if half:
        boxes = step.op("Sub", boxes, step.const(0.5, dtype, "half"))
    ends = [step.op("Gather", boxes, step.ints([place], "end"), axis=1) for place in range(4)]  # x1 y1 x2 y2, each [count, 1]
    spans = []
    for first, last, bins in ((ends[1], ends[3], rows), (ends[0], ends[2], columns)):
        extent = step.op("Sub", last, first)
        if not half:
            extent = step.op("Max", extent, step.const(1.0, dtype, "one"))
        share = (np.arange(bins * samples) + 0.5) / (bins * samples)
        spans.append(step.op("Add", first, step.op("Mul", extent, step.const(share.reshape(1, -1), dtype, "share"))))
    grid = [count, rows * samples, columns * samples]
    vertical = step.op("Expand", reshape(step, spans[0], [count, rows * samples, 1]), step.ints(grid, "shape"))
    horizontal = step.op("Expand", reshape(step, spans[1], [count, 1, columns * samples]), step.ints(grid, "shape"))
    lines = [
        _nearly_inside(step, reshape(step, vertical, [1, 1, count * places]), height),
        _nearly_inside(step, reshape(step, horizontal, [1, 1, count * places]), width),
    ]
    image = step.needed(0)
    if batch > 1:  # the images one below the other
        image = reshape(step, step.op("Transpose", image, perm=[1, 0, 2, 3]), [1, channels, batch * height, width])
        first = step.op("Mul", step.cast(step.needed(2), ir.DataType.INT32), step.const(height, np.int32, "height"))
        first = step.op("Expand", reshape(step, first, [count, 1, 1]), step.ints(grid, "shape"))
        places_below = step.op("Add", lines[0].places, reshape(step, first, [1, 1, count * places]))
        lines[0] = Line(places_below, lines[0].weights, lines[0].inside)
    values = sample(step, image, (1, channels, batch * height, width), lines, count * places)
    values = reshape(step, values, [channels, count, rows, samples, columns, samples])
    values = reduce(step, "ReduceMean", values, [3, 5], keepdims=0)
    step.finish(step.op("Transpose", values, perm=[1, 0, 2, 3]))


def _nearly_inside(step: Step, centre: ir.Value, size: int) -> Line:
    """Neighbours of places of which those up to one pixel outside count as the border, and others are zero."""
    below = step.op("Less", centre, number(step, centre, -1.0))
    above = step.op("Greater", centre, number(step, centre, float(size)))
    line = linear(step, clamped(step, centre, size), within_or_border(step, size))
    return Line(line.places, line.weights, step.op("Not", step.op("Or", below, above)))
