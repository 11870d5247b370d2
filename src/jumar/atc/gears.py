"""Gears: the sets of input sizes that one .om is compiled for, and the ATC flags that say so.

A gear model is compiled once for every gear; at run time a gear is chosen and the inputs are padded to it. A range (``1~16``) is something
else: one model with open shapes, whose kernels are tiled at run time. What ATC demands of either is checked here, before ATC is run; the
numbers of SoCs come from ``data/gears.json``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product
from typing import Any, Literal

from ..errors import UsageError
from ..targets import Target
from ..text import Text, say

Range = tuple[int, int]
"""Least and largest size, both included; a largest of -1 stands for no limit."""
Size = int | Range
Kind = Literal["batch", "image", "dims", "range"]
KINDS: tuple[Kind, ...] = ("batch", "image", "dims")
"""What ``--gear-flag`` may ask for."""
FLAGS: Mapping[Kind, str] = {"batch": "dynamic_batch_size", "image": "dynamic_image_size", "dims": "dynamic_dims"}
LARGEST = 2**31 - 1
UNBOUNDED = -1
"""Instead of the largest size of a range: there is none."""
HIDDEN_INPUT = "ascend_mbatch_shape_data"
"""The input that ATC adds to a gear model: the runtime fills it when a gear is chosen, which every run must do."""
_IMAGE_AXES: Mapping[str, tuple[int, int]] = {"NCHW": (2, 3), "NHWC": (1, 2)}


@cache
def facts() -> Mapping[str, Any]:
    """What ``data/gears.json`` holds."""
    data: Mapping[str, Any] = json.loads((resources.files("jumar") / "data" / "gears.json").read_text(encoding="utf-8"))
    return data


def most_gears(target: Target | None) -> int:
    """The largest number of gears ATC documents for the target."""
    short = None if target is None else target.soc.short
    return int(next(item["count"] for item in facts()["most_gears"] if short in item["socs"] or "*" in item["socs"]))


@dataclass(frozen=True)
class Gears:
    """The shapes of one compile.

    Attributes:
        kind: which ATC flag names them.
        inputs: the shape of each input in order: -1 stands for what the gears give, a pair is a range. Scalars have no dimensions.
        profiles: for each gear one number per -1, counted over all inputs in order. Batch and image gears repeat a number per input.
        input_format: what must be given with them, or None where the model decides.
    """

    kind: Kind
    inputs: Mapping[str, tuple[Size, ...]]
    profiles: tuple[tuple[int, ...], ...] = ()
    input_format: str | None = None

    def axes(self) -> tuple[tuple[str, int], ...]:
        """The input and dimension of each number of a profile."""
        return tuple((name, axis) for name, shape in self.inputs.items() for axis, size in enumerate(shape) if size == -1)

    def shapes(self) -> tuple[dict[str, tuple[int, ...]], ...]:
        """The input shapes under each gear. Of a range: those with all least sizes and with all largest sizes."""
        if self.kind == "range":
            return tuple({name: tuple(_end(size, which) for size in shape) for name, shape in self.inputs.items()} for which in (0, 1))
        found = []
        for profile in self.profiles:
            numbers = iter(profile)
            found.append(
                {name: tuple(next(numbers) if size == -1 else _end(size, 0) for size in shape) for name, shape in self.inputs.items()}
            )
        return tuple(found)

    def flags(self) -> dict[str, str]:
        """The ATC flags: --input_shape and the gears."""
        shapes = ";".join(f"{name}:{','.join(_word(size) for size in shape)}" for name, shape in self.inputs.items() if shape)
        if self.kind == "range":
            return {"input_shape": shapes}
        return {"input_shape": shapes, FLAGS[self.kind]: self._value()}

    def _value(self) -> str:
        if self.kind == "batch":
            return ",".join(str(profile[0]) for profile in self.profiles)
        numbers = 2 if self.kind == "image" else None
        return ";".join(",".join(str(size) for size in profile[:numbers]) for profile in self.profiles)

    def summary(self) -> str:
        """The gears as a person writes them."""
        return self.flags()["input_shape"] if self.kind == "range" else self._value()


def _end(size: Size, which: int) -> int:
    if isinstance(size, int):
        return size
    return size[0] if size[1] == UNBOUNDED else size[which]


def _word(size: Size) -> str:
    if isinstance(size, int):
        return str(size)
    return "-1" if size == (1, UNBOUNDED) else f"{size[0]}~{size[1]}"


def make_gears(
    shapes: Sequence[Mapping[str, tuple[Size, ...]]],
    target: Target | None,
    *,
    stated: Collection[tuple[str, int]] = (),
    flag: Kind | None = None,
    aipp: bool = False,
) -> Gears:
    """Choose the ATC flags for these sets of shapes and check them by ATC's own rules.

    Args:
        shapes: one shape per input (in the model's order) for each gear; ranges in a single set only.
        stated: dimensions that stay open although all gears give them the same size.
        flag: the kind of gear to use; None chooses: the batch flag if only first dimensions differ, the image flag if one input differs in
            height and width alone, else the general one.
        aipp: whether --insert_op_conf is given too.

    Raises:
        UsageError: with ATC's own code, where ATC (or the kernels behind it) would refuse.
    """
    if any(isinstance(size, tuple) for item in shapes for shape in item.values() for size in shape):
        return _ranges(shapes, target, flag)
    plain = [{name: tuple(_end(size, 0) for size in shape) for name, shape in item.items()} for item in shapes]
    _check_sizes(plain)
    first = plain[0]
    for number, item in enumerate(plain, 1):
        if list(item) != list(first) or any(len(item[name]) != len(first[name]) for name in first):
            raise _refused(
                say("gear {number} names other inputs or ranks than gear 1", "第 {number} 档的输入或维数与第 1 档不同", number=number),
                say("expected every gear to give the same dimensions", "每一档都应给出相同的维度"),
                "E10037",
                say("complete gear {number}", "请补全第 {number} 档", number=number),
            )
    _check_count(plain, target)
    every = [(name, axis) for name in first for axis in range(len(first[name]))]
    open_axes = [(name, axis) for name, axis in every if (name, axis) in stated or len({item[name][axis] for item in plain}) > 1]
    kind = flag or _kind(plain, open_axes, aipp)
    if flag in ("batch", "image"):
        _check_flag(flag, plain, open_axes)
    if kind == "dims" and aipp:
        raise _refused(
            say("these gears need --dynamic_dims, and AIPP is inserted too", "这些档位需要 --dynamic_dims，同时又插入了 AIPP"),
            say(
                "expected one of them; AIPP goes with batch gears, or with image gears (height and width of one NCHW input)",
                "两者只能取其一；AIPP 可与 batch 档位或图像档位（单个 NCHW 输入的高和宽）同时使用",
            ),
            "E10001",
            say("give gears of the batch, or of height and width, or leave AIPP out", "请改用 batch 档位或高宽档位，或去掉 AIPP"),
        )
    inputs: dict[str, tuple[Size, ...]] = {
        name: tuple(-1 if (name, axis) in open_axes else size for axis, size in enumerate(shape)) for name, shape in first.items()
    }
    profiles = tuple(tuple(item[name][axis] for name, axis in open_axes) for item in plain)
    return Gears(kind, inputs, profiles, {"image": "NCHW", "dims": "ND"}.get(kind))


def _refused(found: Text, expected: Text, code: str, remedy: Text) -> UsageError:
    return UsageError(found, say("{expected} (ATC: {code})", "{expected}（ATC 错误码：{code}）", expected=expected, code=code), remedy)


def _check_sizes(shapes: Sequence[Mapping[str, tuple[int, ...]]]) -> None:
    for number, item in enumerate(shapes, 1):
        for name, shape in item.items():
            for axis, size in enumerate(shape):
                if not 1 <= size <= LARGEST:
                    raise _refused(
                        say(
                            "gear {number} gives dimension {axis} of `{name}` the size {size}",
                            "第 {number} 档将 `{name}` 的第 {axis} 维设为 {size}",
                            number=number,
                            axis=axis,
                            name=name,
                            size=size,
                        ),
                        say("expected sizes of 1 or more", "大小应不小于 1"),
                        "E10038",
                        say("correct gear {number}", "请修正第 {number} 档", number=number),
                    )


def _check_count(shapes: Sequence[Mapping[str, tuple[int, ...]]], target: Target | None) -> None:
    seen: dict[tuple[tuple[int, ...], ...], int] = {}
    for number, item in enumerate(shapes, 1):
        before = seen.setdefault(tuple(item.values()), number)
        if before != number:
            raise _refused(
                say("gears {before} and {number} are the same", "第 {before} 档与第 {number} 档相同", before=before, number=number),
                say("expected different gears", "各档应互不相同"),
                "E10039",
                say("leave gear {number} out", "请去掉第 {number} 档", number=number),
            )
    if len(shapes) == 1:
        raise _refused(
            say("there is one gear", "只有一个档位"),
            say("expected at least 2", "至少需要 2 个"),
            "E10035",
            say(
                'give the one shape with --shape "{shape}" instead, or add a gear',
                '请改用 --shape "{shape}" 固定形状，或再给一档',
                shape=text_of(shapes[0]),
            ),
        )
    most = most_gears(target)
    if len(shapes) > most:
        raise _refused(
            say("there are {count} gears", "共有 {count} 个档位", count=len(shapes)),
            say(
                "expected at most {most}, and each one is compiled: 3 to 8 serve most uses",
                "最多 {most} 个；每一档都要编译，通常 3 到 8 个即可",
                most=most,
            ),
            "E10036",
            say("let --gears-from choose a few from the shapes that occur", "可用 --gears-from 按实际出现的形状选出少数几档"),
        )


def text_of(shapes: Mapping[str, tuple[Size, ...]]) -> str:
    """Shapes as ``--shape`` takes them."""
    return ";".join(f"{name}:{','.join(_word(size) for size in shape)}" for name, shape in shapes.items())


def _kind(shapes: Sequence[Mapping[str, tuple[int, ...]]], axes: Sequence[tuple[str, int]], aipp: bool) -> Kind:
    """The narrowest flag that says these gears."""
    if _fits("batch", shapes, axes):
        return "batch"
    names = {name for name, _ in axes}
    return "image" if _fits("image", shapes, axes) and (len(names) == 1 or aipp) else "dims"


def _fits(kind: Kind, shapes: Sequence[Mapping[str, tuple[int, ...]]], axes: Sequence[tuple[str, int]]) -> bool:
    """Whether a flag that gives all inputs the same numbers can say these gears."""
    names = list(dict.fromkeys(name for name, _ in axes))
    wanted = (0,) if kind == "batch" else _IMAGE_AXES["NCHW"]
    if [(name, axis) for name in names for axis in wanted] != list(axes):
        return False
    if kind == "image" and any(len(shapes[0][name]) != 4 for name in names):
        return False
    return all(len({tuple(item[name][axis] for axis in wanted) for name in names}) == 1 for item in shapes)


def _check_flag(flag: Kind, shapes: Sequence[Mapping[str, tuple[int, ...]]], axes: Sequence[tuple[str, int]]) -> None:
    """Refuse a flag that cannot say these gears."""
    if not _fits(flag, shapes, axes):
        raise _refused(
            say("--{flag} cannot say these gears", "--{flag} 无法表达这些档位", flag=FLAGS[flag]),
            say("expected only the first dimension to differ, alike in all inputs", "应只有第一维不同，且各输入一致")
            if flag == "batch"
            else say("expected only dimensions 2 and 3 of 4-D inputs to differ", "应只有四维输入的第 2、3 维不同"),
            "E10018" if flag == "batch" else "E10019",
            say("leave the choice of the flag to Jumar, or use dims", "请让 Jumar 选择参数，或使用 dims"),
        )


def _ranges(shapes: Sequence[Mapping[str, tuple[Size, ...]]], target: Target | None, flag: Kind | None) -> Gears:
    if len(shapes) > 1 or flag is not None:
        raise _refused(
            say("ranges and gears are both given", "同时给出了范围和档位"),
            say("expected one of them", "两者只能取其一"),
            "E10040",
            say("give ranges alone (one model of open shape) or gears alone", "请只给范围（一个可变形状模型）或只给档位"),
        )
    for name, shape in shapes[0].items():
        for size in shape:
            low, high = (size, size) if isinstance(size, int) else size
            if not (1 <= low <= high <= LARGEST or (1 <= low <= LARGEST and high == UNBOUNDED)):
                raise _refused(
                    say("`{word}` of `{name}` is no range", "`{name}` 的 `{word}` 不是范围", word=_word(size), name=name),
                    say("expected LEAST~LARGEST with sizes of 1 or more", "应为 最小~最大，大小不小于 1"),
                    "E10011" if low < 1 else "E10050",
                    say("correct it", "请修正"),
                )
    check_open_shapes(target)
    return Gears("range", dict(shapes[0]))


def check_open_shapes(target: Target | None) -> None:
    """Refuse open shapes (ranges, or -1 without gears) where the target cannot run them.

    Raises:
        UsageError: it cannot.
    """
    short = None if target is None else target.soc.short
    for item in facts()["no_open_shapes"]:
        if target is not None and short in item["socs"]:
            raise UsageError(
                say(
                    "{soc} cannot run open shapes: {reason}",
                    "{soc} 不能运行可变形状：{reason}",
                    soc=target.soc.name,
                    reason=Text(item["en"], item["zh"]),
                ),
                say("expected fixed shapes or gears", "应为固定形状或档位"),
                say('name the sizes that occur, e.g. --gears "batch 1,4,8"', '请列出会出现的大小，例如 --gears "batch 1,4,8"'),
            )


def combine(choices: Sequence[Sequence[Mapping[tuple[str, int], Size]]]) -> list[dict[tuple[str, int], Size]]:
    """Every combination of the choices, each of which gives some dimensions their sizes; those of later choices vary fastest."""
    return [{key: size for part in parts for key, size in part.items()} for parts in product(*choices)]
