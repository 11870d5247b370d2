"""``jumar quantize`` of a model that comes quantised: its own scales in the deploy form, compared with what it computed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..case import Artifact, Case, Finding, Measurement, Step
from ..graph import Digester, Evaluator, save, write_atomic
from ..graph.digest import file_sha256
from ..graph.surgery.lookup import must_pass_checker
from ..precision.metrics import Metric
from ..proof import make_feeds
from ..quant.convert import Converted, convert
from ..quant.deploy import deploy_model
from ..quant.proof import LayerProof, prove_layers
from ..quant.qdq import qdq_model
from ..quant.quality import spread
from ..quant.records import records_of, write_records
from ..quant.samples import Samples
from ..rules import find_rule
from ..text import say
from .common import Progress
from .quantize_parts import DEPLOY_FILE, QDQ_FILE, RECORD_FILE
from .quantize_words import form_findings

_COMPARED = 8


def convert_quantised(
    case: Case, folder: Path, samples: Samples | None, metric: tuple[str, Metric], max_drop: float, evaluator: Evaluator, progress: Progress
) -> Case:
    """Write the deploy form of a QDQ model, and what it differs by from the model as given.

    Args:
        samples: to compare on; without them inputs are generated.
    """
    begin = time.perf_counter()
    progress(say("taking the scales over", "转入 scale"), 0.1)
    found = convert(case.model)
    qdq, deploy = qdq_model(found.model, found.plan), deploy_model(found.model, found.plan)
    must_pass_checker(qdq)
    if samples is None:
        feeds: Sequence[Mapping[str, Any]] = make_feeds(case.model, evaluator).cases
    else:
        feeds = [samples.feeds(number) for number in spread(len(samples), _COMPARED)]
    progress(say("comparing", "比较"), 0.4)
    quality, largest = _compared(case.model, qdq, feeds, metric[1], evaluator)
    proofs = list(prove_layers(qdq, found.plan, feeds[:2], evaluator))
    files: list[tuple[Path, str]] = []
    for model, name in ((deploy, DEPLOY_FILE), (qdq, QDQ_FILE)):
        paths = save(model, folder / name, share=False)
        files += [(path, "model" if path == paths[0] else "weights") for path in paths]
    write_atomic(folder / RECORD_FILE, write_records(records_of(found.plan)))
    files.append((folder / RECORD_FILE, "config"))
    told = {"converted": len(found.plan.items), "dropped": found.dropped, "left": {name: str(why) for name, why in found.left.items()}}
    step = Step(
        "quantize",
        __version__,
        Digester().model(case.model),
        Digester().model(deploy),
        round(time.perf_counter() - begin, 4),
        {"quantization": {**told, "metric": metric[0], "max_drop": max_drop, "drop": 1.0 - quality}},
    )
    record = case.record.extend(
        findings=tuple(_findings(found, quality, metric[0], max_drop, proofs)),
        steps=(step,),
        measurements=(
            Measurement("agreement with the given model", quality, metric[0], "reference"),
            Measurement("largest difference to the given model", largest, "of the largest element", "reference"),
        ),
        notes=(
            say(
                "compared on {count} samples: {metric} {quality:.6g}, largest difference {largest:.3g} of the largest element",
                "在 {count} 个样本上比较：{metric} {quality:.6g}，最大差异为最大元素的 {largest:.3g}",
                count=len(feeds),
                metric=metric[0],
                quality=quality,
                largest=largest,
            ),
        ),
        artifacts=tuple(Artifact(str(path), file_sha256(path), kind) for path, kind in files),
        data={"quantize": {**told, "quality": quality, "layers": list(found.plan.items)}},
    )
    progress(say("done", "完成"), 1.0)
    return Case(deploy, case.target, record)


def _compared(
    given: ir.Model, made: ir.Model, feeds: Sequence[Mapping[str, Any]], metric: Metric, evaluator: Evaluator
) -> tuple[float, float]:
    """The mean of the metric over the samples, the worst output of each counting, and the largest difference in parts of the largest element."""
    total = largest = 0.0
    with evaluator.session(given) as one, evaluator.session(made) as other:
        for feed in feeds:
            right, found = one.run(feed), other.run(feed)
            values = [1.0]
            for name, value in right.items():
                if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
                    continue
                if found[name].shape != value.shape:
                    values.append(0.0)
                    continue
                values.append(metric.measure(value, found[name]))
                size = float(np.abs(value).max(initial=0.0))
                largest = max(largest, float(np.abs(found[name] - value).max(initial=0.0)) / (size or 1.0))
            total += min(values)
    return total / len(feeds), largest


def _findings(found: Converted, quality: float, metric: str, max_drop: float, proofs: list[LayerProof]) -> list[Finding]:
    findings = [
        find_rule("QT110").finding(
            say(
                "{count} layers keep their scales; {dropped} roundings between other operators are left out, {left} layers are floats now",
                "{count} 层保留其 scale；其他算子之间的 {dropped} 处舍入已去掉，{left} 层现为浮点",
                count=len(found.plan.items),
                dropped=found.dropped,
                left=len(found.left),
            ),
            say("ATC has no parser for QuantizeLinear and DequantizeLinear", "ATC 没有 QuantizeLinear 和 DequantizeLinear 的解析器"),
            say("results differ from the given model by what is no longer rounded", "结果与给定模型的差异来自不再进行的舍入"),
        )
    ]
    for name, reason in found.left.items():
        findings.append(
            find_rule("QT104").finding(
                say("`{name}` is a float layer now", "`{name}` 现为浮点层", name=name),
                reason,
                say("quantise the float model with `jumar quantize --calib` instead", "请改用 `jumar quantize --calib` 量化浮点模型"),
                place=name,
            )
        )
    if found.remaining:
        findings.append(
            find_rule("QT104").finding(
                say(
                    "{count} QuantizeLinear or DequantizeLinear are left",
                    "仍有 {count} 个 QuantizeLinear 或 DequantizeLinear",
                    count=found.remaining,
                ),
                say("their factors differ both ways, or are computed", "其往返因子不同，或由计算得到"),
                say("`jumar fix` writes them out with other operators", "`jumar fix` 会用其他算子改写"),
                severity="warning",
            )
        )
    if 1.0 - quality > max_drop:
        findings.append(
            find_rule("QT106").finding(
                say(
                    "{metric} {quality:.4g} against the given model",
                    "与给定模型相比 {metric} 为 {quality:.4g}",
                    metric=metric,
                    quality=quality,
                ),
                say("allowed is a loss of {allowed:g}", "允许损失 {allowed:g}", allowed=max_drop),
                say(
                    "judge both on labelled data; a larger --max-drop accepts it",
                    "请在有标注的数据上评估两者；更大的 --max-drop 可接受该结果",
                ),
            )
        )
    return [*findings, *form_findings(bool(found.plan.items), proofs)]
