"""``jumar reduce``: the smallest part of a model that still fails a check of the user's."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..case import Artifact, Case, Measurement, Step
from ..errors import EvaluationError, UsageError
from ..graph import Digester, Evaluator, load, node_place, save, shared_or_new, source_line, write_atomic
from ..graph.digest import file_sha256
from ..proof import FeedSet, load_feeds, make_feeds
from ..reduction import Candidate, Check, Cuts, Spent, Verdict, shrink
from ..text import Text, say
from .check import pinned
from .common import ModelLike, Progress, Shapes, check_number, check_shapes, must_not_overwrite, open_case, silent

DEFAULT_TRIES = 200
_LONGEST = 7 * 24 * 3600.0
_MOST_NAMED = 10


def reduce(
    model: ModelLike,
    *,
    check: str,
    output: str | Path,
    feeds: str | Path | FeedSet | None = None,
    shapes: Shapes | None = None,
    fail_codes: Collection[int] | None = None,
    fail_text: str | None = None,
    timeout: float = 600.0,
    tries: int = DEFAULT_TRIES,
    resume: bool = False,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Leave out nodes as long as the check still fails.

    The check is a command that tells good from bad by its exit status: 0 is good, anything else fails. What a left-out node gave becomes an
    input of the smaller model, with the size it had in a run of the whole; small tensors of integers (shapes, axes, bounds) become weights.

    Args:
        check: the command. ``{model}`` in it is the path of a model (without it the path is appended), ``{inputs}`` the path of an ``.npz``
            with the values that the model's inputs had in the whole, keyed by name. It runs in the present directory, without a shell.
        output: the smallest failing model; written again whenever a smaller one is found. Beside it the inputs (``NAME.inputs.npz``), if the
            command asks for them.
        feeds: inputs of the model to run it on (default: generated).
        shapes: sizes of dynamic inputs.
        fail_codes: exit statuses that count as the failure (default: any but 0). A check that ends otherwise decides nothing.
        fail_text: regular expression that what it prints must match besides.
        timeout: seconds for one check; one that takes longer decides nothing.
        tries: most checks to run.
        resume: take over the results of a run with the same model and command that was stopped.

    Returns:
        A case with the reduced model; its record has one step with the number of tries and a measurement of the nodes before and after.

    Raises:
        UsageError: the check does not fail on the model as given, or is no command.
        ToolError: the command cannot be started.
        ModelError, OutputError.
    """
    must_not_overwrite(model, output)
    check_number("--timeout", timeout, _LONGEST, zero=False)
    check_number("--tries", tries, 1e6, zero=False)
    command = Check.of(check, None if fail_codes is None else frozenset(fail_codes), fail_text, timeout)
    case = open_case(model, "reduce", need_target=False)
    sizes = check_shapes(case.model, shapes or {})
    start = time.perf_counter()
    whole = pinned(case.model, sizes) if sizes else case.model
    with shared_or_new(evaluator) as running:
        cuts = _cuts(whole, feeds, command, running)
        with tempfile.TemporaryDirectory(prefix="jumar-reduce-") as work:
            job = _Job(cuts, command, Path(output), Path(work), int(tries), progress, _known(output, whole, check, resume))
            left, stopped = job.run()
    reduced = load(Path(output))
    job.forget(finished=not stopped)
    digest = Digester()
    counts = [("nodes before", float(len(whole.graph))), ("nodes after", float(len(reduced.graph)))]
    options = {"check": check, "tries": job.count, "stopped": stopped}
    places = tuple(node_place(node) for node in reduced.graph)
    step = Step(
        "reduce", __version__, digest.model(whole), digest.model(reduced), round(time.perf_counter() - start, 4), options, nodes=places
    )
    record = case.record.extend(
        steps=(step,),
        measurements=tuple(Measurement(name, value, "nodes", "reference") for name, value in counts),
        artifacts=job.artifacts(),
        notes=_told(reduced, job.count, stopped, left),
    )
    return case.replace(model=reduced, record=record)


def _cuts(model: ir.Model, feeds: str | Path | FeedSet | None, command: Check, evaluator: Evaluator) -> Cuts:
    given = load_feeds(feeds, model) if isinstance(feeds, (str, Path)) else feeds
    try:
        return Cuts.of(model, evaluator, given or make_feeds(model, evaluator))
    except (EvaluationError, UsageError) as error:
        if command.wants_inputs or given is not None:
            raise UsageError(
                say("the model cannot be run here: {reason}", "模型在此无法运行：{reason}", reason=error.found),
                say("expected one whose tensors can be taken down for {inputs}", "应能记录各张量以供 {inputs} 使用", inputs="{inputs}"),
                say("leave {inputs} out of the check", "请从检查命令中去掉 {inputs}", inputs="{inputs}"),
            ) from error
        return Cuts.of(model, evaluator, None)


