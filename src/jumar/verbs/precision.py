"""``jumar verify --precision``: what the device's 16-bit tensors do to the outputs, where it begins, and what to keep in float32."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from .. import __version__
from ..case import Artifact, Case, Finding, Measurement, Step
from ..graph import Digester, Evaluator, infer_shapes, shared_or_new, write_atomic
from ..graph.digest import file_sha256
from ..precision.keeplist import KeepList, KeepSearch, check_named, keep_files
from ..precision.localise import Localisation, guilty, localise
from ..precision.metrics import Goal, UserMetric, make_goal
from ..precision.modes import PrecisionMode, find_mode
from ..precision.plan import Plan, make_plan
from ..precision.table import Row, Table, per_node, table_csv
from ..proof import FeedSet, load_feeds, make_feeds
from ..rules import find_rule
from ..targets import Target
from ..text import Text, say
from .check import pinned
from .common import ModelLike, Progress, Shapes, check_shapes, generated_feeds, open_case, silent

_SHOWN = 8
_ROWS_SHOWN = 60


def verify_precision(
    model: ModelLike,
    precision: str = "fp16",
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    feeds: str | Path | FeedSet | None = None,
    shapes: Shapes | None = None,
    metric: str | UserMetric | None = None,
    bound: float | None = None,
    keep: Sequence[str] = (),
    table: bool = False,
    csv_file: str | Path | None = None,
    keep_list: str | Path | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Emulate the precision of the device and compare with float32, tensor by tensor.

    Args:
        precision: ``fp16``, ``bf16``, ``mixed``, or a value of --precision_mode_v2 or --precision_mode.
        soc, target, cann: with a target its kernel tables say what is narrowed, what can be kept, and which lists a mixed mode has.
        metric: a name of :data:`jumar.precision.metrics.METRICS` (default ``similarity``), or a function of the right outputs and those of
            the device, both by name, that returns a number that grows with quality.
        bound: what the metric must reach (default: that of the metric; 0 for a function).
        keep: nodes, or ``OpType::TYPE``, that stay in float32.
        table: the rows of all nodes in the record's ``data`` and in the text report.
        csv_file: write the table here.
        keep_list: a folder: if the outputs miss the bound, search what to keep, and write ATC's files there.

    Returns:
        A case whose record has the findings VF609 (outputs out of bound), VF610 (where an error is born), VF606 (what to keep) and VF607
        (what the emulation leaves out), two measurements per output, and all numbers in ``data``.

    Raises:
        ModelError, UsageError, EvaluationError: an unreadable model, an unknown mode, metric or node, inputs on which the model does not run.
    """
    mode, goal = find_mode(precision), make_goal(metric, bound)
    case = open_case(model, "verify", soc=soc, target=target, cann=cann, need_target=False)
    start = time.perf_counter()
    sizes = check_shapes(case.model, shapes or {})
    own = _prepared(pinned(case.model, sizes) if sizes else case.model)
    with shared_or_new(evaluator) as running:
        progress(say("reference run", "参考运行"), 0.05)
        given = load_feeds(feeds, own) if isinstance(feeds, (str, Path)) else feeds or make_feeds(own, running)
        _take_shapes(own, given)
        run = _Run(own, mode, goal, case.target, given, running, progress)
        result = run.judge(keep, Path(keep_list) if keep_list is not None else None)
    files = list(result.files)
    if csv_file is not None:
        write_atomic(csv_file, table_csv(result.table.rows))
        files.append(Path(csv_file))
    digest = Digester().model(case.model)
    options: dict[str, Any] = {
        "precision": mode.name,
        "feeds": given.origin,
        "keep": list(keep),
        "metric": result.metric,
        "bound": goal.bound,
    }
    step = Step("verify-precision", __version__, digest, digest, round(time.perf_counter() - start, 4), options)
    notes = [] if given.origin == "user" else [generated_feeds(given)]
    record = case.record.extend(
        steps=(step,),
        findings=result.findings,
        measurements=_measurements(result),
        artifacts=tuple(Artifact(str(path), file_sha256(path), "table" if path.suffix == ".csv" else "config") for path in files),
        notes=(*result.summary(table), *notes),
        data={"precision": result.to_dict(table)},
    )
    progress(say("done", "完成"), 1.0)
    return case.replace(record=record)


