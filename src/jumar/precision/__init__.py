"""Precision: what 16-bit tensors do to a model, node by node; which node is guilty; what to keep in float32."""

from .emulator import emulate, emulated
from .modes import MODES, PrecisionMode, find_mode
from .plan import Plan, make_plan
from .rounding import STORAGES, Storage, rounded
from .units import RULES, UnitRule, rule_of

__all__ = [
    "MODES",
    "RULES",
    "STORAGES",
    "Plan",
    "PrecisionMode",
    "Storage",
    "UnitRule",
    "emulate",
    "emulated",
    "find_mode",
    "make_plan",
    "rounded",
    "rule_of",
]
