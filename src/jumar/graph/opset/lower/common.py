"""What adapters share: attributes of lists and floats, and operators whose form depends on the version."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Array, Step

INT_MAX = np.iinfo(np.int64).max


def keep_inputs(step: Step, count: int) -> None:
    step.node.resize_inputs(min(count, len(step.node.inputs)))


def set_ints(step: Step, name: str, values: Array | list[int] | tuple[int, ...]) -> None:
    step.node.attributes[name] = ir.AttrInt64s(name, [int(value) for value in np.asarray(values).reshape(-1)])


def set_float(step: Step, name: str, constant: Array) -> None:
    """A constant as a float attribute, which has 32 bits.

    Raises:
        Unconvertible: that would round it.
    """
    value = float(constant.reshape(-1)[0])
    with np.errstate(over="ignore"):
        exact = np.isnan(value) or float(np.float32(value)) == value
    if not exact:
        step.refuse(say("{name} does not fit a float32 attribute", "{name} 无法用 float32 属性精确表示", name=name))
    step.node.attributes[name] = ir.AttrFloat32(name, value)


def declare(step: Step, shape: Sequence[int]) -> None:
    """State the shape that the node's outputs have, where shape inference says another; what was inferred from it is forgotten."""
    wrong = [output for output in step.node.outputs if static_shape(output) != tuple(shape)]
    for output in wrong:
        output.shape = ir.Shape(shape)
    while wrong:
        for node, _ in wrong.pop().uses():
            for value in node.outputs:
                if value.shape is not None and any(isinstance(dim, int) for dim in value.shape):
                    value.shape = ir.Shape([None] * len(value.shape)) if value.is_graph_output() else None
                    wrong.append(value)


def is_float(dtype: ir.DataType) -> bool:
    return "FLOAT" in dtype.name or dtype == ir.DataType.DOUBLE


def reduce(step: Step, op: str, data: ir.Value, axes: Sequence[int], keepdims: int = 1) -> ir.Value:
    """A reduction in the form of the version that nodes are made for."""
    if step.version >= (13 if op == "ReduceSum" else 18):
        return step.op(op, data, step.ints(list(axes), "axes"), keepdims=keepdims)
    return step.op(op, data, axes=list(axes), keepdims=keepdims)


def unsqueeze(step: Step, data: ir.Value, axes: Sequence[int]) -> ir.Value:
    if not axes:
        return data
    if step.version >= 13:
        return step.op("Unsqueeze", data, step.ints(list(axes), "axes"))
    return step.op("Unsqueeze", data, axes=list(axes))


def squeeze(step: Step, data: ir.Value, axes: Sequence[int]) -> ir.Value:
    if not axes:
        return data
    if step.version >= 13:
        return step.op("Squeeze", data, step.ints(list(axes), "axes"))
    return step.op("Squeeze", data, axes=list(axes))


def half_to_even(step: Step, data: ir.Value) -> ir.Value:
    """A tensor of floats rounded, halves to the even neighbour.

    Before opset 11 there is no Round: the fraction decides, and where it is a half, whether the floor is odd. A zero keeps the sign of what
    it was.
    """
    if step.version >= 11:
        return step.op("Round", data)
    dtype = data.dtype or ir.DataType.FLOAT
    half, two, zero = (step.const(number, dtype.numpy(), name) for number, name in ((0.5, "half"), (2, "two"), (0, "zero")))
    length = step.op("Abs", data)
    floor = step.op("Floor", length)
    fraction = step.op("Sub", length, floor)
    odd = step.op("Greater", step.op("Sub", floor, step.op("Mul", step.op("Floor", step.op("Div", floor, two)), two)), half)
    tie = step.op("And", step.op("Not", step.op("Less", fraction, half)), odd)
    up = step.op("Cast", step.op("Or", step.op("Greater", fraction, half), tie), to=int(dtype))
    rounded = step.op("Add", floor, up)
    signed = step.op("Where", step.op("Less", data, zero), step.op("Neg", rounded), rounded)
    return step.op("Where", step.op("Greater", length, half), signed, step.op("Mul", data, zero))


def section(step: Step, data: ir.Value, axis: int, start: int, end: int) -> ir.Value:
    """The places from ``start`` up to ``end`` of one axis, counted from the front."""
    if step.version >= 10:
        return step.op("Slice", data, step.ints([start], "start"), step.ints([end], "end"), step.ints([axis], "axis"))
    return step.op("Slice", data, starts=[start], ends=[end], axes=[axis])
