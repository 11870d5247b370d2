"""Operators written out with others at the same opset: what a rule offers where the target does not take an operator as it is.

An expansion is a function of a :class:`~jumar.graph.opset.step.Step`: it reads its node, makes new ones and ends with ``step.finish``, or
refuses with its reason (``step.refuse``). It knows no target. An operator may have several expansions; a rule takes the first whose nodes
the target takes. Every module of this folder is imported, and registers what it holds with :func:`expands`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from .base import RUNTIME_OPERATORS, Expansion, expands, expansions_of, miniature, operators_of, schema_functions

__all__ = [
    "RUNTIME_OPERATORS",
    "Expansion",
    "expands",
    "expansions_of",
    "load_expansions",
    "miniature",
    "operators_of",
    "schema_functions",
]


@cache
def load_expansions() -> None:
    """Import every module of this folder once."""
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
