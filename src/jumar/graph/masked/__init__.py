"""Tensors of data-dependent shape (NonZero, Compress, Unique) kept dense.

Where an operator chooses some places of a static axis, the tensor is kept with all places and a mask that says which are there. What reads it
is told apart by what it does to places: elementwise operators carry the mask on, reductions fill what is not there with something that has no
effect, a Scatter writes it to a place that is cut off. A reader that cannot be told so (a loop, an output of the model) leaves all as it is.
"""

from .base import Handler
from .driver import SOURCES, Densified, densify, plan, source_nodes
from .padded import Padded
from .selecting import is_settled, selected_by_kernel, written_out

__all__ = [
    "SOURCES",
    "Densified",
    "Handler",
    "Padded",
    "densify",
    "is_settled",
    "plan",
    "selected_by_kernel",
    "source_nodes",
    "written_out",
]
