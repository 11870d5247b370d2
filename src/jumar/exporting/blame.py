"""Which Python line a wrong graph went wrong at: the first call of torch whose result no node of that line computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from ..errors import JumarError
from ..graph import Evaluator, capture_model, source_line
from .audit import Event
from .eager import watch_again
from .isolation import Limits, Lost
from .program import Program

_NEAR = 1e-3


@dataclass(frozen=True)
class Blame:
    """The call that the graph does not compute, and the numbers that tensors became before it.

    Attributes:
        lost: whether the graph has no node at all for it.
    """

    event: Event
    numbers: tuple[Event, ...]
    lost: bool


def find_blame(program: Program, model: ir.Model, feeds: Mapping[str, Any], evaluator: Evaluator, limits: Limits) -> Blame | None:
    """Compare what each call returns on these inputs with what the nodes of its line compute; None where all agree or nothing can be told."""
    try:
        events, arrays = watch_again(program, feeds, limits)
        computed = _by_line(model, feeds, evaluator)
    except (JumarError, Lost):
        return None
    numbers: list[Event] = []
    lost: Event | None = None
    for index, event in enumerate(events):
        if event.kind == "number":
            numbers.append(event)
            continue
        shown = [arrays[f"{index}/{number}"] for number in range(event.arrays)]
        if not shown or event.line is None:
            continue
        there = computed.get(event.line)
        if there is None:
            if event.kind == "write":
                lost = lost or event
            continue
        if any(_alike(one, other) for one in shown for other in there):
            # What is computed after the write is right all the same: the graph has it in another form.
            lost = None if any(array.size > 1 for array in shown) else lost
        else:
            return Blame(lost or event, tuple(numbers), lost is not None)
    return None if lost is None else Blame(lost, tuple(numbers), True)


def _by_line(model: ir.Model, feeds: Mapping[str, Any], evaluator: Evaluator) -> dict[str, list[Any]]:
    """What the nodes of each line compute."""
    places = {value.name: line for node in model.graph if (line := source_line(node)) for value in node.outputs if value.name}
    if not places:
        return {}
    captured = capture_model(model, list(places))
    taken = {value.name for value in model.graph.inputs}
    outputs = evaluator.run(captured, {name: array for name, array in feeds.items() if name in taken}, list(places))
    found: dict[str, list[Any]] = {}
    for name, array in outputs.items():
        if isinstance(array, np.ndarray):
            found.setdefault(places[name], []).append(array)
    return found


def _alike(one: Any, other: Any) -> bool:
    """Whether two tensors hold the same numbers, in any order: exporters move axes about."""
    if one.size != other.size or one.dtype.kind not in "biufV" or other.dtype.kind not in "biufV":
        return False
    a, b = (np.sort(np.nan_to_num(array.astype(np.float64)).reshape(-1)) for array in (one, other))
    return bool(np.allclose(a, b, rtol=_NEAR, atol=_NEAR * float(np.abs(a).max(initial=0.0))))