@dataclass(frozen=True)
class Result:
    """What was found out.

    Attributes:
        values: the metric of each output in the given mode.
        kept: what the search found; None where none was needed or asked for.
    """

    plan: Plan
    table: Table
    metric: str
    goal: Goal
    values: Mapping[str, float]
    missed: tuple[str, ...]
    found: Localisation | None
    kept: KeepList | None
    findings: tuple[Finding, ...]
    files: tuple[Path, ...]

    def summary(self, rows: bool) -> tuple[Text, ...]:
        """Lines for a reader."""
        lines = [
            say(
                "{mode}: {count} of {all} nodes in {type}",
                "{mode}：{all} 个节点中有 {count} 个使用 {type}",
                mode=self.plan.mode.flag if self.plan.mode.v1 or self.plan.mode.v2 != "bf16" else "bf16",
                count=len(self.plan.narrowed()),
                all=len(self.plan.decisions),
                type=self.plan.mode.storage.name,
            )
        ]
        lines += [
            say("output `{name}`: {metric} {value:.6g}", "输出 `{name}`：{metric} {value:.6g}", name=name, metric=self.metric, value=value)
            for name, value in self.values.items()
        ]
        if rows:
            lines += [_row_text(row) for row in self.table.rows[:_ROWS_SHOWN]]
            if len(self.table.rows) > _ROWS_SHOWN:
                lines.append(say("{count} more rows: --csv", "其余 {count} 行见 --csv", count=len(self.table.rows) - _ROWS_SHOWN))
        return tuple(lines)

    def to_dict(self, rows: bool) -> dict[str, Any]:
        def errors(value: Any) -> Any:
            return None if value is None else dict(vars(value))

        data: dict[str, Any] = {
            "mode": self.plan.mode.name,
            "storage": self.plan.mode.storage.name,
            "metric": self.metric,
            "bound": self.goal.bound,
            "values": dict(self.values),
            "missed": list(self.missed),
            "born": [] if self.found is None else [item.row.node for item in self.found.culprits],
            "gaps": [str(item) for item in self.plan.gaps],
            "keep": None
            if self.kept is None
            else {"nodes": list(self.kept.nodes), "types": list(self.kept.types), "values": dict(self.kept.values)},
        }
        if rows:
            data["rows"] = [
                {
                    **{key: value for key, value in vars(row).items() if key not in ("entire", "single")},
                    "entire": errors(row.entire),
                    "single": errors(row.single),
                }
                for row in self.table.rows
            ]
        return data


def _row_text(row: Row) -> Text:
    whole, alone = row.entire, row.single
    return say(
        "{node} ({op}) entire {entire} single {single}",
        "{node}（{op}）累计 {entire} 单独 {single}",
        node=row.node,
        op=row.op,
        entire="-" if whole is None else f"{whole.similarity:.6f} max {whole.max_abs:.3g}",
        single="-" if alone is None else f"{alone.similarity:.6f} max {alone.max_abs:.3g}",
    )


