"""Choices and comparisons in types without kernel, by logic and arithmetic."""

from __future__ import annotations

import onnx_ir as ir

from ...text import say
from ..opset.step import Step
from .base import expands
from .common import is_float


@expands("Where")
def choice_of_booleans(step: Step) -> None:
    """(c and x) or (not c and y)."""
    if step.dtype(1) != ir.DataType.BOOL:
        step.refuse(say("it does not choose booleans", "它选择的不是布尔值"))
    condition, one, other = (step.needed(index) for index in range(3))
    step.finish(step.op("Or", step.op("And", condition, one), step.op("And", step.op("Not", condition), other)))


@expands("Where")
def choice_of_integers(step: Step) -> None:
    """In int32 where all values fit, else c * x + (not c) * y."""
    dtype = step.dtype(1)
    if is_float(dtype) or dtype in (ir.DataType.BOOL, ir.DataType.STRING):
        step.refuse(say("it does not choose integers", "它选择的不是整数"))
    condition, one, other = (step.needed(index) for index in range(3))
    if dtype != ir.DataType.INT32 and all(step.range_of(value).fits(ir.DataType.INT32) for value in (one, other)):
        wide = [step.cast(value, ir.DataType.INT32) for value in (one, other)]
        step.finish(step.cast(step.op("Where", condition, *wide), dtype))
        return
    if dtype == ir.DataType.INT32:
        step.refuse(say("it is int32 already", "它已是 int32"))
    chosen, rest = step.cast(condition, dtype), step.cast(step.op("Not", condition), dtype)
    step.finish(step.op("Add", step.op("Mul", chosen, one), step.op("Mul", rest, other)))


@expands("Max", "Min")
def extreme_of_integers(step: Step) -> None:
    """In int32 where all values fit, else the one that a comparison chooses."""
    dtype = step.dtype()
    values = [value for value in step.node.inputs if value is not None]
    if is_float(dtype) or dtype == ir.DataType.INT32:
        step.refuse(say("it is not of such integers", "它不是此类整数"))
    if step.version >= 12 and all(step.range_of(value).fits(ir.DataType.INT32) for value in values):
        wide = [step.cast(value, ir.DataType.INT32) for value in values]
        step.finish(step.cast(step.op(step.node.op_type, *wide), dtype))
        return
    result = values[0]
    for value in values[1:]:
        result = step.op("Where", step.op("Greater" if step.node.op_type == "Max" else "Less", result, value), result, value)
    step.finish(result)


@expands("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
def comparison_of_integers(step: Step) -> None:
    """In int32 where all values fit."""
    one, other = step.needed(0), step.needed(1)
    dtype = step.dtype()
    if is_float(dtype) or dtype in (ir.DataType.INT32, ir.DataType.BOOL, ir.DataType.STRING):
        step.refuse(say("it does not compare such integers", "它比较的不是此类整数"))
    if not all(step.range_of(value).fits(ir.DataType.INT32) for value in (one, other)):
        step.refuse(say("its operands are not known to fit 32 bits", "操作数不能确定可用 32 位表示"))
    step.finish(step.op(step.node.op_type, step.cast(one, ir.DataType.INT32), step.cast(other, ir.DataType.INT32)))


@expands("Equal")
def same_truth(step: Step) -> None:
    """Booleans are equal where not one of them alone is true."""
    if step.dtype() != ir.DataType.BOOL:
        step.refuse(say("it does not compare booleans", "它比较的不是布尔值"))
    step.finish(step.op("Not", step.op("Xor", step.needed(0), step.needed(1))))


@expands("Xor")
def either(step: Step) -> None:
    """One and not both."""
    one, other = step.needed(0), step.needed(1)
    step.finish(step.op("And", step.op("Or", one, other), step.op("Not", step.op("And", one, other))))


@expands("GreaterOrEqual", "LessOrEqual")
def or_equal(step: Step) -> None:
    """Greater or equal; not the opposite of less, which says yes to NaN."""
    strict = step.op("Greater" if step.node.op_type == "GreaterOrEqual" else "Less", *step.node.inputs)
    step.finish(step.op("Or", strict, step.op("Equal", *step.node.inputs)))
