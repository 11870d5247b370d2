"""Rules: each names one problem, finds it, and where possible cures it. One file per rule, found by the registry."""

from .base import Change, Context, Example, MeaningRule, ModelRule, NodeRule, Refused, Rule, SupportRule, operator_name
from .registry import all_rules, find_rule, fixers

__all__ = [
    "Change",
    "Context",
    "Example",
    "MeaningRule",
    "ModelRule",
    "NodeRule",
    "Refused",
    "Rule",
    "SupportRule",
    "all_rules",
    "find_rule",
    "fixers",
    "operator_name",
]
