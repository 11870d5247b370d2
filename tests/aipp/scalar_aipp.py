"""AIPP again, one pixel at a time in exact fractions, written from its documented arithmetic and sharing no code with the package."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

DEFAULT_YUV = (298, 516, 0, 298, -100, -208, 298, 0, 409)
DEFAULT_RGB = (66, 129, 25, -38, -74, 112, 112, -94, -18)
BYTES = {"RGB888_U8": 3, "XRGB8888_U8": 4, "ARGB8888_U8": 4, "AYUV444_U8": 4, "YUV400_U8": 1, "YUYV_U8": 2}


def half(value: Fraction) -> float:
    """The nearest float16, ties to even, infinite beyond 65504."""
    return _rounded(value, 10, -14, 65504)


def single(value: Fraction) -> float:
    return _rounded(value, 23, -126, 2**128 - 2**104)


def _rounded(value: Fraction, bits: int, least: int, largest: int) -> float:
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = max(math.floor(math.log2(size)), least)
    while Fraction(2) ** exponent > size and exponent > least:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    step = Fraction(2) ** (exponent - bits)
    whole, rest = divmod(size, step)
    if rest * 2 > step or (rest * 2 == step and whole % 2):
        whole += 1
    rounded = whole * step
    return math.copysign(math.inf if rounded > largest else float(rounded), value)


def pixel(given: Mapping[str, Any], data: Sequence[int], height: int, width: int, y: int, x: int) -> list[int]:
    """The components of a pixel behind the swaps."""
    name, swap, ax = given["input_format"], given.get("rbuv_swap_switch", False), given.get("ax_swap_switch", False)
    if name in ("YUV420SP_U8", "YUV422SP_U8"):
        row = y // 2 if name == "YUV420SP_U8" else y
        place = height * width + row * width + x // 2 * 2
        chroma = [data[place], data[place + 1]]
        return [data[y * width + x], *(chroma[::-1] if swap else chroma)]
    if name == "YUYV_U8":
        pair = (y * width + x // 2 * 2) * 2
        chroma = [data[pair + 1], data[pair + 3]]
        return [data[pair + (2 if x % 2 else 0)], *(chroma[::-1] if swap else chroma)]
    count = BYTES[name]
    values = list(data[(y * width + x) * count : (y * width + x + 1) * count])
    if count == 4 and ax:
        values = [*values[1:], values[0]]
    if swap and name == "AYUV444_U8":
        values[1], values[2] = values[2], values[1]
    elif swap and count > 1:
        values[0], values[2] = values[2], values[0]
    return values


def converted(given: Mapping[str, Any], values: list[int]) -> list[int]:
    if not given.get("csc_switch", False):
        return values
    yuv = "YUV" in given["input_format"] or given["input_format"] == "YUYV_U8"
    default = DEFAULT_YUV if given["input_format"] == "YUV420SP_U8" else DEFAULT_RGB
    matrix = [given.get(f"matrix_r{place // 3}c{place % 3}", default[place]) for place in range(9)]
    before = [given.get(f"input_bias_{index}", (16, 128, 128)[index]) if yuv else 0 for index in range(3)]
    behind = [0 if yuv else given.get(f"output_bias_{index}", (16, 128, 128)[index]) for index in range(3)]
    made = []
    for row in range(3):
        total = sum(matrix[3 * row + column] * (values[column] - before[column]) for column in range(3))
        made.append(max(0, min(255, total // 256 + behind[row])))
    return made


def normalised(given: Mapping[str, Any], value: int, channel: int, var: str) -> float:
    low = Fraction(half(Fraction(given.get(f"min_chn_{channel}", 0.0))))
    factor = Fraction(given.get(f"var_reci_chn_{channel}", 1.0))
    factor = Fraction((half if var == "float16" else single)(factor))
    return half((value - given.get(f"mean_chn_{channel}", 0) - low) * factor)


def scalar_aipp(given: Mapping[str, Any], data: Sequence[int], var: str, network: tuple[int, int]) -> list[list[list[float]]]:
    """[channels][height][width] of one image."""
    height, width = given.get("src_image_size_h", 0) or network[0], given.get("src_image_size_w", 0) or network[1]
    top = left = 0
    tall, wide = height, width
    if given.get("crop", False):
        top, left = given.get("load_start_pos_h", 0), given.get("load_start_pos_w", 0)
        tall, wide = given.get("crop_size_h", 0) or network[0], given.get("crop_size_w", 0) or network[1]
    sides = [given.get(f"{side}_padding_size", 0) if given.get("padding", False) else 0 for side in ("top", "bottom", "left", "right")]
    rows = []
    fill = struct.unpack("e", struct.pack("e", given.get("padding_value", 0.0)))[0]
    for y in range(-sides[0], tall + sides[1]):
        line = []
        for x in range(-sides[2], wide + sides[3]):
            if 0 <= y < tall and 0 <= x < wide:
                values = converted(given, pixel(given, data, height, width, top + y, left + x))
                line.append([normalised(given, value, channel, var) for channel, value in enumerate(values)])
            else:
                line.append([fill] * 4)
        rows.append(line)
    count = min(len(rows[y][x]) for y in range(len(rows)) for x in range(len(rows[0])))
    return [[[cell[channel] for cell in line] for line in rows] for channel in range(count)]
