"""Normalisations by plain reductions."""

from __future__ import annotations

from ..opset.lower.common import reduce
from ..opset.step import Step
from .base import expands


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
