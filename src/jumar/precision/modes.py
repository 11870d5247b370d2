"""The precision modes of ATC, and which nodes each stores in 16 bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import UsageError
from ..text import say
from .rounding import STORAGES, Storage, StorageName

Policy = Literal["all", "none", "cube", "cube-in", "lists"]


@dataclass(frozen=True)
class PrecisionMode:
    """One value of --precision_mode_v2 or --precision_mode.

    Attributes:
        v2, v1: the word for each of the two flags; empty where that flag has none.
        policy: ``all`` narrows every float32 tensor; ``none`` keeps the types of the model; ``cube`` narrows matrix products and keeps the
            rest; ``cube-in`` narrows only the inputs of matrix products; ``lists`` follows the lists of the operator tables.
    """

    v2: str
    v1: str
    policy: Policy
    storage_name: StorageName = "float16"

    @property
    def storage(self) -> Storage:
        return STORAGES[self.storage_name]

    @property
    def name(self) -> str:
        return self.v2 or self.v1

    @property
    def flag(self) -> str:
        """The flag as ATC takes it."""
        return f"--precision_mode_v2={self.v2}" if self.v2 else f"--precision_mode={self.v1}"


_MODES = (
    PrecisionMode("fp16", "force_fp16", "all"),
    PrecisionMode("origin", "must_keep_origin_dtype", "none"),
    PrecisionMode("cube_fp16in_fp32out", "cube_fp16in_fp32out", "cube-in"),
    PrecisionMode("mixed_float16", "allow_mix_precision", "lists"),
    PrecisionMode("mixed_bfloat16", "allow_mix_precision_bf16", "lists", "bfloat16"),
    PrecisionMode("", "allow_fp32_to_fp16", "cube"),
    PrecisionMode("", "allow_fp32_to_bf16", "cube", "bfloat16"),
    PrecisionMode("bf16", "", "all", "bfloat16"),
)
_OTHER_WORDS = {"force_fp32": "cube_fp16in_fp32out", "allow_mix_precision_fp16": "mixed_float16", "mixed": "mixed_float16"}
MODES: Mapping[str, PrecisionMode] = {word: mode for mode in _MODES for word in (mode.v2, mode.v1) if word}
"""Every word that names a mode. ``bf16`` is none of ATC's: all tensors in bfloat16, as a model converted to it would have."""


def find_mode(word: str) -> PrecisionMode:
    """The mode of that name.

    Raises:
        UsageError: no such mode, or one that is not emulated.
    """
    found = MODES.get(_OTHER_WORDS.get(word, word))
    if found is not None:
        return found
    if word in ("cube_hif8", "mixed_hif8", "int8"):
        raise UsageError(
            say("`{word}` is not emulated", "不支持模拟 `{word}`", word=word),
            say("expected a mode of float16 or bfloat16", "应为 float16 或 bfloat16 的模式"),
            say("use fp16, bf16 or mixed", "请使用 fp16、bf16 或 mixed"),
        )
    known = ", ".join(("fp16", "bf16", "mixed", *sorted(word for word in (*MODES, *_OTHER_WORDS) if word not in ("fp16", "bf16", "mixed"))))
    raise UsageError(
        say("`{word}` is no precision mode", "`{word}` 不是精度模式", word=word),
        say("expected one of: {known}", "应为其中之一：{known}", known=known),
        say("correct --precision", "请修正 --precision"),
    )
