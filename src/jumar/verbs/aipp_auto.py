"""``jumar migrate --aipp auto``: the AIPP file written from the training transform and the model's own input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from ..aipp.config import AippConfig, write_config
from ..aipp.derive.block import derive_block
from ..aipp.network import Head, find_head
from ..aipp.transform import Transform, make
from ..case import Finding
from ..errors import UsageError
from ..targets import Target
from ..text import Text, say
from .aipp_common import TransformLike, chip_of, find_transform, read_matrix
from .aipp_derive import comments_of, host_findings

AUTO = "auto"
"""What is given instead of a file."""


@dataclass(frozen=True)
class AutoAipp:
    """A file to insert, and what is to be said of it."""

    text: str
    findings: tuple[Finding, ...]
    notes: tuple[Text, ...]


def auto_aipp(
    model: ir.Model,
    target: Target | None,
    *,
    preprocess: TransformLike | None = None,
    torchvision: str | Any | None = None,
    image: str = "rgb",
    matrix: str | None = None,
) -> AutoAipp:
    """The block for the image input of a model whose sizes are fixed.

    With a transform the block does it. Without one the network must begin with a normalisation of pixels of 0..255; AIPP then hands over
    pixels, and the network goes on normalising them.

    Raises:
        UsageError: no image input, open sizes, no transform where one is needed, or one that AIPP cannot do.
        TargetError: no public source describes AIPP on this chip.
    """
    _, chip = chip_of(None, target, None)
    head, size = _image_input(model)
    transform, notes = _transform_of(head, find_transform(preprocess=preprocess, torchvision=torchvision))
    names = [value.name for value in model.graph.inputs if value.name not in model.graph.initializers]
    derived = derive_block(
        transform.with_size(size), image, matrix=read_matrix(matrix) or ("601", "narrow"), chip=chip, rank=names.index(head.name)
    )
    text = write_config(AippConfig((derived.op,)), comments_of(derived))
    return AutoAipp(text, host_findings(derived), (*notes, *derived.notes))


def _image_input(model: ir.Model) -> tuple[Head, tuple[int, int]]:
    """The image input with what the network does to it first, and its height and width.

    Raises:
        UsageError: there is none, or its size is open.
    """
    head = find_head(model)
    if head is None:
        raise UsageError(
            say("the model has no image input", "模型没有图像输入"),
            say("expected an input of four dimensions with a fixed number of channels", "应有通道数固定的四维输入"),
            say("leave --aipp out", "请去掉 --aipp"),
        )
    shape = next(value.shape for value in model.graph.inputs if value.name == head.name)
    height, width = (shape[axis] for axis in (2, 3)) if shape is not None else (None, None)
    if not isinstance(height, int) or not isinstance(width, int):
        raise UsageError(
            say("height and width of `{name}` are open", "`{name}` 的高和宽未定", name=head.name),
            say("expected fixed ones: static AIPP makes one size", "应为固定大小：静态 AIPP 只产生一种大小"),
            say("give them with --shape", "请用 --shape 给出"),
        )
    return head, (height, width)


def _transform_of(head: Head, given: Transform | None) -> tuple[Transform, tuple[Text, ...]]:
    """The transform that AIPP stands for: the given one, or none at all before a network that takes pixels.

    Raises:
        UsageError: there is none where one is needed, or it has another number of channels.
    """
    if given is None:
        if not head.nodes or not head.pixels:
            raise UsageError(
                say(
                    "no transform was given, and the network does not begin with a normalisation of pixels",
                    "没有给出预处理，且网络开头不是对像素的归一化",
                ),
                say("expected one: what training does before the model is not in the model", "应给出：训练时在模型之前的处理不在模型中"),
                say("give --preprocess or --torchvision", "请给出 --preprocess 或 --torchvision"),
            )
        plain = make("GRAY" if head.channels == 1 else "RGB", (0.0,), (1.0,))
        note = say(
            "AIPP hands over pixels: the network normalises them itself (`jumar aipp move` takes that into AIPP); that its channels are {order} is assumed",
            "AIPP 直接送入像素：网络自行归一化（`jumar aipp move` 可将其移入 AIPP）；通道顺序假定为 {order}",
            order=plain.order,
        )
        return plain, (note,)
    if given.channels != head.channels:
        raise UsageError(
            say(
                "the transform has {found} channels, input `{name}` {count}",
                "预处理有 {found} 个通道，输入 `{name}` 有 {count} 个",
                found=given.channels,
                name=head.name,
                count=head.channels,
            ),
            say("expected the transform of this input", "应为该输入的预处理"),
            say("correct --preprocess", "请修正 --preprocess"),
        )
    return given, ()
