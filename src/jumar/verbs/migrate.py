"""``jumar migrate``: the main job. check -> fix -> verify -> compile -> a bundle with a report."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from ..atc import check_precision_mode, find_atc
from ..atc.gears import Gears, Kind
from ..atc.manifest import told_of_steps
from ..atc.toolchain import DEFAULT_TIMEOUT, LONGEST_TIMEOUT
from ..case import Case, ModelInfo, Record
from ..errors import EvaluationError, JumarError, UsageError
from ..graph import Evaluator, load
from ..graph.bind import bind_inputs
from ..graph.digest import file_sha256
from ..graph.fold import DEFAULT_FOLD_LIMIT
from ..quant.config import QuantConfig
from ..quant.quality import SampleMetric
from ..rules import find_rule
from ..targets import Target
from ..text import Lang, default_lang, say
from .aipp_auto import AUTO, auto_aipp
from .aipp_common import TransformLike
from .bundle import MODEL_FILE, Bundle
from .check import pinned
from .common import Progress, Shapes, check_number, check_shapes, open_case, silent
from .compile import Wanted, compile_into
from .compile_gears import gear_findings, gears_by_present_names, read_wanted_gears
from .fix import fix
from .meaning import restore_meaning
from .migrate_int8 import Int8, check_int8, deploy_digest, quantize_into
from .one_step import not_together
from .quantize import DEFAULT_DROP
from .quantize_parts import DEPLOY_FILE
from .verify import DEFAULT_BOUND, unverified, verify


def migrate(
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
    ranges: Mapping[str, tuple[int, int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    one_step: Mapping[str, int | str] | None = None,
    select: Sequence[str] | None = None,
    unsafe: Sequence[str] = (),
    cut: bool | Literal["aicpu"] = False,
    feeds: str | Path | None = None,
    bound: float = DEFAULT_BOUND,
    fold_limit: int = DEFAULT_FOLD_LIMIT,
    precision_mode: str | None = None,
    aipp: str | Path | None = None,
    aipp_image: str = "rgb",
    aipp_matrix: str | None = None,
    quantize: str | None = None,
    calib: Any = None,
    held: Any = None,
    preprocess: TransformLike | None = None,
    method: str | None = None,
    metric: str | SampleMetric | None = None,
    max_drop: float = DEFAULT_DROP,
    config: str | Path | QuantConfig | None = None,
    dry_run: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    resume: bool = False,
    lang: Lang | None = None,
    progress: Progress = silent,
) -> Case:
    """Carry a model to a target: everything of check, fix, verify and compile, in one bundle directory.

    The bundle is built beside its final place and moved there when it is whole, so that a kill leaves the old bundle or one that
    ``resume=True`` continues. With ``resume`` a stage is done again only if its inputs changed or its files were touched.

    Args:
        output: the bundle; must not exist unless ``resume`` is set.
        gears, gears_from, gear_count, gear_multiple, gear_flag: the sizes that the one .om shall take, as for :func:`~jumar.compile`; the
            model is fixed, proven and verified at each of them. Ranges are for ``compile`` alone.
        ranges, constants, one_step, cut: as for :func:`~jumar.fix`; a cut model is verified as a chain, and its device part compiled.
        bound: allowed ``max_rel`` of the migrated model against the given one.
        aipp: preprocessing to insert; taken into the bundle, judged, and told in the manifest. ``"auto"`` writes it from ``preprocess`` and the
            size of the model's image input; without one, pixels are handed to a network that normalises them itself.
        aipp_image, aipp_matrix: with ``"auto"``, the kind of images the device is given and the standard of YUV ones, as for
            :func:`~jumar.derive_aipp`.
        quantize: ``int8``: the fixed model is quantised as by :func:`~jumar.quantize`, whose arguments the next seven are; the samples have
            the names of the given model's inputs. The bundle then holds both models, and the deploy form is compiled.
        lang: language of ``report.html``.

    Returns:
        A case with the migrated model; its record is what ``report.json`` holds.

    Raises:
        UsageError, ModelError, TargetError, OutputError: see :class:`jumar.JumarError`.
    """
    check_number("--bound", bound, 1.0, zero=True)  # a max_rel of 1 stands for "not comparable"
    check_number("--timeout", timeout, LONGEST_TIMEOUT, zero=False)
    check_precision_mode(precision_mode)  # before anything long is done
    case = open_case(model, "migrate", soc=soc, target=target, cann=cann, opset_max=opset_max)
    if one_step and constants:
        raise not_together()
    given = {name: np.asarray(value).tolist() for name, value in (constants or {}).items()}
    bound_model = bind_inputs(case.model, given)[0] if given else case.model
    sizes = check_shapes(bound_model, shapes or {})
    chosen, notes = read_wanted_gears(
        case.replace(model=bound_model),
        gears,
        gears_from,
        count=gear_count,
        multiple=gear_multiple,
        flag=gear_flag,
        aipp=aipp is not None,
        split=False,
    )
    if chosen is not None and chosen.kind == "range":
        raise _is_range()
    for_samples = None if quantize is None and aipp == AUTO else preprocess  # else it belongs to AIPP alone
    int8 = check_int8(
        quantize,
        Int8(calib, held, for_samples, method, metric, max_drop, config),
        gears=chosen is not None,
        cut=bool(cut),
        one_step=bool(one_step),
        precision_mode=precision_mode,
    )
    source = {
        "model": None if case.record.model is None else case.record.model.sha256,
        "feeds": None if feeds is None else file_sha256(_existing(feeds)),
        "weights": _weights(case.model),
        "target": None if case.target is None else [case.target.to_dict(), case.target.opset_min],
        "shapes": {name: list(shape) for name, shape in sizes.items()},
        **({} if chosen is None else {"gears": chosen.flags()}),
    }
    rewriting = {
        "select": select,
        "unsafe": unsafe,
        "fold_limit": fold_limit,
        "cut": cut,
        "constants": given,
        "one_step": dict(one_step or {}),
    }
    rewriting["ranges"] = {name: list(limits) for name, limits in (ranges or {}).items()}
    compiling = {"precision_mode": precision_mode, "dry_run": dry_run, "timeout": timeout}
    auto = None
    if aipp == AUTO:
        auto = auto_aipp(pinned(bound_model, sizes), case.target, preprocess=preprocess, image=aipp_image, matrix=aipp_matrix)
    inserted = None if aipp is None or auto is not None else _aipp_file(aipp)
    bundle = Bundle.open(Path(output), resume)
    with Evaluator() as evaluator, tempfile.TemporaryDirectory(prefix="jumar-aipp-") as work:
        if auto is not None:
            inserted = Path(work) / "aipp.cfg"
            inserted.write_text(auto.text, encoding="utf-8")
        job = _Migration(case, str(model), bundle, sizes, None if feeds is None else str(feeds), source, evaluator, progress, chosen)
        try:
            record = job.fix(rewriting)
        except JumarError:
            bundle.discard()
            raise
        meant, changed = restore_meaning(case, {find_rule(code).code for code in unsafe})
        record = job.verify(record.extend(notes=notes), bound, meant if changed else None)
        if int8 is not None:
            record = job.quantize(record, int8, pinned(bound_model, sizes) if sizes else bound_model)
        if auto is not None:
            record = record.extend(findings=auto.findings, notes=auto.notes)
        record = job.compile(record, compiling, inserted)
    record = job.bundle.finish(record, lang or default_lang())
    progress(say("done", "完成"), 1.0)
    return Case(load(job.bundle.final / job.compiled(record)), case.target, record)


@dataclass(frozen=True)
class _Migration:
    """The stages of one run. ``source`` is what all of them depend on: a change of it redoes everything."""

    case: Case
    model: str
    bundle: Bundle
    sizes: dict[str, tuple[int, ...]]
    feeds: str | None
    source: Mapping[str, Any]
    evaluator: Evaluator
    progress: Progress
    gears: Gears | None = None

    @property
    def stages(self) -> Sequence[Shapes]:
        return () if self.gears is None else self.gears.shapes()

    def _part(self, begin: float, end: float) -> Progress:
        return lambda what, fraction: self.progress(what, begin + (end - begin) * fraction)

    def _source_info(self) -> ModelInfo | None:
        """The given model as the manifest names it: absolute, since the bundle is used from other directories too."""
        info = self.case.record.model
        return None if info is None or info.path is None else replace(info, path=str(Path(info.path).resolve()))

    def fix(self, options: dict[str, Any]) -> Record:
        def work() -> Record:
            output = self.bundle.path(MODEL_FILE)
            record = fix(
                self.case,
                shapes=self.sizes,
                gears=self.stages,
                feeds=self.feeds,
                output=output,
                evaluator=self.evaluator,
                progress=self._part(0.0, 0.6),
                **options,
            ).record
            return replace(record, artifacts=tuple(replace(item, path=Path(item.path).name) for item in record.artifacts))

        return replace(self.bundle.stage("fix", {**self.source, **options}, work), verb="migrate")

    def verify(self, record: Record, bound: float, meant: ir.Model | None) -> Record:
        """``meant``: the reference, where it is not the model as given."""

        def work() -> Record:
            path = self.bundle.path(MODEL_FILE)
            try:
                return verify(
                    path,
                    self.model if meant is None else meant,
                    feeds=self.feeds,
                    shapes=self.sizes,
                    bound=bound,
                    interface=record.interface,
                    cut=_cut_of(record),
                    accepted=told_of_steps(record.steps, "accepted"),
                    one_step=told_of_steps(record.steps, "one_step"),
                    gears=self.stages,
                    evaluator=self.evaluator,
                    progress=self._part(0.6, 0.8),
                ).record
            except EvaluationError as error:
                return Record(verb="verify", findings=(unverified(error),))

        done = self.bundle.stage("verify", {**self.source, "fixed": _model_digest(record), "bound": bound}, work)
        known = {finding.code for finding in record.findings}
        new = tuple(finding for finding in done.findings if finding.code not in known)
        return record.extend(findings=new, steps=done.steps, measurements=done.measurements)

    def quantize(self, record: Record, wanted: Int8, original: ir.Model) -> Record:
        """``original``: the model as given, with the shapes that were given."""
        if record.verdict == "blocked":
            return record.extend(notes=(say("not quantised: errors stand", "存在错误，未量化"),))

        def work() -> Record:
            progress = self._part(0.8, 0.9)
            return quantize_into(self.case, self.bundle.partial, MODEL_FILE, original, record, wanted, self.evaluator, progress)

        key = {**self.source, "fixed": _model_digest(record), "int8": wanted.key()}
        done = self.bundle.stage("quantize", key, work)
        return record.extend(
            findings=done.findings,
            steps=done.steps,
            measurements=done.measurements,
            artifacts=done.artifacts,
            notes=done.notes,
            data={**record.data, **done.data},
        )

    def compiled(self, record: Record) -> str:
        """The model that ATC is given."""
        return MODEL_FILE if deploy_digest(record) is None else DEPLOY_FILE

    def compile(self, record: Record, options: dict[str, Any], aipp: Path | None = None) -> Record:
        if record.verdict == "blocked":
            return record.extend(notes=(say("no ATC command was written: errors stand", "存在错误，未生成 ATC 命令"),))

        def work() -> Record:
            # A record of its own, so that the stage holds only what compiling adds.
            blank = replace(record, findings=(), artifacts=(), steps=())
            fixed = Case(load(self.bundle.path(self.compiled(record))), self.case.target, blank)
            gears = None if self.gears is None else gears_by_present_names(self.gears, fixed.model, record.interface)
            if gears is not None:
                fixed = fixed.replace(record=blank.extend(findings=gear_findings(fixed.model, gears)))
            return compile_into(
                fixed,
                self.bundle.partial,
                self.compiled(record),
                "model",
                source=self._source_info(),
                files=record.artifacts,
                history=record.steps,
                progress=self._part(0.8, 0.95),
                wanted=Wanted(gears=gears, aipp=aipp),
                **options,
            ).record

        digest = None if aipp is None else [aipp.name, file_sha256(aipp)]
        atc = None if options["dry_run"] else find_atc()
        tool = None if atc is None else [str(atc), atc.stat().st_mtime]
        done = self.bundle.stage(
            "compile",
            {
                **self.source,
                **options,
                "fixed": _model_digest(record),
                "atc": tool,
                **({"aipp": digest} if digest else {}),
                "int8": deploy_digest(record),
            },
            work,
        )
        return replace(record.extend(findings=done.findings, steps=done.steps), artifacts=done.artifacts)


def _is_range() -> UsageError:
    return UsageError(
        say("a range of sizes is asked for", "要求的是一个大小范围"),
        say("expected sizes one by one: each is proven", "应逐个给出大小：每一种都要证明"),
        say(
            "name them; `jumar compile --gears` takes ranges, without a proof", "请列出各大小；`jumar compile --gears` 接受范围，但不做证明"
        ),
    )


def _cut_of(record: Record) -> Sequence[Mapping[str, Any]]:
    """What the cut step told of the parts, if the model was cut."""
    return next((step.options["cut"] for step in record.steps if step.options.get("cut")), ())


def _model_digest(record: Record) -> str:
    return next(item.sha256 for item in record.artifacts if item.kind == "model" and item.sha256 is not None)


def _aipp_file(path: str | Path) -> Path:
    if not Path(path).is_file():
        raise UsageError(
            say("the AIPP file `{path}` is not there", "AIPP 文件 `{path}` 不存在", path=str(path)[-200:]),
            say("expected a file; what training does before the model is not in the model", "应为文件；训练时在模型之前的处理不在模型中"),
            say("`jumar aipp derive` writes one from the training transform", "`jumar aipp derive` 可由训练时的预处理生成"),
        )
    return Path(path)


def _existing(path: str | Path) -> Path:
    if not Path(path).is_file():
        raise UsageError(
            say("feeds `{path}` cannot be read: no such file", "无法读取输入数据 `{path}`：文件不存在", path=path),
            say("expected a .npz of plain arrays keyed by input name", "应为以输入名为键的 .npz 数组文件"),
            say("correct --feeds", "请修正 --feeds"),
        )
    return Path(path)


def _weights(model: ir.Model) -> list[list[Any]]:
    """Size and time of the external weights: enough to notice that they changed, without reading gigabytes twice."""
    tensors = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    paths = sorted({str(tensor.path) for tensor in tensors if isinstance(tensor, ir.ExternalTensor)})
    return [[Path(path).name, Path(path).stat().st_size, Path(path).stat().st_mtime_ns] for path in paths]
