"""``jumar quantize``: an int8 model that ATC parses, as accurate as asked for, and everything that was decided on the way."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..case import Artifact, Case, Finding, Step
from ..errors import EvaluationError, UsageError
from ..graph import Digester, Evaluator, infer_shapes, save, shared_or_new, write_atomic
from ..graph.digest import file_sha256
from ..graph.surgery.lookup import must_pass_checker
from ..graph.walk import weight_bytes
from ..precision.metrics import METRICS
from ..proof import FeedSet
from ..quant.calibrate import Calibration, calibrate, calibration_key
from ..quant.config import AUTO, QuantConfig, check_method, load_config, with_options, write_amct, write_config
from ..quant.convert import is_quantised
from ..quant.curve import curve_csv, curve_svg
from ..quant.deploy import deploy_model
from ..quant.gate import Cost, Gate, Verdict
from ..quant.layers import Layer, Survey, survey
from ..quant.plan import Plan, WeightOptions, quantise_layer
from ..quant.proof import prove_layers
from ..quant.qdq import qdq_model
from ..quant.quality import Judge, SampleMetric, Switchboard, find_metric, spread
from ..quant.ranges import METHODS, scale_of
from ..quant.records import LayerRecord, load_records, plan_of_records, records_of, write_records
from ..quant.samples import Samples, joined, open_samples
from ..targets import Target
from ..text import say
from .aipp_common import TransformLike, as_transform
from .common import ModelLike, Progress, check_number, must_not_overwrite, open_case, silent
from .quantize_convert import convert_quantised
from .quantize_parts import DEPLOY_FILE, QDQ_FILE, RECORD_FILE, Outcome, Recipe, Split
from .quantize_words import calibration_findings, decision_findings, summary
from .simplify import simplify

CONFIG_FILE, AMCT_FILE, STATE_FILE = "quantization.json", "amct_config.json", "calibration.npz"
CURVE_FILES = ("curve.csv", "curve.json", "curve.svg")
DEFAULT_DROP = 0.01
MOST_SAMPLES = 1000
_TRIAL_SAMPLES, _PROOF_SAMPLES = 8, 2
_WHOLE_RUN_WORK = 1 << 31
"""Multiply-adds up to which the deploy model is also run as a whole in the interpreter, which is slow."""


def quantize(
    model: ModelLike,
    *,
    output: str | Path,
    calib: Any = None,
    held: Any = None,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    preprocess: TransformLike | None = None,
    method: str | None = None,
    metric: str | SampleMetric | None = None,
    max_drop: float = DEFAULT_DROP,
    config: str | Path | QuantConfig | None = None,
    record: str | Path | None = None,
    skip_layers: Sequence[str] = (),
    skip_types: Sequence[str] = (),
    symmetric: bool | None = None,
    correct_bias: bool | None = None,
    fallback: bool = True,
    samples: int = MOST_SAMPLES,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Calibrate, round to int8, measure on held-out samples, put layers back until the accuracy holds, and write both forms.

    A run that was killed goes on where calibration was, if ``output`` is the same. A model that has QuantizeLinear and DequantizeLinear already
    keeps its scales (QT110); it needs no samples, and is compared with itself on those given.

    Args:
        calib: samples: an ``.npz`` or ``.npy`` with samples along the first axis, a folder of ``.npy``, ``.npz`` or images, or an iterable of
            feeds. Every fifth is held out for the gate, unless ``held`` is given.
        held: samples for the gate alone, in any of these forms; their numbers, from 0, are what ``metric`` is given.
        output: a folder: ``deploy.onnx`` for ATC, ``qdq.onnx`` for everything else, ``record.txt`` and ``amct_config.json`` as AMCT has them,
            ``quantization.json`` to be edited and given back as ``config``, and the trade-off curve as CSV, JSON and SVG.
        preprocess: makes the input of an image, as for :func:`~jumar.derive_aipp`.
        method: one of :data:`jumar.quant.ranges.METHODS`, or ``auto``, which tries them on calibration samples.
        metric: a name of :data:`jumar.quant.quality.AGREEMENTS` (default ``similarity``), or a function of the number of a sample and the
            outputs on it that returns a number that grows with quality.
        max_drop: how much of the metric may be lost on the held-out samples.
        config: our JSON or AMCT's; the other arguments win over it.
        record: AMCT's record file (``record.txt`` of a run before is one): its scales are taken, nothing is calibrated, and layers that are
            not in it stay in floats.
        fallback: put layers back to floats until the gate holds; False reports only (QT106).
        samples: use at most this many, spread evenly.

    Returns:
        A case with the deploy model; findings QT101 to QT111, measurements, and all decisions in ``data``.

    Raises:
        UsageError, ModelError, TargetError, EvaluationError, OutputError: see :class:`jumar.JumarError`.
    """
    check_number("--max-drop", max_drop, 1.0, zero=True)
    check_number("--samples", samples, 1_000_000, zero=False)
    name, agreement, user = find_metric(metric)
    choices = _config(config, method, skip_layers, skip_types, symmetric, correct_bias)
    transform = None if preprocess is None else as_transform(preprocess)
    records = None if record is None else load_records(record)
    case = open_case(model, "quantize", soc=soc, target=target, cann=cann)
    folder = Path(output)
    must_not_overwrite(model, folder / DEPLOY_FILE)
    must_not_overwrite(model, folder / QDQ_FILE)
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(shared_or_new(evaluator))
        if is_quantised(case.model):
            shown = None if calib is None else stack.enter_context(open_samples(calib, case.model, transform))
            return convert_quantised(case, folder, shown, (name, agreement or METRICS["similarity"]), max_drop, running, progress)
        if calib is None:
            raise _no_samples()
        given = stack.enter_context(open_samples(calib, case.model, transform))
        split = Split.of(len(given), int(samples))
        if held is not None:
            apart = stack.enter_context(open_samples(held, case.model, transform))
            split = Split.of(len(given), int(samples), len(apart))
            given = joined(given, apart)
        job = _Job(case, folder, choices, given, split, running, progress, name, max_drop, fallback, records)

        def judge(board: Switchboard, numbers: Sequence[int]) -> Judge:
            own = None if user is None else lambda number, outputs: user(number - split.first, outputs)
            return Judge(board, given, numbers, agreement, own)

        return job.run(judge)


