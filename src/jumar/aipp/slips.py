"""Which usual slip explains the numbers of a block, given those of the training transform."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ..text import Text, say

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Slip:
    """A usual mistake: its name for programs, and in words."""

    name: str
    text: Text


MEAN_UNIT = Slip(
    "mean-unit-scale",
    say("the mean is on the scale 0..1, and pixels are 0..255: multiply it by 255", "均值是 0..1 尺度，而像素是 0..255：应乘以 255"),
)
MEAN_MISSING = Slip("mean-missing", say("the mean is not taken off", "没有减去均值"))
MEAN_TWICE = Slip(
    "mean-twice", say("the mean is taken off twice: it stands in mean_chn and in min_chn", "均值被减了两次：mean_chn 和 min_chn 都写了均值")
)
MEAN_ROUNDED = Slip(
    "mean-rounded",
    say(
        "the mean lost its fraction: mean_chn holds whole numbers, the rest belongs to min_chn",
        "均值丢失了小数部分：mean_chn 只存整数，其余应写入 min_chn",
    ),
)
MEAN_SCALED = Slip(
    "mean-scaled-twice", say("the mean is multiplied by 255 although it is on 0..255 already", "均值已是 0..255 尺度，却又乘以 255")
)
MEAN_STD = Slip("mean-is-std", say("the standard deviation stands in place of the mean", "均值处写了标准差"))
STD_FACTOR = Slip(
    "std-as-factor", say("var_reci_chn holds the standard deviation: write 1 / std", "var_reci_chn 写了标准差：应写 1 / 标准差")
)
STD_UNIT = Slip(
    "std-unit-factor",
    say(
        "var_reci_chn holds the standard deviation of the scale 0..1: write 1 / (255 * std)",
        "var_reci_chn 写了 0..1 尺度的标准差：应写 1 / (255 * 标准差)",
    ),
)
SCALE_MISSING = Slip("scale-missing", say("the division by 255 is missing from var_reci_chn", "var_reci_chn 缺少除以 255"))
SCALE_TWICE = Slip("scaled-twice", say("pixels are divided by 255 twice", "像素被除以 255 两次"))
SCALE_ONLY = Slip(
    "scale-only",
    say("only x/255 is done; the mean and standard deviation of training are missing", "只做了 x/255；缺少训练时的均值和标准差"),
)
UNIT_NUMBERS = Slip(
    "unit-scale",
    say(
        "mean and standard deviation are those of the scale 0..1, and pixels are 0..255: write mean * 255 and 1 / (255 * std)",
        "均值和标准差是 0..1 尺度，而像素是 0..255：应写 均值 * 255 和 1 / (255 * 标准差)",
    ),
)
STD_MISSING = Slip("std-missing", say("the standard deviation is missing from var_reci_chn", "var_reci_chn 缺少标准差"))
FACTOR_MISSING = Slip("factor-missing", say("var_reci_chn is 1: pixels are not scaled", "var_reci_chn 为 1：像素没有缩放"))
VARIANCE = Slip(
    "variance",
    say("var_reci_chn holds 1 / variance; despite its name it wants 1 / std", "var_reci_chn 写了 1/方差；尽管名称如此，应写 1/标准差"),
)
NUMBERS_REVERSED = Slip("numbers-reversed", say("the numbers stand in the order of the other colours", "数值按相反的颜色顺序排列"))
COLOURS_SWAPPED = Slip("colours-swapped", say("red and blue are exchanged", "红蓝颠倒"))


@dataclass(frozen=True)
class _Guess:
    values: Numbers
    slip: Slip | None
    reversed: bool = False

    @property
    def cost(self) -> int:
        return (self.slip is not None) + self.reversed


def explain(subtract: Numbers, factor: Numbers, given_subtract: Numbers, given_factor: Numbers, *, swapped: bool) -> list[Slip] | None:
    """The fewest slips that lead from the numbers of training to those of a block.

    Args:
        subtract, factor: of the transform, in the order of the model's channels.
        given_subtract, given_factor: of the block: mean_chn + min_chn and var_reci_chn.
        swapped: whether the block gives red and blue exchanged; that is a slip of its own.

    Returns:
        Slips, none where the numbers are right; None where no usual slip explains them.
    """
    best: tuple[int, list[Slip]] | None = None
    for mean, scale in product(_means(subtract, factor), _factors(factor)):
        if not (_mean_fits(mean, given_subtract) and _close(scale.values, given_factor)):
            continue
        slips = [slip for slip in (mean.slip, scale.slip) if slip is not None]
        if mean.slip is MEAN_MISSING and scale.slip is STD_MISSING:
            slips = [SCALE_ONLY]
        if mean.slip is MEAN_UNIT and scale.slip is SCALE_MISSING:
            slips = [UNIT_NUMBERS]
        turned = mean.reversed or scale.reversed
        cost = len(slips) + 2 * turned + (2 if mean.reversed != scale.reversed and len(set(subtract)) > 1 and len(set(factor)) > 1 else 0)
        slips += [NUMBERS_REVERSED] if turned else []
        if best is None or cost < best[0]:
            best = (cost, slips)
    if best is None:
        return None
    return [*best[1], *([COLOURS_SWAPPED] if swapped else [])]


def _turned(values: Numbers, slip: Slip | None) -> Iterator[_Guess]:
    yield _Guess(values, slip)
    if values != values[::-1]:
        yield _Guess(values[::-1], slip, True)


def _means(subtract: Numbers, factor: Numbers) -> Iterator[_Guess]:
    yield from _turned(subtract, None)
    if not any(subtract):
        return
    yield from _turned(tuple(value / 255 for value in subtract), MEAN_UNIT)
    yield _Guess((0.0,) * len(subtract), MEAN_MISSING)
    yield from _turned(tuple(2 * value for value in subtract), MEAN_TWICE)
    yield from _turned(tuple(2.0 * math.floor(value) + value % 1 for value in subtract), MEAN_TWICE)
    yield from _turned(tuple(float(math.floor(value)) for value in subtract), MEAN_ROUNDED)
    yield from _turned(tuple(float(round(value)) for value in subtract), MEAN_ROUNDED)
    yield from _turned(tuple(255 * value for value in subtract), MEAN_SCALED)
    yield from _turned(tuple(1 / value for value in factor), MEAN_STD)
    yield from _turned(tuple(1 / (255 * value) for value in factor), MEAN_STD)


def _factors(factor: Numbers) -> Iterator[_Guess]:
    yield from _turned(factor, None)
    yield from _turned(tuple(1 / value for value in factor), STD_FACTOR)
    yield from _turned(tuple(1 / (255 * value) for value in factor), STD_UNIT)
    yield from _turned(tuple(255 * value for value in factor), SCALE_MISSING)
    yield from _turned(tuple(value / 255 for value in factor), SCALE_TWICE)
    yield _Guess((1 / 255,) * len(factor), STD_MISSING)
    yield _Guess((1.0,) * len(factor), FACTOR_MISSING)
    yield from _turned(tuple(value**2 for value in factor), VARIANCE)
    yield from _turned(tuple(value**2 * 255 * 255 for value in factor), VARIANCE)
    yield from _turned(tuple(value**2 * 255 for value in factor), VARIANCE)


def _mean_fits(guess: _Guess, given: Numbers) -> bool:
    """Close, within what float16 keeps; a rounded mean must be exact, since it is close to the true one anyway."""
    if guess.slip is MEAN_ROUNDED:
        return all(abs(one - two) < 1e-6 for one, two in zip(guess.values, given, strict=True))
    return all(
        abs(one - two) <= max(0.0005 * abs(one), 1e-3 if abs(one) < 2 else 0.035) for one, two in zip(guess.values, given, strict=True)
    )


def _close(guess: Numbers, given: Numbers) -> bool:
    return all(abs(one - two) <= 1.5e-3 * abs(one) for one, two in zip(guess, given, strict=True))
