"""``jumar verify``: the model's outputs against a reference, on the same inputs, with ONNX Runtime's optimisation off."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from .. import __version__
from ..case import Case, Finding, Measurement, Step
from ..cutting import Chain, load_chain, runnable, told_of
from ..errors import EvaluationError, UsageError
from ..graph import Digester, Evaluator, copy_model, load, shared_or_new, write_atomic
from ..graph.digest import file_sha256
from ..proof import FeedSet, Interface, Prover, compare_all, load_feeds, make_feeds, piece_feeds
from ..proof.metrics import Comparison, proof_of, worst
from ..rules import find_rule
from ..text import Text, say
from .accepted import Accepted
from .at_gears import checked_gears, gear_feeds
from .check import pinned
from .common import ModelLike, Progress, Shapes, check_number, check_shapes, open_case, refuse_compiled, silent
from .one_step import again
from .recorded import compare_recorded, given_feeds, load_outputs

DEFAULT_BOUND = 1e-4
"""Allowed ``max_rel`` of a whole model in float32: several rewrites of 1e-5 and below may add up."""


def verify(
    model: ModelLike,
    against: str | Path | ir.Model | None = None,
    *,
    feeds: str | Path | FeedSet | None = None,
    shapes: Shapes | None = None,
    bound: float = DEFAULT_BOUND,
    csv_file: str | Path | None = None,
    interface: Mapping[str, Any] | None = None,
    cut: Sequence[Mapping[str, Any]] | None = None,
    accepted: Sequence[Mapping[str, Any]] | None = None,
    one_step: Sequence[Mapping[str, Any]] | None = None,
    gears: Sequence[Shapes] | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Compare a model with its reference.

    Args:
        against: the reference; a model inside a bundle knows its own (the manifest names the source). An ``.npz`` holds outputs as the
            framework gave them for ``feeds``, by the names of the model's outputs.
        shapes: sizes of the reference's dynamic inputs (default: those of the model).
        bound: allowed ``max_rel`` per output, see :mod:`jumar.proof.metrics`.
        csv_file: also write the table here.
        evaluator: one to share with other calls.
        interface: renamed or narrowed inputs and outputs, as in a manifest; found by itself inside a bundle.
        cut: the parts of a cut model, as the step ``cut`` told them; found by itself inside a bundle. The parts run one after the other.
        accepted: what rewrites may change that were asked for by code, as a manifest tells it; found by itself inside a bundle.
        one_step: of which step of the reference this is the model, likewise.
        gears: sizes of the reference's inputs for which the model is right, likewise: it is compared at each.

    Returns:
        A case whose record has one step (``verify``, with the proof) and three measurements per output, and a finding VF601 if an
        output is out of bound (VF605 if what was accepted explains it).

    Raises:
        ModelError, UsageError, EvaluationError: unreadable models, no reference, inputs on which the reference does not run.
    """
    check_number("--bound", bound, 1.0, zero=True)  # a max_rel of 1 stands for "not comparable"
    case = open_case(model, "verify", need_target=False)
    start = time.perf_counter()
    if isinstance(against, (str, Path)) and str(against).endswith(".npz"):
        return _verify_recorded(case, against, feeds, shapes, bound, csv_file, evaluator, progress)
    manifest = _manifest_beside(model)
    if against is None:
        against = _source_of(manifest)
    if not isinstance(against, ir.Model):
        refuse_compiled(against, None)
    reference = copy_model(against) if isinstance(against, ir.Model) else load(against)
    if interface is None:
        interface = manifest.get("interface", {}) if manifest else {}
    for item in one_step if one_step is not None else (manifest or {}).get("one_step", ()):
        with shared_or_new(evaluator) as running:
            reference, feeds = again(reference, item, feeds, running)
        shapes = None  # those of the sequence
    sizes = check_shapes(reference, shapes or _shapes_of(case.model, reference, interface))
    reference = pinned(reference, sizes) if sizes else reference
    ports = Interface.of(reference).changed(interface)
    told = cut if cut is not None else told_of(manifest or {})
    chain = load_chain(Path(model), told) if told and isinstance(model, (str, Path)) else None
    whole = reference
    if chain is not None:
        chain, reference = runnable(chain, whole)
    with shared_or_new(evaluator) as running:
        progress(say("reference run", "参考运行"), 0.1)
        if reference is not whole:  # parts that cannot be run here are left out; the others speak in the original's names
            ports, feeds = Interface.of(reference), piece_feeds(feeds, whole, reference, running)
        if isinstance(feeds, (str, Path)):
            feeds = load_feeds(feeds, reference)
        stages = checked_gears(reference, _gears_told(manifest, ports) if gears is None else gears)
        if stages:
            feeds = gear_feeds(reference, stages, running, feeds)
        feeds = feeds or make_feeds(reference, running)
        prover = Prover(reference, running, feeds)
        progress(say("comparison", "对比"), 0.6)
        comparisons = compare_outputs(prover, case.model, ports) if chain is None else compare_chain(prover, chain, ports, running)
        excused = excused_outputs(prover, comparisons, bound)
    granted = Accepted.of(accepted if accepted is not None else (manifest or {}).get("accepted", ()))
    given = {name: item for name, item in comparisons.items() if name not in excused and not item.within(bound) and granted.covers(item)}
    rest = {name: item for name, item in comparisons.items() if name not in excused and name not in given}
    proof = proof_of(rest.values(), len(feeds.cases), bound)
    if excused and (proof.passed or not rest):
        proof = proof_of((comparisons[name] for name in excused), len(feeds.cases), max(excused.values()), "max_scaled")
    if given and (proof.passed or not rest):
        proof = proof_of(given.values(), len(feeds.cases), granted.max_scaled, "max_scaled", granted.steps)
    digest = Digester().model(case.model)
    step = Step(
        "verify", __version__, digest, digest, round(time.perf_counter() - start, 4), {"bound": bound, "feeds": feeds.origin}, proof
    )
    record = case.record.extend(
        steps=(step,),
        measurements=measurements(comparisons),
        findings=(*differences(rest, bound), *_undecided(comparisons, excused), *granted.findings(given)),
    )
    if csv_file is not None:
        write_atomic(csv_file, table(comparisons))
    progress(say("done", "完成"), 1.0)
    return case.replace(record=record)


