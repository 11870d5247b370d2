"""What widely read articles claim of Ascend, and what is true (``claims.json``, kept by hand; a test compares it with the tables)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..text import Text
from .tables import table


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        show: operators whose facts bear on it.
        facts: what it states, in the form the test compares with the tables.
    """

    code: str
    name: str
    verdict: Text
    says: Text
    true: Text
    evidence: Text
    show: tuple[str, ...]
    facts: tuple[Mapping[str, Any], ...]


@cache
def all_claims() -> tuple[Claim, ...]:
    """The claims by code."""
    texts = ("verdict", "says", "true", "evidence")
    return tuple(
        Claim(
            code=item["code"],
            name=item["name"],
            show=tuple(item["show"]),
            facts=tuple(item["facts"]),
            **{key: Text.from_dict(item[key]) for key in texts},
        )
        for item in table("claims.json")["claims"]
    )


def find_claim(word: str) -> Claim | None:
    """The claim with this code, whatever the case. (Names are not asked: rules have such names too.)"""
    return next((claim for claim in all_claims() if word.upper() == claim.code), None)
