"""``jumar export``: PyTorch to ONNX by the better of torch's two exporters, held to what the module itself computes."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..case import Case, Record
from ..errors import JumarError, UsageError
from ..exporting.agreement import Agreement, compare_with_eager
from ..exporting.arguments import Given, make_arguments
from ..exporting.attempts import DYNAMO_OPSET, EXPORTERS, TORCHSCRIPT_OPSETS, Attempt, Exporter, attempt
from ..exporting.dynamic import Dynamic, parse_dynamic
from ..exporting.eager import Eager, run_eagerly
from ..exporting.extra import has_dynamo, need_torch, warm_up
from ..exporting.files import fill, is_file_reference, load_file
from ..exporting.forms import form_names
from ..exporting.isolation import Limits
from ..exporting.program import Program, make_program
from ..exporting.reference import Made, call_factory
from ..exporting.samples import make_cases
from ..graph import Evaluator, load, model_info, save, shared_or_new
from ..graph.save import has_external_data
from ..proof import FeedSet, Interface
from ..targets import Target, find_target
from ..text import Text, say
from .check import check
from .common import Progress, Shapes, silent
from .cut_parts import artifacts
from .export_findings import declared_open, findings_of
from .fix import fix


@dataclass
class Candidate:
    """An export, how it agrees with the module as it was written, and what became of it on the way to the target."""

    attempt: Attempt
    raw: Agreement
    fixed: Case | None = None
    final: Agreement | None = None

    @property
    def right(self) -> bool:
        return self.final is not None and self.final.right

    @property
    def cost(self) -> tuple[int, int]:
        """What the target refuses, and nodes."""
        if self.fixed is None:
            return (1 << 30, 0)
        return sum(finding.severity == "error" for finding in self.fixed.record.findings), len(list(self.fixed.model.graph))


@dataclass
class Outcome:
    """Everything that findings are drawn from."""

    program: Program
    eager: Eager
    training: list[tuple[str, str]]
    renamed: dict[str, str]
    candidates: list[Candidate] = field(default_factory=list)
    refused: list[Attempt] = field(default_factory=list)
    winner: Candidate | None = None


def export(
    module: Any,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    opset_max: int | None = None,
    weights: str | Path | None = None,
    inputs: Given = None,
    shapes: Shapes | None = None,
    dynamic: str | Sequence[str] | Dynamic = (),
    ranges: Mapping[str, tuple[int, int]] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    exporters: Sequence[Exporter] = EXPORTERS,
    timeout: float = Limits.seconds,
    memory_mb: int = 0,
    output: str | Path | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Export a module, and hand nothing over that does not compute what the module computes.

    Both exporters run in forks of this process, so that the module is never touched; each graph is compared with the module on the given
    inputs, on others in their range, and at other sizes of open dimensions. Right ones are fixed for the target; the one that leaves the
    fewest problems and nodes is returned.

    Args:
        module: a ``torch.nn.Module``; ``"pkg.module:factory"`` (or ``"file.py:factory"``), whose code is then run; or a file of TorchScript
            or ``torch.export``.
        args, kwargs: example arguments, nested as forward takes them. What is no tensor is baked in.
        weights: a state_dict, loaded as nothing but tensors.
        inputs: arrays by parameter name, or an ``.npz``, in place of or on top of these.
        shapes: of parameters for which random numbers are drawn.
        dynamic: open dimensions, ``"x:0=1..8,2=320|640"``.
        ranges: least and largest value of integer inputs, by name in ONNX.
        input_names, output_names: instead of the names made from the parameters and keys.
        exporters: which to try.
        timeout, memory_mb: what each child may use (0: four fifths of the memory).
        output: where to write the model.

    Returns:
        A case with the model as fixed for the target. Where no export is right the verdict is blocked, the model is empty, and nothing is
        written.

    Raises:
        ToolError: torch is not installed.
        JumarError: bad input, or a module that does not run.
    """
    found = find_target(soc, profile=target, cann=cann, opset_max=opset_max) if not isinstance(target, Target) else target
    open_dimensions = dynamic if isinstance(dynamic, Dynamic) else parse_dynamic([dynamic] if isinstance(dynamic, str) else dynamic)
    need_torch()
    made = _made(module, args, kwargs or {})
    if weights is not None:
        fill(made[0], Path(weights))
    own_args, own_kwargs = make_arguments(made[0], made[1] if args is None else args, kwargs or made[2], inputs, shapes or {})
    program = make_program(made[0], own_args, own_kwargs, open_dimensions, input_names)
    limits = Limits(timeout, memory_mb)
    warm_up("dynamo" in exporters)
    progress(say("module", "模块"), 0.05)
    eager, renamed = _eager(program, ranges or {}, limits, output_names)
    outcome = Outcome(program, eager, program.training(), renamed)
    folder = tempfile.TemporaryDirectory(prefix="jumar-export-", ignore_cleanup_errors=True)
    with shared_or_new(evaluator) as running:
        if eager.steady:
            _try_all(outcome, found, exporters, Path(folder.name), limits, ranges or {}, running, progress)
        findings = findings_of(outcome, running, limits)
    case = _result(outcome, found)
    stands = (*declared_open(case.record.findings, open_dimensions), *findings)
    case = case.replace(record=replace(case.record, findings=stands))
    if outcome.winner is None:
        folder.cleanup()
        return case
    if output is not None:
        files = save(case.model, output)
        model = load(files[0])
        case = case.replace(model=model, record=case.record.extend(artifacts=artifacts(files), model=model_info(model, files[0])))
    if output is None and has_external_data(case.model):
        weakref.finalize(case.model, folder.cleanup)  # the weights are in it
    else:
        folder.cleanup()
    return case


