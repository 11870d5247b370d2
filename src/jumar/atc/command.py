"""The ATC command line for a model: names, shapes and layout are read from the model, never typed.

Flags and their grammar: the ATC sources (hicann/ge, 9.2; the flags used here exist in 8.1.RC1 too).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from .. import __version__
from ..errors import UsageError
from ..graph import static_shape
from ..targets import Target
from ..text import say

PRECISION_MODES = ("fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16")
"""Values of --precision_mode_v2 for the SoCs known here; ATC's own default is fp16."""


@dataclass(frozen=True)
class AtcCommand:
    """An ATC call. ``flags`` keeps its order; paths are as given to :func:`build_command`."""

    flags: Mapping[str, str]

    def argv(self, program: str = "atc") -> list[str]:
        return [program, *(f"--{name}={value}" for name, value in self.flags.items())]

    def text(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.argv())


def input_format(model: ir.Model) -> str:
    """NCHW if every input with dimensions has four, NCDHW for five, else ND. ONNX models are never NHWC for ATC."""
    ranks = {len(shape) for value in _inputs(model) if (shape := static_shape(value))}
    return {frozenset({4}): "NCHW", frozenset({5}): "NCDHW"}.get(frozenset(ranks), "ND")


def _inputs(model: ir.Model) -> list[ir.Value]:
    return [value for value in model.graph.inputs if value.name not in model.graph.initializers]


def check_precision_mode(mode: str | None) -> None:
    """Refuse what ATC would refuse.

    Raises:
        UsageError: not a value of --precision_mode_v2.
    """
    if mode is not None and mode not in PRECISION_MODES:
        raise UsageError(
            say("`{mode}` is not a precision mode", "`{mode}` 不是精度模式", mode=mode),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(PRECISION_MODES)),
            say("correct --precision-mode", "请修正 --precision-mode"),
        )


def build_command(model: ir.Model, target: Target, model_path: str, output: str, *, precision_mode: str | None = None) -> AtcCommand:
    """The command that compiles ``model_path`` into ``<output>.om``.

    Scalars (rank 0) are left out of --input_shape: the model's own shape stands, and only 9.x documents a form for them.

    Raises:
        UsageError: an input without a fixed shape, or an unknown precision mode.
    """
    parts = []
    for value in _inputs(model):
        shape = static_shape(value)
        if shape is None:
            raise UsageError(
                say("input `{name}` has no fixed shape", "输入 `{name}` 没有固定形状", name=value.name),
                say("ATC wants a number for every dimension (E11005)", "ATC 要求每个维度都有数值（E11005）"),
                say('pin it with --shape "{name}:..."', '请用 --shape "{name}:..." 固定', name=value.name),
            )
        if shape:
            parts.append(f"{value.name}:{','.join(str(dim) for dim in shape)}")
    flags = {"model": model_path, "framework": "5", "output": output.removesuffix(".om"), "soc_version": target.soc.name}
    if parts:
        flags["input_shape"] = ";".join(parts)
    flags["input_format"] = input_format(model)
    if precision_mode is not None:
        check_precision_mode(precision_mode)
        flags["precision_mode_v2"] = precision_mode
    flags["log"] = "error"
    return AtcCommand(flags)


def shell_script(command: AtcCommand, target: Target, digests: Mapping[str, str]) -> str:
    """A script that checks the model and compiles it where CANN is installed. Relative paths are relative to the script.

    Args:
        digests: SHA-256 of the model and of its external weights, by path.
    """

    def path(text: str) -> str:
        return shlex.quote(text) if text.startswith("/") else '"$here"/' + shlex.quote(text)

    model, output = path(command.flags["model"]), path(command.flags["output"])
    flags = [f"--{name}={shlex.quote(value)}" for name, value in command.flags.items() if name not in ("model", "output")]
    checks = "\n".join(f"printf '%s  %s\\n' {digest} {path(name)} | sha256sum --check --quiet" for name, digest in digests.items())
    lines = " \\\n  ".join([f"atc --model={model}", f"--output={output}", *flags])
    return f"""#!/usr/bin/env bash
# Made by Jumar {__version__} for {target.label}. Run it where CANN is installed, after: source <CANN>/set_env.sh
set -euo pipefail
here=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
command -v atc >/dev/null || {{ echo "atc was not found: source <CANN>/set_env.sh first" >&2; exit 2; }}
{checks}
# ATC leaves kernel_meta/ and fusion_result.json in its working directory.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
{lines}
"""
