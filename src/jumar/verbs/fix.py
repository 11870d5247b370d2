"""``jumar fix``: rewrite what can be rewritten, and keep nothing that is not proven on this very model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import onnx_ir as ir

from .. import __version__
from ..case import Case, Step
from ..cutting import PARTS
from ..errors import EvaluationError, UsageError
from ..graph import Digester, Evaluator, load, save, shared_or_new
from ..graph.bind import bind_inputs
from ..graph.fold import DEFAULT_FOLD_LIMIT
from ..graph.ranges import value_ranges
from ..proof import FeedSet, Interface
from ..rules import find_rule
from ..targets import Target
from ..text import say
from .at_gears import checked_gears, gears_alone
from .check import pinned
from .common import ModelLike, Progress, Shapes, check_shapes, must_not_overwrite, open_case, silent
from .cut_parts import Cutter, artifacts, must_cut, part_file
from .cut_unrun import OuterCut
from .fix_run import Run
from .one_step import not_together, to_one_step
from .simplify import simplify


def fix(
    model: ModelLike,
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    opset_max: int | None = None,
    shapes: Shapes | None = None,
    gears: Sequence[Shapes] = (),
    ranges: Mapping[str, tuple[int, int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    one_step: Mapping[str, int | str] | None = None,
    select: Sequence[str] | None = None,
    unsafe: Sequence[str] = (),
    feeds: str | Path | FeedSet | None = None,
    fold_limit: int = DEFAULT_FOLD_LIMIT,
    cut: bool | Literal["aicpu"] = False,
    output: str | Path | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Apply the proven rewrites.

    Args:
        shapes: sizes of dynamic inputs, written into the model.
        gears: several sets of sizes, for which the model stays one with open sizes (what all agree on is written). Rewrites are proven at
            each of them, and the result is right for these alone; its findings are those of the fixed model that ATC makes for each.
        ranges: least and largest value of integer inputs; what rests on them is recorded with the step.
        constants: values that inputs always have; these inputs become weights, which is recorded with them.
        one_step: of a recurrent model, the inputs that carry time and the dimension in which they do, and inputs that are states with the output
            that is fed to each: it becomes a model of one step, whose states are inputs and outputs. All shapes must be fixed, and ``feeds`` are whole sequences, on which it is proven.
        select: only these codes or names (default: all safe rules).
        unsafe: codes whose stated assumption the caller accepts.
        feeds: ``.npz`` with real inputs; without it inputs are generated and the record says so.
        fold_limit: bytes by which folding one tensor may enlarge the model.
        cut: if errors stand, move what the device cannot take to models of their own for the host, before and after the device part,
            which is then what is returned; they are written beside ``output`` as ``NAME.before.onnx`` and ``NAME.after.onnx``.
            With ``"aicpu"`` what no AI Core kernel takes for certain goes there too.
        output: where to write the model.
        evaluator: one to share with other calls (starting its process takes a third of a second).

    Returns:
        A case with the rewritten model; its record holds the findings that remain, those that were resolved, and one step with proof
        for each rule applied or rolled back. ``record.interface`` says which inputs and outputs changed.

    Raises:
        JumarError: bad input, unknown code, or an output that cannot be written.
    """
    for path in (output, *_cut_files(cut, output)):
        must_not_overwrite(model, path)
    case = open_case(model, "fix", soc=soc, target=target, cann=cann, opset_max=opset_max)
    if cut not in (False, True, "aicpu"):
        raise UsageError(
            say("cut is {value!r}", "cut 为 {value!r}", value=cut),
            say('expected True, False or "aicpu"', '应为 True、False 或 "aicpu"'),
            say("correct it", "请修正"),
        )
    chosen = None if select is None else {find_rule(code).code for code in select}
    allowed = {find_rule(code).code for code in unsafe}
    if one_step and constants:
        raise not_together()
    bound = _bind(case, constants) if constants else None
    case = case if bound is None else bound[0]
    sizes = check_shapes(case.model, shapes or {})
    stages = checked_gears(case.model, gears)
    if stages and (sizes or one_step or cut):
        raise gears_alone()
    if ranges:
        value_ranges(case.model, ranges)  # says what is wrong with them before anything runs
    with shared_or_new(evaluator) as running:
        stepped = to_one_step(case.model, one_step, sizes, feeds, running) if one_step else None
        if stepped is not None:
            case, sizes, feeds = case.replace(model=stepped.model), {}, stepped.feeds
        known: list[Step] = []
        if stages and (chosen is None or "GR504" in chosen):
            with suppress(EvaluationError):  # a model that cannot be run cannot be proven: the run says so
                simple = simplify(case, gears=stages, exact=True, fold_limit=fold_limit, evaluator=running)
                case, known = case.replace(model=simple.model), list(simple.record.steps)
        run = Run(
            case,
            running,
            sizes,
            chosen,
            allowed,
            fold_limit,
            progress,
            dict(ranges or {}),
            known,
            bound=bound,
            stepped=stepped,
            gears=stages,
        )
        result = run.execute(feeds)
        if cut and must_cut(result.record, cut == "aicpu"):
            try:
                done = _cut(run, result, cut == "aicpu", feeds, None if output is None else Path(output))
            except (EvaluationError, UsageError) as error:  # the findings stand, and say what is in the way
                note = say("not cut: {reason}; {remedy}", "未切分：{reason}；{remedy}", reason=error.found, remedy=error.remedy)
                result = result.replace(record=result.record.extend(notes=(note,)))
            else:
                if done is not None:
                    return done
    if output is not None:
        files = save(result.model, output)
        result = result.replace(model=load(files[0]), record=result.record.extend(artifacts=artifacts(files)))
    return result


