"""Deformable convolution and pooling of regions: places and weights by arithmetic, neighbours gathered from the flattened image."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.step import Array, Step
from .base import expands
from .common import reshape, sizes, within

_FLOAT_PLACES = 1 << 24  # above it float32 does not hold every place


def _bilinear(step: Step, image: ir.Value, planes: tuple[int, int, int], rows: ir.Value, columns: ir.Value, inside: str) -> ir.Value:
    """Values [batch, channels, places] of ``image`` [batch, channels, height * width] at fractional rows and columns [batch, places].

    Args:
        planes: batch, height, width.
        inside: ``zeros``: neighbours outside the image are zero; ``clamp``: places up to one pixel outside count as the border, others
            are zero (what RoiAlign does).
    """
    _, height, width = planes
    dtype = (rows.dtype or ir.DataType.FLOAT).numpy()

    def number(value: float, name: str) -> ir.Value:
        return step.const(value, dtype, name)

    valid: ir.Value | None = None
    if inside == "clamp":
        limits = ((rows, height), (columns, width))
        tests = [step.op("Not", step.op("Less", value, number(-1.0, "edge"))) for value, _ in limits]
        tests += [step.op("Not", step.op("Greater", value, number(float(size), "edge"))) for value, size in limits]
        valid = tests[0]
        for test in tests[1:]:
            valid = step.op("And", valid, test)
        rows, columns = (
            step.op("Min", step.op("Max", value, number(0.0, "first")), number(float(size - 1), "last")) for value, size in limits
        )
    total: ir.Value | None = None
    top, left = step.op("Floor", rows), step.op("Floor", columns)
    down, right = step.op("Sub", rows, top), step.op("Sub", columns, left)
    one = number(1.0, "one")
    for vertical in (0, 1):
        for horizontal in (0, 1):
            row = step.op("Add", top, one) if vertical else top
            column = step.op("Add", left, one) if horizontal else left
            weight = step.op("Mul", down if vertical else step.op("Sub", one, down), right if horizontal else step.op("Sub", one, right))
            held = []
            for value, size in ((row, height), (column, width)):
                low, high = number(0.0, "first"), number(float(size - 1), "last")
                kept = step.op("Min", step.op("Max", value, low), high)
                if inside == "zeros":
                    weight = step.op("Mul", weight, step.cast(step.op("Equal", kept, value), rows.dtype or ir.DataType.FLOAT))
                held.append(kept)
            place = step.op("Add", step.op("Mul", held[0], number(float(width), "width")), held[1])
            part = step.op("Mul", _gathered(step, image, step.cast(place, ir.DataType.INT32)), _row(step, weight))
            total = part if total is None else step.op("Add", total, part)
    if total is None:
        raise AssertionError("there are four neighbours")
    if valid is not None:
        total = step.op("Where", _row(step, valid), total, number(0.0, "outside"))
    return total


def _row(step: Step, value: ir.Value) -> ir.Value:
    """[batch, places] -> [batch, 1, places]."""
    shape = sizes(step, value)
    return reshape(step, value, [shape[0], 1, shape[1]])


def _gathered(step: Step, image: ir.Value, places: ir.Value) -> ir.Value:
    """[batch, channels, size] at places [batch, count] -> [batch, channels, count]."""
    batch, channels, size = sizes(step, image)
    count = sizes(step, places)[1]
    if batch == 1:
        return reshape(step, step.op("Gather", image, reshape(step, places, [count]), axis=2), [1, channels, count])
    # Batch and place are one axis, so that one Gather serves all.
    moved = reshape(step, step.op("Transpose", image, perm=[0, 2, 1]), [batch * size, channels])
    first = step.const((np.arange(batch) * size).reshape(batch, 1), np.int32, "batch")
    rows = step.op("Gather", moved, reshape(step, step.op("Add", places, first), [batch * count]), axis=0)
    return step.op("Transpose", reshape(step, rows, [batch, count, channels]), perm=[0, 2, 1])


@expands("DeformConv")
def deform_conv(step: Step) -> None:
    """Every tap of the kernel sampled at its own moved place, then one product with the weights."""
    data, weight, offset = step.static(0), step.static(1), step.static(2)
    if len(data) != 4 or data[2] * data[3] > _FLOAT_PLACES:
        step.refuse(say("it is not 2-D, or its image is too large", "它不是二维，或图像过大"))
    batch, channels, height, width = data
    out, each, *kernel = weight
    strides, dilations, pads = step.attr("strides", (1, 1)), step.attr("dilations", (1, 1)), step.attr("pads", (0, 0, 0, 0))
    groups, moved = int(step.attr("group", 1)), int(step.attr("offset_group", 1))
    size = offset[2:]
    taps, places = math.prod(kernel), math.prod(size)
    within(step, batch * channels * taps * places)
    dtype = step.dtype().numpy()
    moves = reshape(step, step.needed(2), [batch * moved, taps, 2, places])
    sampled = []
    for axis in (0, 1):
        base = _base(size, tuple(kernel), (strides[axis], dilations[axis], pads[axis]), axis)
        shift = step.op("Gather", moves, step.ints(axis, "axis"), axis=2)
        sampled.append(reshape(step, step.op("Add", shift, step.const(base, dtype, "grid")), [batch * moved, taps * places]))
    image = reshape(step, step.needed(0), [batch * moved, channels // moved, height * width])
    values = _bilinear(step, image, (batch * moved, height, width), sampled[0], sampled[1], "zeros")
    mask = step.input(4)
    if mask is not None:
        values = step.op("Mul", values, reshape(step, mask, [batch * moved, 1, taps * places]))
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
    if batch != 1:
        step.refuse(say("regions of more than one image", "区域来自多幅图像"))
    if step.attr("mode", "avg") != "avg":
        step.refuse(say("mode max, which ONNX and ONNX Runtime define differently", "max 模式，ONNX 与 ONNX Runtime 的定义不同"))
    rows, columns = int(step.attr("output_height", 1)), int(step.attr("output_width", 1))
    places = rows * samples * columns * samples
    within(step, count * places * channels)
    scale = float(step.attr("spatial_scale", 1.0))
    default = "half_pixel" if step.version >= 16 else "output_half_pixel"
    half = step.attr("coordinate_transformation_mode", default) == "half_pixel"
    dtype = step.dtype().numpy()
    boxes = step.op("Mul", step.needed(1), step.const(scale, dtype, "scale"))
    if half:
        boxes = step.op("Sub", boxes, step.const(0.5, dtype, "half"))
    ends = [step.op("Gather", boxes, step.ints([place], "end"), axis=1) for place in range(4)]  # x1 y1 x2 y2, each [count, 1]
    lines = []
    for first, last, bins in ((ends[1], ends[3], rows), (ends[0], ends[2], columns)):
        extent = step.op("Sub", last, first)
        if not half:
            extent = step.op("Max", extent, step.const(1.0, dtype, "one"))
        share = (np.arange(bins * samples) + 0.5) / (bins * samples)
        lines.append(step.op("Add", first, step.op("Mul", extent, step.const(share.reshape(1, -1), dtype, "share"))))
    grid = [count, rows * samples, columns * samples]
    vertical = step.op("Expand", reshape(step, lines[0], [count, rows * samples, 1]), step.ints(grid, "shape"))
    horizontal = step.op("Expand", reshape(step, lines[1], [count, 1, columns * samples]), step.ints(grid, "shape"))
    flat = [reshape(step, value, [1, count * places]) for value in (vertical, horizontal)]
    image = reshape(step, step.needed(0), [1, channels, height * width])
    values = _bilinear(step, image, (1, height, width), flat[0], flat[1], "clamp")
    values = reshape(step, values, [channels, count, rows, samples, columns, samples])
    values = reduce(step, "ReduceMean", values, [3, 5], keepdims=0)
    step.finish(step.op("Transpose", values, perm=[1, 0, 2, 3]))
