"""Models in up to three parts: what the host does before, what the device does, what the host does after."""

from .blocked import Reason, blocked_nodes, causes, followers, still_wrong
from .chain import PARTS, Chain, Execute, Part, load_chain, outward, runnable, told_of
from .plan import Division, bytes_of, divide
from .split import Boundary, Split, boundaries, split
from .work import is_counted, work_of

__all__ = [
    "PARTS",
    "Boundary",
    "Chain",
    "Division",
    "Execute",
    "Part",
    "Reason",
    "Split",
    "blocked_nodes",
    "boundaries",
    "bytes_of",
    "causes",
    "divide",
    "followers",
    "is_counted",
    "load_chain",
    "outward",
    "runnable",
    "split",
    "still_wrong",
    "told_of",
    "work_of",
]