def _made(module: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any]) -> Made:
    if not isinstance(module, (str, Path)):
        return module, args, kwargs
    return load_file(str(module)) if is_file_reference(str(module)) else call_factory(str(module))


def known_exporters(names: Sequence[str] | None) -> tuple[Exporter, ...]:
    """The exporters of these names; both where none is named.

    Raises:
        UsageError: there is no such exporter.
    """
    for name in names or ():
        if name not in EXPORTERS:
            raise UsageError(
                say("there is no exporter `{name}`", "没有名为 `{name}` 的导出器", name=name),
                say("expected {names}", "应为 {names}", names=", ".join(EXPORTERS)),
                say("correct --exporter", "请修正 --exporter"),
            )
    return tuple(name for name in EXPORTERS if not names or name in names)


def _eager(
    program: Program, ranges: Mapping[str, tuple[int, int]], limits: Limits, names: Sequence[str] | None
) -> tuple[Eager, dict[str, str]]:
    """Results of the module, with unique names; and which of the caller's names had to change."""
    from ..exporting.structure import clean, unique

    wanted = None if names is None else unique([clean(name) for name in names], [slot.name for slot in program.inputs])
    eager = run_eagerly(program, make_cases(program, ranges), limits, wanted)
    renamed = {} if names is None or wanted is None else {old: new for old, new in zip(names, wanted, strict=True) if old != new}
    return eager, renamed


def _try_all(
    outcome: Outcome,
    target: Target,
    exporters: Sequence[Exporter],
    folder: Path,
    limits: Limits,
    ranges: Mapping[str, tuple[int, int]],
    evaluator: Evaluator,
    progress: Progress,
) -> None:
    low, high = TORCHSCRIPT_OPSETS
    near = min(max(target.opset_max, low), high)
    plan: list[tuple[Exporter, int, bool]] = []
    if "dynamo" in exporters and has_dynamo():
        plan += [("dynamo", DYNAMO_OPSET, False), ("dynamo", DYNAMO_OPSET, True)]
    if "torchscript" in exporters:
        plan += [("torchscript", near, False), ("torchscript", high, False), ("torchscript", high, True)]
    plan = sorted(dict.fromkeys(plan), key=lambda step: step[2])
    for number, (exporter, opset, own) in enumerate(plan):
        if (own and not _forms_may_help(outcome)) or (exporter == "torchscript" and opset != near and not own and not _may_help(outcome)):
            continue
        progress(
            say("{exporter} at opset {opset}", "{exporter}，在 opset {opset} 上", exporter=exporter, opset=opset),
            0.1 + 0.8 * number / len(plan),
        )
        made = attempt(outcome.program, outcome.eager, exporter, opset, folder, limits, own)
        if made.model is None:
            outcome.refused.append(made)
            continue
        candidate = Candidate(made, compare_with_eager(made.model, _interface(outcome), outcome.eager.cases, evaluator))
        outcome.candidates.append(candidate)
        if candidate.raw.right:
            _fix(candidate, outcome, target, ranges, evaluator)
    right = [candidate for candidate in outcome.candidates if candidate.right]
    outcome.winner = min(right, key=lambda candidate: candidate.cost, default=None)


def _may_help(outcome: Outcome) -> bool:
    """Whether TorchScript should be tried at a newer opset: it refused the target's, or lost something there. What it froze stays frozen."""
    made = [candidate for candidate in outcome.candidates if candidate.attempt.exporter == "torchscript"]
    return all(not candidate.right and not candidate.raw.right_on_given for candidate in made)


def _forms_may_help(outcome: Outcome) -> bool:
    """Whether the exporters should be tried with forms of ours: none was right, and the module calls something that has one."""
    names = form_names()
    return all(not candidate.right for candidate in outcome.candidates) and any(event.name in names for event in outcome.eager.events)


