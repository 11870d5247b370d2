"""Expressing a model at another opset, up or down: what changed between versions, form by form.

Most steps change nothing but the accepted types; those are recognised by comparing the two schemas. Forms that did change have an
adapter (``lower_*`` for steps down, ``raise_forms`` for steps up). An operator that is newer than the wanted opset is written out by its
adapter, or expanded with the function body that its schema carries. Whatever has neither is refused with the reason, and the caller
proves the whole model afterwards.
"""

from .convert import convert_opset
from .schemas import newest_opset
from .step import RULE, Unconvertible

__all__ = ["RULE", "Unconvertible", "convert_opset", "newest_opset"]
