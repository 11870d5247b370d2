"""ATC's flags: type, default, values and what ATC says of a bad one, from ``data/atc.json``; and which one was meant by another name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from ..targets.tables import table
from ..text import Text, say

FlagType = Literal["string", "int32", "bool", "bool-string"]


@dataclass(frozen=True)
class Flag:
    """One flag of ATC.

    Attributes:
        default: what stands when it is not given, as text ("" where ATC has none).
        allowed: the values it takes; empty where it takes a text of its own grammar.
        refused: True when public code refuses any other value; False where the list is documentation.
        listed: True when the parser itself compares the value with the list, also an empty one.
        code: ATC's code for a bad value.
        since: oldest CANN known to have it; None where every known one does.
        removed: ATC refuses any value.
        deprecated: what to use instead (English, as the table says), or None.
        values_since: the same as ``since`` for single values.
        source: repository, file and line of the definition.
    """

    name: str
    type: FlagType
    default: str
    group: str
    source: str
    allowed: tuple[str, ...] = ()
    refused: bool = False
    listed: bool = False
    code: str | None = None
    since: str | None = None
    removed: bool = False
    deprecated: str | None = None
    values_since: Mapping[str, str] = field(default_factory=dict)
    extra_values: tuple[str, ...] = ()
    meaning: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()


@cache
def atc_flags() -> Mapping[str, Flag]:
    """All flags by name, without the dashes."""
    flags = {}
    for name, row in table("atc.json")["flags"].items():
        flags[name] = Flag(
            name=name,
            type=row["type"],
            default=_text(row.get("default", "")),
            group=row["group"],
            source=row["source"],
            allowed=tuple(row.get("allowed", ())),
            refused=row.get("refused", False),
            listed=row.get("listed", False),
            code=(row.get("removed") or [row.get("code")])[0],
            since=row.get("since"),
            removed="removed" in row,
            deprecated=row.get("deprecated"),
            values_since=row.get("values_since", {}),
            extra_values=tuple(row.get("extra_values_in_code", ())),
            meaning=row.get("meaning", {}),
            rules=tuple((text, tuple(codes)) for text, codes in row.get("rules", ())),
        )
    return flags


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def nearest_flag(name: str) -> str | None:
    """The real flag that was probably meant: by spelling, or one that begins or ends like it."""
    known = atc_flags()
    name = name.lower().replace("-", "_")
    if name in known:
        return name
    habit = _HABITS.get(name)
    if habit is not None:
        return habit
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return close[0]
    begins = [flag for flag in known if flag.startswith(name)]
    return min(begins, key=len) if begins and len(name) >= 3 else None


# Names that other compilers give to the same thing.
_HABITS = {
    "precision": "precision_mode_v2",
    "dtype": "precision_mode_v2",
    "fp16": "precision_mode_v2",
    "soc": "soc_version",
    "chip": "soc_version",
    "shape": "input_shape",
    "input_shapes": "input_shape",
    "input_name": "input_shape",
    "dynamic_batch": "dynamic_batch_size",
    "dynamic_shape": "dynamic_dims",
    "dynamic_hw": "dynamic_image_size",
    "aipp": "insert_op_conf",
    "aipp_config": "insert_op_conf",
    "weights": "weight",
    "log_level": "log",
    "loglevel": "log",
    "output_path": "output",
    "onnx": "model",
    "model_path": "model",
    "out_node": "out_nodes",
    "output_nodes": "out_nodes",
    "output_names": "out_nodes",
    "layout": "input_format",
    "format": "input_format",
}


def write_instead(name: str, meant: str, value: str) -> Text:
    """What to write for an unknown flag and its value."""
    if name in ("precision", "dtype") and value.lower() in ("int8", "i8"):
        return say(
            "ATC does not quantise by a flag: quantise the model with AMCT, or use --compression_optimize_conf with a calibration block",
            "ATC 不能用参数做量化：请先用 AMCT 量化模型，或使用带校准配置的 --compression_optimize_conf",
        )
    if meant == "precision_mode_v2" and value.lower() in ("fp16", "float16", "half", ""):
        return say(
            "write --precision_mode_v2=fp16 or --precision_mode=force_fp16 (ATC's default already)",
            "请写成 --precision_mode_v2=fp16 或 --precision_mode=force_fp16（已是 ATC 的默认值）",
        )
    if meant == "precision_mode_v2" and value.lower() in ("fp32", "float32", "float"):
        return say(
            "write --precision_mode=force_fp32 or --precision_mode_v2=origin",
            "请写成 --precision_mode=force_fp32 或 --precision_mode_v2=origin",
        )
    return say("write --{meant}", "请写成 --{meant}", meant=meant)
