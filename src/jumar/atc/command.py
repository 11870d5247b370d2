"""The ATC command line for a model: names, shapes and layout are read from the model, never typed.

Flags and their grammar: ``data/atc.json`` (the ATC sources, hicann/ge, 9.2; the flags used here exist in 8.1.RC1 too).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from .. import __version__
from ..errors import UsageError
from ..graph import static_shape
from ..targets import Target
from ..text import say
from .gears import Gears
from .options import ModelFacts, Options, Problem, atc_flags, check, nearest_flag

PRECISION_MODES = ("fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16")
"""Values of --precision_mode_v2 for the SoCs known here; ATC's own default is fp16."""
INPUT_FORMATS = ("ND", "NCHW", "NHWC", "NCDHW", "NDHWC")
"""Layouts that ATC knows; of an ONNX model it takes those of :data:`ONNX_FORMATS`."""
ONNX_FORMATS = ("NCHW", "ND", "NCDHW")
PATH_FLAGS = frozenset(
    {
        "model",
        "output",
        "insert_op_conf",
        "keep_dtype",
        "modify_mixlist",
        "fusion_switch_file",
        "op_precision_mode",
        "compression_optimize_conf",
        "compress_weight_conf",
        "customize_dtypes",
        "op_name_map",
    }
)
"""Flags whose value is a file."""
OWN_FLAGS = frozenset(
    {
        "model",
        "weight",
        "framework",
        "output",
        "soc_version",
        "input_shape",
        "input_shape_range",
        "input_format",
        "precision_mode_v2",
        "dynamic_batch_size",
        "dynamic_image_size",
        "dynamic_dims",
        "mode",
        "om",
        "json",
        "singleop",
    }
)
"""Flags that Jumar writes itself from what it knows, or that do not compile a model."""
AOE_FLAGS = frozenset(
    {
        *("model", "framework", "output", "input_shape", "input_format", "dynamic_batch_size", "dynamic_image_size", "dynamic_dims"),
        *("precision_mode", "output_type", "out_nodes", "input_fp16_nodes", "insert_op_conf", "log", "op_precision_mode", "keep_dtype"),
        *("modify_mixlist", "aicore_num", "host_env_os", "host_env_cpu"),
    }
)
"""Flags of ATC that AOE documents too (CANN 8.5). It tunes for the device of the machine, and has no --soc_version."""
_OLD_PRECISION = {
    "fp16": "force_fp16",
    "origin": "must_keep_origin_dtype",
    "mixed_float16": "allow_mix_precision",
    "cube_fp16in_fp32out": "cube_fp16in_fp32out",
}


@dataclass(frozen=True)
class AtcCommand:
    """A call of ATC (or AOE). ``flags`` keeps its order; paths are as given to :func:`build_command`."""

    flags: Mapping[str, str]
    program: str = "atc"

    def argv(self, program: str | None = None) -> list[str]:
        return [program or self.program, *(f"--{name}={value}" for name, value in self.flags.items())]

    def text(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.argv())


def input_format(model: ir.Model) -> str:
    """NCHW if every input with dimensions has four, NCDHW for five, else ND. ONNX models are never NHWC for ATC: an input whose channels
    come last (a Transpose moves them first) is ND, which claims nothing."""
    values = _inputs(model)
    ranks = {len(value.shape) for value in values if value.shape is not None and len(value.shape) > 0}
    found = {frozenset({4}): "NCHW", frozenset({5}): "NCDHW"}.get(frozenset(ranks), "ND")
    return "ND" if found != "ND" and any(_channels_last(value) for value in values) else found


def _channels_last(value: ir.Value) -> bool:
    """Whether all that reads an input first moves its last dimension to the second place."""
    moves = {(0, 3, 1, 2), (0, 4, 1, 2, 3)}
    users = [use.node for use in value.uses()]
    perms = [node.attributes["perm"].as_ints() if node.op_type == "Transpose" and "perm" in node.attributes else () for node in users]
    return bool(perms) and all(tuple(perm) in moves for perm in perms)


