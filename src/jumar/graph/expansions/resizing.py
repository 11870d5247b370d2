"""Resize by gathered and weighted neighbours, for every mode that works on known sizes."""

from __future__ import annotations

from ...text import say
from ..opset.lower.resize import Plan
from ..opset.step import Step
from .base import expands


@expands("Resize")
def by_neighbours(step: Step) -> None:
    """Each dimension in turn."""
    if step.version < 11:
        step.refuse(say("a Resize of opset 10", "opset 10 的 Resize"))
    step.finish(Plan(step).taps(step))
