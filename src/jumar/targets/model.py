"""The types of the target facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from ..text import Text, say

Engine = Literal["aicore", "aicpu", "local", "none", "unknown"]
"""Where an operator runs: AI Core, AI CPU, nowhere on the device (``local``: the graph engine needs no kernel), or not at all."""


class Status(str, Enum):
    """The answers to "does this target take this operator?"."""

    SUPPORTED = "supported"
    NO_KERNEL_NEEDED = "no-kernel-needed"
    AICPU_ONLY = "aicpu-only"
    NEEDS_CONSTANT = "needs-constant"
    NO_PARSER_AT_OPSET = "no-parser-at-opset"
    NO_PARSER = "no-parser"
    NO_KERNEL = "no-kernel"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Support:
    """One answer, with where it comes from.

    ``opsets`` holds the opsets at which a parser is registered (for ``NO_PARSER_AT_OPSET``); ``reason`` says what is not known
    (for ``UNKNOWN``) or what must hold (for ``NEEDS_CONSTANT``).
    """

    status: Status
    engine: Engine
    evidence: tuple[str, ...]
    opsets: str = ""
    reason: Text | None = None


@dataclass(frozen=True)
class SocInfo:
    """One ``soc_version`` of ATC. ``kernels`` names its kernel table, or None where no table is public."""

    name: str
    short: str
    family: str
    kernels: str | None
    ai_cores: int | None
    ai_cpus: int | None
    memory_bytes: int | None
    peak_fp16_tflops: float | None
    peak_int8_tops: float | None
    aicpu_package: Literal["toolkit", "unknown"]
    products: tuple[Mapping[str, str], ...]
    source: str
    caution: Text | None = None
    """Set where the name is often taken for another chip."""


@dataclass(frozen=True)
class Target:
    """SoC x CANN x opset range; what every question about support is asked of."""

    soc: SocInfo
    cann: str
    opset_min: int
    opset_max: int
    profile: str | None = None
    profile_note: Text | None = None

    def notes(self) -> tuple[Text, ...]:
        """What a reader of a verdict should know of the target itself."""
        notes = []
        if self.profile is not None and self.profile_note is not None:
            notes.append(say("profile {name}: {note}", "目标配置 {name}：{note}", name=self.profile, note=self.profile_note))
        if self.soc.caution is not None:
            notes.append(say("caution: {soc}: {fact}", "注意：{soc}：{fact}", soc=self.soc.name, fact=self.soc.caution))
        return tuple(notes)

    @property
    def label(self) -> str:
        return f"{self.soc.name}, CANN {self.cann}"

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"soc": self.soc.name, "cann": self.cann, "opset_max": self.opset_max}
        if self.profile:
            data |= {"profile": self.profile, "profile_note": str(self.profile_note)}
        return data
