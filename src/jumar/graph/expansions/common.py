"""What expansions share: indices into flattened tensors, constant selections along an axis, integers kept exact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.step import Array, Step
from ..shapes import static_shape

DENSE_LIMIT = 1 << 22
"""Elements of the largest matrix that a dense form may hold; above it the form is refused."""
INT32 = np.iinfo(np.int32)


def take(step: Step, data: ir.Value, axis: int, indices: Sequence[int] | Array) -> ir.Value:
    """The slices of a tensor at constant places of an axis, in their order."""
    return step.op("Gather", data, step.ints(np.asarray(indices, np.int64), "places"), axis=axis)


def reshape(step: Step, data: ir.Value, shape: Sequence[int]) -> ir.Value:
    return step.op("Reshape", data, step.ints(list(shape), "shape"))


def attributes_of(step: Step, names: Iterable[str]) -> dict[str, Any]:
    """Those of the named attributes that the node has."""
    return {name: step.node.attributes[name] for name in names if name in step.node.attributes}


def sizes(step: Step, value: ir.Value) -> list[int]:
    """The shape of a tensor made here.

    Raises:
        Unconvertible: it is not static.
    """
    shape = static_shape(value)
    if shape is None:
        step.refuse(say("the shape of `{name}` is not static", "`{name}` 的形状不是静态的", name=value.name))
    return list(shape)


def transposed(step: Step, data: ir.Value, order: Sequence[int]) -> ir.Value:
    return data if list(order) == sorted(order) else step.op("Transpose", data, perm=list(order))


def normal_axis(step: Step, axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        Unconvertible: there is no such axis.
    """
    if not -rank <= axis < rank:
        step.refuse(say("axis {axis} of a tensor of rank {rank}", "秩为 {rank} 的张量没有第 {axis} 维", axis=axis, rank=rank))
    return axis % rank


def within(step: Step, elements: int, what: str = "matrix", limit: int = DENSE_LIMIT) -> None:
    """Refuse a form that would be too large.

    Raises:
        Unconvertible: it has more elements than ``limit``.
    """
    if elements > limit:
        step.refuse(
            say(
                "the dense form needs a {what} of {count} elements; {limit} are allowed",
                "稠密形式需要 {count} 个元素的{what}，上限为 {limit}",
                what=what,
                count=elements,
                limit=limit,
            )
        )


def from_front(step: Step, indices: ir.Value, size: int, negative: bool = True) -> ir.Value:
    """Indices into an axis of ``size``, the negative ones counted from the front. ``negative``: whether there can be any."""
    if not negative:
        return indices
    dtype = (indices.dtype or ir.DataType.INT64).numpy()
    below = step.op("Less", indices, step.const(0, dtype, "zero"))
    return step.op("Where", below, step.op("Add", indices, step.const(size, dtype, "size")), indices)


def flat_places(step: Step, indices: ir.Value, shape: tuple[int, ...], data: tuple[int, ...], axis: int) -> ir.Value:
    """For indices as of GatherElements (of ``shape``, into ``axis`` of a tensor of shape ``data``): places in the flattened tensor."""
    strides = [math.prod(data[place + 1 :]) for place in range(len(data))]
    rest = np.zeros(shape, np.int64)
    for place, extent in enumerate(shape):
        if place != axis:
            rest += (np.arange(extent) * strides[place]).reshape([-1 if item == place else 1 for item in range(len(shape))])
    if math.prod(data) > INT32.max:
        step.refuse(say("its places do not fit 32 bits", "其位置无法用 32 位表示"))
    dtype = np.int32  # of an index that is valid nothing is lost
    places = from_front(step, step.cast(indices, ir.DataType.INT32), data[axis], step.range_of(indices).lo < 0)
    if strides[axis] != 1:
        places = step.op("Mul", places, step.const(strides[axis], dtype, "stride"))
    return step.op("Add", places, step.const(rest, dtype, "rest")) if rest.any() else places


def one_hot(step: Step, places: ir.Value, count: int, size: int, dtype: ir.DataType) -> ir.Value:
    """A matrix [count, size] with a one in the column that each place names, and zeros elsewhere."""
    within(step, count * size)
    kind = (places.dtype or ir.DataType.INT64).numpy()
    column = reshape(step, places, [count, 1])
    hit = step.op("Equal", column, step.const(np.arange(size).reshape(1, size), kind, "columns"))
    return step.cast(hit, dtype)


def is_float(dtype: ir.DataType) -> bool:
    return dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)
