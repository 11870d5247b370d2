"""Resize of known sizes: for every new place a row of weights, computed in float64 from the standard's formula."""

from __future__ import annotations

from ...text import say
from ..opset.lower.resize import Plan
from ..opset.step import Step
from .base import expands


@expands("Resize")
def by_products(step: Step) -> None:
    """One product with a constant matrix for each dimension that changes; nearest places are gathered."""
    if step.version < 11:
        step.refuse(say("a Resize of opset 10", "opset 10 的 Resize"))
    step.finish(Plan(step).products(step))


@expands("Resize")
def by_neighbours(step: Step) -> None:
    """Each dimension in turn as a weighted sum of gathered neighbours."""
    if step.version < 11:
        step.refuse(say("a Resize of opset 10", "opset 10 的 Resize"))
    step.finish(Plan(step).taps(step))
