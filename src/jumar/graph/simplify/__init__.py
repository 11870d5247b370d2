"""Simplification: the same function with fewer nodes."""

from . import arithmetic, control, loops, moves, passthrough, scans, sequence_bodies, sequences  # noqa: F401 - they register what they match
from .base import KINDS, Journal, Rewrite, kinds_of
from .driver import applicable, simplify_graph

__all__ = ["KINDS", "Journal", "Rewrite", "applicable", "kinds_of", "simplify_graph"]
