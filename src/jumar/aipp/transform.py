"""The training transform in normal form: which colours, what is taken off and multiplied, which sizes, and what stays on the host."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..errors import UsageError
from ..text import Text, say

Channels = Literal["RGB", "BGR", "GRAY"]
GRAY_WEIGHTS = (0.299, 0.587, 0.114)
Size = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class Transform:
    """What a model's input is, from pixels of 0..255: ``(pixel - subtract) * factor`` for each channel in the order ``order``.

    Attributes:
        size: of the model's input; None where the description does not say.
        source: of the image before crop and padding; None where it is the size of the model's input.
        crop: top and left of the crop within ``source``; None is the middle, rounded as torchvision rounds.
        cropped: size of the crop; None for what padding leaves of ``size``.
        padding: top, bottom, left, right, in pixels.
        padding_value: what is there, as the model sees it.
        host: what must be done before AIPP, in order.
        notes: what was assumed.
    """

    order: Channels
    subtract: tuple[float, ...]
    factor: tuple[float, ...]
    size: Size | None = None
    source: Size | None = None
    crop: Size | None = None
    cropped: Size | None = None
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    padding_value: float = 0.0
    host: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()

    @property
    def channels(self) -> int:
        return 1 if self.order == "GRAY" else 3

    def with_size(self, size: Size | None = None, source: Size | None = None) -> Transform:
        """A copy for another input or source size, where these are given."""
        return replace(self, size=size or self.size, source=source or self.source)


def make(
    order: str,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    scale: float = 1.0,
    **more: Any,
) -> Transform:
    """``(pixel * scale - mean) / std``, the way torchvision writes it.

    Raises:
        UsageError: an order that is none, numbers for another count of channels, a zero or a number that is not finite.
    """
    plain = order.upper()
    plain = {"L": "GRAY", "GREY": "GRAY", "Y": "GRAY"}.get(plain, plain)
    if plain not in ("RGB", "BGR", "GRAY"):
        raise UsageError(
            say("`{order}` is no order of channels", "`{order}` 不是通道顺序", order=order[:20]),
            say("expected RGB, BGR or GRAY", "应为 RGB、BGR 或 GRAY"),
            say("write the order in which the model was trained", "请写模型训练时的顺序"),
        )
    count = 1 if plain == "GRAY" else 3
    means, stds = (values * count if len(values) == 1 else values for values in (tuple(mean), tuple(std)))
    numbers = (*means, *stds, scale)
    if len(means) != count or len(stds) != count or not all(math.isfinite(value) for value in numbers) or 0.0 in (*stds, scale):
        raise UsageError(
            say("mean {mean}, std {std} and scale {scale} do not normalise {count} channels", "mean {mean}、std {std}、scale {scale} 不能归一化 {count} 个通道", mean=list(mean)[:8], std=list(std)[:8], scale=scale, count=count),
            say("expected one number or {count} for each, finite, and no zero in std and scale", "每项应为 1 个或 {count} 个有限的数，std 和 scale 不能为零", count=count),
            say("copy them from the training code", "请从训练代码中复制"),
        )  # fmt: skip
    channels: Channels = "RGB" if plain == "RGB" else "BGR" if plain == "BGR" else "GRAY"
    subtract = tuple(value / scale for value in means)
    factor = tuple(scale / value for value in stds)
    return Transform(channels, subtract, factor, **more)


def middle(source: Size, crop: Size) -> Size:
    """Top and left of a crop in the middle, as torchvision's center_crop has it (ties to even)."""
    return round((source[0] - crop[0]) / 2.0), round((source[1] - crop[1]) / 2.0)


def crop_of(transform: Transform) -> tuple[Size, Size] | None:
    """Place and size of the crop within the source; None where there is none or the sizes are open."""
    if transform.size is None or transform.source is None:
        return None
    top, bottom, left, right = transform.padding
    inner = transform.cropped or (transform.size[0] - top - bottom, transform.size[1] - left - right)
    if inner == transform.source and transform.crop in (None, (0, 0)):
        return None
    return transform.crop or middle(transform.source, inner), inner


def apply(transform: Transform, image: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The model's input of an image, in float64: what training computed, without the host's steps.

    Args:
        image: uint8 [height, width, 3] in the order RGB, of the source size; or [height, width] for a gray model.

    Returns:
        [channels, height, width].
    """
    pixels = np.asarray(image)
    if transform.order == "GRAY" and pixels.ndim == 3 and pixels.shape[-1] == 3:
        pixels = np.rint(pixels.astype(np.float64) @ np.array(GRAY_WEIGHTS))
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.shape[-1] != transform.channels:
        raise UsageError(
            say("the image has the shape {shape}", "图像的形状为 {shape}", shape=list(pixels.shape)),
            say("expected [height, width, {count}]", "应为 [高, 宽, {count}]", count=transform.channels),
            say("give an RGB image, or a gray one for a gray model", "请给出 RGB 图像；灰度模型请给出灰度图像"),
        )
    if transform.order == "BGR":
        pixels = pixels[..., ::-1]
    place = crop_of(transform)
    if place is not None:
        (top, left), (height, width) = place
        pixels = pixels[top : top + height, left : left + width]
    values = (pixels.astype(np.float64) - np.array(transform.subtract)) * np.array(transform.factor)
    above, below, before, behind = transform.padding
    values = np.pad(values, ((above, below), (before, behind), (0, 0)), constant_values=transform.padding_value)
    return np.ascontiguousarray(values.transpose(2, 0, 1))
