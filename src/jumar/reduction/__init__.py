"""The smallest part of a model that still fails a check: delta debugging over its nodes."""

from .candidate import Candidate, Cuts
from .outside import Check, Verdict
from .shrink import Spent, shrink

__all__ = ["Candidate", "Check", "Cuts", "Spent", "Verdict", "shrink"]
