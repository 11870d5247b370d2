"""Colour matrices by name: made from the constants of their standard, and recognised when they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import UsageError
from ..text import Text, say
from .config import AippOp, matrix_of
from .schema import MATRIX, YUV

Standard = Literal["601", "709", "2020"]
Range = Literal["narrow", "full"]
Order = Literal["RGB", "BGR"]
# Weights of red and blue in luma: ITU-R BT.601, BT.709, BT.2020.
_WEIGHTS: dict[Standard, tuple[float, float]] = {"601": (0.299, 0.114), "709": (0.2126, 0.0722), "2020": (0.2627, 0.0593)}
STANDARDS: tuple[Standard, ...] = ("601", "709", "2020")
GRAY = (76, 150, 30, 0, 0, 0, 0, 0, 0)
"""Luma of BT.601 in 256ths, as in conf/aipp/RGB888_U8_GRAY.txt."""
_NEAR = 2
"""Elements that differ by no more than this are another rounding of the same matrix."""


@dataclass(frozen=True)
class ColourMatrix:
    """A matrix of 256ths. Decoding takes ``bias`` off Y, U, V first; encoding adds it at the end."""

    standard: Standard
    range: Range
    order: Order
    decode: bool
    elements: tuple[int, ...]
    bias: tuple[int, int, int]

    @property
    def name(self) -> str:
        """Such as ``YUV to BGR, BT.601 narrow``."""
        return f"{'YUV to ' + self.order if self.decode else self.order + ' to YUV'}, BT.{self.standard} {self.range}"

    def fields(self) -> dict[str, int]:
        """The fields of an AIPP block."""
        bias = "input_bias" if self.decode else "output_bias"
        return {**dict(zip(MATRIX, self.elements, strict=True)), **{f"{bias}_{index}": value for index, value in enumerate(self.bias)}}


def exact_rows(standard: Standard, colour_range: Range) -> list[tuple[float, float, float]]:
    """The matrix from Y, U, V to red, green, blue as the standard has it, before it is rounded."""
    red, blue = _WEIGHTS[standard]
    green = 1 - red - blue
    luma, chroma = (255 / 219, 255 / 224) if colour_range == "narrow" else (1.0, 1.0)
    return [
        (luma, 0.0, 2 * (1 - red) * chroma),
        (luma, -2 * (1 - blue) * blue / green * chroma, -2 * (1 - red) * red / green * chroma),
        (luma, 2 * (1 - blue) * chroma, 0.0),
    ]


def decoding(standard: Standard, colour_range: Range, order: Order = "RGB") -> ColourMatrix:
    """The matrix from Y, U, V to red, green, blue.

    Narrow range holds Y in 16..235 and U, V in 16..240; full range (JPEG) uses all 256 values. Elements are 256ths, rounded to the nearest,
    which gives the tables of CANN's conf/aipp.
    """
    rows = exact_rows(standard, colour_range)
    elements = tuple(round(256 * value) for row in (rows if order == "RGB" else rows[::-1]) for value in row)
    return ColourMatrix(standard, colour_range, order, True, elements, (16 if colour_range == "narrow" else 0, 128, 128))


def encoding(standard: Standard, colour_range: Range, order: Order = "RGB") -> ColourMatrix:
    """The matrix from red, green, blue to Y, U, V, in 256ths."""
    red, blue = _WEIGHTS[standard]
    green = 1 - red - blue
    luma, chroma = (219 / 255, 224 / 255) if colour_range == "narrow" else (1.0, 1.0)
    rows = [
        (red * luma, green * luma, blue * luma),
        tuple(value * chroma / (2 * (1 - blue)) for value in (-red, -green, 1 - blue)),
        tuple(value * chroma / (2 * (1 - red)) for value in (1 - red, -green, -blue)),
    ]
    elements = tuple(round(256 * value) for row in rows for value in (row if order == "RGB" else row[::-1]))
    return ColourMatrix(standard, colour_range, order, False, elements, (16 if colour_range == "narrow" else 0, 128, 128))


def all_matrices() -> tuple[ColourMatrix, ...]:
    """Every named matrix, the commonest first."""
    ranges: tuple[Range, ...] = ("narrow", "full")
    orders: tuple[Order, ...] = ("RGB", "BGR")
    return tuple(
        make(standard, span, order) for make in (decoding, encoding) for standard in STANDARDS for span in ranges for order in orders
    )


@dataclass(frozen=True)
class Identified:
    """What a block's matrix is. ``order`` is that of the channels behind it; None where it makes no RGB."""

    matrix: ColourMatrix | None
    exact: bool
    text: Text
    order: Order | None = None
    gray: bool = False


def identify(op: AippOp) -> Identified:
    """Name the matrix in force in a block whose csc_switch is true.

    With rbuv_swap_switch, U and V (or red and blue) are exchanged before the matrix, so that the same matrix serves NV21 (or BGR).
    """
    elements = matrix_of(op)
    decode = op.format in YUV
    prefix = "input_bias" if decode else "output_bias"
    bias = tuple(int(op[f"{prefix}_{index}"]) for index in range(3))
    if not decode and elements[3:] == (0,) * 6:
        if max(abs(one - two) for one, two in zip(elements[:3], GRAY[:3], strict=True)) <= _NEAR:
            return Identified(None, elements == GRAY, say("gray from RGB (BT.601 luma)", "RGB 转灰度（BT.601 亮度）"), gray=True)
        if max(abs(one - two) for one, two in zip(elements[:3], GRAY[2::-1], strict=True)) <= _NEAR:
            return Identified(None, False, say("gray from BGR (BT.601 luma)", "BGR 转灰度（BT.601 亮度）"), gray=True)
    best: tuple[int, int, ColourMatrix] | None = None
    for index, known in enumerate(known for known in all_matrices() if known.decode is decode):
        distance = max(abs(one - two) for one, two in zip((*elements, *bias), (*known.elements, *known.bias), strict=True))
        if distance <= _NEAR and (best is None or distance < best[0]):
            best = (distance, index, known)
    if best is None:
        return Identified(None, False, say("no matrix of BT.601, BT.709 or BT.2020", "不是 BT.601、BT.709 或 BT.2020 的矩阵"))
    known = best[2]
    text = say("{name}", "{name}", name=known.name)
    if best[0]:
        text = say("{name}, off by up to {count}/256", "{name}，最多相差 {count}/256", name=known.name, count=best[0])
    return Identified(known, best[0] == 0, text, known.order if decode else None)


def find_matrix(name: str) -> tuple[Standard, Range]:
    """Read ``601``, ``bt709-full``, ``601N``, ``jpeg``.

    Raises:
        UsageError: no such standard.
    """
    plain = name.lower().replace("bt.", "").replace("bt", "").replace("_", "-").strip("-")
    if plain in ("jpeg", "jfif"):
        return "601", "full"
    number = plain[:4] if plain.startswith("2020") else plain[:3]
    spans: dict[str, Range] = {"": "narrow", "n": "narrow", "narrow": "narrow", "limited": "narrow", "tv": "narrow"}
    spans |= {"w": "full", "wide": "full", "full": "full", "pc": "full"}
    for standard in STANDARDS:
        if number == standard and plain[len(number) :].strip("-") in spans:
            return standard, spans[plain[len(number) :].strip("-")]
    raise UsageError(
        say("`{name}` is no colour standard", "`{name}` 不是色彩标准", name=name[:40]),
        say("expected 601, 709 or 2020, with -narrow or -full", "应为 601、709 或 2020，可附加 -narrow 或 -full"),
        say("for example 601-full for decoded JPEG", "例如 JPEG 解码结果用 601-full"),
    )
