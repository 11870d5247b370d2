"""Reads a text as what it is (script, makefile, program, document, configuration) and says what is wrong in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

import onnx_ir as ir

from ..graph import all_nodes, tensor_info
from .calls import AtcCall, find_calls
from .lint_configs import ConfigKind, check_config, config_kind
from .options import ModelFacts, Options, Problem, check, parse_argv, symbolic
from .scripts import calls_in_make, calls_in_markdown, calls_in_python

ScriptKind = Literal["shell", "make", "python", "markdown"]
_SUFFIXES: dict[str, ScriptKind] = {
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".mk": "make",
    ".mak": "make",
    ".py": "python",
    ".md": "markdown",
    ".markdown": "markdown",
    ".rst": "markdown",
}
SCRIPT_SUFFIXES = tuple(_SUFFIXES)
_READERS: dict[ScriptKind, Callable[[str], list[AtcCall]]] = {
    "shell": find_calls,
    "make": calls_in_make,
    "python": calls_in_python,
    "markdown": calls_in_markdown,
}


@dataclass(frozen=True)
class FoundCall:
    """One call in a text: where it begins, its flags, and its problems."""

    line: int
    options: Options
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class LintedText:
    """What a text is and what was found in it.

    Attributes:
        kind: None where it holds nothing that is known here.
        calls: of a script.
        problems: of a configuration file, with their lines.
    """

    kind: ScriptKind | ConfigKind | None
    calls: tuple[FoundCall, ...] = ()
    problems: tuple[tuple[int, Problem], ...] = ()


def model_facts(model: ir.Model, file: str = "") -> ModelFacts:
    """What a call can be compared with, of a loaded ONNX model. Nodes count only where all of them have names."""
    nodes = list(all_nodes(model))
    named = {node.name: len(node.outputs) for node in nodes if node.name}
    weights = frozenset(model.graph.initializers)
    return ModelFacts(
        inputs=tuple(tensor_info(value) for value in model.graph.inputs if value.name not in weights),
        outputs=tuple(tensor_info(value) for value in model.graph.outputs),
        nodes=named if all(node.name for node in nodes) else {},
        initializers=weights,
        file=file,
    )


def script_kind(name: str) -> ScriptKind | None:
    """The kind of script that a file name stands for; None for any other name."""
    base = PurePath(name).name
    if base.lower() in ("makefile", "gnumakefile"):
        return "make"
    return _SUFFIXES.get(PurePath(base).suffix.lower())


def lint_text(
    text: str,
    name: str = "",
    *,
    kind: ScriptKind | ConfigKind | None = None,
    cann: str | None = None,
    soc: str | None = None,
    facts: ModelFacts | None = None,
) -> LintedText:
    """Judge all calls in a script, or one configuration file.

    Args:
        name: of the file; says what it is where its content does not.
        kind: what it is, if that is known.
        cann: judge for this release; None for the newest known.
        soc: the soc_version to judge for where a call leaves it open.
        facts: of the model; a call that names another ONNX file is not compared with it.
    """
    scripts = script_kind(name) if kind is None else None
    if kind is None and scripts is None:
        kind = config_kind(text)
    if kind is not None and kind not in _READERS:
        config: ConfigKind = kind  # type: ignore[assignment]
        return LintedText(config, problems=tuple(check_config(config, text, facts)))
    reader: ScriptKind = scripts or kind or "shell"
    calls = tuple(_judged(call, cann, soc, facts) for call in _READERS[reader](text))
    return LintedText(reader if calls else None, calls)


def _judged(call: AtcCall, cann: str | None, soc: str | None, facts: ModelFacts | None) -> FoundCall:
    options, reading = parse_argv(call.words)
    compared = facts if facts is not None and _names_model(options, facts.file) else None
    problems = (*call.problems, *reading, *check(options, cann=cann, soc=soc, model_facts=compared))
    order = {"error": 0, "warning": 1, "info": 2}
    return FoundCall(call.line, options, tuple(sorted(problems, key=lambda problem: order[problem.severity])))


def _names_model(options: Options, file: str) -> bool:
    """Whether a call is about this model: it names a file of the same name, or leaves the name open."""
    given = options.get("model")
    return not file or not given or symbolic(given) or PurePath(given).name == PurePath(file).name
