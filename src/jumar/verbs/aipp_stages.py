"""``jumar verify --aipp``: preprocessing moved to the device in stages, and what each of them does to the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..aipp.compare import Pair
from ..aipp.emulate import Layout
from ..case import Measurement, Record
from ..graph import Evaluator, copy_model, infer_shapes, load, shared_or_new
from ..precision import emulate, find_mode
from ..proof.feeds import make_feeds
from ..proof.metrics import compare, worst
from ..targets import Target
from ..text import Text, say
from .aipp_check import check_aipp
from .aipp_common import TransformLike
from .aipp_outputs import batch_of, largest_at


def verify_aipp(
    model: str | Path,
    config: str | Path,
    *,
    preprocess: TransformLike | None = None,
    torchvision: str | Any | None = None,
    images: Sequence[str | Path] = (),
    kind: str | None = None,
    matrix: str | None = None,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    precision: str = "fp16",
    layout: Layout = "NCHW",
    evaluator: Evaluator | None = None,
) -> Record:
    """Judge an AIPP file beside its model and the training transform, and run the model behind each stage.

    The stages are those in which one switches preprocessing over to a device: all of it on the host in float32 (the reference), AIPP as the
    chip computes it, and then the model in the device's precision as well.

    Args:
        model, config: the ONNX file and the AIPP file inserted into it.
        preprocess, torchvision, images, kind, matrix: as for :func:`~jumar.check_aipp`.
        precision: of the last stage.

    Returns:
        The record of :func:`~jumar.check_aipp`, with a measurement for each stage and output.

    Raises:
        UsageError, ModelError, TargetError, EvaluationError.
    """
    pairs: list[tuple[str, Sequence[Pair]]] = []
    record = check_aipp(
        config,
        soc=soc,
        target=target,
        cann=cann,
        model=model,
        preprocess=preprocess,
        torchvision=torchvision,
        images=images,
        kind=kind,
        matrix=matrix,
        layout=layout,
        taken=pairs,
    )
    loaded = load(model)
    infer_shapes(loaded)
    rounded = emulate(copy_model(loaded), find_mode(precision))
    notes: list[Text] = []
    measurements: list[Measurement] = []
    with shared_or_new(evaluator) as running:
        feed = dict(make_feeds(loaded, running).cases[0])
        for name, both in pairs:
            feeds = [[{**feed, name: batch_of(image, feed[name], layout)} for image in side] for side in zip(*both, strict=True)]
            made, exact = feeds
            right = [running.run(loaded, item) for item in exact]
            stages = {
                "1 host": right,
                "2 AIPP": [running.run(loaded, item) for item in made],
                f"3 AIPP and {precision}": [running.run(rounded, item) for item in made],
            }
            for stage, outputs in stages.items():
                told, measured = _stage(stage, outputs, right)
                notes += told
                measurements += measured
    notes.append(
        say(
            "switch over in this order on your own labelled data; where the accuracy falls at a stage, look there: 2 is the file, 3 is the precision",
            "请在自己的标注数据上按此顺序切换；在哪一阶段精度下降，就检查哪里：2 为配置文件，3 为计算精度",
        )
    )
    return replace(record, verb="verify", notes=(*record.notes, *notes), measurements=(*record.measurements, *measurements))


def _stage(stage: str, outputs: Sequence[dict[str, Any]], right: Sequence[dict[str, Any]]) -> tuple[list[Text], list[Measurement]]:
    notes, measurements = [], []
    for name in right[0]:
        value = worst(compare(one[name], other[name]) for one, other in zip(outputs, right, strict=True)).max_scaled
        agree = sum(largest_at(one[name]) == largest_at(other[name]) for one, other in zip(outputs, right, strict=True))
        notes.append(
            say(
                "stage {stage}: output `{name}` {value:.2g} of its largest element away; the largest element is the same for {agree} of {count} images",
                "阶段 {stage}：输出 `{name}` 相差其最大元素的 {value:.2g}；{count} 幅图像中有 {agree} 幅的最大元素位置相同",
                stage=stage,
                name=name,
                value=value,
                agree=agree,
                count=len(right),
            )
        )
        measurements.append(Measurement(f"stage {stage}: {name} max_scaled", value, "", "simulator"))
        measurements.append(
            Measurement(f"stage {stage}: {name} largest element agrees", float(np.divide(agree, len(right))), "", "simulator")
        )
    return notes, measurements
