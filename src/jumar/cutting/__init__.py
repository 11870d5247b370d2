"""Models in up to three parts: what the host does before, what the device does, what the host does after."""

from .chain import PARTS, Chain, Part, load_chain, told_of
from .plan import Division, divide, work_of

__all__ = ["PARTS", "Chain", "Division", "Part", "divide", "load_chain", "told_of", "work_of"]
