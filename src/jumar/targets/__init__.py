"""What each Ascend target can do. The only reader of ``jumar/data``."""

from .model import Engine, SocInfo, Status, Support, Target
from .query import cann_states, find_target, profiles, soc_info, socs, support

__all__ = [
    "Engine",
    "SocInfo",
    "Status",
    "Support",
    "Target",
    "cann_states",
    "find_target",
    "profiles",
    "soc_info",
    "socs",
    "support",
]
