"""Operators that put elements elsewhere without changing them."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from .interval import SMALL, Cells, Interval, Known, cells_of, hull
from .view import Result, View, transfer

# All elements of the outputs are elements of the first input.
_ONLY_DATA = (
    "Compress",
    "DepthToSpace",
    "GatherND",
    "GatherElements",
    "ReverseSequence",
    "SpaceToDepth",
)


@transfer(*_ONLY_DATA)
def moved(view: View) -> Known:
    return view.hull(0)


@transfer("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshaped(view: View) -> Known | None:
    known, shape = view.inputs[0], view.result_shape()
    if isinstance(known, np.ndarray) and shape is not None and math.prod(shape) == known.size:
        return known.reshape(shape)
    return None if known is None else hull(known)


@transfer("Dropout")
def dropped(view: View) -> list[Result]:
    training = view.present(2) or view.opset < 7
    results: list[Result] = [None if training else view.inputs[0], None]
    return results[: len(view.node.outputs)]


@transfer("Transpose")
def transposed(view: View) -> Known:
    known, order = view.inputs[0], view.integers("perm")
    if isinstance(known, np.ndarray) and (order is None or sorted(order) == list(range(known.ndim))):
        return known.transpose(order)
    return view.hull(0)


@transfer("Concat")
def joined(view: View) -> Known:
    parts = [known for known in view.inputs if known is not None]
    arrays: list[Cells] = []
    for index, known in enumerate(parts):
        shape = view.static_shape(index)
        if isinstance(known, np.ndarray):
            arrays.append(known)
        elif shape is not None and math.prod(shape) <= SMALL:
            arrays.append(cells_of([known] * math.prod(shape), shape))
    if len(arrays) == len(parts) and sum(array.size for array in arrays) <= SMALL:
        try:
            together: Cells = np.concatenate(arrays, axis=view.integer("axis", 0))
        except ValueError:
            return hull(hull(known) for known in parts)
        return together
    return hull(hull(known) for known in parts)


@transfer("Gather")
def gathered(view: View) -> Known:
    known, places = view.inputs[0], view.inputs[1] if len(view.inputs) > 1 else None
    chosen = view.constants(1)
    if isinstance(known, np.ndarray) and isinstance(places, np.ndarray) and chosen is not None:
        axis = view.integer("axis", 0)
        try:
            taken: Cells = np.take(known, np.array(chosen, dtype=np.int64).reshape(places.shape), axis=axis)
        except (IndexError, ValueError):
            return view.hull(0)
        return taken if isinstance(taken, np.ndarray) else cells_of([taken], ())
    return view.hull(0)


@transfer("Slice")
def sliced(view: View) -> Known:
    known = view.inputs[0]
    if not isinstance(known, np.ndarray):
        return view.hull(0)
    if view.opset < 10:
        starts, ends, axes, steps = view.integers("starts"), view.integers("ends"), view.integers("axes"), None
        complete = True
    else:
        starts, ends, axes, steps = (view.constants(index) for index in (1, 2, 3, 4))
        complete = all(view.constants(index) is not None or not view.present(index) for index in (3, 4))
    if starts is None or ends is None or not complete:
        return view.hull(0)
    axes, steps = axes or tuple(range(len(starts))), steps or (1,) * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=False):
        if not -known.ndim <= axis < known.ndim or step == 0:
            return view.hull(0)
        known = _taken(known, _places(start, end, step, known.shape[axis]), axis)
    return known


def _places(start: int, end: int, step: int, extent: int) -> range:
    """The positions that a slice takes from an axis, by ONNX's rule of clamping."""
    start, end = (bound + extent if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), extent), min(max(end, 0), extent), step)
    return range(min(max(start, 0), extent - 1), min(max(end, -1), extent - 1), step)


def _taken(known: Cells, places: range, axis: int) -> Cells:
    taken: Cells = np.take(known, np.array(places, dtype=np.int64), axis=axis)
    return taken


@transfer("Split")
def split(view: View) -> list[Result]:
    known, outputs = view.inputs[0], view.node.outputs
    axis = view.integer("axis", 0)
    if not isinstance(known, np.ndarray):
        return [view.hull(0)] * len(outputs)
    parts: list[Result] = []
    begin = 0
    for index in range(len(outputs)):
        shape = view.result_shape(index)
        if shape is None or len(shape) != known.ndim or not -known.ndim <= axis < known.ndim:
            return [view.hull(0)] * len(outputs)
        parts.append(_taken(known, range(begin, min(begin + shape[axis], known.shape[axis])), axis))
        begin += shape[axis]
    return parts


@transfer("Expand", "Tile")
def repeated(view: View) -> Known:
    known, shape = view.inputs[0], view.result_shape()
    if isinstance(known, np.ndarray) and shape is not None and math.prod(shape) <= SMALL:
        if view.node.op_type == "Expand":
            try:
                spread: Cells = np.broadcast_to(known, shape)
            except ValueError:
                return view.hull(0)
            return spread
        counts = view.constants(1) if view.opset > 5 else None
        if counts is not None and len(counts) == known.ndim:
            tiled: Cells = np.tile(known, counts)
            return tiled
    return view.hull(0)


@transfer("Pad")
def padded(view: View) -> Known:
    attribute = view.node.attributes.get("mode")
    if attribute is not None and attribute.as_string() != "constant":
        return view.hull(0)
    if view.opset < 11:
        value = view.node.attributes.get("value")
        number = value.as_float() if value is not None else 0.0
        return view.hull(0).join(Interval(number, number))
    return view.hull(0).join(view.hull(2) if view.present(2) else Interval(0, 0))


@transfer("Trilu", "CenterCropPad")
def zeroed(view: View) -> Known:
    return view.hull(0).join(Interval(0, 0))


@transfer("ScatterElements", "ScatterND", "Scatter")
def scattered(view: View) -> Known | None:
    reduction = view.node.attributes.get("reduction")
    if reduction is not None and reduction.as_string() not in ("none", "min", "max"):
        return None
    return view.hull(0).join(view.hull(2))


@transfer("OneHot")
def one_hot(view: View) -> Known:
    return view.hull(2)


@transfer("ConstantOfShape")
def filled(view: View) -> Known | None:
    attribute = view.node.attributes.get("value")
    if attribute is None:
        return Interval(0.0, 0.0)
    if attribute.type != ir.AttributeType.TENSOR:
        return None
    tensor = attribute.as_tensor()
    return of_array(tensor.numpy()) if tensor.dtype != ir.DataType.STRING else None


def of_array(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Interval:
    """The interval of the elements of an array of numbers."""
    if array.size == 0:
        return Interval(0, 0)
    if array.dtype.kind in "biu":
        return Interval(int(array.min()), int(array.max()))
    wide = array.astype(np.float64)
    finite = wide[~np.isnan(wide)]
    has_nan = finite.size < wide.size
    return Interval(float(finite.min()), float(finite.max()), has_nan) if finite.size else Interval(0.0, 0.0, True)


@transfer("Unique")
def unique(view: View) -> list[Result]:
    axis = view.node.attributes.get("axis")
    count = view.size(0) if axis is None else view.extent(0, axis.as_int())
    places = Interval(0, max(int(count.hi) - 1, 0))
    results: list[Result] = [view.hull(0), places, places, Interval(0, count.hi)]
    return results[: len(view.node.outputs)]
