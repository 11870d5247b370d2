"""What rewrites may change that the user asked for by code and that give up accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..case import Finding
from ..proof.metrics import Comparison
from ..rules import Rule, find_rule
from ..text import say

NOTABLE = 0.01
"""Bounds from here on are told to :mod:`~jumar.verbs.verify`; what is smaller counts as rounding and has to fit the bound there."""


def told_by(rule: Rule) -> dict[str, Any]:
    """What a step of a rule says of it, as an option; empty for rules that give up nothing."""
    gives_up = rule.safety == "unsafe" and (rule.bound >= NOTABLE or rule.steps)
    return {"accepted": {"max_scaled": rule.bound, "steps": rule.steps}} if gives_up else {}


@dataclass(frozen=True)
class Accepted:
    """The sum of what several rewrites may change.

    Attributes:
        codes: their rules.
        max_scaled: of floats, in parts of the largest element; ``steps``: of integers.
    """

    codes: tuple[str, ...] = ()
    max_scaled: float = 0.0
    steps: int = 0

    @classmethod
    def of(cls, told: Iterable[Mapping[str, Any]]) -> Accepted:
        """From ``{"code", "accepted"}`` of each step, as a manifest has them. What is not of this form accepts nothing."""
        items = list(told)
        try:
            codes = tuple(dict.fromkeys(str(item["code"]) for item in items))
            total = sum(float(item["accepted"]["max_scaled"]) for item in items)
            return cls(codes, total, sum(int(item["accepted"]["steps"]) for item in items))
        except (AttributeError, KeyError, TypeError, ValueError):
            return cls()

    def covers(self, item: Comparison) -> bool:
        """Whether an output that is out of bound differs by no more than this."""
        if item.integers:
            return item.max_abs <= self.steps
        return item.reason is None and item.max_scaled <= self.max_scaled

    def findings(self, comparisons: Mapping[str, Comparison]) -> tuple[Finding, ...]:
        """One for each output that was accepted."""
        rule, codes = find_rule("VF605"), ", ".join(self.codes)
        return tuple(
            rule.finding(
                say(
                    "output `{name}` differs by {found:.2g} of its largest element (max_abs {absolute:.3g}); {codes} may change {allowed:g}",
                    "输出 `{name}` 的差异为其最大元素的 {found:.2g}（max_abs {absolute:.3g}）；{codes} 允许 {allowed:g}",
                    name=name,
                    found=item.max_scaled,
                    absolute=item.max_abs,
                    codes=codes,
                    allowed=self.max_scaled,
                )
                if not item.integers
                else say(
                    "integers of output `{name}` differ by up to {found:g}; {codes} may change {allowed}",
                    "输出 `{name}` 的整数最多相差 {found:g}；{codes} 允许 {allowed}",
                    name=name,
                    found=item.max_abs,
                    codes=codes,
                    allowed=self.steps,
                ),
                say("you asked for a rewrite that gives up accuracy", "您启用了以精度为代价的改写"),
                say("judge it on labelled data", "请在有标注的数据上评估"),
                place=name,
            )
            for name, item in comparisons.items()
        )
