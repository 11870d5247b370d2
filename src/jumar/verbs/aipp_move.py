"""``jumar aipp move``: normalisation out of the network into AIPP, or from AIPP into the network, with proof."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..aipp.compare import pattern
from ..aipp.config import AippConfig, write_config
from ..aipp.derive.block import derive_block
from ..aipp.emulate import emulate
from ..aipp.images import lay_out
from ..aipp.network import find_head, put_head, strip_head
from ..aipp.schema import VarType
from ..aipp.transform import Transform, apply, make
from ..case import Artifact, Case, Measurement, Step
from ..errors import UsageError
from ..graph import Digester, Evaluator, save, shared_or_new, write_atomic
from ..graph.digest import file_sha256
from ..proof.feeds import make_feeds
from ..proof.metrics import Comparison, compare, proof_of, worst
from ..rules import find_rule
from ..targets import Target
from ..text import say
from .aipp_common import TransformLike, as_transform, chip_of, read_matrix
from .aipp_derive import comments_of
from .common import ModelLike, open_case

BOUND = 1e-4
"""Allowed ``max_scaled`` of the outputs: the same arithmetic in another order of float32."""
IMAGES = 3
"""Images of the proof: a pattern with all values, and two of random pixels."""


def move_aipp(
    model: ModelLike,
    *,
    to: Literal["aipp", "network"],
    preprocess: TransformLike | None = None,
    config: str | Path | None = None,
    output: str | Path | None = None,
    image: str = "rgb",
    matrix: str | None = None,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    evaluator: Evaluator | None = None,
) -> Case:
    """Move the normalisation of a model's image input.

    Args:
        to: ``aipp`` takes the arithmetic at the head of the network out and writes it into the AIPP file, together with ``preprocess``;
            ``network`` puts ``preprocess`` into the network and leaves AIPP to hand over pixels of 0..255.
        preprocess: what training does before the network; for ``aipp`` none means that the network takes pixels of 0..255.
        config: where to write the AIPP file.
        output: where to write the model.
        image: the kind of images the device is given, as for :func:`derive_aipp`.
        matrix: standard of YUV images.

    Returns:
        A case with the new model. Its step ``aipp-move`` has the proof: on the same pixels, the new model behind its new preprocessing
        gives the outputs of the old one behind the old, in float32. A measurement for each output says how far they are with AIPP
        emulated, its float16 included, from raw bytes to outputs. ``data["config"]`` is the text of the AIPP file.

    Raises:
        UsageError: no image input, nothing to move, or numbers that AIPP cannot hold.
        EvaluationError: the model does not run.
    """
    begin = time.perf_counter()
    found, chip = chip_of(soc, target, cann)
    case = open_case(model, "aipp", need_target=False)
    head = find_head(case.model)
    if head is None:
        raise UsageError(
            say("the model has no image input", "模型没有图像输入"),
            say("expected an input of four dimensions with a fixed number of channels", "应有通道数固定的四维输入"),
            say("give --shape to `jumar fix` first", "请先用 `jumar fix` 的 --shape 固定形状"),
        )
    shape = next(value.shape for value in case.model.graph.inputs if value.name == head.name)
    before = as_transform(preprocess) if preprocess is not None else make("GRAY" if head.channels == 1 else "RGB", (0.0,), (1.0,))
    if before.channels != head.channels:
        raise UsageError(
            say(
                "the transform has {found} channels, input `{name}` {count}",
                "预处理有 {found} 个通道，输入 `{name}` 有 {count} 个",
                found=before.channels,
                name=head.name,
                count=head.channels,
            ),
            say("expected the transform of this input", "应为该输入的预处理"),
        )
    if shape is not None and isinstance(shape[2], int) and isinstance(shape[3], int):
        before = before.with_size((shape[2], shape[3]))
    if to == "aipp":
        changed = strip_head(case.model, head)
        after = _behind(before, head.gain, head.offset)
    else:
        changed = put_head(case.model, head.name, before.subtract, before.factor)
        after = replace(before, subtract=(0.0,) * head.channels, factor=(1.0,) * head.channels)
    derived = derive_block(after, image, matrix=read_matrix(matrix) or ("601", "narrow"), chip=chip)
    text = write_config(AippConfig((derived.op,)), comments_of(derived))
    var: VarType = "float16" if chip is None else chip.var
    with shared_or_new(evaluator) as running:
        exact, rounded, count = _prove(
            case.model, changed, head.name, before, after, derived, var, running, read_matrix(matrix) or ("601", "narrow")
        )
    proof = proof_of(exact.values(), count, BOUND, "max_scaled")
    digests = Digester()
    step = Step(
        "aipp-move",
        __version__,
        digests.model(case.model),
        digests.model(changed),
        round(time.perf_counter() - begin, 4),
        {"to": to},
        proof,
        status="applied" if proof.passed else "rolled-back",
    )
    findings = [] if proof.passed else [_failed(exact)]
    artifacts = []
    if proof.passed and output is not None:
        save(changed, output)
        artifacts.append(Artifact(str(output), file_sha256(Path(output)), "model"))
    if proof.passed and config is not None:
        write_atomic(config, text)
        artifacts.append(Artifact(str(config), file_sha256(Path(config)), "aipp"))
    notes = [*derived.notes, *(say("before AIPP: {step}", "在 AIPP 之前：{step}", step=item) for item in derived.host)]
    if proof.passed:
        notes.append(
            say(
                "proven on {count} images: outputs within {value:.2g} of their largest element",
                "在 {count} 幅图像上证明：输出差异不超过其最大元素的 {value:.2g}",
                count=count,
                value=proof.max_scaled,
            )
        )
    notes += [
        say(
            "`{name}`: from raw bytes through AIPP to the output, {value:.2g} of its largest element away (float16 of AIPP)",
            "`{name}`：从原始字节经 AIPP 到输出，差异为其最大元素的 {value:.2g}（AIPP 的 float16 舍入）",
            name=name,
            value=item.max_scaled,
        )
        for name, item in rounded.items()
    ]
    measurements = [Measurement(f"{name} end to end max_scaled", item.max_scaled, "", "simulator") for name, item in rounded.items()]
    data: dict[str, Any] = {"config": text, "errors": list(derived.errors)}
    record = case.record.extend(
        steps=(step,), findings=tuple(findings), notes=tuple(notes), artifacts=tuple(artifacts), measurements=tuple(measurements)
    )
    record = replace(record, data=data, target=None if found is None else found.to_dict())
    return case.replace(model=changed if proof.passed else case.model, record=record)


def _behind(transform: Transform, gain: tuple[float, ...], offset: tuple[float, ...]) -> Transform:
    """A transform and the arithmetic that follows it, as one."""
    total = tuple(factor * more for factor, more in zip(transform.factor, gain, strict=True))
    added = [
        -off * factor * more + plus for off, factor, more, plus in zip(transform.subtract, transform.factor, gain, offset, strict=True)
    ]
    return replace(
        transform, factor=total, subtract=tuple(-value / scale if value else 0.0 for value, scale in zip(added, total, strict=True))
    )


def _prove(
    old: ir.Model,
    new: ir.Model,
    name: str,
    before: Transform,
    after: Transform,
    derived: Any,
    var: VarType,
    evaluator: Evaluator,
    matrix: Any,
) -> tuple[Mapping[str, Comparison], Mapping[str, Comparison], int]:
    """The outputs of both models on the same pixels: with both transforms in floats, and with AIPP emulated behind the new one."""
    feeds = make_feeds(old, evaluator)
    exact: list[dict[str, Comparison]] = []
    rounded: list[dict[str, Comparison]] = []
    random = np.random.default_rng(11)
    with evaluator.session(old) as first, evaluator.session(new) as second:
        for index in range(IMAGES):
            feed = dict(feeds.cases[min(index, len(feeds.cases) - 1)])
            frames, channels, height, width = feed[name].shape
            pixels = pattern((height, width)) if index == 0 else random.integers(0, 256, (height, width, 3), dtype=np.uint8)
            pixels = pixels if channels == 3 else pixels[..., 0]
            dtype = feed[name].dtype

            def batch(array: Any, frames: int = frames, dtype: Any = dtype) -> Any:
                return np.repeat(array[None].astype(dtype), frames, axis=0)

            plain_before, plain_after = (
                replace(item, size=(height, width), source=None, crop=None, cropped=None, padding=(0, 0, 0, 0)) for item in (before, after)
            )
            wanted = first.run({**feed, name: batch(apply(plain_before, pixels))})
            same = second.run({**feed, name: batch(apply(plain_after, pixels))})
            exact.append({key: compare(same[key], wanted[key]) for key in wanted})
            block = derive_block(plain_after, derived.image, matrix=matrix).op
            if height % 2 == 0 and width % 2 == 0:
                device = emulate(block, lay_out(pixels, derived.image, matrix), var=var, network=(height, width))[0]
                device = second.run({**feed, name: batch(device)})
                rounded.append({key: compare(device[key], wanted[key]) for key in wanted})
    return _worst(exact), _worst(rounded), IMAGES


def _worst(found: list[dict[str, Comparison]]) -> dict[str, Comparison]:
    return {key: worst(item[key] for item in found) for key in found[0]} if found else {}


def _failed(exact: Mapping[str, Comparison]) -> Any:
    name = max(exact, key=lambda key: exact[key].max_scaled)
    return find_rule("VF601").finding(
        say("output `{name}` differs after the move", "移动之后输出 `{name}` 不同", name=name),
        say(
            "{value:.2g} of its largest element, allowed {bound:g}",
            "差异为其最大元素的 {value:.2g}，允许 {bound:g}",
            value=exact[name].max_scaled,
            bound=BOUND,
        ),
        say("leave the normalisation where it is", "请保持归一化的位置"),
    )
