"""What each Ascend target can do. The only reader of the fact tables in ``jumar/data``."""

from .judge import engine_of, judge, support
from .limits import InputFacts, NodeFacts, makes_int32
from .model import SEVERITY_ORDER, TAKEN, Engine, SocInfo, Status, Support, Target
from .packages import package_hint
from .query import cann_states, default_cann, find_target, profiles, soc_info, socs

__all__ = [
    "SEVERITY_ORDER",
    "TAKEN",
    "Engine",
    "InputFacts",
    "NodeFacts",
    "SocInfo",
    "Status",
    "Support",
    "Target",
    "cann_states",
    "default_cann",
    "engine_of",
    "find_target",
    "judge",
    "makes_int32",
    "package_hint",
    "profiles",
    "soc_info",
    "socs",
    "support",
]
