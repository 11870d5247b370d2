"""Fourier transforms as products with constant matrices."""

from __future__ import annotations

from ...text import say
from ..opset.lower.signals import transform
from ..opset.step import Step
from .base import expands
from .common import normal_axis


@expands("DFT")
def dft(step: Step) -> None:
    """Along the axis that the attribute names before opset 20, and the third input from then on."""
    rank = step.rank()
    if step.version >= 20:
        given = step.constant(2, "axis")
        axis = -2 if given is None else int(given.reshape(-1)[0])
    else:
        axis = int(step.attr("axis", 1))
    place = normal_axis(step, axis, rank)
    if place == rank - 1:
        step.refuse(say("it transforms the axis of real and imaginary parts", "它变换的是实部与虚部所在的轴"))
    inverse, onesided = bool(step.attr("inverse", 0)), bool(step.attr("onesided", 0))
    size, length = step.dim(place), step.constant(1, "dft_length")
    default = 2 * (size - 1) if inverse and onesided else size
    wanted = default if length is None else int(length.reshape(-1)[0])
    step.finish(transform(step, step.needed(0), place, step.dim(rank - 1), wanted, (inverse, onesided)))
