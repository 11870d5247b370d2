"""``jumar compile``: the ATC command, a script and a manifest; and the .om where ATC is installed."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from .. import __version__
from ..atc import build_command, build_manifest, find_atc, run_atc, searched_places, shell_script
from ..atc.toolchain import DEFAULT_TIMEOUT, LONGEST_TIMEOUT
from ..case import Artifact, Case, Finding, ModelInfo, Step
from ..errors import UsageError
from ..graph import model_info, write_atomic
from ..graph.digest import file_sha256
from ..rules import find_rule
from ..targets import Target
from ..text import say
from .check import examine, pinned
from .common import Progress, Shapes, check_number, check_shapes, open_case, silent


def compile(
    model: str | Path,
    *,
    output: str | Path,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    opset_max: int | None = None,
    shapes: Shapes | None = None,
    precision_mode: str | None = None,
    dry_run: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Progress = silent,
) -> Case:
    """Write what compiles the model, and compile it where ATC is found.

    Args:
        output: a directory; gets ``compile.sh``, ``manifest.json`` and, where ATC ran, ``atc.log`` and ``<model>.om``.
        precision_mode: value of --precision_mode_v2 (default: ATC's own, fp16).
        dry_run: do not run ATC even if it is there.
        timeout: seconds ATC may take.

    Returns:
        A case whose record has the artefacts and, if ATC failed, a finding CP701. Where ATC was not run it has CP702 (no .om was made)
        and the findings of check instead of ATC's own judgement.

    Raises:
        UsageError, ModelError, TargetError, OutputError, ToolError.
    """
    check_number("--timeout", timeout, LONGEST_TIMEOUT, zero=False)
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
    result = compile_into(
        case,
        folder,
        str(Path(model).resolve()),
        Path(model).stem,
        precision_mode=precision_mode,
        dry_run=dry_run,
        timeout=timeout,
        progress=progress,
    )
    if any(item.kind == "log" for item in result.record.artifacts):
        return result  # ATC itself has judged the model
    checked = examine(case).record
    return result.replace(record=result.record.extend(findings=checked.findings, placement=checked.placement))


def compile_into(
    case: Case,
    folder: Path,
    model_path: str,
    name: str,
    *,
    source: ModelInfo | None = None,
    files: tuple[Artifact, ...] = (),
    precision_mode: str | None = None,
    dry_run: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Progress = silent,
) -> Case:
    """Write script and manifest into ``folder`` and run ATC. ``model_path`` is absolute or relative to the folder."""
    if case.target is None:
        raise ValueError("a target is needed")
    start = time.perf_counter()
    absolute = folder / model_path
    command = build_command(case.model, case.target, model_path, name, precision_mode=precision_mode)
    digest = file_sha256(absolute)
    write_atomic(
        folder / "compile.sh", shell_script(command, case.target, {model_path: digest, **_weights(case, folder, model_path)}), mode=0o755
    )
    files = (*files, Artifact("compile.sh", file_sha256(folder / "compile.sh"), "script"))
    findings, outcome, made = _run(command.flags, folder, name, dry_run, timeout, progress)
    files = (*files, *made)
    manifest = build_manifest(
        case.target,
        command.argv(),
        files,
        source=source,
        model=replace(model_info(case.model, absolute), path=model_path),
        interface=case.record.interface,
        atc=outcome,
    )
    write_atomic(folder / "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    artifacts = (*files, Artifact("manifest.json", file_sha256(folder / "manifest.json"), "manifest"))
    step = Step("compile", __version__, digest, None, round(time.perf_counter() - start, 4), {"command": command.argv(), "atc": outcome})
    return case.replace(record=case.record.extend(findings=findings, artifacts=artifacts, steps=(step,)))


def _weights(case: Case, folder: Path, model_path: str) -> dict[str, str]:
    """Digests of the external weights, by path as ``model_path`` is given."""
    tensors = [value.const_value for graph in case.model.graphs() for value in graph.initializers.values()]
    names = sorted({str(tensor.location) for tensor in tensors if isinstance(tensor, ir.ExternalTensor)})
    beside = Path(model_path).parent
    return {str(beside / name): file_sha256(folder / beside / name) for name in names}


def _run(
    flags: Any, folder: Path, name: str, dry_run: bool, timeout: float, progress: Progress
) -> tuple[tuple[Finding, ...], dict[str, Any] | None, tuple[Artifact, ...]]:
    """Run ATC if it is there and wanted; returns findings, the manifest's ``atc`` entry and the files it made."""
    program = None if dry_run else find_atc()
    if program is None:
        where = (
            say("--dry-run was given", "给出了 --dry-run")
            if dry_run
            else say("no atc in {places}", "在 {places} 中没有 atc", places=", ".join(searched_places()))
        )
        finding = find_rule("CP702").finding(
            say("no .om was made: {where}", "没有生成 .om：{where}", where=where),
            say("only Huawei's ATC makes .om files", "只有华为的 ATC 能生成 .om 文件"),
            say("run compile.sh where CANN is installed", "请在安装了 CANN 的机器上运行 compile.sh"),
        )
        return (finding,), None, ()
    progress(say("atc", "atc"), 0.5)
    om, log = folder / f"{name}.om", folder / "atc.log"
    # ATC writes beside the final place: half a file of a killed run, or the .om of an earlier one, is never taken for its result.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".atc-") as scratch:
        paths = {"model": folder.resolve() / flags["model"], "output": Path(scratch).resolve() / name}
        argv = [str(program), *(f"--{key}={paths.get(key, value)}" for key, value in flags.items())]
        run = run_atc(argv, paths["output"].with_name(om.name), log, timeout)
        if run.problem is None:
            paths["output"].with_name(om.name).replace(om)
    made = [Artifact("atc.log", file_sha256(log), "log")]
    outcome = {"program": str(program), "status": run.status, "seconds": round(run.seconds, 3), "codes": list(run.codes)}
    if run.problem is None:
        made.append(Artifact(om.name, file_sha256(om), "om"))
        return (), outcome, tuple(made)
    finding = find_rule("CP701").finding(
        say("atc made no .om: {problem}", "atc 没有生成 .om：{problem}", problem=run.problem),
        say("its log is in atc.log{codes}", "日志在 atc.log 中{codes}", codes=f" ({', '.join(run.codes[:5])})" if run.codes else ""),
        say("read the log; look its first code up in CANN's error reference", "请阅读日志，并在 CANN 错误码手册中查找第一个代码"),
    )
    return (finding,), outcome, tuple(made)
