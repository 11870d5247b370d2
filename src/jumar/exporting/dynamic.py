"""Open dimensions as people state them: ``--dynamic "x:0=1..8,2=320|640"``, and their sizes to try."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import ShapeError
from ..text import say

_PART = re.compile(r"\s*(?P<axis>\d{1,3})\s*(?:=\s*(?P<sizes>[\d.|~\s]+))?\s*")
_RANGE = re.compile(r"(\d{1,9})\s*(?:\.\.|~)\s*(\d{1,9})")
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Sizes:
    """What one open dimension may be: all sizes from ``low`` to ``high``, or only the ``choices``."""

    low: int
    high: int
    choices: tuple[int, ...] = ()

    def tried(self) -> tuple[int, ...]:
        """Sizes to compare at: the ends and something between."""
        if self.choices:
            return self.choices
        middle = (self.low + self.high) // 2
        return tuple(dict.fromkeys((self.low, min(self.high, 256), min(middle, 128) if middle > self.low else self.low)))

    def __str__(self) -> str:
        return "|".join(map(str, self.choices)) if self.choices else f"{self.low}..{self.high}"


@dataclass(frozen=True)
class Dynamic:
    """Open dimensions by input name and axis."""

    axes: Mapping[str, Mapping[int, Sizes]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.axes)

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Whether the inputs have these dimensions, and the given sizes lie within them.

        Raises:
            ShapeError: one has not.
        """
        for name, axes in self.axes.items():
            if name not in shapes:
                raise ShapeError(
                    say("there is no input `{name}`", "没有名为 `{name}` 的输入", name=name),
                    say("expected one of: {names}", "应为其中之一：{names}", names=", ".join(shapes)),
                    say("correct --dynamic", "请修正 --dynamic"),
                )
            for axis, sizes in axes.items():
                shape = shapes[name]
                if axis >= len(shape) or not sizes.low <= shape[axis] <= sizes.high:
                    raise ShapeError(
                        say(
                            "dimension {axis} of `{name}` {shape} is not {sizes}",
                            "`{name}` {shape} 的第 {axis} 维不是 {sizes}",
                            axis=axis,
                            name=name,
                            shape=list(shape),
                            sizes=str(sizes),
                        ),
                        say(
                            "expected a dimension of the given input, its size among those stated",
                            "应为该输入已有的维度，且给定大小在所述范围内",
                        ),
                        say("correct --dynamic or the inputs", "请修正 --dynamic 或输入"),
                    )

    def symbol(self, name: str, axis: int) -> str:
        """The name of an open dimension in ONNX."""
        return f"{name}_{axis}"

    def shapes(self, given: Mapping[str, tuple[int, ...]]) -> list[dict[str, tuple[int, ...]]]:
        """The shapes of all inputs to compare at, other than the given ones: each set takes the next size of every open dimension.

        Equal ranges go together, since tensors that share a dimension (a batch) must agree in it.
        """
        if not self.axes:
            return []
        count = max(len(sizes.tried()) for axes in self.axes.values() for sizes in axes.values())
        found = []
        for index in range(count):
            shapes = {}
            for name, shape in given.items():
                axes = self.axes.get(name, {})
                tried = {axis: sizes.tried() for axis, sizes in axes.items()}
                shapes[name] = tuple(tried[axis][index % len(tried[axis])] if axis in tried else size for axis, size in enumerate(shape))
            if shapes != dict(given) and shapes not in found:
                found.append(shapes)
        return found

    def to_dict(self) -> dict[str, dict[str, str]]:
        return {name: {str(axis): str(sizes) for axis, sizes in axes.items()} for name, axes in self.axes.items()}


def parse_dynamic(texts: Sequence[str]) -> Dynamic:
    """Read ``--dynamic "x:0=1..8,2=320|640;y:1"`` (repeatable). A name ends at the last colon; an axis without sizes may be 1 to 1024.

    Raises:
        ShapeError: not of this form.
    """
    found: dict[str, dict[int, Sizes]] = {}
    for part in (piece.strip() for text in texts for piece in text.split(";")):
        if not part:
            continue
        name, colon, axes = part.rpartition(":")
        if not colon or not name or not axes.strip():
            raise _odd(part)
        for item in axes.split(","):
            match = _PART.fullmatch(item)
            sizes = None if match is None else _sizes(match["sizes"])
            if match is None or sizes is None or int(match["axis"]) in found.get(name, {}):
                raise _odd(part)
            found.setdefault(name, {})[int(match["axis"])] = sizes
    return Dynamic(found)


def _sizes(text: str | None) -> Sizes | None:
    if text is None:
        return Sizes(1, 1024)
    text = text.strip()
    match = _RANGE.fullmatch(text)
    if match is not None:
        low, high = int(match[1]), int(match[2])
        return Sizes(low, high) if 1 <= low <= high <= _LARGEST else None
    if not re.fullmatch(r"\d{1,9}(\s*\|\s*\d{1,9})*", text):
        return None
    choices = tuple(sorted({int(number) for number in text.split("|")}))
    return Sizes(choices[0], choices[-1], choices) if choices[0] >= 1 else None


def _odd(part: str) -> ShapeError:
    return ShapeError(
        say("`{part}` states no open dimensions", "`{part}` 不是可变维度描述", part=part),
        say("expected NAME:AXIS=LOW..HIGH,AXIS=SIZE|SIZE,...", "应为 名称:轴=最小..最大,轴=大小|大小,..."),
        say('for example --dynamic "x:0=1..8,2=320|640"', '例如 --dynamic "x:0=1..8,2=320|640"'),
    )
