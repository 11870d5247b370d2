"""Run ATC (and AOE) for ``jumar compile``, and say what came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atc.command import PATH_FLAGS, AtcCommand
from ..atc.process import Sample
from ..atc.toolchain import AtcRun, find_atc, find_set_env, find_tool, run_atc, searched_places, tool_environment, verbose_variables
from ..case import Artifact, Finding
from ..graph.digest import file_sha256
from ..rules import find_rule
from ..targets import Target
from ..text import Text, say
from .common import Progress

LOG_FOLDER = "atc-log"


@dataclass(frozen=True)
class Run:
    """How the compilers are run."""

    folder: Path
    timeout: float
    progress: Progress
    verbose_log: bool
    memory_limit: int | None
    target: Target


@dataclass(frozen=True)
class Outcome:
    """What came of it: ``atc`` is the manifest's entry (of the first command that failed, else of the first); ``runs`` has one for each."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[Text, ...] = ()
    atc: dict[str, Any] | None = None
    runs: tuple[dict[str, Any] | None, ...] = ()
    files: tuple[Artifact, ...] = ()


def run_all(run: Run, commands: Sequence[AtcCommand], tuning: Sequence[AtcCommand], *, dry_run: bool) -> Outcome:
    """Run every command, if ATC is there and wanted. All are run, also after one that failed."""
    program = None if dry_run else find_atc()
    if program is None:
        return Outcome((_absent(dry_run),), runs=(None,) * len(commands))
    findings: list[Finding] = []
    notes: list[Text] = []
    files: list[Artifact] = []
    runs: list[dict[str, Any]] = []
    if tuning:
        findings += _tune(run, tuning, files, notes)
    for number, command in enumerate(commands):
        name = command.flags["output"]
        log = "atc.log" if len(commands) == 1 else f"atc_{name}.log"
        problem, outcome, made = _compile(run, program, command, log, number, len(commands))
        findings += problem
        runs.append(outcome)
        files += made
    if run.verbose_log:
        kept = sorted(path for path in (run.folder / LOG_FOLDER).rglob("*") if path.is_file())
        files += [Artifact(str(path.relative_to(run.folder)), file_sha256(path), "log") for path in kept]
    decisive = next((item for item in runs if item["status"] != 0), runs[0])
    return Outcome(tuple(findings), tuple(notes), decisive, tuple(runs), tuple(files))


def _absent(dry_run: bool) -> Finding:
    where = (
        say("--dry-run was given", "给出了 --dry-run")
        if dry_run
        else say("no atc in {places}", "在 {places} 中没有 atc", places=", ".join(searched_places()))
    )
    script = None if dry_run else find_set_env()
    return find_rule("CP702").finding(
        say("no .om was made: {where}", "没有生成 .om：{where}", where=where),
        say("only Huawei's ATC makes .om files", "只有华为的 ATC 能生成 .om 文件"),
        say("run compile.sh where CANN is installed", "请在安装了 CANN 的机器上运行 compile.sh")
        if script is None
        else say("{script} is there: its toolkit holds no atc; install it", "找到 {script}，但其工具包中没有 atc；请安装", script=script),
    )


def _arguments(command: AtcCommand, program: Path, folder: Path, scratch: Path) -> list[str]:
    """The command with every file in full: ATC runs in a directory of its own."""
    paths = {name: str(folder.resolve() / value) for name, value in command.flags.items() if name in PATH_FLAGS}
    paths["output"] = str(scratch / command.flags["output"])
    return [str(program), *(f"--{name}={paths.get(name, value)}" for name, value in command.flags.items())]


def _environment(run: Run, program: Path) -> dict[str, str]:
    environment = tool_environment(program)
    if run.verbose_log:
        logs = run.folder.resolve() / LOG_FOLDER
        logs.mkdir(parents=True, exist_ok=True)
        environment |= verbose_variables(logs)
    return environment


def _watch(run: Run, name: str, begin: float, end: float) -> Any:
    """Show time and memory. Nobody knows how long ATC will take: the bar nears its end and never reaches it."""

    def show(sample: Sample) -> None:
        what = say(
            "{name}: {seconds} s, {memory} MB",
            "{name}：{seconds} 秒，{memory} MB",
            name=name,
            seconds=f"{sample.seconds:.0f}",
            memory=sample.bytes >> 20,
        )
        run.progress(what, begin + (end - begin) * sample.seconds / (sample.seconds + 60.0))

    return show


