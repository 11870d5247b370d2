"""Numerical proof: metrics, inputs to prove on, and the comparison of models and of pieces of them."""

from .feeds import FeedSet, load_feeds, make_feeds, piece_feeds, read_arrays
from .interface import Interface, Port
from .metrics import Comparison, compare, compare_all
from .prove import Prover

__all__ = [
    "Comparison",
    "FeedSet",
    "Interface",
    "Port",
    "Prover",
    "compare",
    "compare_all",
    "load_feeds",
    "make_feeds",
    "piece_feeds",
    "read_arrays",
]
