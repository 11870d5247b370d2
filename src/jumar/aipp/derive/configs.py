"""Transforms described by the files and dictionaries of other projects: timm, Hugging Face, OpenCV, Ultralytics, PaddleOCR."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...text import say
from ..transform import Transform
from .steps import Steps, numbers, pair, refuse

_HF_RESAMPLE = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_HF_KNOWN = frozenset(("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb", "do_flip_channel_order", "do_pad"))
_HF_ELSEWHERE = frozenset(("do_reduce_labels", "do_convert_annotations"))


def from_timm(data: Mapping[str, Any]) -> Transform:
    """A data config of timm: ``input_size``, ``mean``, ``std``, ``crop_pct``, ``crop_mode``, ``interpolation``.

    Raises:
        UsageError: sizes or modes that are not known.
    """
    given = data.get("input_size")
    size = list(given) if isinstance(given, (list, tuple)) else []
    if len(size) != 3 or size[0] not in (1, 3):
        raise refuse(
            say("input_size is {size}", "input_size 为 {size}", size=size[:5]), say("expected [3, height, width]", "应为 [3, 高, 宽]")
        )
    steps = Steps()
    height, width = pair(size[1:], "input_size")
    share = numbers(data.get("crop_pct") or 0.875, "crop_pct")[0]
    mode, way = data.get("crop_mode") or "center", data.get("interpolation") or "bilinear"
    if not 0 < share <= 1 or mode not in ("center", "squash", "border"):
        raise refuse(say("crop_pct is {share}, crop_mode {mode}", "crop_pct 为 {share}，crop_mode 为 {mode}", share=share, mode=mode))
    tall, wide = math.floor(height / share), math.floor(width / share)
    if mode == "squash":
        steps.resize(
            (tall, wide),
            say(
                "resize to {height} x {width} (height x width) ({way}, antialiased)",
                "缩放到 {height} x {width}（高 x 宽）（{way}，抗锯齿）",
                height=tall,
                width=wide,
                way=way,
            ),
        )
    elif mode == "border":
        steps.resize(
            (tall, wide),
            say(
                "resize the long side to {side} ({way}, antialiased) and pad with the mean to {height} x {width}",
                "把长边缩放到 {side}（{way}，抗锯齿），再以均值补边到 {height} x {width}",
                side=max(tall, wide),
                height=tall,
                width=wide,
                way=way,
            ),
        )
    else:
        steps.resize(
            None,
            say(
                "resize so that {height} x {width} (height x width) is covered, keeping the ratio ({way}, antialiased)",
                "保持比例缩放到覆盖 {height} x {width}（高 x 宽）（{way}，抗锯齿）",
                height=tall,
                width=wide,
                way=way,
            ),
        )
    steps.crop_middle((height, width))
    if size[0] == 1:
        steps.to_gray()
    steps.to_float()
    steps.normalise(numbers(data.get("mean", 0.0), "mean"), numbers(data.get("std", 1.0), "std"))
    return steps.done()


def from_huggingface(data: Mapping[str, Any]) -> Transform:
    """A ``preprocessor_config.json`` of an image processor. A switch that is not given counts as on where its numbers are there.

    Raises:
        UsageError: a switch that is on and not known.
    """
    other = [key for key, value in data.items() if key.startswith("do_") and value and key not in _HF_KNOWN | _HF_ELSEWHERE]
    if other:
        raise refuse(say("what `{name}` does to the pixels is not known", "不知道 `{name}` 对像素的作用", name=other[0][:60]))
    steps = Steps()
    if _on(data, "do_resize", "size"):
        _hf_resize(data, steps)
    if _on(data, "do_center_crop", "crop_size"):
        steps.crop_middle(_hf_size(data.get("crop_size"), "crop_size"))
    if _on(data, "do_rescale", "rescale_factor") or ("do_rescale" not in data and _on(data, "do_normalize", "image_mean")):
        steps.scale(numbers(data.get("rescale_factor", 1 / 255), "rescale_factor")[0])
        steps.floating = True
        if data.get("offset") and "Vivit" in str(data.get("image_processor_type", "")):
            steps.normalise((1.0,), (1.0,))
    if _on(data, "do_normalize", "image_mean"):
        steps.normalise(numbers(data.get("image_mean"), "image_mean"), numbers(data.get("image_std"), "image_std"))
    if data.get("do_flip_channel_order"):
        steps.order = "BGR"
        if len(steps.gain) > 1:
            steps.gain, steps.offset = steps.gain[::-1], steps.offset[::-1]
            steps.notes.append(
                say(
                    "the channels are exchanged after normalising: the numbers were turned round",
                    "归一化之后才交换通道：数值已按新顺序排列",
                )
            )
    if data.get("do_pad"):
        steps.notes.append(
            say(
                "do_pad is on: batches are padded on the host, normalised zeros are expected there",
                "do_pad 已开启：批次在主机上补边，该处应为归一化之后的零",
            )
        )
    return steps.done()


def _on(data: Mapping[str, Any], switch: str, numbers_key: str) -> bool:
    return bool(data.get(switch, data.get(numbers_key) is not None))


def _hf_size(value: Any, what: str) -> tuple[int, int]:
    if isinstance(value, Mapping):
        return pair([value.get("height", value.get("shortest_edge")), value.get("width", value.get("shortest_edge"))], what)
    return pair(value, what)


def _hf_resize(data: Mapping[str, Any], steps: Steps) -> None:
    size = data.get("size")
    given = data.get("resample", 2)
    way = _HF_RESAMPLE.get(given, str(given)) if isinstance(given, int) else str(given)[:20]
    share = numbers(data["crop_pct"], "crop_pct")[0] if data.get("crop_pct") else None
    if isinstance(size, Mapping) and "shortest_edge" in size and "height" not in size:
        side = pair(size["shortest_edge"], "shortest_edge")[0]
        if share and side < 384:  # ConvNeXt and Perceiver: scaled beyond, then cropped to the side
            steps.resize(
                None, say("resize the short side to {side} ({way})", "把短边缩放到 {side}（{way}）", side=int(side / share), way=way)
            )
            steps.crop_middle((side, side))
            return
        if share:
            steps.resize((side, side), say("resize to {side} x {side} ({way})", "缩放到 {side} x {side}（{way}）", side=side, way=way))
            return
        limit = (
            "" if "longest_edge" not in size else say(", the long side to {size} at most", "，长边不超过 {size}", size=size["longest_edge"])
        )
        steps.resize(
            None,
            say("resize the short side to {side}{limit} ({way})", "把短边缩放到 {side}{limit}（{way}）", side=side, limit=limit, way=way),
        )
        return
    if isinstance(size, Mapping) and "height" not in size:
        steps.resize(None, say("resize as `size` says: {size} ({way})", "按 `size` 缩放：{size}（{way}）", size=dict(size), way=way))
        return
    height, width = _hf_size(size, "size")
    steps.resize(
        (height, width),
        say(
            "resize to {height} x {width} (height x width) ({way})",
            "缩放到 {height} x {width}（高 x 宽）（{way}）",
            height=height,
            width=width,
            way=way,
        ),
    )


def from_opencv(data: Mapping[str, Any]) -> Transform:
    """Arguments of cv2.dnn.blobFromImage: ``scalefactor``, ``size`` (width, height), ``mean``, ``swapRB``, ``crop``; and ``std``.

    The images are BGR, as OpenCV reads them; ``mean`` is in the order behind the swap, and taken off before the factor.

    Raises:
        UsageError: values of another kind.
    """
    steps = Steps(order="RGB" if data.get("swapRB") else "BGR")
    if data.get("size"):
        width, height = pair(data["size"], "size")
        if data.get("crop"):
            text = say(
                "resize keeping the ratio so that {height} x {width} (height x width) is covered (bilinear), and crop the middle",
                "保持比例缩放到覆盖 {height} x {width}（高 x 宽）（双线性），并裁剪中间部分",
                height=height,
                width=width,
            )
        else:
            text = say(
                "resize to {height} x {width} (height x width) (bilinear)",
                "缩放到 {height} x {width}（高 x 宽）（双线性）",
                height=height,
                width=width,
            )
        steps.resize((height, width), text)
    steps.normalise(numbers(data.get("mean", 0.0), "mean")[:3], (1.0,))
    steps.scale(numbers(data.get("scalefactor", data.get("scale", 1.0)), "scalefactor")[0])
    if data.get("std") is not None:
        steps.normalise((0.0,), numbers(data["std"], "std"))
    return steps.done()


def from_ultralytics(data: Mapping[str, Any]) -> Transform:
    """The conventions of YOLO: letterbox to ``imgsz`` with pixels of 114, RGB, divided by 255.

    ``task``: ``classify`` resizes the short side and crops the middle instead.

    Raises:
        UsageError: no size.
    """
    height, width = pair(data.get("imgsz", 640), "imgsz")
    steps = Steps()
    if data.get("task") == "classify":
        steps.resize(None, say("resize the short side to {side} (bilinear)", "把短边缩放到 {side}（双线性）", side=min(height, width)))
        steps.crop_middle((height, width))
    else:
        text = say(
            "letterbox to {height} x {width} (height x width): resize keeping the ratio (bilinear), pad with pixels of 114",
            "letterbox 到 {height} x {width}（高 x 宽）：保持比例缩放（双线性），以像素值 114 补边",
            height=height,
            width=width,
        )
        steps.resize((height, width), text)
    steps.to_float()
    return steps.done()


_PADDLE_SHAPE = ("DecodeImage", "ToCHWImage", "KeepKeys", "DetLabelEncode", "CTCLabelEncode", "MultiLabelEncode")


def from_paddle(operations: Sequence[Any]) -> Transform:
    """The ``transform_ops`` of PaddleOCR and PaddleX: a list of ``{"NormalizeImage": {"mean": ..., "std": ..., "scale": "1./255."}}`` and so on.

    Raises:
        UsageError: an operation that is not known.
    """
    steps = Steps(order="BGR")
    for item in operations:
        if not isinstance(item, Mapping) or len(item) != 1:
            raise refuse(say("`{item}` is no operation", "`{item}` 不是操作", item=str(item)[:60]))
        ((name, given),) = item.items()
        values: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        if name == "DecodeImage":
            steps.order = "RGB" if str(values.get("img_mode", "BGR")).upper() == "RGB" else "BGR"
        elif name == "NormalizeImage":
            steps.scale(_paddle_scale(values.get("scale", 1 / 255)))
            steps.floating = True
            steps.normalise(
                numbers(values.get("mean", [0.485, 0.456, 0.406]), "mean"), numbers(values.get("std", [0.229, 0.224, 0.225]), "std")
            )
        elif name == "RecResizeImg":
            shape = list(values.get("image_shape") or values.get("eval_mode_shape") or ())
            height, width = pair(shape[1:], "image_shape")
            steps.resize(
                (height, width),
                say(
                    "resize to height {height} keeping the ratio, {width} wide at most (bilinear); pad on the right with pixels of 127.5 (zeros after normalising; 8 bits hold 127 or 128)",
                    "保持比例缩放到高 {height}、宽不超过 {width}（双线性），右侧以像素值 127.5（归一化后为零；8 位取 127 或 128）补边",
                    height=height,
                    width=width,
                ),
            )
            steps.to_float()
            steps.normalise((0.5,), (0.5,))
        elif "Resize" in name or name in ("CropImage", "CenterCrop"):
            steps.resize(None, say("{name} {values}", "{name} {values}", name=name, values=dict(values)))
        elif name not in _PADDLE_SHAPE:
            raise refuse(say("what `{name}` does is not known", "不知道 `{name}` 的作用", name=str(name)[:60]))
    return steps.done()


def _paddle_scale(value: Any) -> float:
    if isinstance(value, str):
        above, _, below = value.replace(" ", "").partition("/")
        try:
            return float(above) / float(below or 1)
        except (ValueError, ZeroDivisionError):
            raise refuse(say("scale is `{value}`", "scale 为 `{value}`", value=value[:40])) from None
    return numbers(value, "scale")[0]
