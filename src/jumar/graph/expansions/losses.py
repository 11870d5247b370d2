"""Losses: the score of the target class is chosen by comparison with its number."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce, unsqueeze
from ..opset.step import Step
from .base import expands


@expands("NegativeLogLikelihoodLoss")
def negative_log_likelihood(step: Step) -> None:
    """Minus the score of the target class, weighted; a target to be ignored weighs nothing."""
    step.finish(_loss(step, step.needed(0)))


@expands("SoftmaxCrossEntropyLoss")
def cross_entropy(step: Step) -> None:
    """The same of the logarithm of the softmax over the classes."""
    data = step.needed(0)
    if step.version < 13 and step.rank() != 2:
        step.refuse(say("a softmax along one axis only came with opset 13", "沿单个轴的 softmax 自 opset 13 起才有"))
    scores = step.op("LogSoftmax", data, axis=1)
    step.finish(_loss(step, scores), scores if step.used(1) else None)


def _loss(step: Step, scores: ir.Value) -> ir.Value:
    """The loss of scores [N, C, ...] for targets [N, ...]."""
    targets, classes, rank = step.needed(1), step.dim(1), step.rank()
    dtype = step.dtype()
    kind = (targets.dtype or ir.DataType.INT64).numpy()
    if step.range_of(targets).fits(ir.DataType.INT32):
        targets, kind = step.cast(targets, ir.DataType.INT32), np.dtype(np.int32)
    numbers = np.arange(classes).reshape([1, classes, *[1] * (rank - 2)])
    chosen = step.op("Equal", unsqueeze(step, targets, [1]), step.const(numbers, kind, "classes"))
    ignored = step.attr("ignore_index")
    if ignored is not None and 0 <= ignored < classes:
        # No score is chosen for it, and its weight is 0.
        chosen = step.op("And", chosen, step.const(numbers != ignored, np.bool_, "counted"))
    nothing = step.const(0, dtype.numpy(), "nothing")
    loss = step.op("Neg", reduce(step, "ReduceSum", step.op("Where", chosen, scores, nothing), [1], 0))
    weight = step.input(2)
    if weight is None:
        weights = step.cast(chosen, dtype)
    else:
        shaped = step.op("Reshape", weight, step.ints([1, classes, *[1] * (rank - 2)], "shape"))
        weights = step.op("Where", chosen, shaped, nothing)
    reduction = step.given("reduction")
    plain = weight is None and ignored is None
    if not plain:
        weights = reduce(step, "ReduceSum", weights, [1], 0)
        loss = step.op("Mul", loss, weights)
    everything = list(range(rank - 1))
    if reduction == "none":
        return loss
    if reduction == "mean" and plain:
        return reduce(step, "ReduceMean", loss, everything, 0)
    total = reduce(step, "ReduceSum", loss, everything, 0)
    if reduction == "sum":
        return total
    return step.op("Div", total, reduce(step, "ReduceSum", weights, everything, 0))
