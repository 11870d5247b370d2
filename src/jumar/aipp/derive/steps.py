"""Collecting a transform step by step, in the order in which the training code applies its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import UsageError
from ...text import Text, say
from ..schema import LARGEST_PADDING
from ..transform import Channels, Size, Transform, middle


def refuse(found: Text, expected: Text | None = None, remedy: Text | None = None) -> UsageError:
    """A transform that cannot be derived from."""
    return UsageError(
        found,
        expected or say("expected steps whose effect is known: resize, crop, pad, convert, normalise", "应为效果已知的步骤：缩放、裁剪、补边、转换、归一化"),
        remedy or say("give the numbers instead: --mean, --std, --scale, --order, --size", "请改为直接给出数值：--mean、--std、--scale、--order、--size"),
    )  # fmt: skip


def pair(value: Any, what: str) -> Size:
    """Height and width of ``224``, ``[224]`` or ``(224, 256)``.

    Raises:
        UsageError: neither.
    """
    numbers = [value] if isinstance(value, int) and not isinstance(value, bool) else list(value) if isinstance(value, (list, tuple)) else []
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2 or not all(
        isinstance(number, int) and not isinstance(number, bool) and 0 < number <= 1 << 16 for number in numbers
    ):
        raise refuse(
            say("{what} is {value}", "{what} 为 {value}", what=what, value=str(value)[:40]),
            say("expected one or two sizes in pixels", "应为一个或两个像素大小"),
        )
    return int(numbers[0]), int(numbers[1])


def numbers(value: Any, what: str) -> tuple[float, ...]:
    """The numbers of a list, tuple, array or tensor of one dimension; one number is a list of one.

    Raises:
        UsageError: something else.
    """
    single = "float32" in str(getattr(value, "dtype", ""))  # holds 0.485 as 0.48500001
    if hasattr(value, "tolist"):
        value = value.tolist()
    items = [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if (
        not isinstance(items, (list, tuple))
        or not items
        or not all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in items)
    ):
        raise refuse(say("{what} is {value}", "{what} 为 {value}", what=what, value=str(value)[:60]), say("expected numbers", "应为数值"))
    return tuple(float(f"{item:.7g}") if single else float(item) for item in items)


@dataclass
class Steps:
    """What is known so far: ``pixel * gain + offset`` for each channel, sizes, and the work of the host."""

    order: Channels = "RGB"
    gain: list[float] = field(default_factory=lambda: [1.0])
    offset: list[float] = field(default_factory=lambda: [0.0])
    floating: bool = False
    normalised: bool = False
    size: Size | None = None
    source: Size | None = None
    crop: Size | None = None
    cropped: Size | None = None
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    fill: list[float] = field(default_factory=lambda: [0.0])
    """Pixel values that the padding stands for, one a channel or one for all."""
    host: list[Text] = field(default_factory=list)
    notes: list[Text] = field(default_factory=list)

    def scale(self, factor: float) -> None:
        self.gain = [value * factor for value in self.gain]
        self.offset = [value * factor for value in self.offset]

    def to_float(self) -> None:
        """8-bit pixels become 0..1; floats stay as they are."""
        if not self.floating:
            self.scale(1 / 255)
            self.floating = True

    def normalise(self, mean: Sequence[float], std: Sequence[float]) -> None:
        """``(value - mean) / std``."""
        count = max(len(mean), len(std), len(self.gain))
        if {len(mean), len(std), len(self.gain)} - {1, count} or 0 in std:
            raise refuse(say("mean {mean} and std {std} do not fit", "mean {mean} 与 std {std} 不相符", mean=list(mean), std=list(std)))
        means, stds, gains, offsets = (
            list(values) * count if len(values) == 1 else list(values) for values in (mean, std, self.gain, self.offset)
        )
        self.gain = [gain / scale for gain, scale in zip(gains, stds, strict=True)]
        self.offset = [(value - middle_) / scale for value, middle_, scale in zip(offsets, means, stds, strict=True)]
        self.normalised = True

    def to_gray(self) -> None:
        if len(self.gain) > 1:
            raise refuse(say("gray is made after the channels were normalised", "在各通道归一化之后转换为灰度"))
        self.order = "GRAY"

    def resize(self, size: Size | None, text: Text) -> None:
        """Scaling is the host's; what was cropped or padded before goes there too."""
        self._pad_on_host()
        if self.normalised or self.floating:
            self.notes.append(
                say(
                    "training scales floats, the host scales 8-bit pixels: rounding differs by up to half a step",
                    "训练时缩放的是浮点数，主机缩放的是 8 位像素：舍入最多相差半级",
                )
            )
        self.host.append(text)
        self.size = self.source = size

    def crop_middle(self, size: Size) -> None:
        """A crop in the middle; on the device where the size before it is known, else on the host."""
        if any(self.padding):
            self._pad_on_host()
        if self.source is None or self.cropped is not None:
            self._crop_on_host()
            self.host.append(
                say(
                    "crop {height} x {width} (height x width) from the middle",
                    "从中间裁剪 {height} x {width}（高 x 宽）",
                    height=size[0],
                    width=size[1],
                )
            )
            self.source = None
        elif size[0] > self.source[0] or size[1] > self.source[1]:
            self.host.append(
                say(
                    "pad with zeros to {height} x {width} (height x width), in the middle",
                    "居中补零到 {height} x {width}（高 x 宽）",
                    height=max(size[0], self.source[0]),
                    width=max(size[1], self.source[1]),
                )
            )
            self.source = (max(size[0], self.source[0]), max(size[1], self.source[1]))
            self.crop, self.cropped = middle(self.source, size), size
        elif size != self.source:
            self.crop, self.cropped = middle(self.source, size), size
        self.size = size

    def _crop_on_host(self) -> None:
        if self.cropped is not None:
            self.host.append(
                say(
                    "crop {height} x {width} (height x width) from the middle",
                    "从中间裁剪 {height} x {width}（高 x 宽）",
                    height=self.cropped[0],
                    width=self.cropped[1],
                )
            )
            self.source, self.crop, self.cropped = self.cropped, None, None

    def _pad_on_host(self) -> None:
        self._crop_on_host()
        if any(self.padding):
            fill = [round(value, 3) for value in self.fill]
            if any(not value.is_integer() or not 0 <= value <= 255 for value in fill):
                self.notes.append(
                    say(
                        "the padding stands for pixels of {fill}, which 8 bits do not hold exactly",
                        "补边对应的像素值为 {fill}，8 位不能精确表示",
                        fill=fill,
                    )
                )
            top, bottom, left, right = self.padding
            text = say(
                "pad by {top}, {bottom}, {left}, {right} pixels (top, bottom, left, right) with pixels of {fill}",
                "补边 {top}、{bottom}、{left}、{right} 个像素（上、下、左、右），像素值 {fill}",
                top=top,
                bottom=bottom,
                left=left,
                right=right,
                fill=fill[0] if len(set(fill)) == 1 else fill,
            )
            self.host.append(text)
            self.padding, self.source = (0, 0, 0, 0), self.size

    def pad(self, padding: tuple[int, int, int, int], fill: Sequence[float]) -> None:
        """Top, bottom, left, right; ``fill`` in the scale that values have by now."""
        if not any(padding):
            return
        if any(self.padding):
            raise refuse(say("an image is padded twice", "图像补边两次"))
        count = max(len(fill), len(self.gain))
        fills, gains, offsets = (list(values) * count if len(values) == 1 else list(values) for values in (fill, self.gain, self.offset))
        if not len(fills) == len(gains) == count:
            raise refuse(say("the padding has {found} values", "补边有 {found} 个值", found=len(fills)))
        self.padding = padding
        self.fill = [(value - offset) / gain for value, gain, offset in zip(fills, gains, offsets, strict=True)]
        if self.size is not None:
            self.size = (self.size[0] + padding[0] + padding[1], self.size[1] + padding[2] + padding[3])

    def done(self) -> Transform:
        """The transform.

        Raises:
            UsageError: a number of channels that does not fit the order.
        """
        count = 1 if self.order == "GRAY" else 3
        gains, offsets = (values * count if len(values) == 1 else values for values in (self.gain, self.offset))
        if len(gains) != count or not all(gains):
            raise refuse(
                say(
                    "{found} channels are normalised, the image has {count}",
                    "归一化了 {found} 个通道，图像有 {count} 个",
                    found=len(gains),
                    count=count,
                )
            )
        value = self._padding_value(gains, offsets)
        if any(self.padding) and (value is None or max(self.padding) > LARGEST_PADDING):
            self._pad_on_host()
            value = 0.0
        return Transform(
            order=self.order,
            subtract=tuple(-offset / gain if offset else 0.0 for gain, offset in zip(gains, offsets, strict=True)),
            factor=tuple(gains),
            size=self.size,
            source=self.source if self.source != self.size else None,
            crop=self.crop,
            cropped=self.cropped,
            padding=self.padding,
            padding_value=value or 0.0,
            host=tuple(self.host),
            notes=tuple(self.notes),
        )

    def _padding_value(self, gains: list[float], offsets: list[float]) -> float | None:
        """The one value that all channels have in the padding at the end; None where they differ, which AIPP cannot do."""
        if not any(self.padding):
            return 0.0
        fill = self.fill * len(gains) if len(self.fill) == 1 else self.fill
        values = [pixel * gain + offset for pixel, gain, offset in zip(fill, gains, offsets, strict=True)]
        return values[0] if max(values) - min(values) <= 1e-3 else None
