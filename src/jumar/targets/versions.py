"""The order of CANN versions, and what stands for one that no public source speaks of: the known states around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(?:[.-][0-9A-Za-z]{1,20}){0,6}", re.ASCII)
_TOKEN = re.compile(r"([a-z]*)[.-]?([0-9]*)", re.ASCII)
# Stages of a release: 8.0.RC1 comes before 8.0.0, and 8.0.0.alpha001 before 8.0.0. The end of the text ranks as 0, a number as 1.
_STAGES = {"alpha": -3, "beta": -2, "rc": -1, "": 1}
_NOTHING = "(no public source)"


def is_version(text: str) -> bool:
    """Whether the text is a release of CANN (``8.1.RC1``), not the name of a source tree."""
    return _VERSION.fullmatch(text) is not None


def version_key(text: str) -> tuple[tuple[int, int], ...]:
    """Sorts releases: 7.0.0 < 8.0.RC1 < 8.0.RC2 < 8.0.0.alpha1 < 8.0.0 < 8.1.RC1."""
    words = [(word, number) for word, number in _TOKEN.findall(text.lower()) if word or number]
    return (*((_STAGES.get(word, -4), int(number or 0)) for word, number in words), (0, 0))


def around(cann: str, order: Sequence[str]) -> tuple[str | None, str | None]:
    """The known states before and after a release that is none of them. Source trees stand where the order puts them."""
    key = version_key(cann)
    later = next((index for index, name in enumerate(order) if is_version(name) and version_key(name) > key), None)
    if later is None:  # newer than all releases; source trees at the end of the order are newer still
        later = 1 + max((index for index, name in enumerate(order) if is_version(name)), default=-1)
    # Whether a release older than all known ones is older than a source tree, too, is not known.
    follows = any(is_version(name) for name in order[:later])
    return (order[later - 1] if follows else None, order[later] if later < len(order) else None)


def state_between(cann: str, order: Sequence[str], states: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A state like those of ``cann.json`` for a release between two of them: parsed is what both register; it has no kernel table."""
    before, after = around(cann, order)
    beside = [states[name] for name in (before, after) if name is not None]
    older = states[before]["parser"] if before else {"at": _NOTHING}
    newer = states[after]["parser"] if after else {"at": _NOTHING}
    # A tree that is a part of the whole ("at" with "older") is completed by the states around it.
    rule = {
        "older": older["older"] if "older" in older else older["at"],
        "newer": [*([newer["at"]] if "at" in newer else []), *newer.get("newer", [])],
    }
    return {
        "parser": rule,
        "kernels": {},
        "opset_min": max(state["opset_min"] for state in beside),
        "opset_max": min(state["opset_max"] for state in beside),
        "confidence": "inferred",
        "source": f"no public parser sources of CANN {cann}; taken from those around it ({before or 'none'} and {after or 'none'})",
    }
