"""``jumar compile``: the ATC command, a script and a manifest; and the .om where ATC is installed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import onnx_ir as ir

from .. import __version__
from ..atc import build_manifest, find_atc
from ..atc.command import PATH_FLAGS, AtcCommand, aoe_command, build_command, check_names, judge_command, shell_script
from ..atc.configs import Configs
from ..atc.gears import HIDDEN_INPUT, Gears, Kind
from ..atc.options import ModelFacts
from ..atc.toolchain import DEFAULT_TIMEOUT, LONGEST_TIMEOUT
from ..case import Artifact, Case, Finding, ModelInfo, Step
from ..errors import UsageError
from ..graph import all_nodes, model_info, write_atomic
from ..graph.digest import file_sha256
from ..targets import Target
from ..text import Text, say
from .aipp_compile import judge_inserted
from .check import examine, pinned
from .common import Progress, Shapes, check_number, check_shapes, open_case, silent
from .compile_gears import gear_findings, names_of_gears, read_wanted_gears
from .compile_int8 import check_deploy
from .compile_run import Run, run_all

Job = Literal["subgraph", "operator"]
JOBS: Mapping[str, str] = {"subgraph": "1", "operator": "2"}


@dataclass(frozen=True)
class Wanted:
    """What shall be compiled beyond the model itself; the defaults are a plain call of ATC.

    Attributes:
        gears: the sizes that the .om takes.
        split: compile each gear into an .om of its own.
        aipp: file of the preprocessing to insert.
        configs: what ATC's configuration files shall say.
        options: further flags of ATC.
        tune: also run AOE first.
    """

    gears: Gears | None = None
    split: bool = False
    input_format: str | None = None
    aipp: Path | None = None
    configs: Configs = field(default_factory=Configs)
    options: Mapping[str, str] = field(default_factory=dict)
    tune: Job | None = None
    verbose_log: bool = False
    memory_limit: int | None = None

    @property
    def plain(self) -> bool:
        return self == Wanted()


def compile(
    model: str | Path,
    *,
    output: str | Path,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    opset_max: int | None = None,
    shapes: Shapes | None = None,
    gears: str | Sequence[str | Shapes] = (),
    gears_from: str | Path | None = None,
    gear_count: int | None = None,
    gear_multiple: int | None = None,
    gear_flag: Kind | None = None,
    split: bool = False,
    precision_mode: str | None = None,
    input_format: str | None = None,
    aipp: str | Path | None = None,
    configs: Configs | None = None,
    options: Mapping[str, str] | None = None,
    tune: Job | None = None,
    verbose_log: bool = False,
    memory_limit: int | None = None,
    dry_run: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Progress = silent,
) -> Case:
    """Write what compiles the model, and compile it where ATC is found.

    Args:
        output: a directory; gets ``compile.sh``, ``manifest.json``, the configuration files and, where ATC ran, ``atc.log`` and
            ``<model>.om``.
        shapes: sizes of open inputs.
        gears: the sets of sizes that one .om shall take, as text (``batch 1,4,8``; see :func:`jumar.atc.gear_words.read_gears`) or as
            shapes by input name, one mapping for each gear.
        gears_from: a histogram of real shapes (.npz, .csv, .json), from which gears are chosen that pad least.
        gear_count: most gears to choose from it (default: 8).
        gear_multiple: multiple that their sizes are rounded up to (default: 16 or 64, as kernels work).
        gear_flag: which of ATC's gear flags to use (default: the narrowest one that fits).
        split: make an .om for each gear instead of one for all.
        precision_mode: value of --precision_mode_v2 (default: ATC's own, fp16).
        input_format: value of --input_format (default: chosen from the model).
        aipp: file for --insert_op_conf; it is judged with the model and the command (AI101 to AI107), and the manifest tells what each
            block takes.
        configs: what ATC's configuration files shall say.
        options: further flags of ATC by name, without dashes.
        tune: run AOE first, for subgraphs or operators. It needs a device.
        verbose_log: let CANN log all it can, into ``atc-log``.
        memory_limit: bytes that ATC may hold; more ends it.
        dry_run: do not run ATC even if it is there.
        timeout: seconds ATC may take.

    Returns:
        A case whose record has the artefacts and, if ATC failed, a finding CP701. Where ATC was not run it has CP702 (no .om was made)
        and the findings of check instead of ATC's own judgement. CP703 names shape arithmetic that stays open under a gear.

    Raises:
        UsageError, ModelError, TargetError, OutputError, ToolError.
    """
    check_number("--timeout", timeout, LONGEST_TIMEOUT, zero=False)
    if memory_limit is not None:
        check_number("--memory-limit", memory_limit, float(1 << 60), zero=False)
    case = open_case(model, "compile", soc=soc, target=target, cann=cann, opset_max=opset_max)
    if shapes:
        case = case.replace(model=pinned(case.model, check_shapes(case.model, shapes)))
    folder = Path(output)
    if folder.is_file():
        raise UsageError(
            say("`{path}` is a file", "`{path}` 是一个文件", path=folder),
            say("expected a directory to write into", "应为用于输出的目录"),
            say("choose another -o", "请更换 -o"),
        )
    found, notes = read_wanted_gears(
        case, gears, gears_from, count=gear_count, multiple=gear_multiple, flag=gear_flag, aipp=aipp is not None, split=split
    )
    wanted = Wanted(
        found,
        split,
        input_format,
        None if aipp is None else Path(aipp),
        configs or Configs(),
        dict(options or {}),
        tune,
        verbose_log,
        None if memory_limit is None else int(memory_limit),
    )
    case = case.replace(record=case.record.extend(notes=notes, findings=() if found is None else gear_findings(case.model, found)))
    result = compile_into(
        case,
        folder,
        str(Path(model).resolve()),
        Path(model).stem,
        precision_mode=precision_mode,
        dry_run=dry_run,
        timeout=timeout,
        progress=progress,
        wanted=wanted,
    )
    if any(item.kind == "log" for item in result.record.artifacts):
        return result  # ATC itself has judged the model
    checked = examine(_at_first_gear(case, found)).record
    if found is not None and found.kind == "range":  # open dimensions are what was asked for
        checked = replace(checked, findings=tuple(item for item in checked.findings if item.code != "SH201"))
    return result.replace(record=result.record.extend(findings=checked.findings, placement=checked.placement))


def _at_first_gear(case: Case, gears: Gears | None) -> Case:
    """What is to be judged: ATC compiles the model once for each gear, so that its dimensions are fixed. Of a range they are not."""
    return case if gears is None or gears.kind == "range" else case.replace(model=pinned(case.model, gears.shapes()[0]))


def compile_into(
    case: Case,
    folder: Path,
    model_path: str,
    name: str,
    *,
    source: ModelInfo | None = None,
    files: tuple[Artifact, ...] = (),
    history: Sequence[Step] = (),
    precision_mode: str | None = None,
    dry_run: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Progress = silent,
    wanted: Wanted | None = None,
) -> Case:
    """Write script and manifest into ``folder`` and run ATC.

    Args:
        model_path: absolute or relative to the folder.
        history: what was done to the model before; the manifest tells what it rests on.
    """
    if case.target is None:
        raise ValueError("a target is needed")
    check_names(case.model)
    wanted = wanted or Wanted()
    check_deploy(case.model, wanted.gears, wanted.options.get("precision_mode_v2", precision_mode))
    start = time.perf_counter()
    absolute = folder / model_path
    texts, copies = _config_files(case.model, wanted, precision_mode)
    options = {**wanted.options, **{flag: file for flag, (file, _) in texts.items()}, **{flag: path.name for flag, path in copies.items()}}
    commands = _commands(case, model_path, name, wanted, precision_mode, options)
    notes = _judged(case, commands, wanted)
    tuning = [aoe_command(command, JOBS[wanted.tune]) for command in commands] if wanted.tune is not None else []
    digest = file_sha256(absolute)
    made = _written(folder, texts, copies)
    inserted = copies.get("insert_op_conf")
    told: tuple[Finding, ...] = ()
    blocks: list[dict[str, Any]] = []
    if inserted is not None:
        told, blocks = judge_inserted(folder / inserted.name, commands[0].argv(), model_info(case.model, None).inputs, case.target)
    digests = {model_path: digest, **_weights(case, folder, model_path), **{item.path: str(item.sha256) for item in made}}
    script = shell_script([*tuning, *commands], case.target, digests, verbose_log=wanted.verbose_log)
    write_atomic(folder / "compile.sh", script, mode=0o755)
    files = (*files, *made, Artifact("compile.sh", file_sha256(folder / "compile.sh"), "script"))
    run = Run(folder, timeout, progress, wanted.verbose_log, wanted.memory_limit, case.target)
    outcome = run_all(run, commands, tuning, dry_run=dry_run)
    files = (*files, *outcome.files)
    manifest = build_manifest(
        case.target,
        commands[0].argv(),
        files,
        source=source,
        model=replace(model_info(case.model, absolute), path=model_path),
        interface=case.record.interface,
        atc=outcome.atc,
        **({} if wanted.plain else {"builds": _builds(commands, tuning, wanted, outcome.runs)}),
        steps=history,
        aipp=None if inserted is None else (folder / inserted.name),
        aipp_blocks=blocks,
        program=None if dry_run else find_atc(),
    )
    write_atomic(folder / "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    artifacts = (*files, Artifact("manifest.json", file_sha256(folder / "manifest.json"), "manifest"))
    taken: dict[str, Any] = {"command": commands[0].argv(), "atc": outcome.atc}
    if len(commands) > 1:
        taken["commands"] = [command.argv() for command in commands]
    step = Step("compile", __version__, digest, None, round(time.perf_counter() - start, 4), taken)
    record = case.record.extend(findings=(*told, *outcome.findings), artifacts=artifacts, steps=(step,), notes=(*notes, *outcome.notes))
    return case.replace(record=record)


def _commands(
    case: Case, model_path: str, name: str, wanted: Wanted, precision_mode: str | None, options: Mapping[str, str]
) -> list[AtcCommand]:
    """One command, or one for each gear."""
    target = case.target
    if target is None:
        raise ValueError("a target is needed")

    def build(output: str, gears: Gears | None, shapes: Mapping[str, tuple[int, ...]] | None = None) -> AtcCommand:
        return build_command(
            case.model,
            target,
            model_path,
            output,
            precision_mode=precision_mode,
            gears=gears,
            shapes=shapes,
            format=wanted.input_format,
            options=options,
        )

    if wanted.gears is not None and wanted.split:
        suffixes = names_of_gears(wanted.gears)
        return [build(f"{name}_{suffix}", None, shapes) for suffix, shapes in zip(suffixes, wanted.gears.shapes(), strict=True)]
    return [build(name, wanted.gears)]


def _judged(case: Case, commands: Sequence[AtcCommand], wanted: Wanted) -> tuple[Text, ...]:
    """What ATC's own rules say of the command, where the user chose any of it.

    Raises:
        UsageError: ATC would refuse it.
    """
    info = case.record.model
    if wanted.plain or info is None or case.target is None:
        return ()
    nodes = {node.name or "": len(node.outputs) for node in all_nodes(case.model)}
    facts = ModelFacts(info.inputs, info.outputs, nodes, frozenset(case.model.graph.initializers))
    problems = judge_command(commands[0], case.target, facts)
    return tuple(say("{message}: {why}", "{message}：{why}", message=item.message, why=item.why) for item in problems)


def _config_files(model: ir.Model, wanted: Wanted, precision_mode: str | None) -> tuple[dict[str, tuple[str, str]], dict[str, Path]]:
    """Files to write (name and text) and files of the user's to take along, by flag.

    Raises:
        UsageError: a file that is not there, or two for one flag.
    """
    texts = wanted.configs.files(model, wanted.options.get("precision_mode", precision_mode))
    copies = {flag: Path(value) for flag, value in wanted.options.items() if flag in PATH_FLAGS}
    if wanted.aipp is not None:
        copies = {"insert_op_conf": wanted.aipp, **copies}
    names = [file for file, _ in texts.values()] + [path.name for path in copies.values()]
    twice = [flag for flag in copies if flag in texts or (flag == "insert_op_conf" and flag in wanted.options and wanted.aipp is not None)]
    for flag, path in copies.items():
        if flag in twice or names.count(path.name) > 1 or path.name in ("compile.sh", "manifest.json", "atc.log"):
            raise UsageError(
                say("`{path}` would replace another file of the output", "`{path}` 会覆盖输出中的另一个文件", path=path),
                say("expected one file for --{flag}, with a name of its own", "--{flag} 应只有一个文件，且名称唯一", flag=flag),
                say("rename it, or leave one of them out", "请改名，或去掉其中一个"),
            )
        if not path.is_file():
            raise UsageError(
                say("`{path}` of --{flag} is not there", "--{flag} 的文件 `{path}` 不存在", path=path, flag=flag),
                say("expected a file", "应为文件"),
                say("correct the path", "请修正路径"),
            )
    return texts, copies


def _written(folder: Path, texts: Mapping[str, tuple[str, str]], copies: Mapping[str, Path]) -> tuple[Artifact, ...]:
    made = []
    for file, text in texts.values():
        write_atomic(folder / file, text)
        made.append(Artifact(file, file_sha256(folder / file), "config"))
    for path in copies.values():
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / path.name).exists() or not (folder / path.name).samefile(path):
            shutil.copyfile(path, folder / path.name)
        made.append(Artifact(path.name, file_sha256(folder / path.name), "config"))
    return tuple(made)


def _builds(
    commands: Sequence[AtcCommand], tuning: Sequence[AtcCommand], wanted: Wanted, runs: Sequence[Mapping[str, Any] | None]
) -> list[dict[str, Any]]:
    """One entry of the manifest for each .om: its flags, its gears, how ATC ended."""
    gears = wanted.gears
    described = None
    if gears is not None and not wanted.split:
        described = {
            "kind": gears.kind,
            "hidden_input": None if gears.kind == "range" else HIDDEN_INPUT,
            "axes": [[name, axis] for name, axis in gears.axes()],
            "shapes": [{name: list(shape) for name, shape in item.items()} for item in gears.shapes()],
        }
    return [
        {
            "om": f"{command.flags['output']}.om",
            "command": command.argv(),
            "flags": dict(command.flags),
            "tuning": tuning[number].argv() if tuning else None,
            "gears": described,
            "atc": runs[number],
        }
        for number, command in enumerate(commands)
    ]


def _weights(case: Case, folder: Path, model_path: str) -> dict[str, str]:
    """Digests of the external weights, by path as ``model_path`` is given."""
    tensors = [value.const_value for graph in case.model.graphs() for value in graph.initializers.values()]
    names = sorted({str(tensor.location) for tensor in tensors if isinstance(tensor, ir.ExternalTensor)})
    beside = Path(model_path).parent
    return {str(beside / name): file_sha256(folder / beside / name) for name in names}
