"""Steps down of axes and chunks: inputs become attributes, the Softmax family, negative axes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Array, Step, lowers
from .common import INT_MAX, keep_inputs, set_ints

REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)


# What a reduction over no axes does to each element.
_ELEMENTWISE = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}


@lowers(13, "Squeeze", "Unsqueeze", "ReduceSum")
@lowers(18, *REDUCTIONS)
def axes_to_attribute(step: Step) -> bool:
    noop = bool(step.attr("noop_with_empty_axes", 0))
    if static_shape(step.input(1)) == (0,):
        axes: Array | None = np.zeros(0, np.int64)
    else:
        axes = step.value_of(step.input(1))
        if axes is None and step.input(1) is not None:
            return _axes_from_shapes(step)
    if (axes is None or axes.size == 0) and noop:
        return _reduce_nothing(step)
    keep_inputs(step, 1)
    step.node.attributes.pop("noop_with_empty_axes", None)
    if axes is not None and axes.size:
        set_ints(step, "axes", axes)
    elif step.node.op_type in ("Squeeze", "Unsqueeze") and axes is not None:
        step.finish(step.op("Identity", step.needed(0)))
    return True


def _axes_from_shapes(step: Step) -> bool:
    """Computed axes, where the shapes on both sides leave one choice: what is no longer there was squeezed or reduced."""
    before, after = static_shape(step.input(0)), static_shape(step.node.outputs[0])
    op = step.node.op_type
    if (
        before is None
        or after is None
        or (op not in ("Squeeze", "Unsqueeze") and (not step.attr("keepdims", 1) or len(before) != len(after)))
    ):
        step.constant(1, "axes")
        return False
    if op in ("Squeeze", "Unsqueeze"):
        if 0 in before:
            step.constant(1, "axes")
        step.finish(step.op("Reshape", step.needed(0), step.ints(list(after), "shape")))
        return True
    # An axis of one element that stays may or may not have been reduced, which makes no difference.
    axes = [axis for axis, (size, left) in enumerate(zip(before, after, strict=True)) if size != left]
    if not axes:
        return _reduce_nothing(step)
    keep_inputs(step, 1)
    step.node.attributes.pop("noop_with_empty_axes", None)
    set_ints(step, "axes", axes)
    return True


def _reduce_nothing(step: Step) -> bool:
    data, op = step.needed(0), step.node.op_type
    if op == "ReduceSumSquare":
        step.finish(step.op("Mul", data, data))
    elif op in _ELEMENTWISE:
        step.finish(step.op(_ELEMENTWISE[op], data))
    else:
        step.finish(step.op("Identity", data))
    return True


@lowers(20, "ReduceMax", "ReduceMin")
def _reduce_bool(step: Step) -> bool:
    """Over no elements at all the result is the least or the largest of the type: 0 or 255, which are false and true as well."""
    if step.dtype() != ir.DataType.BOOL:
        return False
    wide = step.op("Cast", step.needed(0), to=int(ir.DataType.UINT8))
    kept = {name: step.attr(name) for name in step.node.attributes}
    step.finish(step.op("Cast", step.op(step.node.op_type, wide, *step.node.inputs[1:], **kept), to=int(ir.DataType.BOOL)))
    return True


@lowers(12, "ReduceMax", "ReduceMin")
def _reduce_bytes(step: Step) -> bool:
    """In a wider type; what that gives for no elements at all is brought back to the limit of the narrow one."""
    dtype = step.dtype()
    if dtype not in (ir.DataType.INT8, ir.DataType.UINT8):
        return False
    wide = step.op("Cast", step.needed(0), to=int(ir.DataType.INT32))
    kept = {name: step.attr(name) for name in step.node.attributes}
    result = step.op(step.node.op_type, wide, **kept)
    largest = step.node.op_type == "ReduceMax"
    info = np.iinfo(dtype.numpy())
    limit = step.const(info.min if largest else info.max, np.int32, "limit")
    beyond = step.op("Less" if largest else "Greater", result, limit)
    step.finish(step.cast(step.op("Where", beyond, limit, result), dtype))
    return True


@lowers(13, "Split")
def _split_to_attribute(step: Step) -> bool:
    sizes = step.value_of(step.input(1))
    if sizes is None and step.input(1) is not None:
        return _split_computed(step)
    keep_inputs(step, 1)
    if sizes is not None:
        set_ints(step, "split", sizes)
    return sizes is not None


def _split_computed(step: Step) -> bool:
    """Computed sizes: slices, each from where the one before ended."""
    data, place, end = step.needed(0), step.ints([step.attr("axis", 0)], "axis"), step.ints([0], "start")
    parts = []
    for index in range(len(step.node.outputs)):
        size = step.op("Gather", step.needed(1), step.ints([index], "index"), axis=0)
        start, end = end, step.op("Add", end, size)
        parts.append(step.op("Slice", data, start, end, place))
    step.finish(*parts)
    return True


@lowers(18, "Split")
def _split_count_to_sizes(step: Step) -> bool:
    """Opset 18's num_outputs: the last chunk may be smaller, which older versions only say with explicit sizes."""
    if "num_outputs" not in step.node.attributes:
        return False
    axis, count = step.attr("axis", 0), step.attr("num_outputs")
    shape = step.shape()
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if len(step.node.outputs) != count:
        step.refuse(say("num_outputs is not the number of its outputs", "num_outputs 与输出个数不同"))
    if not isinstance(size, int):
        return _split_unknown(step, axis, count)
    chunk = -(-size // count)
    sizes = [max(0, min(chunk, size - index * chunk)) for index in range(count)]
    del step.node.attributes["num_outputs"]
    if len(set(sizes)) > 1:
        step.node.resize_inputs(2)
        step.node.replace_input_with(1, step.ints(sizes, "split"))
    for value, part in zip(step.node.outputs, sizes, strict=True):
        if not step.is_model_output(value):  # older inference has other numbers for uneven chunks
            value.shape = ir.Shape([part if place == axis % len(shape or ()) else dim for place, dim in enumerate(shape or ())])
    return True


def _split_unknown(step: Step, axis: int, count: int) -> bool:
    """Chunks of a dimension known at run time only: slices of a computed length."""
    data, place = step.needed(0), step.ints([axis], "axis")
    whole = step.op("Shape", data)
    # Indices may count from the end from 11 on.
    size = step.op("Gather", whole, step.ints([axis if axis >= 0 or step.version >= 11 else axis + step.rank()], "place"), axis=0)
    chunk = step.op("Div", step.op("Add", size, step.ints([count - 1])), step.ints([count]))
    ends = [step.op("Mul", chunk, step.ints([index])) for index in range(count + 1)]
    step.finish(*[step.op("Slice", data, ends[index], ends[index + 1], place) for index in range(count)])
    return True


@lowers(13, "Softmax", "LogSoftmax", "Hardmax")
def _softmax(step: Step) -> bool:
    """Before 13 everything from the axis on was one row, which is the same for the last axis only."""
    axis, rank = step.attr("axis", -1), step.rank()
    if rank == 0:
        step.refuse(say("a scalar has no axis", "标量没有轴"))
    axis, last = axis % rank, rank - 1
    if axis == last:
        step.node.attributes["axis"] = ir.AttrInt64("axis", last)
        return True
    order = list(range(rank))
    order[axis], order[last] = order[last], order[axis]
    moved = step.op("Transpose", step.needed(0), perm=order)
    step.finish(step.op("Transpose", step.op(step.node.op_type, moved, axis=last), perm=order))
    return True


@lowers(10, "Slice")
def _slice_to_attributes(step: Step) -> bool:
    found = {name: step.constant(index, name) for index, name in enumerate(("starts", "ends", "axes", "steps"), start=1)}
    steps = found.pop("steps")
    if steps is not None and np.any(steps != 1):
        return _slice_by_gather(step, {**found, "steps": steps})
    keep_inputs(step, 1)
    for name, values in found.items():
        if values is not None:
            set_ints(step, name, values)
    return True


def _slice_by_gather(step: Step, found: dict[str, Array | None]) -> bool:
    """There were no steps before 10: the elements are gathered by their places."""
    data, starts, ends, steps = step.needed(0), found["starts"], found["ends"], found["steps"]
    if starts is None or ends is None or steps is None:
        step.refuse(say("starts or ends are missing", "缺少 starts 或 ends"))
    axes = range(starts.size) if found["axes"] is None else found["axes"].reshape(-1).tolist()
    for axis, start, end, stride in zip(axes, starts.tolist(), ends.tolist(), steps.tolist(), strict=True):
        places = list(range(step.dim(axis)))[slice(start, None if stride < 0 and end < -step.dim(axis) else end, stride)]
        data = step.op("Gather", data, step.ints(places, "places"), axis=axis % step.rank())
    step.finish(data)
    return True


@lowers(10, "TopK")
def _topk_to_attribute(step: Step) -> bool:
    k = step.constant(1, "K")
    keep_inputs(step, 1)
    if k is not None:
        step.node.attributes["k"] = ir.AttrInt64("k", int(k.reshape(-1)[0]))
    return True


@lowers(11, "TopK")
def _topk_smallest(step: Step) -> bool:
    """There was only the largest before 11: the smallest are the largest of the negated."""
    if step.attr("largest", 1) == 1:
        return negative_axis(step)
    if "FLOAT" not in step.dtype().name and step.dtype() != ir.DataType.DOUBLE:
        step.refuse(say("the smallest integers cannot be found by negating", "整数无法通过取负求最小值"))
    values = step.op("TopK", step.op("Neg", step.needed(0)), step.needed(1), outputs=2, axis=step.attr("axis", -1))
    step.finish(step.op("Neg", values), values.producer().outputs[1])  # type: ignore[union-attr]
    return True


@lowers(15, "Shape")
def _shape_slice(step: Step) -> bool:
    """Opset 15's start and end become a Slice of the whole shape."""
    start, end = step.attr("start", 0), step.attr("end")
    if start == 0 and end is None:
        return step.node.attributes.pop("start", None) is not None
    shape = step.shape()
    part = None if shape is None else shape[slice(start, end)]
    if part is not None and all(isinstance(dim, int) for dim in part):
        step.finish(step.const(part, np.int64, "shape"))
        return True
    limits = step.ints([start], "start"), step.ints([INT_MAX if end is None else end], "end")
    step.finish(step.op("Slice", step.op("Shape", step.needed(0)), *limits))
    return True


@lowers(
    11,
    *("ArgMax", "ArgMin", "Concat", "Flatten", "Gather", "Hardmax", "LogSoftmax", "Softmax", "Compress", "OneHot", "Split", "Squeeze"),
    *("Unsqueeze", "ReduceSum", "Slice", *REDUCTIONS),
)
def negative_axis(step: Step) -> bool:
    """Axes counted from the end are allowed from 11 on."""
    node, changed = step.node, False
    axis = step.attr("axis")
    extra = 1 if node.op_type == "OneHot" else 0
    if node.op_type in ("OneHot", "TopK") and axis is None:
        return False  # minus one is their default, and allowed
    if axis is not None and axis < 0 and not (axis == -1 and node.op_type in ("OneHot", "TopK")):
        node.attributes["axis"] = ir.AttrInt64("axis", axis + step.rank() + extra)
        changed = True
    if node.op_type == "Gather":
        changed |= _negative_places(step, axis or 0)
    axes = step.attr("axes")
    if axes is not None and min(axes, default=0) < 0:
        rank = step.rank() + (len(axes) if node.op_type == "Unsqueeze" else 0)
        node.attributes["axes"] = ir.AttrInt64s("axes", [value % rank for value in axes])
        changed = True
    if node.op_type == "Slice" and len(node.inputs) > 3 and node.inputs[3] is not None:
        listed = step.constant(3, "axes")
        if listed is not None and listed.size and listed.min() < 0:
            node.replace_input_with(3, step.ints((listed % step.rank()).tolist(), "axes"))
            changed = True
    return changed


def _negative_places(step: Step, axis: int) -> bool:
    """Places counted from the end came at 11 too; those that are weights are counted from the start."""
    places = step.value_of(step.input(1))
    if places is None or not places.size or places.min() >= 0:
        return False
    size = step.dim(axis)
    step.node.replace_input_with(1, step.const(np.where(places < 0, places + size, places), places.dtype, "places"))
    return True
