"""A model that stays open for gears: each gear is run, and judged as the fixed model that ATC makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from ..case import Case, Finding, Record
from ..errors import UsageError
from ..graph import Evaluator, static_shape
from ..proof import FeedSet, Interface, make_feeds
from ..rules import Context
from ..text import say
from .check import examine, pinned
from .common import Shapes, check_shapes

Gear = dict[str, tuple[int, ...]]
_MOST_JUDGED = 8
"""Gears that the rules look at; of more, those at even distances."""


def checked_gears(model: ir.Model, gears: Sequence[Shapes]) -> tuple[Gear, ...]:
    """The gears, each with a shape for every open input.

    Raises:
        ShapeError: a shape does not fit its input.
        UsageError: an open input has no shape.
    """
    found = tuple(check_shapes(model, gear) for gear in gears)
    for gear in found:
        for value in pinned(model, gear).graph.inputs:
            if static_shape(value) is None:
                raise UsageError(
                    say("a gear leaves input `{name}` open", "某个档位未给出输入 `{name}` 的大小", name=value.name),
                    say("expected a number for each of its dimensions", "每个维度都应有数值"),
                    say('for example --gear "{name}:1,3,224,224"', '例如 --gear "{name}:1,3,224,224"', name=value.name),
                )
    return found


def gears_alone() -> UsageError:
    return UsageError(
        say("gears are given together with fixed shapes, one step or a cut", "档位与固定形状、单步或切分同时给出"),
        say("expected gears alone: the others need every size fixed", "只能使用档位：其余各项要求所有大小固定"),
        say("migrate each size by itself (--shape), or leave the other out", "请对每种大小分别迁移（--shape），或去掉另一项"),
    )


def gear_feeds(model: ir.Model, gears: Sequence[Gear], evaluator: Evaluator, given: FeedSet | None = None) -> FeedSet:
    """The given inputs, and generated ones for each gear that they leave out."""
    used = set() if given is None else gears_of(given, gears)
    left = [gear for number, gear in enumerate(gears) if number not in used]
    cases = [case for gear in left for case in make_feeds(pinned(model, gear), evaluator, 1).cases]
    return FeedSet((*(() if given is None else given.cases), *cases), "generated" if cases or given is None else given.origin)


def gears_of(feeds: FeedSet, gears: Sequence[Gear]) -> set[int]:
    """Places of the gears that the inputs have the sizes of.

    Raises:
        UsageError: an input has those of no gear.
    """
    used = set()
    for case in feeds.cases:
        fitting = [number for number, gear in enumerate(gears) if _is_at(case, gear)]
        used.update(fitting)
        if not fitting:
            raise UsageError(
                say(
                    "the given inputs have the sizes of no gear: {shapes}",
                    "给出的输入大小不属于任何档位：{shapes}",
                    shapes=", ".join(f"`{name}` {list(np.shape(array))}" for name, array in list(case.items())[:3]),
                ),
                say("expected those of a gear: the model is right for these alone", "应为某一档位的大小：模型仅对各档位有效"),
                say("pad them as the device program will, or add a gear", "请像设备端程序那样填充，或增加一个档位"),
            )
    return used


def _is_at(case: Mapping[str, Any], gear: Gear) -> bool:
    return all(np.shape(case[name]) == shape for name, shape in gear.items() if name in case)


def present_gears(model: ir.Model, interface: Interface, gears: Sequence[Gear]) -> tuple[Gear, ...]:
    """The gears by the names that the inputs have now, without those that are fixed."""
    still = {value.name for value in model.graph.inputs if static_shape(value) is None}
    names = {original: port.name for original, port in interface.inputs.items() if port.name in still}
    return tuple({names[name]: shape for name, shape in gear.items() if name in names} for gear in gears)


def examine_gears(case: Case, gears: Sequence[Gear], context_of: Callable[[ir.Model], Context]) -> Record:
    """Findings of the model at each gear, each told once, and the placement at the first one."""
    step = max(1, -(-len(gears) // _MOST_JUDGED))
    records = []
    for gear in gears[::step]:
        model = pinned(case.model, gear)
        records.append(examine(Case(model, case.target, case.record), replace(context_of(model), gears=())).record)
    told: dict[tuple[str, str | None, str], Finding] = {}
    for record in records:
        for finding in record.findings:
            told.setdefault((finding.code, finding.node, str(finding.message)), finding)
    return replace(records[0], findings=tuple(told.values()))


def as_they_stand(record: Record) -> Record:
    """What is left is not mended by asking again: the rewrite wants fixed shapes, or was refused."""
    return replace(record, findings=tuple(replace(item, fix="none") if item.fix == "safe" else item for item in record.findings))