def check_input_format(wanted: str | None, gears: Gears | None) -> None:
    """Refuse a layout that ATC would refuse.

    Raises:
        UsageError: not a layout, none of an ONNX model, or not the one that the gears need.
    """
    if wanted is None:
        return
    needed = None if gears is None else gears.input_format
    if wanted not in ONNX_FORMATS:
        known = wanted in INPUT_FORMATS
        raise UsageError(
            say("an ONNX model cannot be {format} for ATC", "ATC 不接受 {format} 布局的 ONNX 模型", format=wanted)
            if known
            else say("`{format}` is no layout", "`{format}` 不是布局", format=wanted),
            say("expected one of: {known} (ATC: E10001)", "应为其中之一：{known}（ATC：E10001）", known=", ".join(ONNX_FORMATS)),
            say("use ND for inputs whose channels come last: the model moves them itself", "通道在最后的输入请用 ND：模型自身会转换布局")
            if known
            else say("correct --input-format", "请修正 --input-format"),
        )
    if needed is not None and gears is not None and wanted != needed:
        raise UsageError(
            say("gears of this kind need --input_format={needed}", "这类档位需要 --input_format={needed}", needed=needed),
            say(
                "expected {needed}, found {wanted} (ATC: E10003)",
                "应为 {needed}，实为 {wanted}（ATC：E10003）",
                needed=needed,
                wanted=wanted,
            ),
            say("leave --input-format out", "请去掉 --input-format"),
        )


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


def check_names(model: ir.Model) -> None:
    """Refuse input names that --input_shape cannot hold. (A colon it can: the last one ends the name. NM401 warns of it all the same.)

    Raises:
        UsageError: one has a semicolon in it, which would end the shape.
    """
    for value in _inputs(model):
        if ";" in (value.name or ""):
            raise UsageError(
                say("input `{name}` has `;` in its name", "输入 `{name}` 的名称含有 `;`", name=value.name),
                say("expected names without it: it separates the values of --input_shape", "名称不应含有分号：它是 --input_shape 的分隔符"),
                say("jumar fix renames it (NM401) and keeps a map of the names", "jumar fix 会改名（NM401）并保留名称对照"),
            )


def build_command(
    model: ir.Model,
    target: Target,
    model_path: str,
    output: str,
    *,
    precision_mode: str | None = None,
    gears: Gears | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
) -> AtcCommand:
    """The command that compiles ``model_path`` into ``<output>.om``.

    Scalars (rank 0) are left out of --input_shape: the model's own shape stands, and only 9.x documents a form for them.

    Args:
        gears: the sizes that one .om takes; without them every input needs a fixed shape.
        shapes: sizes of open inputs, where ``model`` does not fix them.
        format: --input_format; None chooses.
        options: further flags of ATC, without dashes.

    Raises:
        UsageError: an input without a fixed shape, or what ATC would refuse.
    """
    check_input_format(format, gears)
    flags = {"model": model_path, "framework": "5", "output": output.removesuffix(".om"), "soc_version": target.soc.name}
    if gears is not None:
        flags |= {name: value for name, value in gears.flags().items() if value}
    elif (words := _fixed_shapes(model, shapes or {})) != "":
        flags["input_shape"] = words
    flags["input_format"] = format or (gears.input_format if gears is not None else None) or input_format(model)
    if precision_mode is not None:
        check_precision_mode(precision_mode)
        flags["precision_mode_v2"] = precision_mode
    given = dict(options or {})
    check_options(given)
    log = given.pop("log", "error")
    return AtcCommand({**flags, **given, "log": log})