@dataclass
class _Run:
    model: ir.Model
    mode: PrecisionMode
    goal: Goal
    target: Target | None
    feeds: FeedSet
    evaluator: Evaluator
    progress: Progress

    def judge(self, keep: Sequence[str], folder: Path | None) -> Result:
        plan = make_plan(self.model, self.mode, keep, self.target)
        table = per_node(
            self.model,
            plan,
            self.evaluator,
            self.feeds.cases,
            progress=lambda done: self.progress(say("node by node", "逐节点"), 0.1 + 0.5 * done),
        )
        values = self.goal.values(table.right, table.device)
        missed = tuple(self.goal.missed(values))
        metric = self.goal.metric.name if self.goal.metric is not None else "user"
        findings: list[Finding] = [_gap(text) for text in plan.gaps]
        found: Localisation | None = None
        kept: KeepList | None = None
        files: tuple[Path, ...] = ()
        if missed:
            names = [value.name or "" for value in self.model.graph.outputs] if self.goal.metric is None else list(missed)
            found = localise(self.model, plan, table.rows, names)
            found = guilty(found, self.model, plan, self.goal, self.feeds.cases, table.right, self.evaluator)
            if folder is not None:
                kept, files = self._keep(plan, table, found, folder)
            mended = kept is not None and kept.enough
            findings = [*(self._lost(name, values[name], metric, mended) for name in missed), *_born(found, plan, self.goal), *findings]
            if folder is not None and kept is not None:
                findings.append(_kept(kept, folder, self.goal, metric) if kept.enough else _not_kept(kept, self.mode, metric))
        return Result(plan, table, metric, self.goal, values, missed, found, kept, tuple(findings), files)

    def _keep(self, plan: Plan, table: Table, found: Localisation, folder: Path) -> tuple[KeepList, tuple[Path, ...]]:
        check_named(self.model)
        search = KeepSearch(
            self.model,
            self.mode,
            self.target,
            self.goal,
            self.feeds.cases,
            table.right,
            self.evaluator,
            progress=lambda tries: self.progress(say("what to keep", "搜索需保留的节点"), min(0.6 + tries / 150, 0.98)),
        )
        kept = search.search(plan, table.rows, found)
        if not kept.enough:
            return kept, ()
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, text in keep_files(kept, self.model, self.mode, self.target).items():
            write_atomic(folder / name, text)
            written.append(folder / name)
        return kept, tuple(written)

    def _lost(self, name: str, value: float, metric: str, mended: bool) -> Finding:
        words = {"name": name, "metric": metric, "value": value, "bound": self.goal.bound, "mode": self.mode.name}
        return find_rule("VF609").finding(
            say(
                "output `{name}` in {mode}: {metric} {value:.4g}, bound {bound:g}",
                "输出 `{name}` 在 {mode} 下：{metric} {value:.4g}，界限 {bound:g}",
                **words,
            ),
            say("the device stores tensors in 16 bits unless told otherwise", "除非另行指定，设备以 16 位存储张量"),
            say(
                "see where it is born; --keep-list DIR finds what to keep in float32",
                "查看误差的起源；--keep-list DIR 可找出需保持 float32 的节点",
            ),
            place=name,
            severity="warning" if mended else None,
        )


def _prepared(model: ir.Model) -> ir.Model:
    """With local functions written out, and types and shapes inferred: what has no type is not rounded."""
    if model.functions:
        InlinePass()(model)
    infer_shapes(model)
    return model


def _take_shapes(model: ir.Model, feeds: FeedSet) -> None:
    """Infer shapes for these very inputs where all cases agree: they tell how large a chunk may be."""
    shapes = [{name: array.shape for name, array in case.items()} for case in feeds.cases]
    if not shapes or any(item != shapes[0] for item in shapes):
        return
    for value in model.graph.inputs:
        if value.name in shapes[0] and (value.shape is None or not value.shape.is_static()):
            value.shape = ir.Shape(shapes[0][value.name])
    infer_shapes(model)


def _gap(text: Text) -> Finding:
    return find_rule("VF607").finding(
        say("not modelled: {text}", "未模拟：{text}", text=text),
        say("the device may differ from the emulation here", "设备在此处可能与模拟不同"),
        say("compare with a dump of the device where it matters", "必要时请与设备导出的数据对比"),
    )


