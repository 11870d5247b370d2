"""Sampling at computed places: neighbours are rows of the flattened image, taken by one Gather, weighted and added up.

Places are counted in int32: in half precision, which ATC may choose for float32, numbers above 2048 are not exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Step, lowers
from .common import reduce

SAMPLE_LIMIT = 1 << 26
"""Elements that the neighbours of all places may have together."""
_INT32_MAX = np.iinfo(np.int32).max
_CUBIC = -0.75


@dataclass(frozen=True)
class Line:
    """The neighbours of every place along one axis.

    Attributes:
        places: [batch, taps, places], whole numbers within the axis, in int32.
        weights: of the same shape; None: all one.
        inside: whether a neighbour is in the image; None: all are. What is not counts as zero.
    """

    places: ir.Value
    weights: ir.Value | None = None
    inside: ir.Value | None = None


def sample(step: Step, image: ir.Value, shape: Sequence[int], lines: Sequence[Line], places: int) -> ir.Value:
    """The image at all places.

    Args:
        shape: of ``image``: batch, channels, sizes of the axes.
        lines: one for each axis.
        places: how many there are.

    Returns:
        [batch, channels, places].

    Raises:
        Unconvertible: the neighbours together are more than :data:`SAMPLE_LIMIT` elements.
    """
    batch, channels, *sizes = shape
    area, taps = math.prod(sizes), math.prod(_taps(line) for line in lines)
    count = batch * channels * taps * places
    if count > SAMPLE_LIMIT or batch * area >= _INT32_MAX:
        step.refuse(
            say(
                "its neighbours are {count} elements together; {limit} are allowed",
                "其邻居共 {count} 个元素，上限为 {limit}",
                count=count,
                limit=SAMPLE_LIMIT,
            )
        )
    table = _reshape(step, image, [batch, channels, area])
    if channels > 1:
        table = step.op("Transpose", table, perm=[0, 2, 1])
    table = _reshape(step, table, [batch * area, channels])
    index, weight, inside = _joined(step, lines, sizes)
    if batch > 1:
        first = (np.arange(batch) * area).reshape(batch, *[1] * (len(sizes) + 1))
        index = step.op("Add", index, step.const(first, np.int32, "batch"))
    if inside is not None:
        zeros = step.const(np.zeros((1, channels)), step.dtype().numpy(), "zeros")
        table = step.op("Concat", table, zeros, axis=0)
        index = step.op("Where", inside, index, step.const(batch * area, np.int32, "zero"))
    found = step.op("Gather", table, _reshape(step, index, [batch * taps * places]), axis=0)
    found = _reshape(step, found, [batch, taps, places, channels])
    if weight is not None:
        found = step.op("Mul", found, step.cast(_reshape(step, weight, [batch, taps, places, 1]), step.dtype()))
    total = reduce(step, "ReduceSum", found, [1], keepdims=0) if taps > 1 else _reshape(step, found, [batch, places, channels])
    return step.op("Transpose", total, perm=[0, 2, 1]) if channels > 1 else _reshape(step, total, [batch, channels, places])


def _joined(step: Step, lines: Sequence[Line], sizes: Sequence[int]) -> tuple[ir.Value, ir.Value | None, ir.Value | None]:
    """Place in the flattened image, weight and whether it is inside, for every combination of neighbours along the axes."""
    index: ir.Value | None = None
    weight: ir.Value | None = None
    inside: ir.Value | None = None
    for axis, line in enumerate(lines):

        def along(value: ir.Value, axis: int = axis) -> ir.Value:
            batch, taps, places = _sizes(step, value)
            shape = [batch, *[1] * len(sizes), places]
            shape[1 + axis] = taps
            return _reshape(step, value, shape)

        place, stride = along(line.places), math.prod(sizes[axis + 1 :])
        if stride != 1:
            place = step.op("Mul", place, step.const(stride, np.int32, "stride"))
        index = place if index is None else step.op("Add", index, place)
        if line.weights is not None:
            factor = along(line.weights)
            weight = factor if weight is None else step.op("Mul", weight, factor)
        if line.inside is not None:
            valid = along(line.inside)
            inside = valid if inside is None else step.op("And", inside, valid)
    if index is None:
        step.refuse(say("its image has no axes", "其图像没有空间维"))
    return index, weight, inside


def _taps(line: Line) -> int:
    shape = static_shape(line.places)
    return 0 if shape is None else shape[1]


def _sizes(step: Step, value: ir.Value) -> list[int]:
    shape = static_shape(value)
    if shape is None:
        step.refuse(say("the shape of `{name}` is not static", "`{name}` 的形状不是静态的", name=value.name))
    return list(shape)


def _reshape(step: Step, value: ir.Value, shape: Sequence[int]) -> ir.Value:
    return step.op("Reshape", value, step.ints(list(shape), "shape"))


def number(step: Step, value: ir.Value, constant: float) -> ir.Value:
    """A scalar of the type of a tensor."""
    return step.const(constant, (value.dtype or ir.DataType.FLOAT).numpy(), "number")


def linear(step: Step, centre: ir.Value, settle: Callable[[ir.Value], tuple[ir.Value, ir.Value | None]]) -> Line:
    """The two neighbours of each centre [batch, 1, places], weighted by their nearness.

    Args:
        settle: for whole numbers, which place of the axis each stands for (int32), and whether it is inside.
    """
    floor = step.op("Floor", centre)
    ratio = step.op("Sub", centre, floor)
    kind = (centre.dtype or ir.DataType.FLOAT).numpy()
    shift = np.asarray([0.0, 1.0]).reshape(1, 2, 1)
    weights = step.op("Abs", step.op("Sub", step.const(1 - shift, kind, "ends"), ratio))
    places, inside = settle(step.op("Add", floor, step.const(shift, kind, "shift")))
    return Line(places, weights, inside)


def cubic(step: Step, centre: ir.Value, settle: Callable[[ir.Value], tuple[ir.Value, ir.Value | None]]) -> Line:
    """The four neighbours of each centre, weighted by Keys' kernel with a = -0.75; see :func:`linear`."""
    floor = step.op("Floor", centre)
    ratio = step.op("Sub", centre, floor)
    kind = (centre.dtype or ir.DataType.FLOAT).numpy()
    shift = np.asarray([-1.0, 0.0, 1.0, 2.0]).reshape(1, 4, 1)
    length = step.op("Abs", step.op("Sub", ratio, step.const(shift, kind, "shift")))
    near, far = (_CUBIC + 2, -(_CUBIC + 3), 0.0, 1.0), (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC)
    factors = [step.const(np.asarray([outer, inner, inner, outer]).reshape(1, 4, 1), kind) for inner, outer in zip(near, far, strict=True)]
    weights = factors[0]
    for factor in factors[1:]:
        weights = step.op("Add", step.op("Mul", weights, length), factor)
    places, inside = settle(step.op("Add", floor, step.const(shift, kind, "shift")))
    return Line(places, weights, inside)