def _verify_recorded(
    case: Case,
    against: str | Path,
    feeds: str | Path | FeedSet | None,
    shapes: Shapes | None,
    bound: float,
    csv_file: str | Path | None,
    evaluator: Evaluator | None,
    progress: Progress,
) -> Case:
    sizes = check_shapes(case.model, shapes or {})
    case = case.replace(model=pinned(case.model, sizes)) if sizes else case
    expected = load_outputs(against, case.model)
    fed = given_feeds(feeds, case.model)
    with shared_or_new(evaluator) as running:
        progress(say("comparison", "对比"), 0.2)
        comparisons, step, findings = compare_recorded(case, expected, fed, bound, running)
    record = case.record.extend(
        steps=(step,), measurements=measurements(comparisons), findings=(*findings, *differences(comparisons, bound, _EXPORT))
    )
    if csv_file is not None:
        write_atomic(csv_file, table(comparisons))
    progress(say("done", "完成"), 1.0)
    return case.replace(record=record)


def compare_chain(prover: Prover, chain: Chain, interface: Interface, evaluator: Evaluator) -> dict[str, Comparison]:
    """The same for a model that was cut: its parts run one after the other."""
    try:
        found = [interface.to_caller(chain.run(evaluator, interface.to_model(feed))) for feed in prover.feeds.cases]
    except EvaluationError as error:
        return {name: Comparison(float("inf"), 1.0, 0.0, error.found, 1.0) for name in prover.reference[0]}
    pairs = [compare_all(one, other) for one, other in zip(found, prover.reference, strict=True)]
    return {name: worst(pair[name] for pair in pairs) for name in pairs[0]}