@dataclass
class _Job:
    """One reduction. ``known`` are results by the nodes tried, written to disk after each try."""

    cuts: Cuts
    command: Check
    output: Path
    work: Path
    most: int
    progress: Progress
    known: dict[str, Any]
    count: int = 0
    spent: bool = False
    files: list[Path] = field(default_factory=list)

    def run(self) -> tuple[list[tuple[int, ...]], bool]:
        """The items left, and whether the tries were spent before the end.

        Raises:
            UsageError: the whole does not fail.
        """
        verdict = self.verdict(self.cuts.items)
        if verdict != "failed":
            raise UsageError(
                say("the check does not fail on the model as given", "检查命令在原模型上没有失败")
                if verdict == "passed"
                else say("the check decides nothing on the model as given", "检查命令在原模型上没有得出结论"),
                say(
                    "expected an exit status other than 0 (or one of --fail-code), in time",
                    "应在时限内以非 0（或 --fail-code 之一）的状态退出",
                ),
                say("run it by hand on the model first", "请先在模型上手动运行"),
            )
        return shrink(self.cuts.items, self.fails), self.spent

    def fails(self, items: Sequence[tuple[int, ...]]) -> bool:
        return self.verdict(items) == "failed"

    def verdict(self, items: Sequence[tuple[int, ...]]) -> Verdict:
        key = hashlib.sha256(json.dumps(items).encode()).hexdigest()
        found: Verdict | None = self.known["tries"].get(key)
        if found is not None:
            return found
        if self.count >= self.most:
            self.spent = True
            raise Spent
        self.count += 1
        self.progress(
            say(
                "try {count}: {nodes} of {all} nodes",
                "第 {count} 次：{nodes}/{all} 个节点",
                count=self.count,
                nodes=_size(items),
                all=_size(self.cuts.items),
            ),
            min(0.99, self.count / self.most),
        )
        try:
            candidate = self.cuts.take(items, self.command.wants_inputs)
        except (UsageError, EvaluationError):  # no model by itself
            result: Verdict = "undecided"
        else:
            result = self._checked(candidate)
            if result == "failed":
                self._keep(candidate)
        self.known["tries"][key] = result
        if "kept" in self.known:  # where the whole does not fail nothing is written
            write_atomic(_state_of(self.output), json.dumps(self.known))
        return result

    def _checked(self, candidate: Candidate) -> Verdict:
        path, inputs = self.work / "model.onnx", self.work / "inputs.npz"
        for old in self.work.iterdir():
            old.unlink()
        save(candidate.model, path)
        if self.command.wants_inputs:
            np.savez(inputs, **candidate.inputs)
        return self.command.run(path, inputs, self.work / "check.log")

    def _keep(self, candidate: Candidate) -> None:
        self.files = save(candidate.model, self.output)
        if self.command.wants_inputs:
            held = self.work / "kept.npz"
            np.savez(held, **candidate.inputs)
            write_atomic(_inputs_of(self.output), held.read_bytes())
            self.files.append(_inputs_of(self.output))
        self.known["kept"] = file_sha256(self.output)

    def artifacts(self) -> tuple[Artifact, ...]:
        kinds = {".onnx": "model", ".npz": "inputs"}
        found = self.files or [path for path in (self.output, _inputs_of(self.output)) if path.is_file()]
        return tuple(Artifact(str(path), file_sha256(path), kinds.get(path.suffix, "weights")) for path in found)

    def forget(self, *, finished: bool) -> None:
        """What was tried is of use only to a run that goes on."""
        if finished:
            with suppress(OSError):
                _state_of(self.output).unlink()


def _size(items: Sequence[tuple[int, ...]]) -> int:
    return sum(map(len, items))


def _state_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.tries.json")


def _inputs_of(output: Path) -> Path:
    return output.with_name(f"{output.stem}.inputs.npz")


def _known(output: str | Path, model: ir.Model, check: str, resume: bool) -> dict[str, Any]:
    """Results of an earlier run, if it was of the same model and command."""
    about = {"model": Digester().model(model), "check": check}
    if resume:
        # The way is the same every time, so that the smallest failing model is the one on disk.
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            found: dict[str, Any] = json.loads(_state_of(Path(output)).read_text(encoding="utf-8"))
            known = set(found["tries"].values()) <= {"passed", "failed", "undecided"}
            if known and found["about"] == about and found["kept"] == file_sha256(output):
                return found
    return {"about": about, "tries": {}}


def _told(model: ir.Model, count: int, stopped: bool, left: Sequence[object]) -> tuple[Text, ...]:
    named = []
    for node in list(model.graph)[:_MOST_NAMED]:
        line = source_line(node)
        named.append(f"{node.op_type} `{node_place(node)}`" + (f" ({line})" if line else ""))
    more = len(model.graph) - len(named)
    notes = [
        say(
            "{count} tries; left: {nodes}{more}",
            "共 {count} 次尝试；剩余：{nodes}{more}",
            count=count,
            nodes=", ".join(named),
            more=f", ... (+{more})" if more > 0 else "",
        )
    ]
    if stopped and len(left) > 1:
        notes.append(
            say("all tries are spent: --resume with a larger --tries goes on", "尝试次数已用完：可用 --resume 与更大的 --tries 继续")
        )
    return tuple(notes)
