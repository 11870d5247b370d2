"""Transforms of torchvision (v1, v2, the presets of weights) and timm, read off their attributes: nothing of them is called.

An object is known by the name of its class. One from another module is taken for what torchvision's class of that name does, and this is
said.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ...text import Text, say
from ..transform import Transform
from .steps import Steps, numbers, pair, refuse

_KNOWN_MODULES = ("torchvision.", "timm.", "torch.")
_MOST = 200
"""Steps of one transform."""
# Classes that change no value: containers of pixels, boxes, names.
_NOTHING = frozenset(
    ("PILToTensor", "ToImage", "ToImageTensor", "ToPILImage", "ToPureTensor", "Identity", "RGB", "ClampBoundingBoxes", "SanitizeBoundingBoxes", "ToTensorImage", "ToNumpy", "EnsureRGB")
)  # fmt: skip
_PRESETS = frozenset(("ImageClassification", "SemanticSegmentation", "ObjectDetection"))


def from_torchvision(item: Any) -> Transform:
    """The transform of a Compose, a list of transforms, a preset of weights, or weights themselves.

    Raises:
        UsageError: a step whose effect is random, unknown or not of this kind.
    """
    steps = Steps()
    _walk(item, steps, 0)
    if not steps.floating and not steps.normalised:
        steps.notes.append(say("nothing scales the pixels: the model gets 0..255", "没有缩放像素值的步骤：模型得到 0..255"))
    return steps.done()


def _walk(item: Any, steps: Steps, depth: int) -> None:
    if depth > 8:
        raise refuse(say("transforms are nested too deeply", "变换嵌套过深"))
    values, name = _attributes(item)
    children = _children(item, values, name)
    if children is not None:
        if len(children) > _MOST:
            raise refuse(say("there are {count} steps", "有 {count} 个步骤", count=len(children)))
        for child in children:
            _walk(child, steps, depth + 1)
        return
    step = _STEPS.get(name)
    if step is None:
        _unknown(name, item)
        return
    module = type(item).__module__ or ""
    if not isinstance(item, functools.partial) and not module.startswith(_KNOWN_MODULES):
        note = say(
            "`{name}` of {module} is taken for torchvision's",
            "`{module}` 的 `{name}` 按 torchvision 的同名类理解",
            name=name,
            module=module[:60],
        )
        steps.notes.append(note)
    step(values, steps)


def _attributes(item: Any) -> tuple[Mapping[str, Any], str]:
    """Attributes and class name. Weights have a ``transforms`` that is a partial of a preset: its defaults are read, not its code run."""
    inner = getattr(item, "transforms", None) if not isinstance(item, (list, tuple, dict)) else None
    if isinstance(inner, type) and inner.__name__ in _PRESETS and not isinstance(item, type):
        inner = functools.partial(inner)
    if isinstance(inner, functools.partial):
        item = inner
    if isinstance(item, functools.partial):
        given: dict[str, Any] = {}
        for parameter in inspect.signature(item.func).parameters.values():
            if parameter.default is not inspect.Parameter.empty:
                given[parameter.name] = parameter.default
        return {**given, **item.keywords}, getattr(item.func, "__name__", "")
    if isinstance(item, type):
        raise refuse(
            say("`{name}` is a class, not an object", "`{name}` 是类而不是对象", name=item.__name__),
            remedy=say("give an object of it", "请给出它的实例"),
        )
    values = dict(getattr(item, "__dict__", None) or {})
    return values, type(item).__name__


def _children(item: Any, values: Mapping[str, Any], name: str) -> list[Any] | None:
    if isinstance(item, (list, tuple)):
        return list(item)
    if name == "Sequential":
        modules = values.get("_modules") or {}
        return list(modules.values()) if isinstance(modules, Mapping) else None
    inner = values.get("transforms")
    if name in ("RandomApply", "RandomChoice", "RandomOrder"):
        _unknown(name, item)
    return list(inner) if isinstance(inner, (list, tuple)) else None


def _unknown(name: str, item: Any) -> None:
    if name.startswith(
        (
            "Random",
            "ColorJitter",
            "AutoAugment",
            "TrivialAugment",
            "AugMix",
            "Gaussian",
            "Elastic",
            "TenCrop",
            "FiveCrop",
            "MixUp",
            "CutMix",
        )
    ):
        raise refuse(
            say("`{name}` belongs to training", "`{name}` 属于训练阶段", name=name),
            remedy=say("give the transform of the evaluation", "请给出评估时的预处理"),
        )
    if name == "Lambda" or callable(getattr(item, "__code__", None)) or inspect.isfunction(item):
        raise refuse(say("a function of one's own is among the steps; it is not run", "步骤中有自定义函数；不会执行它"))
    raise refuse(say("what `{name}` does is not known", "不知道 `{name}` 的作用", name=name[:60]))


def _resize(values: Mapping[str, Any], steps: Steps) -> None:
    size = values.get("size", values.get("resize_size"))
    how = _how(values)
    listed = list(size) if isinstance(size, (list, tuple)) else [size]
    longest = values.get("max_size")
    if len(listed) == 2:
        height, width = pair(size, "size of Resize")
        steps.resize(
            (height, width),
            say(
                "resize to {height} x {width} (height x width){how}",
                "缩放到 {height} x {width}（高 x 宽）{how}",
                height=height,
                width=width,
                how=how,
            ),
        )
        return
    if listed == [None] and longest is not None:
        side = pair(longest, "max_size of Resize")[0]
        steps.resize(None, say("resize the long side to {size}{how}", "把长边缩放到 {size}{how}", size=side, how=how))
        return
    side = pair(size, "size of Resize")[0]
    limit = "" if longest is None else say(", the long side to {size} at most", "，长边不超过 {size}", size=longest)
    steps.resize(
        None, say("resize the short side to {size}{limit}{how}", "把短边缩放到 {size}{limit}{how}", size=side, limit=limit, how=how)
    )


def _how(values: Mapping[str, Any]) -> Text | str:
    way = values.get("interpolation")
    name = str(getattr(way, "value", way)) if way is not None else ""
    if not name:
        return ""
    if values.get("antialias") and name in ("bilinear", "bicubic"):
        return say(" ({name}, antialiased)", "（{name}，抗锯齿）", name=name)
    return say(" ({name})", "（{name}）", name=name)


def _centre(values: Mapping[str, Any], steps: Steps) -> None:
    steps.crop_middle(pair(values.get("size", values.get("crop_size")), "size of CenterCrop"))


def _pad(values: Mapping[str, Any], steps: Steps) -> None:
    mode = str(getattr(values.get("padding_mode"), "value", values.get("padding_mode", "constant")))
    if mode != "constant":
        raise refuse(say("Pad repeats pixels of the image ({mode})", "Pad 重复图像的像素（{mode}）", mode=mode))
    given = values.get("padding")
    sides = [given] if isinstance(given, int) else list(given) if isinstance(given, (list, tuple)) else []
    if len(sides) not in (1, 2, 4) or not all(isinstance(side, int) and 0 <= side < 1 << 16 for side in sides):
        raise refuse(say("the padding is {value}", "补边为 {value}", value=str(given)[:40]))
    left, top, right, bottom = sides * 4 if len(sides) == 1 else sides * 2 if len(sides) == 2 else sides
    fill = values.get("fill", 0)
    if isinstance(fill, Mapping):
        raise refuse(say("Pad fills by the type of its input", "Pad 按输入类型填充"))
    steps.pad((top, bottom, left, right), numbers(0 if fill is None else fill, "fill of Pad"))


def _normalise(values: Mapping[str, Any], steps: Steps) -> None:
    if not steps.floating:
        steps.notes.append(
            say("Normalize comes before any scaling: its numbers are on the scale 0..255", "Normalize 之前没有缩放：其数值为 0..255 尺度")
        )
    steps.normalise(numbers(values.get("mean"), "mean of Normalize"), numbers(values.get("std"), "std of Normalize"))


def _gray(values: Mapping[str, Any], steps: Steps) -> None:
    if values.get("num_output_channels", 1) != 1:
        raise refuse(say("Grayscale gives three equal channels", "Grayscale 输出三个相同的通道"))
    steps.to_gray()


def _to_dtype(values: Mapping[str, Any], steps: Steps) -> None:
    dtype = values.get("dtype")
    if isinstance(dtype, Mapping):
        raise refuse(say("ToDtype converts by the type of its input", "ToDtype 按输入类型转换"))
    if "float" not in str(dtype):
        raise refuse(say("pixels are converted to {dtype}", "像素被转换为 {dtype}", dtype=str(dtype)[:40]))
    if values.get("scale", False):
        steps.to_float()
    else:
        steps.floating = True


def _convert(values: Mapping[str, Any], steps: Steps) -> None:
    _to_dtype({"dtype": values.get("dtype"), "scale": True}, steps)


def _preset(values: Mapping[str, Any], steps: Steps) -> None:
    """Resize, crop, scale, normalise, as far as the preset has them."""
    if values.get("resize_size") is not None:
        _resize(values, steps)
    if values.get("crop_size") is not None:
        _centre(values, steps)
    steps.to_float()
    if values.get("mean") is not None:
        _normalise(values, steps)
    else:
        steps.notes.append(
            say(
                "detection models of torchvision normalise inside; leave that to the network",
                "torchvision 的检测模型在内部归一化；请留给网络",
            )
        )


_STEPS: dict[str, Callable[[Mapping[str, Any], Steps], None]] = {
    "Resize": _resize,
    "CenterCrop": _centre,
    "Pad": _pad,
    "Normalize": _normalise,
    "Grayscale": _gray,
    "ToTensor": lambda _values, steps: steps.to_float(),
    "MaybeToTensor": lambda _values, steps: steps.to_float(),
    "ToDtype": _to_dtype,
    "ConvertImageDtype": _convert,
    "ConvertDtype": _convert,
    **dict.fromkeys(_PRESETS, _preset),
    **dict.fromkeys(_NOTHING, lambda _values, _steps: None),
}
