"""The benchmark of the standard's node tests as a module for tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def coverage() -> ModuleType:
    """``benchmarks/coverage.py``, which is no package."""
    name = "jumar_coverage"
    if name not in sys.modules:
        path = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage.py"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"{path} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    return sys.modules[name]
