"""Reading the data files, each once and only when asked for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from .versions import around, is_version, state_between

_DATA = resources.files("jumar").joinpath("data")


@cache
def table(name: str) -> dict[str, Any]:
    """A data file by its path below ``jumar/data`` (``.gz`` is unpacked).

    Raises:
        FileNotFoundError: there is no such file.
    """
    raw = _DATA.joinpath(*name.split("/")).read_bytes()
    data: dict[str, Any] = json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)
    return data


@cache
def cann_state(name: str) -> Mapping[str, Any]:
    """What speaks for a CANN state; for a release that no public source knows (an imported one), the states around it.

    Raises:
        KeyError: neither a known state nor a release.
    """
    states: Mapping[str, Mapping[str, Any]] = table("cann.json")["states"]
    if name in states or not is_version(name):
        return states[name]
    return state_between(name, cann_order(), states)


@cache
def spoken_by(cann: str) -> tuple[str, ...]:
    """The known states that speak for a CANN state: itself, or for a release that is none of them, its neighbours."""
    order = cann_order()
    return (cann,) if cann in order else tuple(name for name in around(cann, order) if name is not None)


def cann_order() -> list[str]:
    """All CANN states, oldest first."""
    order: list[str] = table("cann.json")["meta"]["order"]
    return order


def opset_numbers(ranges: str) -> set[int]:
    """``"8-10,12"`` -> {8, 9, 10, 12}."""
    found: set[int] = set()
    for part in filter(None, ranges.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def opset_text(numbers: set[int] | frozenset[int]) -> str:
    """{8, 9, 10, 12} -> ``"8-10,12"``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
