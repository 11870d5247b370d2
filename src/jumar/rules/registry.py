"""Finds the rules: every class with a code in the modules of the folders beside this file, whatever they are called."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from ..errors import UsageError
from ..text import say
from .base import MeaningRule, ModelRule, NodeRule, Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of every rule, by code."""
    found: dict[str, Rule] = {}
    root = importlib.import_module(str(__package__))
    for folder in (info.name for info in pkgutil.iter_modules(root.__path__) if info.ispkg):
        package = importlib.import_module(f"{__package__}.{folder}")
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for _, member in inspect.getmembers(module, inspect.isclass):
                if member.__module__ == module.__name__ and issubclass(member, Rule) and hasattr(member, "code"):
                    if member.code in found:
                        raise RuntimeError(f"two rules have the code {member.code}")
                    found[member.code] = member()
    return tuple(found[code] for code in sorted(found))


def find_rule(code: str) -> Rule:
    """The rule with this code or name.

    Raises:
        UsageError: there is none.
    """
    for rule in all_rules():
        if code.upper() == rule.code or code.lower() == rule.name:
            return rule
    known = ", ".join(rule.code for rule in all_rules())
    raise UsageError(
        say("`{code}` is not a known code", "`{code}` 不是已知的代码", code=code),
        say("expected one of: {known}", "应为其中之一：{known}", known=known),
        say("copy it from a finding", "请从检查结果中复制"),
    )


def fixers() -> tuple[NodeRule | ModelRule, ...]:
    """Rules whose rewrites are proven, in the order in which they are applied."""
    able = [rule for rule in all_rules() if isinstance(rule, (NodeRule, ModelRule)) and rule.safety != "advice"]
    proven = [rule for rule in able if not isinstance(rule, MeaningRule)]
    return tuple(sorted(proven, key=lambda rule: (rule.phase, rule.code)))