def compare_outputs(prover: Prover, model: ir.Model, interface: Interface) -> dict[str, Comparison]:
    """The worst comparison of each output over all cases. A model that does not run differs in every output."""
    try:
        pairs = [compare_all(found, expected) for found, expected in prover.against_original(model, interface)]
    except EvaluationError as error:
        return {name: Comparison(float("inf"), 1.0, 0.0, error.found, 1.0) for name in prover.reference[0]}
    return {name: worst(pair[name] for pair in pairs) for name in pairs[0]}


def excused_outputs(prover: Prover, comparisons: Mapping[str, Comparison], bound: float) -> dict[str, float]:
    """Outputs out of bound that differ by no more than they move by rounding alone on these inputs, with what is allowed for that."""
    over = {name: item for name, item in comparisons.items() if not item.within(bound) and item.reason is None}
    allowed = prover.noise() if over else {}
    return {name: allowed[name] for name, item in over.items() if item.max_scaled <= allowed.get(name, 0.0)}


def _undecided(comparisons: Mapping[str, Comparison], excused: Mapping[str, float]) -> tuple[Finding, ...]:
    rule = find_rule("VF603")
    return tuple(
        rule.finding(
            say(
                "output `{name}` differs by {found:.2g} of its largest element, and up to {allowed:.2g} is rounding on these inputs",
                "输出 `{name}` 的差异为其最大元素的 {found:.2g}；在这些输入上，{allowed:.2g} 以内属于舍入误差",
                name=name,
                found=comparisons[name].max_scaled,
                allowed=allowed,
            ),
            say("an error smaller than this cannot be told from rounding", "更小的误差无法与舍入区分"),
            say("give real inputs with --feeds", "请用 --feeds 提供真实输入"),
            place=name,
        )
        for name, allowed in excused.items()
    )


_LEAVE_OUT = say(
    "find the rewrite with the largest difference in the report and leave it out with --select",
    "在报告中找到差异最大的改写，用 --select 排除",
)
_EXPORT = say(
    "what differs is in the export: compare intermediate outputs of the network, or export it anew (`jumar export` compares by itself)",
    "差异来自导出：请对比网络的中间输出，或重新导出（`jumar export` 会自动对比）",
)


def differences(comparisons: Mapping[str, Comparison], bound: float, remedy: Text = _LEAVE_OUT) -> tuple[Finding, ...]:
    rule = find_rule("VF601")
    return tuple(
        rule.finding(
            say(
                "output `{name}` differs: max_rel {found:.3g}, bound {bound:g}{reason}",
                "输出 `{name}` 不一致：max_rel {found:.3g}，界限 {bound:g}{reason}",
                name=name,
                found=item.max_rel,
                bound=bound,
                reason=say("", "") if item.reason is None else say(" ({reason})", "（{reason}）", reason=item.reason),
            ),
            say("a model that differs before it is compiled is wrong on any device", "编译前就不一致的模型，在任何设备上都是错的"),
            remedy,
            place=name,
        )
        for name, item in comparisons.items()
        if not item.within(bound)
    )


def measurements(comparisons: Mapping[str, Comparison]) -> tuple[Measurement, ...]:
    """Numbers of the comparison; infinity (not comparable) is stored as the largest float, which JSON can hold."""
    limit = 1.7976931348623157e308
    return tuple(
        Measurement(f"{name}/{key}", min(getattr(item, key), limit), "1", "reference")
        for name, item in comparisons.items()
        for key in ("max_abs", "max_rel", "cosine")
    )


