"""Deformable convolution and pooling of regions: places and weights by arithmetic, neighbours gathered from the flattened image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.lower.sampled import Line, clamped, linear, number, sample, within_or_border, within_or_zero
from ..opset.step import Array, Step
from .base import expands
from .common import reshape, sizes


@dataclass(frozen=True)
class Deformed:
    """A deformable convolution: operands as of ONNX's DeformConv, and how the kernel lies."""

    weight: ir.Value
    offset: ir.Value
    bias: ir.Value | None
    mask: ir.Value | None
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]
    groups: int
    moved: int


@expands("DeformConv")
def deform_conv(step: Step) -> None:
    """Every tap of the kernel sampled at its own moved place, then one product with the weights."""
    strides, dilations, pads = step.attr("strides", (1, 1)), step.attr("dilations", (1, 1)), step.attr("pads", (0, 0, 0, 0))
    groups, moved = int(step.attr("group", 1)), int(step.attr("offset_group", 1))
    operands = step.needed(1), step.needed(2), step.input(3), step.input(4)
    step.finish(deformed(step, Deformed(*operands, strides, dilations, pads, groups, moved)))


def deformed(step: Step, form: Deformed) -> ir.Value:
    """A deformable convolution of the step's first input.

    Raises:
        Unconvertible: it is not 2-D, a shape is not static, or an operand is empty.
    """
    data, weight, offset = step.static(0), sizes(step, form.weight), sizes(step, form.offset)
    if len(data) != 4:
        step.refuse(say("it is not 2-D", "它不是二维"))
    batch, channels, height, width = data
    out, each, *kernel = weight
    groups, moved, size = form.groups, form.moved, offset[2:]
    taps, places = math.prod(kernel), math.prod(size)
    if 0 in data or 0 in weight or not places:
        step.refuse(say("one of its operands is empty", "某个操作数为空"))
    dtype = (form.offset.dtype or ir.DataType.FLOAT).numpy()
    moves = reshape(step, form.offset, [batch * moved, taps, 2, places])
    lines = []
    for axis, length in ((0, height), (1, width)):
        base = _base((size[0], size[1]), tuple(kernel), (form.strides[axis], form.dilations[axis], form.pads[axis]), axis)
        shift = step.op("Gather", moves, step.ints(axis, "axis"), axis=2)
        centre = reshape(step, step.op("Add", shift, step.const(base, dtype, "grid")), [batch * moved, 1, taps * places])
        lines.append(linear(step, centre, within_or_zero(step, length)))
    last = lines[1]
    if form.mask is not None and last.weights is not None:
        factor = step.op("Mul", last.weights, reshape(step, form.mask, [batch * moved, 1, taps * places]))
        lines[1] = Line(last.places, factor, last.inside)
    values = sample(step, step.needed(0), (batch * moved, channels // moved, height, width), lines, taps * places)
    # [batch, groups, channels of a group * taps, places] times [groups, out of a group, channels of a group * taps]
    columns = reshape(step, values, [batch, groups, each * taps, places])
    kernels = reshape(step, form.weight, [1, groups, out // groups, each * taps])
    result = reshape(step, step.op("MatMul", kernels, columns), [batch, out, *size])
    return result if form.bias is None else step.op("Add", result, reshape(step, form.bias, [1, out, 1, 1]))


def _base(size: tuple[int, ...], kernel: tuple[int, ...], form: tuple[int, int, int], axis: int) -> Array:
    """Where each tap would be without offsets: [taps, places]."""
    stride, dilation, pad = form
    starts = np.arange(size[axis]) * stride - pad
    steps = np.arange(kernel[axis]) * dilation
    grid = steps[:, None] + starts[None]
    shape = [kernel[0], kernel[1], size[0], size[1]]
    view = grid[:, None, :, None] if axis == 0 else grid[None, :, None, :]
    return np.broadcast_to(view, shape).reshape(kernel[0] * kernel[1], size[0] * size[1])


@dataclass(frozen=True)
class Bins:
    """How regions are pooled: bins, samples a bin along each axis, the scale of the boxes, and whether pixels lie at half places.

    Attributes:
        least: largest of the samples, and no less than this, where it is given; otherwise their average.
    """

    rows: int
    columns: int
    samples: int
    scale: float
    half: bool
    least: float | None = None


@expands("RoiAlign")
def roi_align(step: Step) -> None:
    """The samples of every bin, and their average. The number of samples must be fixed."""
    if step.attr("mode", "avg") != "avg":
        step.refuse(say("mode max, which ONNX and ONNX Runtime define differently", "max 模式，ONNX 与 ONNX Runtime 的定义不同"))
    rows, columns = int(step.attr("output_height", 1)), int(step.attr("output_width", 1))
    default = "half_pixel" if step.version >= 16 else "output_half_pixel"
    half = step.attr("coordinate_transformation_mode", default) == "half_pixel"
    bins = Bins(rows, columns, int(step.attr("sampling_ratio", 0)), float(step.attr("spatial_scale", 1.0)), half)
    step.finish(pooled_regions(step, step.needed(1), step.needed(2), bins))


def pooled_regions(step: Step, regions: ir.Value, owners: ir.Value, form: Bins) -> ir.Value:
    """Regions [count, 4] of the step's first input (the images that ``owners`` [count] name), as [count, channels, rows, columns].

    Raises:
        Unconvertible: a shape is not static, or the number of samples is not fixed.
    """
    batch, channels, height, width = step.static(0)
    count, samples = sizes(step, regions)[0], form.samples
    if samples <= 0:
        step.refuse(say("sampling_ratio is 0: the number of samples depends on the data", "sampling_ratio 为 0：采样点数依赖数据"))
    rows, columns = form.rows, form.columns
    places = rows * samples * columns * samples
    dtype = step.dtype().numpy()
    boxes = step.op("Mul", regions, step.const(form.scale, dtype, "scale"))
    if form.half:
        boxes = step.op("Sub", boxes, step.const(0.5, dtype, "half"))
    ends = [step.op("Gather", boxes, step.ints([place], "end"), axis=1) for place in range(4)]  # x1 y1 x2 y2, each [count, 1]
    spans = []
    for first, last, bins in ((ends[1], ends[3], rows), (ends[0], ends[2], columns)):
        extent = step.op("Sub", last, first)
        if not form.half:
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
        first = step.op("Mul", step.cast(owners, ir.DataType.INT32), step.const(height, np.int32, "height"))
        first = step.op("Expand", reshape(step, first, [count, 1, 1]), step.ints(grid, "shape"))
        places_below = step.op("Add", lines[0].places, reshape(step, first, [1, 1, count * places]))
        lines[0] = Line(places_below, lines[0].weights, lines[0].inside)
    values = sample(step, image, (1, channels, batch * height, width), lines, count * places)
    values = reshape(step, values, [channels, count, rows, samples, columns, samples])
    if form.least is None:
        values = reduce(step, "ReduceMean", values, [3, 5], keepdims=0)
    else:
        largest = reduce(step, "ReduceMax", values, [3, 5], keepdims=0)
        values = step.op("Max", largest, step.const(form.least, dtype, "least"))
    return step.op("Transpose", values, perm=[1, 0, 2, 3])


def _nearly_inside(step: Step, centre: ir.Value, size: int) -> Line:
    """Neighbours of places of which those up to one pixel outside count as the border, and others are zero."""
    below = step.op("Less", centre, number(step, centre, -1.0))
    above = step.op("Greater", centre, number(step, centre, float(size)))
    line = linear(step, clamped(step, centre, size), within_or_border(step, size))
    return Line(line.places, line.weights, step.op("Not", step.op("Or", below, above)))
