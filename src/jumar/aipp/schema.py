"""What AIPP files may hold, and what each chip makes of them: the only reader of ``aipp.json`` and ``aipp_socs.json``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ..targets.tables import table

VarType = Literal["float16", "float32"]
"""How a chip keeps var_reci_chn; min_chn is float16 on all."""
LARGEST_SIDE = 4096
LARGEST_PADDING = 32
MATRIX = tuple(f"matrix_r{row}c{column}" for row in range(3) for column in range(3))
CROPS = ("load_start_pos_h", "load_start_pos_w", "crop_size_h", "crop_size_w")
RESIZES = ("resize_output_h", "resize_output_w")
PADDINGS = ("top_padding_size", "bottom_padding_size", "left_padding_size", "right_padding_size")
YUV = ("YUV420SP_U8", "YUV422SP_U8", "YUYV_U8", "AYUV444_U8")
RGB = ("RGB888_U8", "XRGB8888_U8", "ARGB8888_U8")
FOUR = ("XRGB8888_U8", "ARGB8888_U8", "AYUV444_U8")
EIGHT_BIT = (*YUV, *RGB, "YUV400_U8")
"""Formats of 8-bit components: what can be emulated."""


@dataclass(frozen=True)
class FieldFacts:
    """One field. ``limits`` are inclusive; None where the sources give none."""

    name: str
    type: str
    repeated: bool
    default: Any
    limits: tuple[float, float] | None
    zero: bool
    """Whether 0 is taken beside the limits (a size that is left open)."""


@dataclass(frozen=True)
class Chip:
    """What AIPP is on one chip. ``padded_width``: widest output after padding by the code and by newer documents; None where neither says."""

    short: str
    var: VarType
    formats: tuple[str, ...]
    dynamic: bool
    odd_crop: bool
    vision: bool
    padded_width: tuple[int, int] | None


@cache
def fields() -> dict[str, FieldFacts]:
    """All fields of ``aipp_op``, by name, in the order of their numbers."""
    found = {}
    for name, data in sorted(table("aipp.json")["fields"].items(), key=lambda item: int(item[1]["number"])):
        limits, zero = _limits(data.get("range", ""))
        found[name] = FieldFacts(name, data["type"], data["repeated"], data.get("default"), limits, zero)
    return found


def _limits(text: str) -> tuple[tuple[float, float] | None, bool]:
    """``"0 or 2..4096"`` -> (2, 4096) and True. Ranges that hold for some formats only are not used here."""
    plain = text.split("(")[0].split(",")[0]
    if ".." not in plain:
        return None, False
    zero = plain.startswith("0 or ")
    low, high = plain.removeprefix("0 or ").split("..")
    return (float(low), float(high)), zero


@cache
def formats() -> dict[str, int]:
    """Names of image formats and their numbers."""
    return {name: data["value"] for name, data in table("aipp.json")["formats"].items()}


def channels(name: str) -> int | None:
    """Channels that leave the colour conversion for a format."""
    number: int | None = table("aipp.json")["formats"].get(name, {}).get("channels")
    return number


def bytes_per_pixel(name: str) -> float | None:
    """None where a pixel has no whole number of half bytes known here."""
    number: float | None = table("aipp.json")["formats"].get(name, {}).get("bytes_per_pixel")
    return number


@cache
def chip(short: str) -> Chip | None:
    """AIPP on a chip (its short SoC name); None where no public source speaks of it."""
    data = table("aipp_socs.json")
    facts = data["socs"].get(short)
    if facts is None:
        return None
    taken = facts["formats"] if isinstance(facts["formats"], list) else data[facts["formats"]]
    return Chip(
        short, facts["var"], tuple(taken), facts["dynamic"], facts["odd_crop"], facts.get("vision", False), _pair(facts.get("padded_width"))
    )


def _pair(values: list[int] | None) -> tuple[int, int] | None:
    return None if values is None else (values[0], values[1])


@cache
def default_matrix(name: str) -> dict[str, int]:
    """The colour matrix that ATC puts in for a format, element by element, where the file leaves it out."""
    rows = table("aipp.json")["matrices"]["YUV420SP_to_BGR_601N" if name == "YUV420SP_U8" else "RGB888_to_YUV_601N"]["matrix"]
    return dict(zip(MATRIX, (element for row in rows for element in row), strict=True))


def runtime_formats() -> tuple[str, ...]:
    """Formats that can be set when a model runs (dynamic mode)."""
    return tuple(table("aipp_socs.json")["runtime"])


SOURCE_PROTO = "hicann/ge:graph_metadef/proto/insert_op.proto"
SOURCE_GE = "hicann/ge:compiler/graph/preprocess/insert_op/aipp_op.cc + insert_aipp_op_util.cc"
SOURCE_TBE = "CANN 8.1.RC1: opp/built-in/op_impl/ai_core/tbe/impl/aipp_comm.py"
SOURCE_ACL = "hicann/ge:api/acl/acl_model/model/aipp_param_check.cpp"
SOURCE_DOC = "hicann/ge:docs/zh/user_guides/atc_tools/AIPP"
