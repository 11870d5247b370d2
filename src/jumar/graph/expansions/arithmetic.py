"""Arithmetic of types and forms without kernel."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.step import Step
from .base import expands
from .common import is_float, reshape

_EXACT = 1 << 24


@expands("Selu")
def selu(step: Step) -> None:
    """By its definition, with its own alpha and gamma."""
    data, alpha, gamma = step.needed(0), float(step.given("alpha")), float(step.given("gamma"))
    low = step.op("Sub", step.op("Mul", step.like(alpha), step.op("Exp", data)), step.like(alpha))
    step.finish(step.op("Mul", step.like(gamma), step.op("Where", step.op("Greater", data, step.like(0)), data, low)))


@expands("Pow")
def power(step: Step) -> None:
    """An integer exponent, and an integer base of exact results, in floats."""
    base, exponent, dtype = step.needed(0), step.needed(1), step.dtype()
    if exponent.dtype is None or (is_float(dtype) and exponent.dtype == dtype):
        step.refuse(say("both operands are floats of one type", "两个操作数为同一浮点类型"))
    kind = dtype if is_float(dtype) else ir.DataType.FLOAT
    known, raised = step.range_of(base), step.range_of(exponent)
    if not is_float(exponent.dtype) and not raised.within(-_EXACT, _EXACT):
        step.refuse(say("its exponent is not known to be exact in float32", "其指数不能确定可由 float32 精确表示"))
    if not is_float(dtype):
        if is_float(exponent.dtype) or raised.lo < 0 or not known.within(-_EXACT, _EXACT) or raised.hi > 24:
            step.refuse(say("its results are not known to be exact in float32", "其结果不能确定可由 float32 精确表示"))
        if max(abs(int(known.lo)), abs(int(known.hi)), 1) ** int(raised.hi) > _EXACT:
            step.refuse(say("its results are not known to be exact in float32", "其结果不能确定可由 float32 精确表示"))
    result = step.op("Pow", step.cast(base, kind), step.cast(exponent, kind))
    if not is_float(dtype):
        result = step.op("Floor", step.op("Add", result, step.const(0.5, np.float32, "half")))  # the device's power may be a little off
    step.finish(step.cast(result, dtype))


@expands("Det")
def determinant(step: Step) -> None:
    """The sum over permutations, for matrices of up to four rows."""
    shape = step.static()
    size = shape[-1]
    if size > 4:
        step.refuse(say("a matrix of more than four rows", "矩阵超过四行"))
    data, axis = reshape(step, step.needed(0), [*shape[:-2], size * size]), len(shape) - 2
    total: ir.Value | None = None
    for order in itertools.permutations(range(size)):
        term: ir.Value | None = None
        for row, column in enumerate(order):
            item = step.op("Gather", data, step.ints(row * size + column), axis=axis)
            term = item if term is None else step.op("Mul", term, item)
        even = sum(order[one] > order[other] for one in range(size) for other in range(one + 1, size)) % 2 == 0
        if term is None:
            step.refuse(say("an empty matrix", "空矩阵"))
        total = (term if even else step.op("Neg", term)) if total is None else step.op("Add" if even else "Sub", total, term)
    if total is None:
        step.refuse(say("an empty matrix", "空矩阵"))
    step.finish(total)
