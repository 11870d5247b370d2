"""Normalisations, norms and sums of exponentials by plain reductions."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce, squeeze
from ..opset.step import Step
from .base import expands
from .common import normal_axis


@expands("LpNormalization")
def lp_normalization(step: Step) -> None:
    """Divided by the norm along the axis; a vector of zeros stays one."""
    axis, power = int(step.given("axis")), int(step.given("p"))
    data = step.needed(0)
    if power == 1:
        norm = reduce(step, "ReduceSum", step.op("Abs", data), [axis])
    else:
        norm = step.op("Sqrt", reduce(step, "ReduceSum", step.op("Mul", data, data), [axis]))
    empty = step.op("Equal", norm, step.like(0))
    step.finish(step.op("Div", data, step.op("Where", empty, step.like(1), norm)))


def _axes(step: Step) -> list[int]:
    """The axes that a reduction works on, counted from the front.

    Raises:
        Unconvertible: they are computed, or there are none.
    """
    rank = step.rank()
    given = step.constant(1, "axes") if step.version >= (13 if step.node.op_type == "ReduceSum" else 18) else step.attr("axes")
    if given is None or not len(given):
        if step.attr("noop_with_empty_axes", 0):
            step.refuse(say("it has no axes and does nothing", "它没有 axes，不做任何归约"))
        return list(range(rank))
    return [normal_axis(step, int(axis), rank) for axis in np.asarray(given).reshape(-1)]


@expands("ReduceLogSumExp")
def log_sum_exp(step: Step) -> None:
    """The largest element is taken out before the exponential and added back, so that nothing overflows."""
    data, axes, keep = step.needed(0), _axes(step), int(step.given("keepdims"))
    shape = step.shape()
    if shape is None or 0 in shape:
        step.refuse(say("it may be empty", "它可能为空"))
    largest = reduce(step, "ReduceMax", data, axes)
    # Of infinities nothing is taken out: the difference would be NaN.
    bound = step.like(float(np.finfo(step.dtype().numpy()).max))
    finite = step.op("Less", step.op("Abs", largest), bound)
    base = step.op("Where", finite, largest, step.like(0))
    total = reduce(step, "ReduceSum", step.op("Exp", step.op("Sub", data, base)), axes)
    result = step.op("Add", step.op("Log", total), base)
    step.finish(result if keep else squeeze(step, result, axes))


@expands("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
def reduced(step: Step) -> None:
    """A ReduceSum of magnitudes or squares, and what comes after it."""
    data, axes, keep, name = step.needed(0), _axes(step), int(step.given("keepdims")), step.node.op_type
    if name in ("ReduceL2", "ReduceSumSquare"):
        data = step.op("Mul", data, data)
    elif name == "ReduceL1":
        data = step.op("Abs", data)
    total = reduce(step, "ReduceSum", data, axes, keep)
    if name == "ReduceL2":
        total = step.op("Sqrt", total)
    step.finish(step.op("Log", total) if name == "ReduceLogSum" else total)


@expands("ReduceMax", "ReduceMin")
def extreme_of_narrow(step: Step) -> None:
    """Integers of 8 bits, and booleans, through a type that has a kernel."""
    if step.dtype() not in (ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8):
        step.refuse(say("its values are wider than 8 bits", "其取值超过 8 位"))
    if 0 in step.static():
        step.refuse(say("it may be empty", "它可能为空"))  # the extreme of nothing is that of the type
    wide = step.cast(step.needed(0), ir.DataType.FLOAT16)
    result = reduce(step, step.node.op_type, wide, _axes(step), int(step.given("keepdims")))
    step.finish(step.cast(result, step.dtype()))
