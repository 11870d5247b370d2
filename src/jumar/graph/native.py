"""ONNX's native checker and shape inference, in a child process of their own.

Both are C++ that a hostile or merely odd model can crash or keep busy for ever. The child is started once for the process and asked
whatever is needed; it ends with the process.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path

import onnx

from .evaluate import ChildFailure, Evaluator

TIMEOUT = 30.0
"""Seconds one check or one inference may take; real models of thousands of nodes take well under one."""

_running: tuple[int, Evaluator] | None = None


def _worker() -> Evaluator:
    """This process's child (a forked process gets its own)."""
    global _running
    if _running is None or _running[0] != os.getpid():
        evaluator = Evaluator(timeout=TIMEOUT)
        atexit.register(evaluator.close)
        _running = (os.getpid(), evaluator)
    return _running[1]


def check_model(model: onnx.ModelProto | Path) -> str | None:
    """What the ONNX checker has against a model (None: nothing). A crash or a time-out of the checker is a reason too."""
    header, payload = ({"path": str(model)}, b"") if isinstance(model, Path) else ({}, model.SerializeToString())
    try:
        reply, _ = _worker().exchange({"cmd": "check", **header}, [payload])
    except ChildFailure as failure:
        return str(failure.reason)
    reason: str | None = reply["reason"]
    return reason


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with what ONNX infers of its types and shapes.

    Raises:
        ChildFailure: inference refused the model, crashed, or took too long.
    """
    _, payloads = _worker().exchange({"cmd": "infer"}, [model.SerializeToString()])
    inferred = onnx.ModelProto()
    inferred.ParseFromString(bytes(payloads[0]))
    return inferred
