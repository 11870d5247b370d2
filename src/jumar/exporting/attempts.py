"""One run of one of torch's two exporters, in a fork."""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import onnx_ir as ir

from ..errors import JumarError
from ..graph import load
from ..text import Text, say
from .eager import Eager
from .forms import own_forms
from .isolation import Limits, Lost, run_apart
from .lines import is_foreign, line_of_error, short
from .program import Program
from .tidy import IN, OUT, tidy

Exporter = Literal["dynamo", "torchscript"]
EXPORTERS: tuple[Exporter, ...] = ("dynamo", "torchscript")
DYNAMO_OPSET = 18
"""The oldest that it writes itself; from there Jumar's own conversion goes down."""
TORCHSCRIPT_OPSETS = (9, 17)
_OPERATOR = re.compile(r"\b(?:aten|prim|quantized|torchvision|torch_cluster|torch_scatter)(?:::|\.)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")
_LARGE = 1_500_000_000


@dataclass
class Attempt:
    """What an exporter made, or why it made nothing.

    Attributes:
        own: whether forms of ours stood in for calls that the exporters refuse.
        said: lines at which the exporter itself warned that the trace may be wrong, with its words.
        vanished: inputs that the graph does not have any more, or does not read.
    """

    exporter: Exporter
    opset: int
    own: bool = False
    model: ir.Model | None = None
    reason: Text | None = None
    operator: str | None = None
    line: str | None = None
    said: list[tuple[str | None, str]] = field(default_factory=list)
    vanished: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.exporter}@{self.opset}{'+own' if self.own else ''}"


def attempt(program: Program, eager: Eager, exporter: Exporter, opset: int, folder: Path, limits: Limits, own: bool = False) -> Attempt:
    """Export once; what goes wrong is told in the result.

    Args:
        own: with forms of ours for calls that the exporters refuse.
    """
    made = Attempt(exporter, opset, own)
    outputs = tuple(slot.name for slot in eager.outputs)
    path = folder / f"{made.label}.onnx"
    start = time.perf_counter()
    try:
        answer, _ = run_apart(lambda: _job(program, eager, made, path), limits)
    except Lost as lost:
        made.reason, made.seconds = lost.reason, time.perf_counter() - start
        return made
    made.seconds = time.perf_counter() - start
    made.said = [(line, words) for line, words in answer["said"]]
    if "error" in answer:
        made.reason, made.operator, made.line = say("{error}", "{error}", error=answer["error"]), answer["operator"], answer["line"]
        return made
    try:
        model = load(path)
        made.vanished = tidy(model, [slot.name for slot in program.inputs], outputs, program.dynamic)
    except JumarError as error:
        made.reason = error.found
        return made
    made.model = model
    return made


def _job(program: Program, eager: Eager, wanted: Attempt, path: Path) -> tuple[dict[str, Any], Mapping[str, Any]]:
    import torch

    export: Callable[..., None] = _dynamo if wanted.exporter == "dynamo" else _torchscript
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for name in eager.imported:  # an import while it traces would become part of the trace
                with suppress(ImportError):
                    importlib.import_module(name)
            wrapper = program.wrapper(own_forms if wanted.own else nullcontext)
            plain(wrapper)
            with torch.no_grad():  # inside forward it would be a region of its own, whose nodes have no lines
                export(program, wrapper, len(eager.outputs), wanted.opset, path)
        except Exception as error:
            words = str(error)
            operator = next(iter(_OPERATOR.findall(words)), None)
            return {"error": _first_words(error), "operator": operator, "line": line_of_error(error), "said": _said(caught)}, {}
    return {"said": _said(caught)}, {}


def plain(wrapper: Any) -> None:
    """Weights as numbers instead of as what computes them, where nothing needs a gradient any more."""
    import torch
    from torch.nn.utils import parametrize

    wrapper.requires_grad_(False)
    for module in wrapper.modules():
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
        for hook in list(module._forward_pre_hooks.values()):
            if type(hook).__name__ in ("WeightNorm", "SpectralNorm"):
                remove = torch.nn.utils.remove_weight_norm if type(hook).__name__ == "WeightNorm" else torch.nn.utils.remove_spectral_norm
                remove(module, hook.name)


def _dynamo(program: Program, wrapper: Any, outputs: int, opset: int, path: Path) -> None:
    import torch

    shapes = None
    if program.dynamic:
        dim = getattr(torch.export.Dim, "AUTO", None)
        shapes = (tuple(dict.fromkeys(program.dynamic.axes.get(slot.name, {}), dim) for slot in program.inputs),)
    torch.onnx.export(
        wrapper,
        tuple(program.tensors(program.given)),
        str(path),
        dynamo=True,
        opset_version=opset,
        input_names=_names(IN, len(program.inputs)),
        output_names=_names(OUT, outputs),
        dynamic_shapes=shapes,
        external_data=_weights(wrapper) > _LARGE,
        verbose=False,
    )


def _torchscript(program: Program, wrapper: Any, outputs: int, opset: int, path: Path) -> None:
    import torch

    tensors = tuple(program.tensors(program.given))
    if any(isinstance(part, torch.jit.ScriptModule) for part in wrapper.modules()):
        wrapper = torch.jit.trace(wrapper, tensors, check_trace=False)  # the exporter's own tracer knows no scripted parts
    names = _names(IN, len(program.inputs))
    axes = {
        name: {axis: program.dynamic.symbol(slot.name, axis) for axis in program.dynamic.axes[slot.name]}
        for name, slot in zip(names, program.inputs, strict=True)
        if slot.name in program.dynamic.axes
    }
    torch.onnx.export(
        wrapper,
        tensors,
        str(path),
        dynamo=False,
        opset_version=opset,
        input_names=names,
        output_names=_names(OUT, outputs),
        dynamic_axes=axes,
        verbose=True,  # keeps the Python stack of each node
    )


def _names(stem: str, count: int) -> list[str]:
    return [f"{stem}{index}" for index in range(count)]


def _weights(wrapper: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in (*wrapper.parameters(), *wrapper.buffers()))


def _first_words(error: BaseException) -> str:
    """What the innermost cause says, in one line: the exporters wrap it in advice on themselves."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    words = " ".join(str(chain[-1]).split("\n\n")[0].split())
    return f"{type(chain[-1]).__name__}: {words}"[:400]


def _said(caught: list[warnings.WarningMessage]) -> list[tuple[str | None, str]]:
    """Warnings of the tracer that the graph may be wrong elsewhere."""
    found: dict[tuple[str | None, str], None] = {}
    for item in caught:
        if item.category.__name__ == "TracerWarning":
            line = short(item.filename, item.lineno) if is_foreign(item.filename) else None
            found[line, str(item.message).split(". ")[0].split("\n")[0][:200]] = None
    return list(found)