def _interface(outcome: Outcome) -> Interface:
    return Interface.named(
        {slot.name: slot.dtype for slot in outcome.program.inputs}, {slot.name: slot.dtype for slot in outcome.eager.outputs}
    )


def _fix(candidate: Candidate, outcome: Outcome, target: Target, ranges: Mapping[str, tuple[int, int]], evaluator: Evaluator) -> None:
    """Bring a right export to the target, and compare what comes out with the module again."""
    model = candidate.attempt.model
    if model is None:
        raise ValueError("nothing was exported")
    names = {value.name for value in model.graph.inputs}
    sizes = {name: array.shape for name, array in outcome.program.given.items()}
    feeds = [
        {name: array for name, array in feed.items() if name in names}
        for _, feed, _ in outcome.eager.cases
        if all(feed[name].shape == sizes[name] for name in sizes)
    ]
    declared = {name: limits for name, limits in ranges.items() if name in names}
    try:
        fixed = fix(model, target=target, feeds=FeedSet(tuple(feeds), "user"), ranges=declared, evaluator=evaluator)
    except JumarError:  # as exported it is right all the same
        fixed = check(model, target=target)
    interface = _interface(outcome).changed(fixed.record.interface)
    candidate.fixed, candidate.final = fixed, compare_with_eager(fixed.model, interface, outcome.eager.cases, evaluator)


def _result(outcome: Outcome, target: Target) -> Case:
    """The case of the winner, or one without a model."""
    data = {"export": _told(outcome)}
    winner = outcome.winner
    if winner is None or winner.fixed is None:
        empty = ir.Model(ir.Graph([], [], nodes=[], opset_imports={"": target.opset_max}), ir_version=8)
        record = Record(verb="export", target=target.to_dict(), notes=(*target.notes(), *_table(outcome)), data=data)
        return Case(empty, target, record)
    model = winner.fixed.model
    model.metadata_props["jumar.export"] = json.dumps({key: data["export"][key] for key in ("inputs", "outputs", "bound", "exporter")})
    record = winner.fixed.record.extend(notes=_table(outcome))
    return Case(model, target, _as_export(record, model, data))


def _as_export(record: Record, model: ir.Model, data: dict[str, Any]) -> Record:
    return replace(record, verb="export", model=model_info(model, None), data={**record.data, **data})


def _told(outcome: Outcome) -> dict[str, Any]:
    """The mapping between arguments and ports, and what was tried."""
    attempts: list[dict[str, Any]] = [
        {
            "label": candidate.attempt.label,
            "exporter": candidate.attempt.exporter,
            "opset": candidate.attempt.opset,
            "right": candidate.right,
            "cases": candidate.raw.cases,
            "max_scaled": candidate.raw.largest,
            "nodes": len(list(candidate.attempt.model.graph)) if candidate.attempt.model is not None else 0,
            "nodes_fixed": candidate.cost[1],
            "failed": [[case, name, reason.render("en")] for case, name, reason in candidate.raw.failed],
            "seconds": round(candidate.attempt.seconds, 2),
        }
        for candidate in outcome.candidates
    ]
    attempts += [
        {
            "label": made.label,
            "exporter": made.exporter,
            "opset": made.opset,
            "right": False,
            "refused": "" if made.reason is None else made.reason.render("en"),
            "operator": made.operator,
            "source_line": made.line,
            "seconds": round(made.seconds, 2),
        }
        for made in outcome.refused
    ]
    return {
        "exporter": None if outcome.winner is None else outcome.winner.attempt.label,
        "inputs": [slot.to_dict() for slot in outcome.program.inputs],
        "outputs": [slot.to_dict() for slot in outcome.eager.outputs],
        "bound": {path: repr(value)[:80] for path, value in outcome.program.bound.items()},
        "dynamic": outcome.program.dynamic.to_dict(),
        "cases": [word for word, _, _ in outcome.eager.cases],
        "attempts": attempts,
    }


def _table(outcome: Outcome) -> tuple[Text, ...]:
    lines = []
    for candidate in outcome.candidates:
        if candidate.right:
            lines.append(
                say(
                    "{label}: equal to the module on {count} cases (max_scaled {largest:.1e}), {nodes} nodes for the target{chosen}",
                    "{label}：在 {count} 组输入上与模块一致（max_scaled {largest:.1e}），面向目标共 {nodes} 个节点{chosen}",
                    label=candidate.attempt.label,
                    count=candidate.raw.cases,
                    largest=candidate.raw.largest,
                    nodes=candidate.cost[1],
                    chosen=say(", chosen", "，已采用") if candidate is outcome.winner else "",
                )
            )
        else:
            lines.append(say("{label}: other numbers than the module", "{label}：数值与模块不同", label=candidate.attempt.label))
    lines += [say("{label}: refused", "{label}：拒绝导出", label=made.label) for made in outcome.refused]
    return tuple(lines)
