"""Steps down of operators on grids: AffineGrid, Col2Im, CenterCropPad."""

from __future__ import annotations

import numpy as np

from ....text import say
from ...shapes import static_shape
from ..step import Step, lowers
from .common import reduce


@lowers(20, "AffineGrid")
def _affine_grid(step: Step) -> bool:
    """The grid of the untouched image is a constant; theta turns each of its points."""
    result, sizes = static_shape(step.node.outputs[0]), step.value_of(step.input(1))
    spatial = list(sizes.reshape(-1)[2:]) if sizes is not None else list(result[1:-1]) if result is not None else None
    if spatial is None:
        step.refuse(say("its size is computed", "其尺寸是计算得到的"))
    if step.attr("align_corners", 0) and 1 in spatial:
        # The only element is at -1 for the reference evaluator, at 0 for PyTorch, at 1 for ONNX Runtime.
        step.refuse(say("aligned corners of an axis of one element", "在长度为一的轴上对齐角点"))
    lines = []
    for size in spatial:
        count = np.arange(size, dtype=np.float64)
        lines.append(count * 2 / max(size - 1, 1) - 1 if step.attr("align_corners", 0) else (2 * count + 1) / size - 1)
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones([int(size) for size in spatial])], axis=-1)
    points = step.const(grid.reshape(-1, len(spatial) + 1).T, step.dtype().numpy(), "grid")
    turned = step.op("Transpose", step.op("MatMul", step.needed(0), points), perm=[0, 2, 1])
    step.finish(
        step.op(
            "Reshape",
            turned,
            step.ints([step.dim(0) if sizes is None else int(sizes.reshape(-1)[0]), *map(int, spatial), len(spatial)], "shape"),
        )
    )
    return True


@lowers(18, "Col2Im")
def _col2im(step: Step) -> bool:
    """Each element of the image is the sum of known elements of the columns: they are gathered (a zero fills up) and summed."""
    image, block = step.constant(1, "image_shape"), step.constant(2, "block_shape")
    if image is None or block is None:
        step.refuse(say("its shapes are missing", "缺少形状"))
    shape = step.static()
    sizes, kernel = [int(size) for size in image.reshape(-1)], [int(size) for size in block.reshape(-1)]
    dims = len(sizes)
    dilations, strides = step.attr("dilations", (1,) * dims), step.attr("strides", (1,) * dims)
    pads = step.attr("pads", (0,) * 2 * dims)
    counts = [
        (sizes[axis] + pads[axis] + pads[axis + dims] - dilations[axis] * (kernel[axis] - 1) - 1) // strides[axis] + 1
        for axis in range(dims)
    ]
    taps, columns = int(np.prod(kernel)), int(np.prod(counts))
    if shape[2] != columns:
        step.refuse(say("the number of its columns does not fit the image", "列数与图像不符"))
    index = np.full((taps, int(np.prod(sizes))), taps * columns, np.int64)
    for tap in range(taps):
        offset = np.unravel_index(tap, kernel)
        for column in range(columns):
            at = np.unravel_index(column, counts)
            place = [at[axis] * strides[axis] - pads[axis] + offset[axis] * dilations[axis] for axis in range(dims)]
            if all(0 <= value < size for value, size in zip(place, sizes, strict=True)):
                index[tap, np.ravel_multi_index([int(value) for value in place], sizes)] = tap * columns + column
    channels = shape[1] // taps
    flat = step.op("Reshape", step.needed(0), step.ints([shape[0], channels, taps * columns], "flat"))
    zero = step.const(np.zeros((shape[0], channels, 1)), step.dtype().numpy(), "zero")
    found = step.op("Gather", step.op("Concat", flat, zero, axis=2), step.ints(index.tolist(), "places"), axis=2)
    total = reduce(step, "ReduceSum", found, [2], 0)
    step.finish(step.op("Reshape", total, step.ints([shape[0], channels, *sizes], "shape")))
    return True


@lowers(18, "CenterCropPad")
def _center_crop_pad(step: Step) -> bool:
    """With known sizes: a Slice, then a Pad."""
    wanted = step.value_of(step.input(1))
    shape = step.shape()
    if shape is None:
        step.refuse(say("its rank is not known", "其秩未知"))
    axes = [axis % len(shape) for axis in step.attr("axes", tuple(range(len(shape))))]
    result = static_shape(step.node.outputs[0])
    targets = wanted.reshape(-1).tolist() if wanted is not None else [result[axis] for axis in axes] if result is not None else None
    if targets is None or not all(isinstance(shape[axis], int) for axis in axes):
        return False  # the body of the schema computes it
    starts, ends, before, after = [], [], [0] * len(shape), [0] * len(shape)
    for axis, target in zip(axes, targets, strict=True):
        size = int(shape[axis] or 0)
        missing, spare = max(0, target - size), max(0, size - target)
        before[axis], after[axis] = missing // 2, missing - missing // 2
        starts.append(spare // 2)
        ends.append(spare // 2 + min(size, target))
    data = step.op("Slice", step.needed(0), step.ints(starts, "starts"), step.ints(ends, "ends"), step.ints(axes, "axes"))
    step.finish(step.op("Pad", data, step.ints([*before, *after], "pads")))
    return True
