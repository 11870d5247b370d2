"""What the module itself computes: the reference that every exported graph is held to."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import EvaluationError
from ..text import Text, say
from .audit import Event, watched
from .isolation import Limits, Lost, run_apart
from .lines import line_of_error
from .program import Program, Slot, results, to_array
from .structure import output_names, path_text

Arrays = dict[str, Any]
_BUDGET = 120.0
"""Seconds after which no further case is begun."""


@dataclass
class Eager:
    """Results by case, and what was seen on the way.

    Attributes:
        outputs: slots of the results.
        cases: inputs and results of every case the module ran on; the given inputs are the first.
        refused: cases on which the module itself failed, with its words.
        dropped: results that are no tensors, by path, with their value.
        changed: inputs that the module writes into.
        steady: whether the same inputs gave the same results twice.
        events: the calls of torch on the given inputs.
        imported: modules that forward imports when it first runs.
    """

    outputs: tuple[Slot, ...]
    cases: list[tuple[str, Arrays, Arrays]]
    refused: list[tuple[str, str]] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    steady: bool = True
    events: list[Event] = field(default_factory=list)
    seconds: float = 0.0
    imported: tuple[str, ...] = ()


def run_eagerly(program: Program, cases: Sequence[tuple[str, Arrays]], limits: Limits, names: Sequence[str] | None) -> Eager:
    """Run the module in a fork on the given inputs (the first case) and on others.

    Raises:
        EvaluationError: it does not run on the given inputs.
    """
    try:
        answer, arrays = run_apart(lambda: _job(program, cases), limits)
    except Lost as lost:
        raise _not_run(lost.reason) from None
    if "error" in answer:
        place = "" if answer["line"] is None else f" ({answer['line']})"
        raise _not_run(say("{error}{place}", "{error}{place}", error=answer["error"], place=place))
    paths = [tuple(path) for path in answer["paths"]]
    found = output_names(paths, [slot.name for slot in program.inputs]) if names is None else list(names)
    outputs = tuple(
        Slot(name, path, arrays[f"0/{index}"].dtype.name, arrays[f"0/{index}"].shape)
        for index, (name, path) in enumerate(zip(found, paths, strict=True))
    )
    ran = [
        (cases[number][0], cases[number][1], {slot.name: arrays[f"{number}/{index}"] for index, slot in enumerate(outputs)})
        for number in answer["ran"]
    ]
    return Eager(
        outputs,
        ran,
        [(cases[number][0], reason) for number, reason in answer["refused"]],
        answer["dropped"],
        [program.inputs[index].name for index in answer["changed"]],
        answer["steady"],
        [Event(*event) for event in answer["events"]],
        answer["seconds"],
        tuple(answer["imported"]),
    )


def watch_again(program: Program, feeds: Mapping[str, Any], limits: Limits) -> tuple[list[Event], Arrays]:
    """The calls of torch on these inputs, with the tensors they return."""

    def job() -> tuple[dict[str, Any], Arrays]:
        wrapper = program.wrapper()
        _, events, arrays = watched(lambda: wrapper(*program.tensors(feeds)), keep=True)
        return {"events": [event.to_list() for event in events]}, arrays

    answer, arrays = run_apart(job, limits)
    return [Event(*event) for event in answer["events"]], arrays


def in_double(program: Program, feeds: Mapping[str, Any], limits: Limits) -> list[Any] | None:
    """The module's results on these inputs when it computes in double precision; None where it does not run like that."""

    def job() -> tuple[dict[str, Any], Arrays]:
        import torch

        torch.set_default_dtype(torch.float64)  # what forward makes itself follows
        wrapper = program.wrapper().double()
        wide = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in feeds.items()}
        return {}, {str(index): to_array(tensor) for index, tensor in enumerate(wrapper(*program.tensors(wide)))}

    try:
        _, arrays = run_apart(job, limits)
    except Lost:
        return None
    return list(arrays.values())


def _job(program: Program, cases: Sequence[tuple[str, Arrays]]) -> tuple[dict[str, Any], Arrays]:
    wrapper = program.wrapper()
    start = time.monotonic()
    known = set(sys.modules)
    try:
        given = program.tensors(cases[0][1])
        returned, events, _ = watched(lambda: program.call(given), keep=False)
        flat = results(returned)
        first = [to_array(tensor) for tensor in flat.tensors]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:400], "line": line_of_error(error)}, {}
    took = time.monotonic() - start
    changed = [
        index
        for index, (tensor, slot) in enumerate(zip(given, program.inputs, strict=True))
        if not np.array_equal(to_array(tensor), cases[0][1][slot.name], equal_nan=to_array(tensor).dtype.kind == "f")
    ]
    arrays: Arrays = {f"0/{index}": array for index, array in enumerate(first)}
    again = [to_array(tensor) for tensor in wrapper(*program.tensors(cases[0][1]))]
    steady = len(again) == len(first) and all(_same(one, other) for one, other in zip(first, again, strict=True))
    ran, refused = [0], []
    for number, (_, feeds) in enumerate(cases[1:], 1):
        if time.monotonic() - start > _BUDGET and len(ran) > 2:
            break
        try:
            outputs = [to_array(tensor) for tensor in wrapper(*program.tensors(feeds))]
        except Exception as error:
            refused.append((number, f"{type(error).__name__}: {error}".splitlines()[0][:200]))
            continue
        if len(outputs) != len(first):
            refused.append((number, f"{len(outputs)} results instead of {len(first)}"))
            continue
        ran.append(number)
        arrays |= {f"{number}/{index}": array for index, array in enumerate(outputs)}
    answer = {
        "paths": [list(path) for path in flat.paths],
        "dropped": {path_text(path): repr(value)[:80] for path, value in flat.bound.items()},
        "changed": changed,
        "steady": steady,
        "ran": ran,
        "refused": refused,
        "events": [event.to_list() for event in events],
        "seconds": took,
        "imported": [name for name in sys.modules if name not in known and "." not in name],
    }
    return answer, arrays


def _same(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind not in "fcV":
        return bool(np.array_equal(one, other))
    a, b = (
        one.astype(np.complex128 if one.dtype.kind == "c" else np.float64),
        other.astype(np.complex128 if one.dtype.kind == "c" else np.float64),
    )
    return bool(np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True))


def _not_run(reason: Text) -> EvaluationError:
    return EvaluationError(
        say("the module does not run on the given inputs: {reason}", "模块无法在给定输入上运行：{reason}", reason=reason),
        say("expected inputs that forward takes in eval mode", "应为 eval 模式下 forward 能接受的输入"),
        say("correct the inputs, or the module", "请修正输入或模块"),
    )
