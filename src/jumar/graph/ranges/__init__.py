"""Range analysis: between which numbers the values of each tensor lie, in every run of the model."""

from .analyse import Ranges, value_ranges
from .interval import Interval, is_integer, whole

__all__ = ["Interval", "Ranges", "is_integer", "value_ranges", "whole"]