def _cut_files(cut: bool | str, output: str | Path | None) -> tuple[Path, ...]:
    """Every file that a cut may write."""
    return tuple(part_file(Path(output), part) for part in PARTS) if cut and output is not None else ()


def _bind(case: Case, constants: Mapping[str, Any]) -> tuple[Case, Interface, Step]:
    """The case with the named inputs as weights, what its caller goes on passing, and the step that says so."""
    start = time.perf_counter()
    interface = Interface.of(case.model)
    model, arrays = bind_inputs(case.model, constants)
    values = {name: tuple(array.reshape(-1).tolist()) for name, array in arrays.items()}
    changes = {name: replace(interface.inputs[name], constant=value) for name, value in values.items()}
    digester = Digester()
    step = Step(
        name="bound-input",
        version=__version__,
        input_sha256=digester.model(case.model),
        output_sha256=digester.model(model),
        seconds=round(time.perf_counter() - start, 4),
        options={"assumptions": [{"tensor": name, "value": list(value)} for name, value in values.items()]},
        nodes=tuple(values),
    )
    return case.replace(model=model), interface.then(changes, {}), step


def _cut(run: Run, result: Case, aicpu: bool, feeds: str | Path | FeedSet | None, output: Path | None) -> Case | None:
    """Cut the model as fixed, with the device part fixed with the same options; one that cannot be run loses its custom operators first."""

    def fix_part(model: ir.Model, feeds: FeedSet, ranges: Mapping[str, tuple[int, int]] | None = None) -> Case:
        return fix(
            model,
            target=run.case.target,
            ranges=ranges,
            select=None if run.chosen is None else tuple(run.chosen),
            unsafe=tuple(run.allowed),
            feeds=feeds,
            fold_limit=run.fold_limit,
            evaluator=run.evaluator,
        )

    if run.prover is not None:
        return Cutter(result, run.interface, run.prover, run.evaluator, fix_part, aicpu, run.declared).cut(output)
    model = pinned(result.model, run.sizes) if run.sizes else result.model
    return OuterCut(result, model, run.interface, run.evaluator, fix_part, fix_part, aicpu).cut(feeds, output)
