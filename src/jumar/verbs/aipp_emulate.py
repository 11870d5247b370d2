"""``jumar aipp emulate``: the model's input that the device would make of an image."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..aipp.compare import image_kind
from ..aipp.config import AippOp
from ..aipp.derive.block import IMAGES
from ..aipp.emulate import emulate
from ..aipp.geometry import geometry
from ..aipp.images import lay_out, read_image
from ..aipp.model_fit import image_size
from ..atc.lint import model_facts
from ..case import Artifact, Measurement, Record
from ..errors import UsageError
from ..graph import load, write_atomic
from ..graph.digest import file_sha256
from ..targets import Target
from ..text import Text, say
from .aipp_common import chip_of, one_block, read_matrix, summary


def emulate_aipp(
    config: str | Path,
    image: str | Path | Any,
    *,
    output: str | Path | None = None,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    model: str | Path | None = None,
    kind: str | None = None,
    matrix: str | None = None,
    rank: int | None = None,
) -> Record:
    """Run an AIPP block on an image, bit by bit.

    Args:
        config: the AIPP file.
        image: a file or an array of uint8. Pictures and RGB arrays ([height, width, 3]) are laid out in the block's format first, as
            ``kind`` says; other arrays and raw files are the bytes of one or more images.
        output: an .npz file for the result, under the name of the model's input (``aipp`` without a model).
        soc, target, cann: the chip, which decides how var_reci_chn is rounded (float16 without one).
        model: an ONNX file, for sizes that the block leaves open, the type of its input and its number of channels.
        kind: of the images, where the block does not say: bgr, nv21, ...
        matrix: standard of YUV images that are made of RGB ones.
        rank: number of the block's input, where the file has several.

    Returns:
        A record; ``data`` has ``shape``, ``dtype``, ``name`` and the block; with ``image`` given as an array also ``array``.

    Raises:
        UsageError, ModelError, TargetError, OutputError: what cannot be read, emulated or written.
    """
    found, chip = chip_of(soc, target, cann)
    _, op = one_block(config, rank)
    name, network, channels, dtype = _input_of(model, op)
    pixels, picture = read_image(image) if isinstance(image, (str, Path)) else _array(image)
    notes: list[Text] = []
    if picture and network is None:
        network = (int(pixels.shape[0]), int(pixels.shape[1]))
    if picture and op.mode == "static":
        pixels = _laid_out(op, pixels, network, kind, matrix, notes)
    made = emulate(
        op,
        pixels,
        var="float16" if chip is None else chip.var,
        network=network,
        channels=channels,
        dtype="uint8" if dtype == "uint8" else "float16",
    )
    if chip is None and dtype != "uint8":
        notes.append(
            say(
                "no chip was named: var_reci_chn is rounded to float16, as on all but 310B, 610Lite, BS9SX2A, MC61AM21A and AS31XM1",
                "没有指定芯片：var_reci_chn 按 float16 舍入；310B、610Lite、BS9SX2A、MC61AM21A 和 AS31XM1 除外",
            )
        )
    artifacts: tuple[Artifact, ...] = ()
    if output is not None:
        write_atomic(output, _npz(name, made))
        artifacts = (Artifact(str(output), file_sha256(Path(output)), "tensor"),)
    notes.insert(0, say("`{name}`: {dtype} {shape}", "`{name}`：{dtype} {shape}", name=name, dtype=made.dtype.name, shape=list(made.shape)))
    numbers = made.astype(np.float64)
    measurements = [
        Measurement(f"channel {index} {word}", float(getattr(numbers[:, index], what)()), "", "simulator")
        for index in range(made.shape[1])
        for word, what in (("least", "min"), ("mean", "mean"), ("largest", "max"))
    ]
    notes += [
        say(
            "channel {index}: {low:.6g} to {high:.6g}, mean {mean:.6g}",
            "通道 {index}：{low:.6g} 到 {high:.6g}，均值 {mean:.6g}",
            index=index,
            low=measurements[3 * index].value,
            mean=measurements[3 * index + 1].value,
            high=measurements[3 * index + 2].value,
        )
        for index in range(made.shape[1])
    ]
    data: dict[str, Any] = {"name": name, "shape": list(made.shape), "dtype": made.dtype.name, "blocks": [summary(op, network)]}
    if not isinstance(image, (str, Path)):
        data["array"] = made
    return Record(
        verb="aipp",
        target=None if found is None else found.to_dict(),
        notes=tuple(notes),
        artifacts=artifacts,
        measurements=tuple(measurements),
        data=data,
    )


def _npz(name: str, array: Any) -> bytes:
    """An archive as numpy.savez writes it, for any name (savez takes the names of its own parameters for itself)."""
    buffer, inner = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(inner, array, allow_pickle=False)
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), inner.getvalue())
    return buffer.getvalue()


def _array(image: Any) -> tuple[Any, bool]:
    array = np.asarray(image) if not isinstance(image, (bytes, bytearray)) else np.frombuffer(image, np.uint8)
    return array, array.ndim in (2, 3) and (array.ndim == 2 or array.shape[-1] in (1, 3))


def _input_of(model: str | Path | None, op: AippOp) -> tuple[str, tuple[int, int] | None, int | None, str]:
    if model is None:
        return "aipp", None, None, "float"
    facts = model_facts(load(model), str(model))
    rank = int(op["related_input_rank"])
    if rank >= len(facts.inputs) or facts.inputs[rank].shape is None or len(facts.inputs[rank].shape or ()) != 4:
        raise UsageError(
            say("input {rank} of the model is no image", "模型的第 {rank} 个输入不是图像", rank=rank),
            say("expected four dimensions", "应为四维"),
            say("`jumar aipp check --model` says more", "用 `jumar aipp check --model` 查看详情"),
        )
    tensor = facts.inputs[rank]
    size = image_size(tensor)
    channels = None if tensor.shape is None or not isinstance(tensor.shape[1], int) else tensor.shape[1]
    return tensor.name, None if size is None else size[1:], channels, tensor.dtype


def _laid_out(op: AippOp, pixels: Any, network: tuple[int, int] | None, kind: str | None, matrix: str | None, notes: list[Text]) -> Any:
    """An RGB picture as the bytes of the block's format."""
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    name, note = image_kind(op, kind)
    if name not in IMAGES or IMAGES[name].format != op.format:
        raise UsageError(
            say("`{kind}` images do not go into {format}", "`{kind}` 图像不能用于 {format}", kind=name[:20], format=op.format),
            say(
                "expected one of: {known}",
                "应为其中之一：{known}",
                known=", ".join(key for key, item in IMAGES.items() if item.format == op.format) or "-",
            ),
            say("correct --input", "请修正 --input"),
        )
    size = geometry(op, network)
    wanted = pixels.shape[:2] if size is None else size.source
    if size is not None and tuple(pixels.shape[:2]) != size.source:
        raise UsageError(
            say(
                "the picture is {width} x {height} (width x height)",
                "图片为 {width} x {height}（宽 x 高）",
                width=pixels.shape[1],
                height=pixels.shape[0],
            ),
            say("expected {width} x {height}, as the block says", "该块要求 {width} x {height}", width=wanted[1], height=wanted[0]),
            say("resize it before; AIPP does not", "请先缩放；AIPP 不做缩放"),
        )
    if note is not None:
        notes.append(note)
    return lay_out(pixels, name, read_matrix(matrix) or ("601", "narrow"))
