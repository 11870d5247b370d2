"""The types of the target facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from ..text import Text, say

Engine = Literal["aicore", "aicpu", "local", "none", "unknown"]
"""Where an operator runs: AI Core, AI CPU, nowhere on the device (``local``: the graph engine needs no kernel), or not at all."""

Confidence = Literal["documented", "observed", "inferred"]
"""How a fact is known: written in a public document, seen in public code or tables, or following from facts around it."""


class Status(str, Enum):
    """The answers to "does this target take this node?", worst first (see :data:`SEVERITY_ORDER`)."""

    NO_PARSER = "no-parser"
    NO_PARSER_AT_OPSET = "no-parser-at-opset"
    LIMIT_VIOLATED = "limit-violated"
    ATTRIBUTE_IGNORED = "attribute-ignored"
    NO_KERNEL = "no-kernel"
    DTYPE_NOT_TAKEN = "dtype-not-taken"
    UNKNOWN = "unknown"
    LIMIT_UNPROVEN = "limit-unproven"
    LIMIT_UNJUDGED = "limit-unjudged"
    NEEDS_CONSTANT = "needs-constant"
    AICPU_ONLY = "aicpu-only"
    SUPPORTED = "supported"
    NO_KERNEL_NEEDED = "no-kernel-needed"


SEVERITY_ORDER = {status: rank for rank, status in enumerate(Status)}
TAKEN = (Status.SUPPORTED, Status.NO_KERNEL_NEEDED)
"""Answers that are no finding."""


@dataclass(frozen=True)
class Support:
    """One answer, with where it comes from.

    Attributes:
        opsets: at which a parser is registered.
        reason: what is not known, what must hold, which input, which limit; None where the status says it all.
        confidence: of the weakest fact the answer rests on.
    """

    status: Status
    engine: Engine
    evidence: tuple[str, ...]
    opsets: str = ""
    reason: Text | None = None
    confidence: Confidence = "observed"


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