def _born(found: Localisation, plan: Plan, goal: Goal) -> list[Finding]:
    rule = find_rule("VF610")
    findings = []
    for culprit in found.culprits[:_SHOWN]:
        row, errors = culprit.row, culprit.row.entire
        numbers = "" if errors is None else f"similarity {errors.similarity:.4g}, max_abs {errors.max_abs:.3g}"
        if errors is not None and errors.overflow:
            numbers = f"overflow {errors.overflow:.1%}"
        known = goal.missed(culprit.alone)
        effect = (
            say("narrowed alone it spoils {names}", "仅降低该节点的精度就会破坏 {names}", names=", ".join(f"`{name}`" for name in known))
            if known
            else say("narrowed alone it spoils no output", "仅降低该节点的精度不会破坏任何输出")
        )
        findings.append(
            rule.finding(
                say(
                    "the error is born at `{node}` ({op}): {what} ({numbers})",
                    "误差起源于 `{node}`（{op}）：{what}（{numbers}）",
                    node=row.node,
                    op=row.op,
                    what=culprit.pattern.what,
                    numbers=numbers,
                ),
                effect,
                culprit.pattern.remedy,
                node=culprit.node,
                evidence=(f"unit {row.unit}, rule {row.confidence}",),
            )
        )
    if not found.culprits and found.largest:
        names = ", ".join(row.node for row in found.largest)
        findings.append(
            rule.finding(
                say(
                    "no single node: the error comes together from many; the largest by themselves: {names}",
                    "没有单一起源：误差由多个节点累积；自身误差最大的节点：{names}",
                    names=names,
                ),
                say("every tensor of {type} adds half a unit", "每个 {type} 张量都会带来半个单位的误差", type=plan.mode.storage.name),
                say("--keep-list DIR finds a set that is enough", "--keep-list DIR 可找出足够的集合"),
                place=found.largest[0].node,
            )
        )
    return findings


def _kept(kept: KeepList, folder: Path, goal: Goal, metric: str) -> Finding:
    worst = min(kept.values.values(), default=0.0) if goal.metric is None or goal.metric.larger else max(kept.values.values(), default=0.0)
    share = sum(kept.share.values())
    return find_rule("VF606").finding(
        say(
            "{count} nodes kept in float32 are enough: {nodes} ({metric} {value:.6g}, {tries} emulations)",
            "保持 {count} 个节点为 float32 即可：{nodes}（{metric} {value:.6g}，模拟 {tries} 次）",
            count=len(kept.nodes),
            nodes=", ".join(kept.nodes),
            metric=metric,
            value=worst,
            tries=kept.tries,
        ),
        say(
            "they are {share:.2%} of the model's work (an estimate); by type: {types}",
            "约占模型计算量的 {share:.2%}（估计）；按类型：{types}",
            share=share,
            types=", ".join(kept.types) or say("no set of types does", "没有可行的类型集合"),
        ),
        say("give ATC --keep_dtype={path}", "请为 ATC 指定 --keep_dtype={path}", path=folder / "keep_dtype.cfg"),
        place=kept.nodes[0] if kept.nodes else None,
    )


def _not_kept(kept: KeepList, mode: PrecisionMode, metric: str) -> Finding:
    values = ", ".join(f"{name} {value:.4g}" for name, value in kept.values.items())
    return find_rule("VF608").finding(
        say(
            "keeping all that can be kept is not enough: {metric} {values}",
            "保留所有可保留的节点仍不够：{metric} {values}",
            metric=metric,
            values=values,
        ),
        say("what cannot be kept in float32 loses too much in {mode}", "无法保持 float32 的部分在 {mode} 下损失过大", mode=mode.name),
        say("rescale the model where the error is born, or choose another target", "请在误差起源处重新缩放模型，或更换目标"),
    )


def _measurements(result: Result) -> tuple[Measurement, ...]:
    found = [Measurement(f"{name}/{result.metric}", value, "1", "simulator") for name, value in result.values.items()]
    if result.kept is not None:
        found += [Measurement(f"{name}/{result.metric}/kept", value, "1", "simulator") for name, value in result.kept.values.items()]
    return tuple(found)
