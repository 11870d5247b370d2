"""Steps down of operators on grids: GridSample, AffineGrid, Col2Im, CenterCropPad."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Step, lowers
from .common import reduce


@lowers(20, "GridSample")
def _grid_sample_names(step: Step) -> bool:
    """Opset 20 renamed the modes and added volumes."""
    if step.rank() != 4:
        step.finish(_sampled(step))
        return True
    mode = step.attr("mode", "linear")
    step.node.attributes["mode"] = ir.AttrString("mode", {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))
    return True


@lowers(16, "GridSample")
def _grid_sample(step: Step) -> bool:
    step.finish(_sampled(step))
    return True


def _sampled(step: Step) -> ir.Value:
    """GridSample by gathering the neighbours of each place of the grid from the flattened image."""
    shape, grid_shape = step.static(), static_shape(step.input(1))
    if grid_shape is None or 0 in shape or 0 in grid_shape:
        step.refuse(say("the shape of its grid is not static", "其网格的形状不是静态的"))
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(step.attr("mode", "linear"), step.attr("mode", "linear"))
    sizes, padding, aligned = shape[2:], step.attr("padding_mode", "zeros"), bool(step.attr("align_corners", 0))
    if padding == "border" and mode == "cubic":
        # The reference evaluator brings the place to the border first, ONNX Runtime (as PyTorch) only its neighbours.
        step.refuse(say("cubic sampling at the border is not the same everywhere", "边界处的三次采样在各实现中并不一致"))
    if padding == "reflection" and aligned and 1 in sizes:
        step.refuse(say("reflection in an axis of one element", "在长度为一的轴上做反射填充"))
    taps: list[list[tuple[ir.Value, ir.Value | None, ir.Value | None]]] = []
    for axis, size in enumerate(sizes):
        # The grid counts its coordinates from the last axis on.
        line = step.op("Gather", step.needed(1), step.ints(len(sizes) - 1 - axis, "coordinate"), axis=len(grid_shape) - 1)
        taps.append(_taps(step, line, size, mode, padding, aligned))
    flat = step.op("Reshape", step.needed(0), step.ints([shape[0], shape[1], -1], "flat"))
    total: ir.Value | None = None
    for choice in _product(taps):
        part = _gathered(step, flat, choice, sizes, shape[:2])
        total = part if total is None else step.op("Add", total, part)
    result = total if total is not None else flat
    return step.op("Reshape", result, step.ints([*shape[:2], *grid_shape[1:-1]], "shape"))


def _product(
    taps: list[list[tuple[ir.Value, ir.Value | None, ir.Value | None]]],
) -> list[list[tuple[ir.Value, ir.Value | None, ir.Value | None]]]:
    choices: list[list[tuple[ir.Value, ir.Value | None, ir.Value | None]]] = [[]]
    for line in taps:
        choices = [[*choice, tap] for choice in choices for tap in line]
    return choices


def _gathered(
    step: Step,
    flat: ir.Value,
    choice: list[tuple[ir.Value, ir.Value | None, ir.Value | None]],
    sizes: tuple[int, ...],
    outer: tuple[int, ...],
) -> ir.Value:
    """One neighbour of every place, times its weights; zero where it is outside."""
    index, weight, inside = choice[0]
    for size, (other, factor, valid) in zip(sizes[1:], choice[1:], strict=True):
        index = step.op("Add", step.op("Mul", index, step.like(size, 1)), other)
        weight = factor if weight is None else weight if factor is None else step.op("Mul", weight, factor)
        inside = valid if inside is None else inside if valid is None else step.op("And", inside, valid)
    rows = step.ints([outer[0], 1, -1], "rows")
    places = step.op("Cast", step.op("Reshape", index, rows), to=int(ir.DataType.INT64))
    count = int(np.prod(static_shape(step.input(1)) or ()) // (outer[0] * len(sizes)))
    found = step.op("GatherElements", flat, step.op("Expand", places, step.ints([*outer, count], "places")), axis=2)
    if weight is not None:
        found = step.op("Mul", found, step.cast(step.op("Reshape", weight, rows), step.dtype()))
    if inside is not None:
        found = step.op("Where", step.op("Reshape", inside, rows), found, step.like(0))
    return found


def _taps(
    step: Step, line: ir.Value, size: int, mode: str, padding: str, aligned: bool
) -> list[tuple[ir.Value, ir.Value | None, ir.Value | None]]:
    """Along one axis: neighbours as (place, weight, whether it is inside), as floats of the grid's type."""

    def number(value: float) -> ir.Value:
        return step.like(value, 1)

    shifted = step.op("Add", line, number(1))
    if aligned:
        centre = step.op("Mul", step.op("Div", shifted, number(2)), number(size - 1))
    else:
        centre = step.op("Div", step.op("Sub", step.op("Mul", shifted, number(size)), number(1)), number(2))
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if mode == "nearest":
        centre = step.op("Round", centre)
    if padding == "border":
        centre = _clamped(step, centre, size)
    elif padding == "reflection":
        centre = _reflected(step, centre, low, high)
        if mode == "nearest":
            centre = step.op("Round", centre)
    if mode == "nearest":
        return [_placed(step, centre, None, size, padding, (low, high))]
    floor = step.op("Floor", centre)
    ratio = step.op("Sub", centre, floor)
    rest = step.op("Sub", number(1), ratio)
    if mode == "linear":
        found = [(0, rest), (1, ratio)]
    else:
        found = [(shift, _cubic(step, step.op("Add", ratio, number(-shift)), abs(shift - 0.5) < 1)) for shift in (-1, 0, 1, 2)]
    return [
        _placed(step, step.op("Add", floor, number(shift)) if shift else floor, weight, size, padding, (low, high))
        for shift, weight in found
    ]


