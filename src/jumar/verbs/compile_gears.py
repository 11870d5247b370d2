"""The gears of ``jumar compile``: read from what the user states or from a histogram, and looked at in the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..atc.gear_plan import DEFAULT_COUNT, Histogram, plan_gears
from ..atc.gear_words import Stated, declared_inputs, read_gears
from ..atc.gears import KINDS, Gears, Kind, make_gears, most_gears, text_of
from ..atc.histogram import read_histogram
from ..case import Case, Finding
from ..errors import UsageError
from ..graph import static_shape
from ..graph.symbolic import SymbolicResult, per_profile
from ..rules import find_rule
from ..text import Text, say
from .common import Shapes, check_number

_MOST_LOOKED_AT = 16
"""Gears under which the shape arithmetic is evaluated; of more, those at even distances."""


def read_wanted_gears(
    case: Case,
    stated: str | Sequence[str | Shapes],
    histogram: str | Path | None,
    *,
    count: int | None,
    multiple: int | None,
    flag: Kind | None,
    aipp: bool,
    split: bool,
) -> tuple[Gears | None, tuple[Text, ...]]:
    """The gears that the caller wants, and what is to be said of them.

    Raises:
        UsageError: they are not understood, do not fit the model, or ATC would refuse them.
    """
    texts = [stated] if isinstance(stated, str) else [item if isinstance(item, str) else text_of(_plain(item)) for item in stated]
    if flag is not None and flag not in KINDS:
        raise UsageError(
            say("`{flag}` is no kind of gear", "`{flag}` 不是档位种类", flag=flag),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(KINDS)),
            say("correct --gear-flag", "请修正 --gear-flag"),
        )
    if histogram is None and not texts:
        if split or flag is not None or count is not None or multiple is not None:
            raise UsageError(
                say("there are no gears", "没有给出档位"),
                say("expected --gears or --gears-from", "应给出 --gears 或 --gears-from"),
                say('add for example --gears "batch 1,4,8"', '例如加上 --gears "batch 1,4,8"'),
            )
        return None, ()
    if histogram is not None and texts:
        raise UsageError(
            say("gears are stated and to be chosen too", "既给出了档位，又要求自动选择"),
            say("expected --gears or --gears-from", "应只给出 --gears 或 --gears-from 之一"),
            say("leave one of them out", "请去掉其中一个"),
        )
    notes: list[Text] = []
    if histogram is not None:
        inputs = declared_inputs(case.model)
        most = most_gears(case.target)
        check_number("--gear-count", count or DEFAULT_COUNT, most, zero=False)
        check_number("--gear-multiple", multiple or 1, 1 << 20, zero=False)
        plan = plan_gears(inputs, read_histogram(histogram, inputs), count or DEFAULT_COUNT, multiple)
        found: Stated = plan.stated
        notes.append(plan.note())
        notes += [_fixed(found, place) for place in plan.fixed]
        notes.append(_padding())
    else:
        found = read_gears(texts, case.model)
        _check_many(case, found)
    gears = make_gears(found.shapes, case.target, stated=found.axes, flag=flag, aipp=aipp and not split)
    if gears.kind == "range" and split:
        raise UsageError(
            say("a range cannot be split into gears", "范围不能拆分为档位"),
            say("expected sizes one by one", "应逐个给出大小"),
            say("name them, or leave --split out", "请列出各大小，或去掉 --split"),
        )
    if gears.kind == "range":
        notes.append(
            say(
                "a range makes one model of open shapes: its kernels are tiled at run time, which is slower than gears",
                "范围会生成一个可变形状模型：算子在运行时切分，比档位慢",
            )
        )
    return gears, tuple(notes)


def _check_many(case: Case, stated: Stated) -> None:
    """Too many gears are answered with few that serve the same shapes.

    Raises:
        UsageError: there are more than ATC documents.
    """
    most = most_gears(case.target)
    plain = [{name: tuple(size for size in shape if isinstance(size, int)) for name, shape in item.items()} for item in stated.shapes]
    if (
        len(plain) <= most
        or len({tuple(item.values()) for item in plain}) < len(plain)
        or any(0 in shape for item in plain for shape in item.values())
    ):
        return  # the other faults are told first
    plan = plan_gears(declared_inputs(case.model), Histogram(tuple(plain), (1,) * len(plain)), DEFAULT_COUNT, 1)
    raise UsageError(
        say("there are {count} gears", "共有 {count} 个档位", count=len(plain)),
        say(
            "expected at most {most}, and each one is compiled (ATC: E10036)", "最多 {most} 个，且每一档都要编译（ATC：E10036）", most=most
        ),
        say(
            'these {few} hold them all and pad {padding} if all occur alike: --gears "{gears}"; --gears-from chooses by how often they occur',
            '以下 {few} 档可容纳全部形状，若各形状同样常见则填充 {padding}：--gears "{gears}"；--gears-from 可按出现频率选择',
            few=len(plan.stated.shapes),
            padding=f"{plan.padding:.1%}",
            gears=";".join(text_of(item) for item in plan.stated.shapes),
        ),
    )


def _plain(shapes: Shapes) -> Mapping[str, tuple[int, ...]]:
    return {name: tuple(int(size) for size in shape) for name, shape in shapes.items()}


def _fixed(stated: Stated, place: tuple[str, int]) -> Text:
    name, axis = place
    return say(
        "dimension {axis} of `{name}` is always {size} in the histogram: it is fixed",
        "直方图中 `{name}` 的第 {axis} 维始终为 {size}：已固定",
        axis=axis,
        name=name,
        size=stated.shapes[0][name][axis],
    )


def _padding() -> Text:
    return say(
        "what is smaller than its gear must be padded by the caller: right only where the model masks the padding or the result is cut",
        "小于档位的输入须由调用方填充：仅当模型会屏蔽填充部分或结果会被裁剪时才正确",
    )


def names_of_gears(gears: Gears) -> list[str]:
    """A short name for each gear, for files: ``bs4``, ``640x480``."""
    if gears.kind == "batch":
        return [f"bs{profile[0]}" for profile in gears.profiles]
    if gears.kind == "image":
        return ["x".join(str(size) for size in profile[:2]) for profile in gears.profiles]
    # Dimensions that always have the same size are told once.
    columns = list(dict.fromkeys(zip(*gears.profiles, strict=True)))
    return ["x".join(str(size) for size in row) for row in zip(*columns, strict=True)]


def gears_by_present_names(gears: Gears, model: ir.Model, interface: Mapping[str, Any] | None) -> Gears:
    """The gears of a model by the names that its inputs have after it was rewritten. Of an input that is fixed its own shape counts."""
    names = {item["original"]: item["name"] for item in (interface or {}).get("inputs", ())}
    shapes = {names.get(name, name): shape for name, shape in gears.inputs.items()}
    fixed = {value.name or "": shape for value in model.graph.inputs if (shape := static_shape(value)) is not None}
    return replace(
        gears, inputs={name: fixed.get(name, shapes[name]) for value in model.graph.inputs if (name := value.name or "") in shapes}
    )


def gear_findings(model: ir.Model, gears: Gears) -> tuple[Finding, ...]:
    """CP703 where sizes, axes or bounds that the model computes stay open under a gear. Of ranges nothing is constant, by nature."""
    if gears.kind == "range":
        return ()
    shapes = gears.shapes()
    step = max(1, -(-len(shapes) // _MOST_LOOKED_AT))
    profiles = per_profile(model, shapes[::step])
    for number, shape in enumerate(shapes[::step]):
        values = [value for value in profiles.open_operands(number) if _reaches_input(value, profiles.results[number])]
        if values:
            names = ", ".join(f"`{value.name}`" for value in values[:3])
            finding = find_rule("CP703").finding(
                say(
                    "{count} computed sizes, axes or bounds are not shown to be constant under the gear {gear}: {names}",
                    "在档位 {gear} 下有 {count} 个计算得到的大小、轴或边界未能证明为常量：{names}",
                    count=len(values),
                    gear=text_of(shape),
                    names=names,
                ),
                say(
                    "what depends on data, not on the shapes alone, ATC builds for open shapes, or fails",
                    "若取决于数据而不仅是形状，ATC 会按可变形状编译这一部分，或编译失败",
                ),
                say(
                    "see what computes them; jumar simplify --gear folds what depends on the gear alone",
                    "请查看其来源；jumar simplify --gear 可折叠仅取决于档位的部分",
                ),
            )
            return (finding,)
    return ()


def _reaches_input(value: ir.Value, result: SymbolicResult) -> bool:
    """Whether a tensor comes from an input at all. What comes from constants alone is constant, even where its arithmetic is not followed."""
    seen: set[ir.Value] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if item in seen or result.constant(item) is not None:
            continue
        seen.add(item)
        node = item.producer()
        if node is None:
            return True
        if any(attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for attribute in node.attributes.values()):
            return True  # a body may read what lies outside of it
        waiting += [source for source in node.inputs if source is not None]
    return False