def table(comparisons: Mapping[str, Comparison]) -> str:
    """The comparison as CSV."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["output", "max_abs", "max_rel", "cosine", "reason"])
    for name, item in comparisons.items():
        writer.writerow([name, repr(item.max_abs), repr(item.max_rel), repr(item.cosine), item.reason or ""])
    return text.getvalue()


def _manifest_beside(model: ModelLike) -> dict[str, Any]:
    """The manifest of the bundle the model lies in, if it speaks of this very file."""
    if not isinstance(model, (str, Path)):
        return {}
    path = Path(model)
    try:
        data = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        known = {item["path"]: item["sha256"] for item in data["files"]}
        return data if known.get(path.name) == file_sha256(path) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def reference_of(model: ModelLike) -> str | None:
    """The model that a bundle was made from, if the model lies in one and its source is still there unchanged."""
    try:
        return _source_of(_manifest_beside(model))
    except UsageError:
        return None


def interface_of(model: ModelLike) -> Mapping[str, Any]:
    """What became of the inputs and outputs of the model that a bundle was made from."""
    found: Mapping[str, Any] = _manifest_beside(model).get("interface") or {}
    return found


def _source_of(manifest: Mapping[str, Any]) -> str:
    source = manifest.get("source") or {}
    path, digest = source.get("path"), source.get("sha256")
    if path and Path(path).is_file() and file_sha256(path) == digest:
        return str(path)
    found: Text = say("no reference was given", "没有给出参考模型")
    if path:
        found = say("the bundle's source `{path}` is gone or has changed", "bundle 的源模型 `{path}` 不存在或已改变", path=path)
    raise UsageError(
        found, say("expected a second model to compare with", "应给出用于对比的模型"), say("name it with --against", "请用 --against 指定")
    )


def _shapes_of(model: ir.Model, reference: ir.Model, interface: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Fixed shapes of the model's inputs, by the reference's names, where the reference leaves them open."""
    names = {item["original"]: item["name"] for item in interface.get("inputs", ())}
    fixed = {value.name: value.shape for value in model.graph.inputs}
    shapes: dict[str, tuple[int, ...]] = {}
    for value in reference.graph.inputs:
        shape = fixed.get(names.get(value.name or "", value.name))
        if (
            shape is not None
            and value.shape is not None
            and len(shape) == len(value.shape)
            and shape.is_static()
            and not value.shape.is_static()
        ):
            shapes[value.name or ""] = tuple(int(dim) for dim in shape.numpy())
    return shapes


def _gears_told(manifest: Mapping[str, Any] | None, ports: Interface) -> list[Shapes]:
    """The gears of a bundle by the names of its source; none where its .om takes one size, or a range."""
    told = next((build["gears"] for build in (manifest or {}).get("builds", ()) if build.get("gears")), None)
    if told is None or told["kind"] == "range":
        return []
    names = {port.name: original for original, port in ports.inputs.items() if not port.scalar}
    return [{names[name]: tuple(shape) for name, shape in item.items() if name in names} for item in told["shapes"]]


def nothing_chosen(names: Sequence[str], cases: int) -> Finding:
    """The finding that a proof ran on inputs of which nothing was chosen."""
    listed = ", ".join(f"`{name}`" for name in names[:3])
    return find_rule("VF604").finding(
        say("nothing was chosen for {names} in {cases} cases", "{cases} 组输入中 {names} 均未选中任何位置", names=listed, cases=cases),
        say("what becomes of chosen places was not run", "对选中位置的处理没有得到运行验证"),
        say("give inputs of which something is chosen with --feeds", "请用 --feeds 提供能选中一些位置的输入"),
        place=names[0],
    )


def unverified(error: EvaluationError | UsageError) -> Finding:
    """The finding for a model that could not be run."""
    return find_rule("VF602").finding(
        say("nothing could be proven: {reason}", "无法进行证明：{reason}", reason=error.found),
        say("without a reference run there is no claim about numbers, and no rewrite is made", "没有参考运行就没有数值结论，也不做改写"),
        say("give real inputs with --feeds", "请用 --feeds 提供真实输入"),
    )
