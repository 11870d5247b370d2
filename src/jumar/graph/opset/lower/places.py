"""Steps down of operators that choose places: masks, gathers, scatters with a reduction, sums along an axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Step, lowers
from .common import is_float, section

SPREAD_LIMIT = 1 << 22
"""Elements that a mask may have that says which update goes where."""


@lowers(14, "Trilu")
def _trilu(step: Step) -> bool:
    """A mask chooses; it is a constant where the two last dimensions are known."""
    data, upper, offset = step.needed(0), step.attr("upper", 1), step.value_of(step.input(1))
    shape = step.shape() or ()
    rows, columns = shape[-2:] if len(shape) >= 2 else (None, None)
    known = step.input(1) is None or offset is not None
    if isinstance(rows, int) and isinstance(columns, int) and known and rows * columns <= SPREAD_LIMIT:
        shift = 0 if offset is None else int(offset.reshape(-1)[0])
        distance = np.arange(columns) - np.arange(rows)[:, None]
        mask = step.const(distance >= shift if upper else distance <= shift, np.bool_, "mask")
    else:
        mask = _computed_mask(step, upper)
    # Zeros of a weight's own dtype; a choice, so that NaN and infinity stay where they are.
    step.finish(step.op("Where", mask, data, step.like(0)))
    return True


def _computed_mask(step: Step, upper: int) -> ir.Value:
    data, rank = step.needed(0), step.rank()
    dims = step.op("Shape", data)
    counts = []
    for axis in (rank - 2, rank - 1):
        size = step.op("Gather", dims, step.ints(axis, "axis"), axis=0)
        counts.append(step.op("Range", step.ints(0), size, step.ints(1)))
    rows = step.op("Unsqueeze", counts[0], step.ints([1])) if step.version >= 13 else step.op("Unsqueeze", counts[0], axes=[1])
    shift = step.input(1)
    start = rows if shift is None else step.op("Add", rows, shift)
    if upper:
        return step.op("Not", step.op("Less", counts[1], start))
    return step.op("Not", step.op("Greater", counts[1], start))


@lowers(12, "ArgMax", "ArgMin")
def _last_of_equals(step: Step) -> bool:
    """select_last_index: the first of the reversed."""
    if not step.attr("select_last_index", 0):
        return False
    axis = step.attr("axis", 0)
    size = step.dim(axis)
    reverse = step.op("Gather", step.needed(0), step.ints(list(range(size))[::-1], "reversed"), axis=axis)
    kept = {name: step.attr(name) for name in step.node.attributes if name != "select_last_index"}
    step.finish(step.op("Sub", step.ints(size - 1, "last"), step.op(step.node.op_type, reverse, **kept)))
    return True


@lowers(26, "CumProd")
@lowers(11, "CumSum")
def _cumulate(step: Step) -> bool:
    """Each element is combined with the one 1, 2, 4 and so on places before it, which takes the logarithm of the length in steps."""
    product = step.node.op_type == "CumProd"
    axis = step.constant(1, "axis")
    if axis is None:
        step.refuse(say("its axis is missing", "缺少 axis"))
    rank = step.rank()
    place = int(axis.reshape(-1)[0])
    if not -rank <= place < rank:
        step.refuse(say("axis {axis} of a tensor of rank {rank}", "秩为 {rank} 的张量没有第 {axis} 维", axis=place, rank=rank))
    place %= rank
    size, backwards, data = step.dim(place), bool(step.attr("reverse", 0)), step.needed(0)

    def moved(value: ir.Value, count: int) -> ir.Value:
        """What stands ``count`` places before each element; what has no effect where there is nothing."""
        kept = None if count == size else section(step, value, place, count if backwards else 0, size if backwards else size - count)
        return _filled_up(step, kept, place, count, backwards, 1 if product else 0)

    if step.attr("exclusive", 0) and size:
        data = moved(data, 1)
    count = 1
    while count < size:
        data = step.op("Mul" if product else "Add", data, moved(data, count))
        count *= 2
    step.finish(data if data is not step.needed(0) else step.op("Identity", data))
    return True


def _filled_up(step: Step, kept: ir.Value | None, axis: int, count: int, behind: bool, value: int) -> ir.Value:
    """A tensor with ``count`` places more along an axis, in front or behind."""
    shape, dtype = static_shape(step.needed(0)), step.dtype().numpy()
    if kept is not None and shape is None:
        pads = [0] * 2 * step.rank()
        pads[axis + (step.rank() if behind else 0)] = count
        if step.version >= 11:
            return step.op("Pad", kept, step.ints(pads, "pads"), step.const(value, dtype, "nothing"))
        return step.op("Pad", kept, pads=pads, value=float(value))
    whole = step.static()
    fill = step.const(np.full([*whole[:axis], count, *whole[axis + 1 :]], value), dtype, "nothing")
    return fill if kept is None else step.op("Concat", *((kept, fill) if behind else (fill, kept)), axis=axis)


@lowers(11, "GatherElements")
def _gather_elements_flat(step: Step) -> bool:
    """One Gather from the flattened data: the place of each element is counted through."""
    shape, listed = step.static(), step.static(1)
    axis = step.attr("axis", 0) % len(shape)
    strides = [int(np.prod(shape[place + 1 :])) for place in range(len(shape))]
    rest = np.zeros(listed, np.int64)
    for place, line in enumerate(np.indices(listed)):
        rest += line * strides[place] if place != axis else 0
    index = _counted_from_start(step, step.cast(step.needed(1), ir.DataType.INT64), step.ints(shape[axis], "size"))
    linear = step.op("Add", step.op("Mul", index, step.ints(strides[axis], "stride")), step.ints(rest.tolist(), "rest"))
    step.finish(step.op("Gather", step.op("Reshape", step.needed(0), step.ints([-1], "flat")), linear, axis=0))
    return True


@lowers(11, "GatherND")
def _gather_nd_flat(step: Step) -> bool:
    shape, depth = step.static(), step.dim(-1, 1)
    limits, strides = step.ints(list(shape[:depth]), "limits"), [int(np.prod(shape[axis + 1 : depth])) for axis in range(depth)]
    index = _counted_from_start(step, step.needed(1), limits)
    linear = _reduce_first(step, "add", step.op("Mul", index, step.ints(strides, "strides")), step.rank(1) - 1)
    rows = step.op("Reshape", step.needed(0), step.ints([int(np.prod(shape[:depth])), *shape[depth:]], "rows"))
    step.finish(step.op("Gather", rows, linear, axis=0))
    return True


def _counted_from_start(step: Step, index: ir.Value, size: ir.Value) -> ir.Value:
    """Indices that count from the end, counted from the start. (Less of integers came at 9.)"""
    return step.op("Where", step.op("Less", index, step.ints(0, "zero")), step.op("Add", index, size), index)


@lowers(12, "GatherND")
def _gather_batches(step: Step) -> bool:
    """batch_dims: the indices of the batch are written out."""
    batch = step.attr("batch_dims", 0)
    if batch == 0:
        return False
    shape = step.static(1)
    grid = np.stack(np.meshgrid(*[np.arange(size) for size in shape[:batch]], indexing="ij"), axis=-1)
    grid = grid.reshape([*shape[:batch], *[1] * (len(shape) - 1 - batch), batch])
    written = step.ints(np.broadcast_to(grid, [*shape[:-1], batch]).tolist(), "batch")
    step.finish(step.op("GatherND", step.needed(0), step.op("Concat", written, step.needed(1), axis=-1)))
    return True


@lowers(11, "DepthToSpace")
def _depth_to_space_columns(step: Step) -> bool:
    """The mode CRD came at 11."""
    if step.attr("mode", "DCR") != "CRD":
        return False
    batch, channels, height, width = step.static()
    size = step.attr("blocksize")
    parts = step.op("Reshape", step.needed(0), step.ints([batch, channels // size**2, size, size, height, width], "blocks"))
    turned = step.op("Transpose", parts, perm=[0, 1, 4, 2, 5, 3])
    step.finish(step.op("Reshape", turned, step.ints([batch, channels // size**2, height * size, width * size], "shape")))
    return True


@lowers(11, "ScatterElements")
def _scatter_former_name(step: Step) -> bool:
    """It was called Scatter, and its indices counted from the start."""
    axis, indices = step.attr("axis", 0) % max(step.rank(), 1), step.constant(1, "indices")
    if indices is None:
        step.refuse(say("its indices are missing", "缺少索引"))
    places = step.const(np.where(indices < 0, indices + step.dim(axis), indices), indices.dtype, "indices")
    step.finish(step.op("Scatter", step.needed(0), places, step.needed(2), axis=axis))
    return True


_IDENTITIES = {"add": 0, "mul": 1}


_REDUCERS = {"add": "ReduceSum", "mul": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}


_COMBINE = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def _identity(reduction: str, dtype: ir.DataType) -> object:
    if reduction in _IDENTITIES:
        return _IDENTITIES[reduction]
    limits: object = np.iinfo(dtype.numpy()) if not is_float(dtype) else None
    if limits is None:
        return -np.inf if reduction == "max" else np.inf
    return limits.min if reduction == "max" else limits.max  # type: ignore[attr-defined]


def _reduce_first(step: Step, reduction: str, data: ir.Value, axis: int) -> ir.Value:
    op = _REDUCERS[reduction]
    if step.version >= (13 if op == "ReduceSum" else 18):
        return step.op(op, data, step.ints([axis], "axis"), keepdims=0)
    return step.op(op, data, axes=[axis], keepdims=0)


def _unsqueeze(step: Step, data: ir.Value, axis: int) -> ir.Value:
    if step.version >= 13:
        return step.op("Unsqueeze", data, step.ints([axis], "axis"))
    return step.op("Unsqueeze", data, axes=[axis])


@lowers(16, "ScatterElements")
@lowers(18, "ScatterElements")
def scatter_elements_reduction(step: Step) -> bool:
    """Each update is spread over the places it may go to, others get what changes nothing, and all are reduced."""
    reduction = step.attr("reduction", "none")
    if reduction == "none" or (step.version >= 16 and reduction in ("add", "mul")):
        return False
    spread_elements(step, reduction)
    return True


def spread_elements(step: Step, reduction: str) -> None:
    """A ScatterElements with a reduction, on as many copies of the data as there are updates along the axis."""
    shape, updates = step.static(), step.static(1)
    axis, dtype = step.attr("axis", 0) % len(shape), step.dtype()
    if any(size != other for place, (size, other) in enumerate(zip(shape, updates, strict=True)) if place != axis):
        step.refuse(say("the updates do not cover the other dimensions", "更新未覆盖其他维度"))
    if np.prod(shape, dtype=float) * updates[axis] > SPREAD_LIMIT:
        step.refuse(say("a reduction over so many places would be too large", "对如此多位置做归约会过大"))
    count, places = updates[axis], shape[axis]
    # [updates, ..., places at the axis, ...]
    wanted = np.arange(places).reshape([-1 if place == axis else 1 for place in range(len(shape))])
    index = step.cast(step.needed(1), ir.DataType.INT64)
    index = _counted_from_start(step, index, step.ints(places, "size"))
    order = [axis, *[place for place in range(len(shape)) if place != axis]]

    def first(value: ir.Value) -> ir.Value:
        moved = step.op("Transpose", value, perm=order) if order != sorted(order) else value
        return _unsqueeze(step, moved, axis + 1)

    hit = step.op("Equal", first(index), step.ints(wanted.tolist(), "places"))
    identity = step.const(_identity(reduction, dtype), dtype.numpy(), "neutral")
    spread = step.op("Where", hit, first(step.needed(2)), identity)
    data = step.needed(0)
    step.finish(_combined(step, reduction, data, spread, hit) if count else step.op("Identity", data))


def _combined(step: Step, reduction: str, data: ir.Value, spread: ir.Value, hit: ir.Value) -> ir.Value:
    """The data and its updates, reduced. Where nothing is added, a negative zero stays one."""
    result = step.op(_COMBINE[reduction], data, _reduce_first(step, reduction, spread, 0))
    if reduction != "add" or not is_float(step.dtype()):
        return result
    touched = _reduce_first(step, "max", step.op("Cast", hit, to=int(ir.DataType.INT32)), 0)
    return step.op("Where", step.op("Cast", touched, to=int(ir.DataType.BOOL)), result, data)


@lowers(16, "ScatterND")
@lowers(18, "ScatterND")
def scatter_nd_reduction(step: Step) -> bool:
    """As for ScatterElements, on rows: the places are counted through."""
    reduction = step.attr("reduction", "none")
    if reduction == "none" or (step.version >= 16 and reduction in ("add", "mul")):
        return False
    spread_rows(step, reduction)
    return True


def spread_rows(step: Step, reduction: str) -> None:
    """A ScatterND with a reduction, on as many copies of the rows as there are updates."""
    shape, listed, dtype = step.static(), step.static(1), step.dtype()
    depth = listed[-1]
    count, places = int(np.prod(listed[:-1])), int(np.prod(shape[:depth]))
    size = int(np.prod(shape[depth:]))
    if count * places * size > SPREAD_LIMIT:
        step.refuse(say("a reduction over so many places would be too large", "对如此多位置做归约会过大"))
    strides = [int(np.prod(shape[axis + 1 : depth])) for axis in range(depth)]
    limits = step.ints(list(shape[:depth]), "limits")
    index = step.op("Reshape", step.needed(1), step.ints([count, depth], "shape"))
    index = _counted_from_start(step, index, limits)
    linear = _reduce_first(step, "add", step.op("Mul", index, step.ints(strides, "strides")), 1)
    hit = step.op(
        "Equal", step.op("Reshape", linear, step.ints([count, 1, 1])), step.ints(np.arange(places).reshape(1, -1, 1).tolist(), "places")
    )
    rows = step.op("Reshape", step.needed(2), step.ints([count, 1, size], "shape"))
    identity = step.const(_identity(reduction, dtype), dtype.numpy(), "neutral")
    flat = step.op("Reshape", step.needed(0), step.ints([places, size], "shape"))
    combined = _combined(step, reduction, flat, step.op("Where", hit, rows, identity), hit)
    step.finish(step.op("Reshape", combined, step.ints(list(shape), "shape")))


@lowers(24, "TensorScatter")
def _tensor_scatter(step: Step) -> bool:
    """Rows are written from a place on that differs by batch: ScatterElements with counted places."""
    shape, update = step.static(), step.static(1)
    axis = step.attr("axis", -2) % len(shape)
    counted = np.arange(update[axis]).reshape([-1 if place == axis else 1 for place in range(len(shape))])
    places = step.ints(counted.tolist(), "places")
    if step.input(2) is not None:
        start = step.op("Reshape", step.cast(step.needed(2), ir.DataType.INT64), step.ints([-1] + [1] * (len(shape) - 1), "shape"))
        places = step.op("Add", start, places)
    if step.attr("mode", "linear") == "circular":
        places = step.op("Mod", places, step.ints(shape[axis], "size"))
    places = step.op("Expand", places, step.ints(list(update), "shape"))
    step.finish(step.op("ScatterElements", step.needed(0), places, step.needed(1), axis=axis))
    return True
