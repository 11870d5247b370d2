"""Activations by their definitions, in forms that overflow nowhere in half precision."""

from __future__ import annotations

import onnx_ir as ir

from ...text import say
from ..opset.step import Step
from .base import expands
from .common import is_float


def _below(step: Step, data: ir.Value, bound: float = 0.0) -> ir.Value:
    return step.op("Less", data, step.like(bound, name="bound"))


def _exponential_less_one(step: Step, data: ir.Value) -> ir.Value:
    """exp(x) - 1 of what is not above 0, where the exponential cannot overflow; NaN stays NaN."""
    low = step.op("Where", step.op("Greater", data, step.like(0, name="zero")), step.like(0, name="zero"), data)
    return step.op("Sub", step.op("Exp", low), step.like(1, name="one"))


@expands("Elu")
def elu(step: Step) -> None:
    """x, and alpha (exp(x) - 1) below 0."""
    data = step.needed(0)
    low = step.op("Mul", step.like(float(step.given("alpha")), name="alpha"), _exponential_less_one(step, data))
    step.finish(step.op("Where", _below(step, data), low, data))


@expands("Selu")
def selu(step: Step) -> None:
    """gamma times Elu, with its own alpha and gamma."""
    data, alpha, gamma = step.needed(0), float(step.given("alpha")), float(step.given("gamma"))
    low = step.op("Mul", step.like(alpha, name="alpha"), _exponential_less_one(step, data))
    step.finish(step.op("Mul", step.like(gamma, name="gamma"), step.op("Where", _below(step, data), low, data)))


@expands("Celu")
def celu(step: Step) -> None:
    """x, and alpha (exp(x / alpha) - 1) below 0."""
    data, alpha = step.needed(0), float(step.given("alpha"))
    if alpha <= 0:
        step.refuse(say("its alpha is not positive", "其 alpha 不是正数"))
    scaled = step.op("Div", data, step.like(alpha, name="alpha"))
    low = step.op("Mul", step.like(alpha, name="alpha"), _exponential_less_one(step, scaled))
    step.finish(step.op("Where", _below(step, data), low, data))


@expands("HardSigmoid")
def hard_sigmoid(step: Step) -> None:
    """alpha x + beta between 0 and 1, with its own alpha and beta."""
    data = step.needed(0)
    line = step.op("Add", step.op("Mul", data, step.like(float(step.given("alpha")), name="alpha")), step.like(float(step.given("beta"))))
    step.finish(_between(step, line, 0, 1))


def _between(step: Step, data: ir.Value, low: float, high: float) -> ir.Value:
    if step.version >= 11:
        return step.op("Clip", data, step.like(low, name="low"), step.like(high, name="high"))
    return step.op("Clip", data, min=float(low), max=float(high))


@expands("ThresholdedRelu")
def thresholded(step: Step) -> None:
    """x above alpha, else 0."""
    data = step.needed(0)
    above = step.op("Greater", data, step.like(float(step.given("alpha")), name="alpha"))
    step.finish(step.op("Where", above, data, step.like(0, name="zero")))


@expands("Shrink")
def shrink(step: Step) -> None:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    data, limit, bias = step.needed(0), float(step.given("lambd")), float(step.given("bias"))
    if not is_float(step.dtype()):
        step.refuse(say("it is of integers", "其元素是整数"))
    zero, shift = step.like(0, name="zero"), step.like(bias, name="bias")
    high = step.op("Where", step.op("Greater", data, step.like(limit, name="limit")), step.op("Sub", data, shift), zero)
    step.finish(step.op("Where", _below(step, data, -limit), step.op("Add", data, shift), high))


@expands("LeakyRelu")
def leaky(step: Step) -> None:
    """x, and alpha x below 0."""
    data = step.needed(0)
    low = step.op("Mul", data, step.like(float(step.given("alpha")), name="alpha"))
    step.finish(step.op("Where", _below(step, data), low, data))


@expands("PRelu")
def parametric(step: Step) -> None:
    """x, and slope x below 0."""
    data = step.needed(0)
    step.finish(step.op("Where", _below(step, data), step.op("Mul", data, step.needed(1)), data))


def _softplus(step: Step, data: ir.Value) -> ir.Value:
    """log(exp(x) + 1) as max(x, 0) + log(1 + exp(-|x|)), whose exponential is at most 1."""
    tail = step.op("Log", step.op("Add", step.op("Exp", step.op("Neg", step.op("Abs", data))), step.like(1, name="one")))
    return step.op("Add", step.op("Relu", data), tail)


@expands("Softplus")
def softplus(step: Step) -> None:
    """Without an exponential of large numbers."""
    step.finish(_softplus(step, step.needed(0)))


@expands("Softsign")
def softsign(step: Step) -> None:
    """x / (1 + |x|)."""
    data = step.needed(0)
    step.finish(step.op("Div", data, step.op("Add", step.op("Abs", data), step.like(1, name="one"))))


@expands("Mish")
def mish(step: Step) -> None:
    """x tanh(softplus(x)), with the target's own Softplus, which does not overflow."""
    data = step.needed(0)
    step.finish(step.op("Mul", data, step.op("Tanh", step.op("Softplus", data))))


@expands("Swish")
def swish(step: Step) -> None:
    """x sigmoid(alpha x)."""
    data, alpha = step.needed(0), float(step.given("alpha"))
    scaled = data if alpha == 1.0 else step.op("Mul", data, step.like(alpha, name="alpha"))
    step.finish(step.op("Mul", data, step.op("Sigmoid", scaled)))


@expands("HardSwish")
def hard_swish(step: Step) -> None:
    """x times the HardSigmoid of 1/6 and 1/2."""
    data = step.needed(0)
    step.finish(step.op("Mul", data, step.op("HardSigmoid", data, alpha=1.0 / 6.0, beta=0.5)))


@expands("Gelu")
def gelu(step: Step) -> None:
    """x (1 + erf(x / sqrt 2)) / 2, or with the tanh of a cubic whose powers stay small: x (1 + 0.044715 x x)."""
    data = step.needed(0)
    half, one = step.like(0.5, name="half"), step.like(1, name="one")
    if step.given("approximate") == "tanh":
        square = step.op("Mul", step.op("Mul", data, data), step.like(0.044715, name="cubic"))
        inner = step.op("Mul", step.op("Mul", data, step.like(0.7978845608028654, name="scale")), step.op("Add", square, one))
        grown = step.op("Tanh", inner)
    else:
        grown = step.op("Erf", step.op("Mul", data, step.like(0.7071067811865476, name="scale")))
    step.finish(step.op("Mul", step.op("Mul", data, half), step.op("Add", grown, one)))
