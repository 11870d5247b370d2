"""Operators of other domains in numpy, so that proofs hold for models that have them.

Every module of this folder may have a list ``OPERATORS`` of ``onnx.reference.op_run.OpRun`` classes.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def operators() -> tuple[Any, ...]:
    """All of them (imported when first asked for: they need onnx)."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return tuple(operator for module in modules for operator in getattr(module, "OPERATORS", ()))