def _cubic(step: Step, distance: ir.Value, near: bool) -> ir.Value:
    """Keys' kernel with a = -0.75 at a distance within one place (near) or two."""
    a = -0.75
    length = step.op("Abs", distance)
    factors = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
    result = step.like(factors[0], 1)
    for factor in factors[1:]:
        result = step.op("Add", step.op("Mul", result, length), step.like(factor, 1))
    return result


def _placed(
    step: Step, place: ir.Value, weight: ir.Value | None, size: int, padding: str, borders: tuple[float, float]
) -> tuple[ir.Value, ir.Value | None, ir.Value | None]:
    inside = None
    if padding == "zeros":
        above = step.op("Not", step.op("Less", place, step.like(0, 1)))
        inside = step.op("And", above, step.op("Not", step.op("Greater", place, step.like(size - 1, 1))))
    elif padding == "reflection":
        place = step.op("Floor", _reflected(step, place, *borders)) if weight is not None else place
    return _clamped(step, place, size), weight, inside


def _clamped(step: Step, value: ir.Value, size: int) -> ir.Value:
    return step.op("Min", step.op("Max", value, step.like(0, 1)), step.like(size - 1, 1))


def _reflected(step: Step, value: ir.Value, low: float, high: float) -> ir.Value:
    """Mirror at both borders: a triangle wave of the distance from the lower border."""
    span = step.like(high - low, 1)
    distance = step.op("Abs", step.op("Sub", value, step.like(low, 1)))
    turns = step.op("Floor", step.op("Div", distance, span))
    rest = step.op("Sub", distance, step.op("Mul", turns, span))
    half = step.op("Floor", step.op("Div", turns, step.like(2, 1)))
    odd = step.op("Sub", turns, step.op("Mul", half, step.like(2, 1)))
    mirrored = step.op("Add", step.op("Mul", odd, step.op("Sub", span, step.op("Add", rest, rest))), rest)
    return step.op("Add", mirrored, step.like(low, 1))


@lowers(20, "AffineGrid")
def _affine_grid(step: Step) -> bool:
    """The grid of the untouched image is a constant; theta turns each of its points."""
    result, sizes = static_shape(step.node.outputs[0]), step.value_of(step.input(1))
    spatial = list(sizes.reshape(-1)[2:]) if sizes is not None else list(result[1:-1]) if result is not None else None
    if spatial is None:
        step.refuse(say("its size is computed", "其尺寸是计算得到的"))
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
