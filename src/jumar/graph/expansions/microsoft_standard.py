"""Operators of ONNX Runtime's own domain that the standard has, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...text import say
from ..opset.lower.common import unsqueeze
from ..opset.step import Step
from .base import expands
from .common import within
from .microsoft import DOMAIN


@expands(DOMAIN + "GatherND", DOMAIN + "GridSample", DOMAIN + "Pad", DOMAIN + "Range", DOMAIN + "Trilu")
def the_same(step: Step) -> None:
    """The standard's operator of the same name, where its opset has it."""
    inputs = list(step.node.inputs)
    kept: dict[str, Any] = dict(step.node.attributes)
    if step.node.op_type == "Pad" and step.rank(1) != 1:
        inputs[1] = step.op("Reshape", inputs[1], step.ints([-1], "flat"))
    if step.node.op_type == "Range" and len(inputs) < 3:
        inputs.append(step.like(1))
    if step.node.op_type == "GridSample" and step.version >= 20 and step.attr("mode", "bilinear") != "nearest":
        kept["mode"] = {"bilinear": "linear", "bicubic": "cubic"}[str(step.attr("mode", "bilinear"))]
    step.finish(step.op(step.node.op_type, *inputs, **kept))


@expands(DOMAIN + "Trilu")
def triangle(step: Step) -> None:
    """A constant triangle of ones chosen by, where the opset has no Trilu."""
    shape, offset = step.static(), step.constant(1, "k")
    rows, columns = shape[-2:]
    within(step, rows * columns)
    k = 0 if offset is None else int(offset.reshape(-1)[0])
    ones = np.ones((rows, columns), bool)
    kept = np.triu(ones, k) if step.attr("upper", 1) else np.tril(ones, k)
    step.finish(step.op("Where", step.const(kept, name="kept"), step.needed(0), step.like(0)))


@expands(DOMAIN + "ExpandDims")
def expand_dims(step: Step) -> None:
    """An Unsqueeze."""
    axis = step.constant(1, "axis")
    if axis is None:
        step.refuse(say("its axis is missing", "缺少轴"))
    rank = step.rank() + 1
    step.finish(unsqueeze(step, step.needed(0), [int(axis.reshape(-1)[0]) % rank]))


@expands(DOMAIN + "TorchEmbedding")
def embedding(step: Step) -> None:
    """Rows of a table. The index of padding matters in training only."""
    step.finish(step.op("Gather", step.needed(0), step.needed(1), axis=0))