def clamped(step: Step, value: ir.Value, size: int) -> ir.Value:
    """Numbers brought into an axis."""
    return step.op("Min", step.op("Max", value, number(step, value, 0)), number(step, value, size - 1))


def within_or_zero(step: Step, size: int) -> Callable[[ir.Value], tuple[ir.Value, ir.Value | None]]:
    """How whole numbers become places where what is outside counts as zero."""

    def settle(value: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        kept = clamped(step, value, size)
        return step.cast(kept, ir.DataType.INT32), step.op("Equal", kept, value)

    return settle


def within_or_border(step: Step, size: int) -> Callable[[ir.Value], tuple[ir.Value, ir.Value | None]]:
    """How whole numbers become places where what is outside counts as the border."""
    return lambda value: (step.cast(clamped(step, value, size), ir.DataType.INT32), None)


@lowers(20, "GridSample")
def _grid_sample_names(step: Step) -> bool:
    """Opset 20 renamed the modes and added volumes."""
    if step.rank() != 4:
        step.finish(grid_sample(step))
        return True
    mode = step.attr("mode", "linear")
    step.node.attributes["mode"] = ir.AttrString("mode", {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))
    return True


@lowers(16, "GridSample")
def _grid_sample(step: Step) -> bool:
    step.finish(grid_sample(step))
    return True


def grid_sample(step: Step, form: tuple[str, str, bool] | None = None) -> ir.Value:
    """GridSample of known shapes. ``form``: mode, padding and align_corners, where the node does not have them as GridSample would."""
    shape, grid_shape = step.static(), static_shape(step.input(1))
    if grid_shape is None or 0 in shape or 0 in grid_shape:
        step.refuse(say("the shape of its grid is not static", "其网格的形状不是静态的"))
    if form is None:
        form = (step.attr("mode", "linear"), step.attr("padding_mode", "zeros"), bool(step.attr("align_corners", 0)))
    sizes, (mode, padding, aligned) = shape[2:], form
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if padding == "border" and mode == "cubic":
        # The reference evaluator brings the place to the border first, ONNX Runtime (as PyTorch) only its neighbours.
        step.refuse(say("cubic sampling at the border is not the same everywhere", "边界处的三次采样在各实现中并不一致"))
    if padding == "reflection" and aligned and 1 in sizes:
        step.refuse(say("reflection in an axis of one element", "在长度为一的轴上做反射填充"))
    places = math.prod(grid_shape[1:-1])
    lines = []
    for axis, size in enumerate(sizes):
        # The grid counts its coordinates from the last axis on.
        line = step.op("Gather", step.needed(1), step.ints(len(sizes) - 1 - axis, "coordinate"), axis=len(grid_shape) - 1)
        lines.append(_line(step, _reshape(step, line, [shape[0], 1, places]), size, (mode, padding, aligned)))
    return _reshape(step, sample(step, step.needed(0), shape, lines, places), [*shape[:2], *grid_shape[1:-1]])


def _line(step: Step, line: ir.Value, size: int, form: tuple[str, str, bool]) -> Line:
    """Along one axis: the neighbours of coordinates between -1 and 1."""
    mode, padding, aligned = form
    shifted = step.op("Add", line, number(step, line, 1))
    if aligned:
        centre = step.op("Mul", step.op("Div", shifted, number(step, line, 2)), number(step, line, size - 1))
    else:
        scaled = step.op("Sub", step.op("Mul", shifted, number(step, line, size)), number(step, line, 1))
        centre = step.op("Div", scaled, number(step, line, 2))
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if mode == "nearest":
        centre = step.op("Round", centre)
    if padding == "border" and mode != "nearest":
        centre = clamped(step, centre, size)
    elif padding == "reflection":
        centre = _reflected(step, centre, low, high)
        if mode == "nearest":
            centre = step.op("Round", centre)

    def settle(value: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        if padding == "zeros":
            return within_or_zero(step, size)(value)
        if padding == "reflection" and mode != "nearest":
            value = step.op("Floor", _reflected(step, value, low, high))
        return within_or_border(step, size)(value)

    if mode == "nearest":
        places, inside = settle(centre)
        return Line(places, None, inside)
    return linear(step, centre, settle) if mode == "linear" else cubic(step, centre, settle)


def _reflected(step: Step, value: ir.Value, low: float, high: float) -> ir.Value:
    """Mirror at both borders: a triangle wave of the distance from the lower border."""
    span = number(step, value, high - low)
    distance = step.op("Abs", step.op("Sub", value, number(step, value, low)))
    turns = step.op("Floor", step.op("Div", distance, span))
    rest = step.op("Sub", distance, step.op("Mul", turns, span))
    half = step.op("Floor", step.op("Div", turns, number(step, value, 2)))
    odd = step.op("Sub", turns, step.op("Mul", half, number(step, value, 2)))
    mirrored = step.op("Add", step.op("Mul", odd, step.op("Sub", span, step.op("Add", rest, rest))), rest)
    return step.op("Add", mirrored, number(step, value, low))
