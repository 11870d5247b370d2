"""Jumar carries trained PyTorch and ONNX models onto Huawei Ascend NPUs.

Everything here is loaded on first use, so ``import jumar`` costs nothing and an absent extra only matters where it is needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOME = {
    "Artifact": "case",
    "Case": "case",
    "EvaluationError": "errors",
    "ExternalDataError": "errors",
    "Finding": "case",
    "JumarError": "errors",
    "Measurement": "case",
    "ModelError": "errors",
    "OutputError": "errors",
    "Proof": "case",
    "Record": "case",
    "ShapeError": "errors",
    "Step": "case",
    "Target": "targets",
    "TargetError": "errors",
    "ToolError": "errors",
    "UsageError": "errors",
    "check": "verbs.check",
    "check_aipp": "verbs.aipp_check",
    "compile": "verbs.compile",
    "derive_aipp": "verbs.aipp_derive",
    "diagnose": "verbs.diagnose",
    "diff_targets": "verbs.targets_diff",
    "doctor": "verbs.doctor",
    "emulate_aipp": "verbs.aipp_emulate",
    "explain": "verbs.explain",
    "export": "verbs.export",
    "fix": "verbs.fix",
    "import_targets": "verbs.targets_import",
    "inspect": "verbs.inspect",
    "lint": "verbs.lint",
    "list_targets": "verbs.targets",
    "migrate": "verbs.migrate",
    "move_aipp": "verbs.aipp_move",
    "quantize": "verbs.quantize",
    "reduce": "verbs.reduce",
    "show_target": "verbs.targets",
    "simplify": "verbs.simplify",
    "triage": "verbs.triage",
    "verify": "verbs.verify",
    "verify_aipp": "verbs.aipp_stages",
    "verify_precision": "verbs.precision",
}

__all__ = [
    "Artifact",
    "Case",
    "EvaluationError",
    "ExternalDataError",
    "Finding",
    "JumarError",
    "Measurement",
    "ModelError",
    "OutputError",
    "Proof",
    "Record",
    "ShapeError",
    "Step",
    "Target",
    "TargetError",
    "ToolError",
    "UsageError",
    "check",
    "check_aipp",
    "compile",
    "derive_aipp",
    "diagnose",
    "diff_targets",
    "doctor",
    "emulate_aipp",
    "explain",
    "export",
    "fix",
    "import_targets",
    "inspect",
    "lint",
    "list_targets",
    "migrate",
    "move_aipp",
    "quantize",
    "reduce",
    "show_target",
    "simplify",
    "triage",
    "verify",
    "verify_aipp",
    "verify_precision",
]

if TYPE_CHECKING:
    from .case import Artifact, Case, Finding, Measurement, Proof, Record, Step
    from .errors import (
        EvaluationError,
        ExternalDataError,
        JumarError,
        ModelError,
        OutputError,
        ShapeError,
        TargetError,
        ToolError,
        UsageError,
    )
    from .targets import Target
    from .verbs.aipp_check import check_aipp
    from .verbs.aipp_derive import derive_aipp
    from .verbs.aipp_emulate import emulate_aipp
    from .verbs.aipp_move import move_aipp
    from .verbs.aipp_stages import verify_aipp
    from .verbs.check import check
    from .verbs.compile import compile
    from .verbs.diagnose import diagnose
    from .verbs.doctor import doctor
    from .verbs.explain import explain
    from .verbs.export import export
    from .verbs.fix import fix
    from .verbs.inspect import inspect
    from .verbs.lint import lint
    from .verbs.migrate import migrate
    from .verbs.precision import verify_precision
    from .verbs.quantize import quantize
    from .verbs.reduce import reduce
    from .verbs.simplify import simplify
    from .verbs.targets import list_targets, show_target
    from .verbs.targets_diff import diff_targets
    from .verbs.targets_import import import_targets
    from .verbs.triage import triage
    from .verbs.verify import verify


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'jumar' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
