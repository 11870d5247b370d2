"""``jumar aipp derive``: the AIPP file of a training transform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..aipp.config import AippConfig, write_config
from ..aipp.derive.block import SPELLINGS, Derived, Spelling, derive_block, make_dynamic
from ..aipp.runtime import calls
from ..aipp.transform import Transform
from ..case import Artifact, Finding, Measurement, Record
from ..errors import UsageError
from ..graph import write_atomic
from ..graph.digest import file_sha256
from ..rules import find_rule
from ..targets import Target
from ..text import Text, say
from .aipp_common import TransformLike, chip_of, find_transform, read_matrix, summary


def derive_aipp(
    preprocess: TransformLike | None = None,
    *,
    torchvision: str | Any | None = None,
    ultralytics: int | None = None,
    mean: str | Sequence[float] | None = None,
    std: str | Sequence[float] | None = None,
    scale: str | float | None = None,
    order: str | None = None,
    size: Sequence[int] | None = None,
    source: Sequence[int] | None = None,
    image: str = "rgb",
    matrix: str | None = None,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    rank: int = 0,
    spelling: str = "split",
    dynamic: bool = False,
    batch: int = 1,
    output: str | Path | None = None,
) -> Record:
    """The AIPP block that stands for a training transform.

    Args:
        preprocess: a JSON file (ours, or one of timm, Hugging Face, OpenCV, Ultralytics, PaddleOCR), the same as a dictionary, a
            :class:`~jumar.aipp.transform.Transform`, or an object of torchvision, which is read and never called.
        torchvision: such an object, or ``MODULE:OBJECT``.
        ultralytics: image size of a YOLO model.
        mean, std, scale, order: the transform as numbers, ``(pixel * scale - mean) / std`` in that order of channels.
        size: height and width of the model's input, where the description does not say.
        source: height and width of the images, if the device shall crop them.
        image: the kind of images: rgb, bgr, xrgb, xbgr, rgbx, bgrx, nv12, nv21, nv16, nv61, yuyv, yvyu, gray.
        matrix: standard of YUV images, such as ``601-full``.
        soc, target, cann: the chip, for its formats and its rounding.
        rank: number of the model's input.
        spelling: ``split``, ``min`` or ``mean``: where the mean is written.
        dynamic: write a block whose settings are given when the model runs; the record then has the calls.
        batch: of a dynamic model.
        output: where to write the file.

    Returns:
        A record without a model. ``data`` has ``config`` (the text), ``blocks``, ``errors`` (largest difference from the transform in
        float64, a channel), ``host`` and, for a dynamic block, ``calls``. Findings AI110 name what the host must do.

    Raises:
        UsageError: no transform, two of them, or one that AIPP cannot do.
        TargetError: unknown target.
        OutputError: the file cannot be written.
    """
    transform = find_transform(
        preprocess=preprocess,
        torchvision=torchvision,
        ultralytics=ultralytics,
        mean=mean,
        std=std,
        scale=scale,
        order=order,
        size=size,
        source=source,
    )
    if transform is None:
        raise UsageError(
            say("no transform was given", "没有给出预处理"),
            say(
                "expected --preprocess, --torchvision, --ultralytics, or --mean and --std",
                "应给出 --preprocess、--torchvision、--ultralytics，或 --mean 和 --std",
            ),
            say("copy it from the training code", "请从训练代码中获取"),
        )
    if spelling not in SPELLINGS:
        raise UsageError(
            say("`{name}` is no spelling", "`{name}` 不是写法", name=spelling),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(SPELLINGS)),
        )
    if rank < 0 or not 1 <= batch <= 127:
        raise UsageError(
            say("a rank of {rank} and a batch of {batch}", "rank 为 {rank}，batch 为 {batch}", rank=rank, batch=batch),
            say("expected a rank of 0 or more, and a batch of 1 to 127", "rank 不小于 0，batch 为 1 到 127"),
        )
    found, known = chip_of(soc, target, cann)
    kind: Spelling = "min" if spelling == "min" else "mean" if spelling == "mean" else "split"
    derived = derive_block(transform, image, matrix=read_matrix(matrix) or ("601", "narrow"), chip=known, rank=rank, spelling=kind)
    return _record(derived, found, dynamic=dynamic, batch=batch, output=output, dynamic_here=known is None or known.dynamic)


def _record(derived: Derived, target: Target | None, *, dynamic: bool, batch: int, output: str | Path | None, dynamic_here: bool) -> Record:
    op = make_dynamic(derived, batch) if dynamic else derived.op
    text = write_config(AippConfig((op,)), comments_of(derived))
    findings = list(host_findings(derived))
    if dynamic and not dynamic_here:
        findings.append(
            find_rule("AI103").finding(
                say("this chip has no dynamic AIPP", "该芯片没有动态 AIPP"),
                say("the operator compiler refuses it (E81012)", "算子编译器会拒绝（E81012）"),
                say("use static AIPP", "请使用静态 AIPP"),
            )
        )
    data: dict[str, Any] = {
        "config": text,
        "blocks": [{**summary(op), "values": dict(op.given)}],
        "image": derived.image,
        "errors": list(derived.errors),
        "host": [str(step) for step in derived.host],
        "transform": _transform(derived.transform),
    }
    if dynamic:
        data["calls"] = calls(derived.op, batch)
    notes = [*derived.notes, _error_text(derived)]
    artifacts: tuple[Artifact, ...] = ()
    if output is None:
        notes.append(say("{text}", "{text}", text=text.rstrip()))
    else:
        write_atomic(output, text)
        artifacts = (Artifact(str(output), file_sha256(Path(output)), "aipp"),)
    if dynamic:
        notes.append(say("{text}", "{text}", text="\n".join(data["calls"])))
    return Record(
        verb="aipp",
        target=None if target is None else target.to_dict(),
        findings=tuple(findings),
        notes=tuple(notes),
        artifacts=artifacts,
        measurements=tuple(
            Measurement(f"channel {index} largest difference", value, "", "simulator") for index, value in enumerate(derived.errors)
        ),
        data=data,
    )


def host_findings(derived: Derived) -> tuple[Finding, ...]:
    """AI110 for each step that the host must do before AIPP."""
    return tuple(
        find_rule("AI110").finding(
            say("before AIPP: {step}", "在 AIPP 之前：{step}", step=step),
            say("AIPP does not do it", "AIPP 不做这一步"),
            say("do it on the host or with DVPP", "请在主机上或用 DVPP 完成"),
        )
        for step in derived.host
    )


def comments_of(derived: Derived) -> tuple[str, ...]:
    """What stands above a derived block."""
    transform = derived.transform
    pairs = ", ".join(f"(x - {off:.7g}) * {factor:.7g}" for off, factor in zip(transform.subtract, transform.factor, strict=True))
    lines = [f"jumar {__version__}: {derived.image} images, channels {transform.order}: {pairs}"]
    lines += [f"before: {step}" for step in derived.host]
    return tuple(line.replace("\n", " ") for line in lines)


def _transform(transform: Transform) -> dict[str, Any]:
    return {
        "order": transform.order,
        "subtract": list(transform.subtract),
        "factor": list(transform.factor),
        "size": None if transform.size is None else list(transform.size),
        "source": None if transform.source is None else list(transform.source),
    }


def _error_text(derived: Derived) -> Text:
    shown = ", ".join(f"{value:.2g}" for value in derived.errors)
    if derived.op["csc_switch"]:
        return say(
            "largest difference from the transform in float64, over all values behind the colour conversion: {shown} (float16); the conversion cuts off up to 2.5 levels of 255",
            "与 float64 预处理在色域转换之后的所有取值上的最大差异：{shown}（float16 舍入）；色域转换最多截去 255 级中的 2.5 级",
            shown=shown,
        )
    return say(
        "largest difference from the transform in float64, over all pixel values: {shown} (float16 of the numbers and of the result)",
        "与 float64 预处理在所有像素值上的最大差异：{shown}（系数和结果的 float16 舍入）",
        shown=shown,
    )