def _compile(
    run: Run, program: Path, command: AtcCommand, log_name: str, number: int, count: int
) -> tuple[list[Finding], dict[str, Any], list[Artifact]]:
    begin, end = 0.5 + 0.5 * number / count, 0.5 + 0.5 * (number + 1) / count
    run.progress(say("atc", "atc"), begin)
    name = command.flags["output"]
    om, log = run.folder / f"{name}.om", run.folder / log_name
    # ATC writes beside the final place: half a file of a killed run, or the .om of an earlier one, is never taken for its result.
    with tempfile.TemporaryDirectory(dir=run.folder, prefix=".atc-") as scratch:
        made = Path(scratch).resolve() / om.name
        ended = run_atc(
            _arguments(command, program, run.folder, Path(scratch).resolve()),
            made,
            log,
            run.timeout,
            environment=_environment(run, program),
            memory_limit=run.memory_limit,
            watch=_watch(run, "atc", begin, end),
        )
        if ended.problem is None:
            made.replace(om)
            _take_weights(Path(scratch), run.folder)
    files = [Artifact(log.name, file_sha256(log), "log")]
    outcome = {"program": str(program), "status": ended.status, "seconds": round(ended.seconds, 3), "codes": list(ended.codes)}
    if ended.peak_bytes:
        outcome["peak_bytes"] = ended.peak_bytes
    if ended.problem is None:
        files.append(Artifact(om.name, file_sha256(om), "om"))
        return [], outcome, files
    return _failed(run, ended, log), outcome, files


def _take_weights(scratch: Path, folder: Path) -> None:
    """What ATC wrote beside the .om (--external_weight) belongs to it."""
    for entry in scratch.iterdir():
        target = folder / entry.name
        if not target.exists():
            entry.replace(target)


def _failed(run: Run, ended: AtcRun, log: Path) -> list[Finding]:
    codes = f" ({', '.join(ended.codes[:5])})" if ended.codes else ""
    finding = find_rule("CP701").finding(
        say("atc made no .om: {problem}", "atc 没有生成 .om：{problem}", problem=ended.problem),
        say("its log is in {log}{codes}", "日志在 {log} 中{codes}", log=log.name, codes=codes),
        say("read the log; look its first code up in CANN's error reference", "请阅读日志，并在 CANN 错误码手册中查找第一个代码"),
    )
    return [finding, *_diagnosis(run, ended)]


def _diagnosis(run: Run, ended: AtcRun) -> Sequence[Finding]:
    """What the log says, the root cause first. Of a run that was ended from here its exit status says nothing."""
    from ..logs.report import failure_findings

    return () if ended.stopped else failure_findings(ended.words, ended.status, run.target)


def _tune(run: Run, tuning: Sequence[AtcCommand], files: list[Artifact], notes: list[Text]) -> list[Finding]:
    """AOE writes what it learns into its bank, where ATC finds it. A failure leaves the model as fast as it was."""
    program = find_tool("aoe")
    if program is None:
        notes.append(say("nothing was tuned: no aoe in {places}", "未做调优：在 {places} 中没有 aoe", places=", ".join(searched_places())))
        return []
    findings = []
    for command in tuning:
        log = run.folder / ("aoe.log" if len(tuning) == 1 else f"aoe_{command.flags['output']}.log")
        with tempfile.TemporaryDirectory(dir=run.folder, prefix=".aoe-") as scratch:
            ended = run_atc(
                _arguments(command, program, run.folder, Path(scratch).resolve()),
                None,
                log,
                run.timeout,
                environment=_environment(run, program),
                memory_limit=run.memory_limit,
                watch=_watch(run, "aoe", 0.3, 0.5),
            )
        files.append(Artifact(log.name, file_sha256(log), "log"))
        if ended.problem is None:
            notes.append(say("aoe tuned for {seconds} s", "aoe 调优用时 {seconds} 秒", seconds=f"{ended.seconds:.0f}"))
        else:
            findings.append(
                find_rule("CP704").finding(
                    say("aoe did not tune: {problem}", "aoe 调优失败：{problem}", problem=ended.problem),
                    say("its log is in {log}; the .om is right, but not tuned", "日志在 {log} 中；.om 正确，但未经调优", log=log.name),
                    say("tune on a machine with the device, or leave --tune out", "请在有设备的机器上调优，或去掉 --tune"),
                )
            )
    return findings


__all__ = ["LOG_FOLDER", "Outcome", "Run", "run_all"]