def _fixed_shapes(model: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> str:
    parts = []
    for value in _inputs(model):
        shape = shapes.get(value.name or "", static_shape(value))
        if shape is None:
            raise UsageError(
                say("input `{name}` has no fixed shape", "输入 `{name}` 没有固定形状", name=value.name),
                say("ATC wants a number for every dimension (E11005)", "ATC 要求每个维度都有数值（E11005）"),
                say('pin it with --shape "{name}:..."', '请用 --shape "{name}:..." 固定', name=value.name),
            )
        if shape:
            parts.append(f"{value.name}:{','.join(str(dim) for dim in shape)}")
    return ";".join(parts)


def check_options(options: Mapping[str, str]) -> None:
    """Refuse flags that ATC does not have, and those that Jumar writes itself.

    Raises:
        UsageError: one is such a flag.
    """
    for name in options:
        if name in OWN_FLAGS:
            raise UsageError(
                say("--{name} is written by Jumar", "--{name} 由 Jumar 生成", name=name),
                say("expected a flag that Jumar does not set", "应为 Jumar 不设置的参数"),
                say("use Jumar's own option for it, see jumar compile --help", "请使用 Jumar 自己的选项，见 jumar compile --help"),
            )
        if name not in atc_flags():
            nearest = nearest_flag(name)
            raise UsageError(
                say("ATC has no flag --{name}", "ATC 没有参数 --{name}", name=name),
                say("expected perhaps --{nearest}", "也许应为 --{nearest}", nearest=nearest) if nearest else None,
                say("correct --atc", "请修正 --atc"),
            )


def judge_command(command: AtcCommand, target: Target, facts: ModelFacts | None = None) -> list[Problem]:
    """What ATC would say of a command, by its own rules.

    Returns:
        Warnings and notes.

    Raises:
        UsageError: ATC would refuse it.
    """
    problems = check(Options(command.flags), cann=target.cann, soc=target.soc.name, model_facts=facts)
    for problem in problems:
        if problem.severity == "error":
            code = f" ({', '.join(problem.atc)})" if problem.atc else ""
            raise UsageError(problem.message, say("{why}{code}", "{why}{code}", why=problem.why, code=code), problem.remedy)
    return problems


def aoe_command(command: AtcCommand, job: str) -> AtcCommand:
    """The call of AOE that tunes for an ATC command.

    Args:
        job: ``1`` tunes subgraphs, ``2`` operators.
    """
    flags = {name: value for name, value in command.flags.items() if name in AOE_FLAGS}
    mode = _OLD_PRECISION.get(command.flags.get("precision_mode_v2", ""))
    if mode is not None:
        flags["precision_mode"] = mode
    return AtcCommand({**flags, "output": f"{command.flags['output']}_tuned", "job_type": job}, "aoe")


def shell_script(
    commands: AtcCommand | Sequence[AtcCommand], target: Target, digests: Mapping[str, str], *, verbose_log: bool = False
) -> str:
    """A script that checks the model and compiles it where CANN is installed. Relative paths are relative to the script.

    Args:
        commands: run in this order; the script ends with the first that fails, but one of AOE, which only makes a model faster.
        digests: SHA-256 of the model, its external weights and configuration files, by path.
        verbose_log: set the variables that make ATC write all of its log, into ``atc-log`` beside the script.
    """

    def path(text: str) -> str:
        return shlex.quote(text) if text.startswith("/") else '"$here"/' + shlex.quote(text)

    def line(command: AtcCommand) -> str:
        words = {name: path(value) if name in PATH_FLAGS else shlex.quote(value) for name, value in command.flags.items()}
        ahead = {name: words.pop(name) for name in ("model", "output") if name in words}
        text = " \\\n  ".join(
            [
                " ".join([command.program, *(f"--{name}={value}" for name, value in list(ahead.items())[:1])]),
                *(f"--{name}={value}" for name, value in [*list(ahead.items())[1:], *words.items()]),
            ]
        )
        return text if command.program == "atc" else f'{text} || echo "{command.program} failed; compiling without its result" >&2'

    calls = [commands] if isinstance(commands, AtcCommand) else list(commands)
    checks = "\n".join(f"printf '%s  %s\\n' {digest} {path(name)} | sha256sum --check --quiet" for name, digest in digests.items())
    lines = "\n".join(line(command) for command in calls)
    logging = ""
    if verbose_log:
        logging = (
            "# All of ATC's log is kept: mebibytes for a small model, gigabytes for a large one.\n"
            "export ASCEND_GLOBAL_LOG_LEVEL=0 ASCEND_GLOBAL_EVENT_ENABLE=1 ASCEND_SLOG_PRINT_TO_STDOUT=0\n"
            'export ASCEND_PROCESS_LOG_PATH="$here"/atc-log\nmkdir -p "$ASCEND_PROCESS_LOG_PATH"\n'
        )
    return f"""#!/usr/bin/env bash
# Made by Jumar {__version__} for {target.label}. Run it where CANN is installed, after: source <CANN>/set_env.sh
set -euo pipefail
here=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
command -v atc >/dev/null || {{ echo "atc was not found: source <CANN>/set_env.sh first" >&2; exit 2; }}
{checks}
{logging}# ATC leaves kernel_meta/ and fusion_result.json in its working directory.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
{lines}
"""
