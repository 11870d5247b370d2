"""Transforms given as plain numbers, and the file ``preprocess.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...text import say
from ..transform import Transform, make
from .steps import numbers, pair, refuse

KEYS = ("normalize", "order", "scale", "mean", "std", "size", "source", "crop", "padding", "padding_value", "host")
_SCALES = {"x/255": 1 / 255, "1/255": 1 / 255, "[0,1]": 1 / 255, "0..1": 1 / 255, "none": 1.0, "": 1.0, "[0,255]": 1.0, "0..255": 1.0}


def from_preprocess(data: Mapping[str, Any]) -> Transform:
    """Read what a ``preprocess.json`` holds.

    ``order`` (RGB, BGR, GRAY: of the model's channels), ``scale`` (``x/255``, ``none`` or a factor), ``mean`` and ``std`` in that order of
    channels, ``normalize``: ``torchvision`` for ``(x * scale - mean) / std`` (the default), ``opencv`` for ``(x - mean) * scale / std``,
    ``none``. Sizes are [height, width]: ``size`` of the model's input, ``source`` of the image, ``crop`` its [top, left]; ``padding`` is
    [top, bottom, left, right] with ``padding_value`` as the model sees it; ``host`` lists what is done before.

    Raises:
        UsageError: an unknown key or a value of another kind.
    """
    unknown = [key for key in data if key not in KEYS]
    if unknown:
        raise refuse(
            say("`{key}` is no key of a preprocessing file", "`{key}` 不是预处理文件的键", key=str(unknown[0])[:40]),
            say("expected some of: {known}", "可用的键：{known}", known=", ".join(KEYS)),
            say("see the page on AIPP", "请查看 AIPP 一页"),
        )
    rule = str(data.get("normalize", "torchvision")).lower()
    if rule not in ("torchvision", "opencv", "none"):
        raise refuse(
            say("normalize is `{rule}`", "normalize 为 `{rule}`", rule=rule[:40]),
            say("expected torchvision, opencv or none", "应为 torchvision、opencv 或 none"),
        )
    scale = _scale(data.get("scale", "none"))
    order = str(data.get("order", "RGB"))
    mean, std = numbers(data.get("mean", 0.0), "mean"), numbers(data.get("std", 1.0), "std")
    if rule == "none" and (any(mean) or any(value != 1 for value in std)):
        raise refuse(
            say("normalize is none, and mean or std are given", "normalize 为 none，却给出了 mean 或 std"),
            say("expected one or the other", "应只取其一"),
        )
    if rule == "opencv":
        mean = tuple(value * scale for value in mean)
    transform = make(order, mean, std, scale)
    if data.get("scale") is None:
        _must_be_of_pixels(mean, std)
    return _with_sizes(transform, data)


def _must_be_of_pixels(mean: Sequence[float], std: Sequence[float]) -> None:
    """Numbers of the scale 0..1 without a word on how pixels get there are the most usual slip of all: it is not guessed which is meant.

    Raises:
        UsageError: the numbers are not those of pixels from 0 to 255, and no scale is stated.
    """
    if (any(mean) or any(value != 1 for value in std)) and all(-1 <= value <= 1 for value in (*mean, *std)):
        raise refuse(
            say("mean and std are on the scale 0..1, and no scale is stated", "均值和标准差是 0..1 尺度，却没有说明缩放"),
            say("expected how pixels get there", "应说明像素如何缩放"),
            say(
                'add --scale x/255 ("scale": "x/255"), or --scale none if the network takes pixels as they are',
                '加上 --scale x/255（"scale": "x/255"）；若网络直接使用原始像素，则用 --scale none',
            ),
        )


def _scale(value: Any) -> float:
    if isinstance(value, str):
        plain = value.replace(" ", "").lower()
        if plain in _SCALES:
            return _SCALES[plain]
    if value is None:
        return 1.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise refuse(
        say("scale is `{value}`", "scale 为 `{value}`", value=str(value)[:40]),
        say("expected x/255, none or a factor", "应为 x/255、none 或一个系数"),
    )


def _with_sizes(transform: Transform, data: Mapping[str, Any]) -> Transform:
    values: dict[str, Any] = {key: pair(data[key], key) for key in ("size", "source") if data.get(key) is not None}
    crop = data.get("crop")
    if crop is not None and crop != "center":
        if not isinstance(crop, (list, tuple)) or len(crop) != 2 or not all(isinstance(item, int) and item >= 0 for item in crop):
            raise refuse(
                say("crop is {value}", "crop 为 {value}", value=str(crop)[:40]),
                say("expected [top, left] or center", "应为 [上, 左] 或 center"),
            )
        values["crop"] = (crop[0], crop[1])
    padding = data.get("padding")
    if padding is not None:
        if (
            not isinstance(padding, (list, tuple))
            or len(padding) != 4
            or not all(isinstance(item, int) and 0 <= item < 1 << 16 for item in padding)
        ):
            raise refuse(
                say("padding is {value}", "padding 为 {value}", value=str(padding)[:40]),
                say("expected [top, bottom, left, right]", "应为 [上, 下, 左, 右]"),
            )
        values["padding"] = tuple(padding)
    if data.get("padding_value") is not None:
        values["padding_value"] = numbers(data["padding_value"], "padding_value")[0]
    host = data.get("host", [])
    if not isinstance(host, (list, tuple)):
        raise refuse(say("host is no list", "host 不是列表"), say("expected a list of texts", "应为文本列表"))
    values["host"] = tuple(say("{step}", "{step}", step=str(step)[:200]) for step in host)
    return replace(transform, **values)