def _no_samples() -> UsageError:
    return UsageError(
        say("no samples to calibrate on were given", "没有给出用于校准的样本"),
        say("expected them for a model in floats", "浮点模型需要样本"),
        say("give --calib DATA, 100 to 1000 real samples", "请用 --calib DATA 给出 100 到 1000 个真实样本"),
    )


def _config(
    config: str | Path | QuantConfig | None,
    method: str | None,
    skip_layers: Sequence[str],
    skip_types: Sequence[str],
    symmetric: bool | None,
    correct_bias: bool | None,
) -> QuantConfig:
    found = config if isinstance(config, QuantConfig) else QuantConfig() if config is None else load_config(config)
    return with_options(
        found,
        method=None if method is None else check_method(method),
        skip_layers=(*found.skip_layers, *skip_layers) if skip_layers else None,
        skip_types=(*found.skip_types, *skip_types) if skip_types else None,
        offset=None if symmetric is None else not symmetric,
        correct_bias=correct_bias,
    )


@dataclass
class _Job:
    case: Case
    folder: Path
    config: QuantConfig
    samples: Samples
    split: Split
    evaluator: Evaluator
    progress: Progress
    metric: str
    max_drop: float
    fallback: bool
    records: Mapping[str, LayerRecord] | None = None

    def run(self, judge_of: Callable[[Switchboard, Sequence[int]], Judge]) -> Case:
        begin = time.perf_counter()
        split = self.split
        model, steps = self._fused(split)
        first = self.samples.feeds(split.calibration[0])
        found = survey(model, self.case.target, first)
        self.config.check(found)
        refusals = {layer.name: self.config.refusal(layer.name, layer.op) for layer in found.layers}
        layers = tuple(layer for layer in found.layers if refusals[layer.name] is None)
        skipped = {name: reason for name, reason in refusals.items() if reason is not None}
        if self.records is None:
            calibration = self._calibrate(model, layers, split)
            recipe, trials = self._recipe(model, layers, calibration, split)
            plan = self._plan(layers, calibration, recipe)
        else:
            calibration, recipe, trials = Calibration(), Recipe("record", WeightOptions()), {}
            plan, unfit = plan_of_records(layers, self.records, found)
            skipped |= unfit
        verdict = self._gate(model, found, plan, split, judge_of)
        kept = plan.without(set(plan.items) - verdict.chosen)
        outcome = Outcome(found, layers, skipped, calibration, split, recipe, trials, kept, verdict, [], _bytes(model))
        return self._finish(model, outcome, steps, begin)

    def _fused(self, split: Split) -> tuple[ir.Model, tuple[Step, ...]]:
        """The model with what belongs to a layer folded into it, proven on samples."""
        if not self.config.fusion:
            return self.case.model, ()
        self.progress(say("simplifying", "简化"), 0.02)
        feeds = FeedSet(tuple(self.samples.feeds(number) for number in split.held[:_PROOF_SAMPLES]), "user")
        done = simplify(self.case, feeds=feeds, evaluator=self.evaluator)
        infer_shapes(done.model)
        return done.model, done.record.steps

    def _calibrate(self, model: ir.Model, layers: tuple[Layer, ...], split: Split) -> Calibration:
        digest = Digester().model(model) or ""
        return calibrate(
            model,
            layers,
            self.samples,
            split.calibration,
            self.evaluator,
            key=calibration_key(digest, layers, self.samples, split.calibration),
            state=self.folder / STATE_FILE,
            progress=lambda done: self.progress(say("calibration", "校准"), 0.05 + 0.35 * done),
        )

    def _plan(self, layers: tuple[Layer, ...], calibration: Calibration, recipe: Recipe) -> Plan:
        scales: dict[tuple[str, str], Any] = {}
        items = {}
        for layer in layers:
            tensor = layer.data.name or ""
            own = self.config.method_of(layer.name, recipe.method)
            histogram = calibration.histograms[tensor]
            if (tensor, own) not in scales:
                scales[tensor, own] = scale_of(histogram, own, not self.config.offset, self.config.percentile)
            items[layer.name] = quantise_layer(layer, scales[tensor, own], recipe.weights, histogram)
        return Plan(items)

    def _recipe(
        self, model: ir.Model, layers: tuple[Layer, ...], calibration: Calibration, split: Split
    ) -> tuple[Recipe, dict[str, float]]:
        """What was asked for; of ``auto``, what comes nearest on calibration samples (not on those held out): first the method, then options."""
        config = self.config
        asked = WeightOptions(bool(config.search_weights), bool(config.correct_bias))
        if config.method != AUTO or not layers:
            return Recipe("histogram" if config.method == AUTO else config.method, asked), {}
        numbers = [split.calibration[place] for place in spread(len(split.calibration), _TRIAL_SAMPLES)]
        trials: dict[str, float] = {}
        best: Recipe | None = None

        def attempt(recipe: Recipe) -> None:
            nonlocal best
            self.progress(say("trying {recipe}", "尝试 {recipe}", recipe=recipe.name), min(0.4 + 0.015 * len(trials), 0.49))
            plan = self._plan(layers, calibration, recipe)
            with Switchboard(self.evaluator, model, plan) as board:
                judge = Judge(board, self.samples, numbers, None, lambda _number, _outputs: 1.0)
                try:
                    trials[recipe.name] = judge.score(frozenset(plan.items)).loss
                finally:
                    judge.close()
            if best is None or trials[recipe.name] < trials[best.name]:
                best = recipe

        for method in (method for method in METHODS if method != "mse"):
            attempt(Recipe(method, asked))
        assert best is not None
        if config.correct_bias is None:
            attempt(Recipe(best.method, replace(best.weights, correct_bias=True)))
        if config.search_weights is None:
            attempt(Recipe(best.method, replace(best.weights, search=True)))
        return best, trials

    def _gate(
        self, model: ir.Model, found: Survey, plan: Plan, split: Split, judge_of: Callable[[Switchboard, Sequence[int]], Judge]
    ) -> Verdict:
        costs = {
            name: Cost(item.layer.work, item.layer.weight.nbytes - item.weight.data.nbytes - 8 * item.deq.size)
            for name, item in plan.items.items()
        }
        with Switchboard(self.evaluator, model, plan) as board:
            judge = judge_of(board, split.held)
            try:
                gate = Gate(
                    judge,
                    costs,
                    Cost(found.work, _bytes(model)),
                    self.max_drop,
                    progress=lambda done: self.progress(say("accuracy gate", "精度门限"), 0.5 + 0.35 * done),
                )
                return gate.decide(self.fallback)
            finally:
                judge.close()

    def _finish(self, model: ir.Model, outcome: Outcome, steps: tuple[Step, ...], begin: float) -> Case:
        self.progress(say("writing and proving both forms", "写出并证明两种形式"), 0.88)
        qdq, deploy = qdq_model(model, outcome.plan), deploy_model(model, outcome.plan)
        must_pass_checker(qdq)
        feeds = [self.samples.feeds(number) for number in outcome.split.held[:_PROOF_SAMPLES]]
        outcome.proofs = list(prove_layers(qdq, outcome.plan, feeds, self.evaluator))
        outcome.whole = self._whole(qdq, deploy, outcome, feeds[0])
        files = self._write(qdq, deploy, outcome)
        findings: list[Finding] = [
            *calibration_findings(outcome, self.samples, self.config),
            *decision_findings(outcome, self.max_drop, self.metric, self.fallback),
        ]
        before, after = Digester().model(self.case.model), Digester().model(deploy)
        told = {"recipe": outcome.recipe.name, "metric": self.metric, "max_drop": self.max_drop, "samples": self.samples.origin}
        verdict = outcome.verdict
        told |= {"layers": len(outcome.plan.items), "put_back": list(verdict.returned), "drop": verdict.drop, "held": verdict.held}
        options = {"quantization": told}
        step = Step("quantize", __version__, before, after, round(time.perf_counter() - begin, 4), options)
        notes, measurements, data = summary(outcome, self.metric, self.max_drop)
        record = self.case.record.extend(
            findings=tuple(findings),
            steps=(*steps, step),
            notes=notes,
            measurements=measurements,
            artifacts=files,
            data={"quantize": data},
        )
        self.progress(say("done", "完成"), 1.0)
        return Case(deploy, self.case.target, record)

    def _whole(self, qdq: ir.Model, deploy: ir.Model, outcome: Outcome, feeds: Mapping[str, Any]) -> float | None:
        """Largest difference between the outputs of both forms on a sample, in parts of the largest element; None where it was not tried."""
        if not outcome.plan.items or outcome.survey.work > _WHOLE_RUN_WORK:
            return None
        right = self.evaluator.run(qdq, feeds)
        try:
            found = self.evaluator.run(deploy, feeds)
        except EvaluationError:
            return None  # an operator beside the layers that only ONNX Runtime has
        values = [
            float(np.abs(found[name].astype(np.float64) - value).max(initial=0.0)) / max(float(np.abs(value).max(initial=0.0)), 1e-30)
            for name, value in right.items()
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and found[name].shape == value.shape
        ]
        return max(values, default=None)

    def _write(self, qdq: ir.Model, deploy: ir.Model, outcome: Outcome) -> tuple[Artifact, ...]:
        verdict = outcome.verdict
        told = {layer.name: self._told(layer, outcome) for layer in outcome.survey.layers}
        amct = {
            layer.name: (layer.op, layer.name in outcome.plan.items, self.config.method_of(layer.name, outcome.recipe.method))
            for layer in outcome.survey.layers
        }
        final = next((point for point in verdict.curve if point.quantised == len(outcome.plan.items) and point.drop == verdict.drop), None)
        texts = {
            RECORD_FILE: write_records(records_of(outcome.plan)),
            CONFIG_FILE: write_config(self.config, told),
            AMCT_FILE: write_amct(self.config, amct),
            CURVE_FILES[0]: curve_csv(verdict.curve),
            CURVE_FILES[1]: json.dumps([asdict(point) for point in verdict.curve], indent=1) + "\n",
            CURVE_FILES[2]: curve_svg(verdict.curve, self.metric, final, self.max_drop),
        }
        files: list[tuple[Path, str]] = []
        for model, name in ((deploy, DEPLOY_FILE), (qdq, QDQ_FILE)):
            paths = save(model, self.folder / name, share=False)
            outcome.sizes[name] = sum(path.stat().st_size for path in paths)
            files += [(path, "model" if path == paths[0] else "weights") for path in paths]
        for name, text in texts.items():
            write_atomic(self.folder / name, text)
            files.append((self.folder / name, "table" if name in CURVE_FILES else "config"))
        return tuple(Artifact(str(path), file_sha256(path), kind) for path, kind in files)

    def _told(self, layer: Layer, outcome: Outcome) -> dict[str, Any]:
        item = outcome.plan.items.get(layer.name)
        told: dict[str, Any] = {"quantise": item is not None}
        own = self.config.layers.get(layer.name)
        if own is not None and own.method is not None:
            told["method"] = own.method
        if item is not None:
            return told | {"scale": item.activation.scale, "offset": item.activation.offset}
        reason = outcome.skipped.get(layer.name) or say("put back by the accuracy gate", "由精度门限恢复为浮点")
        return told | {"why": str(reason)}


def _bytes(model: ir.Model) -> int:
    """Of all weights."""
    tensors = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    return sum(weight_bytes(tensor) for tensor in tensors if tensor is not None)
