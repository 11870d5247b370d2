"""From a transform to the block of an AIPP file, for the images that will be given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...text import Text, say
from ..arithmetic import channel_table
from ..config import AippOp, Value
from ..frames import frame_bytes
from ..matrices import GRAY, Range, Standard, decoding
from ..schema import LARGEST_PADDING, LARGEST_SIDE, MATRIX, Chip, VarType
from ..transform import Size, Transform, crop_of
from .steps import refuse

Spelling = Literal["split", "min", "mean"]
SPELLINGS: tuple[Spelling, ...] = ("split", "min", "mean")


@dataclass(frozen=True)
class Image:
    """A kind of image: its format, the order of its colours, and whether X comes first."""

    format: str
    order: Literal["RGB", "BGR", "YUV", "YVU", "GRAY"]
    first: bool = False


IMAGES: Mapping[str, Image] = {
    "rgb": Image("RGB888_U8", "RGB"),
    "bgr": Image("RGB888_U8", "BGR"),
    "xrgb": Image("XRGB8888_U8", "RGB", True),
    "xbgr": Image("XRGB8888_U8", "BGR", True),
    "rgbx": Image("XRGB8888_U8", "RGB"),
    "bgrx": Image("XRGB8888_U8", "BGR"),
    "nv12": Image("YUV420SP_U8", "YUV"),
    "nv21": Image("YUV420SP_U8", "YVU"),
    "nv16": Image("YUV422SP_U8", "YUV"),
    "nv61": Image("YUV422SP_U8", "YVU"),
    "yuyv": Image("YUYV_U8", "YUV"),
    "yvyu": Image("YUYV_U8", "YVU"),
    "gray": Image("YUV400_U8", "GRAY"),
}


@dataclass(frozen=True)
class Derived:
    """A block, and what goes with it.

    Attributes:
        image: the kind of image it takes.
        transform: what it implements: that of training, without what the host does.
        errors: largest difference from the transform in float64 over all pixel values, a channel.
        host: what must be done before, in order.
    """

    op: AippOp
    image: str
    transform: Transform
    errors: tuple[float, ...]
    host: tuple[Text, ...]
    notes: tuple[Text, ...]


def derive_block(
    transform: Transform,
    image: str = "rgb",
    *,
    matrix: tuple[Standard, Range] = ("601", "narrow"),
    chip: Chip | None = None,
    rank: int = 0,
    spelling: Spelling = "split",
) -> Derived:
    """The static block that gives a model its input from images of one kind.

    Args:
        image: one of :data:`IMAGES`.
        matrix: standard and range of YUV images.
        chip: for its formats, its rounding and where it can crop.
        rank: number of the model's input.
        spelling: ``split`` writes whole parts to mean_chn and the rest to min_chn (the most exact), ``min`` all to min_chn, ``mean`` whole
            means to mean_chn.

    Raises:
        UsageError: a combination that AIPP cannot do.
    """
    kind = _kind(image, transform)
    if chip is not None and kind.format not in chip.formats:
        raise refuse(
            say("{soc} does not take {format}", "{soc} 不支持 {format}", soc=chip.short, format=kind.format),
            say("its formats: {known}", "其支持的格式：{known}", known=", ".join(chip.formats)),
            say("choose another image with --input", "请用 --input 选择其他图像"),
        )
    transform, notes = _sizes(transform, kind, chip)
    values: dict[str, Value] = {"aipp_mode": "static", "related_input_rank": rank, "input_format": kind.format}
    values |= _geometry(transform)
    values |= _colours(kind, transform, matrix)
    values |= _numbers(transform, spelling)
    op = AippOp(values)
    var: VarType = "float16" if chip is None else chip.var
    errors = tuple(_error(op, index, transform, var) for index in range(transform.channels))
    if kind.order in ("YUV", "YVU"):
        notes = (
            *notes,
            say(
                "the host must give YUV of BT.{standard}, {range} range: see that the decoder or camera does",
                "输入须为 BT.{standard} {range} 范围的 YUV：请确认解码器或相机如此输出",
                standard=matrix[0],
                range=matrix[1],
            ),
        )
    return Derived(op, image, transform, errors, transform.host, (*transform.notes, *notes))


def _kind(image: str, transform: Transform) -> Image:
    kind = IMAGES.get(image.lower())
    if kind is None:
        raise refuse(
            say("`{image}` is no kind of image", "`{image}` 不是图像类型", image=image[:20]),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(IMAGES)),
            say("give it with --input", "请用 --input 给出"),
        )
    if (kind.order == "GRAY") != (transform.order == "GRAY") and kind.order not in ("RGB", "BGR"):
        raise refuse(
            say("a {image} image for a model of {order}", "{image} 图像用于 {order} 模型", image=image, order=transform.order),
            say("AIPP makes gray from RGB only, and no colour from gray", "AIPP 只能由 RGB 得到灰度，不能由灰度得到颜色"),
            say("for a gray model give the Y plane as a gray image", "灰度模型请把 Y 平面作为灰度图像给出"),
        )
    return kind


def _sizes(transform: Transform, kind: Image, chip: Chip | None) -> tuple[Transform, tuple[Text, ...]]:
    """The transform with what AIPP cannot crop or pad moved to the host."""
    place = crop_of(transform)
    if any(transform.padding) and transform.size is None and transform.source is not None:
        top, bottom, left, right = transform.padding
        transform = replace(transform, size=(transform.source[0] + top + bottom, transform.source[1] + left + right))
        place = crop_of(transform)
    if any(transform.padding) and (transform.size is None or max(transform.padding) > LARGEST_PADDING):
        raise refuse(
            say("padding of {padding}", "补边 {padding}", padding=list(transform.padding)),
            say("AIPP pads by at most 32 pixels, to a size that is known", "AIPP 每边最多补 32 个像素，且须知道大小"),
            say("pad on the host", "请在主机上补边"),
        )
    if place is not None:
        (top, left), (height, width) = place
        source = transform.source or (0, 0)
        if top < 0 or left < 0 or height < 1 or width < 1 or top + height > source[0] or left + width > source[1]:
            raise refuse(
                say(
                    "{height} x {width} at {top}, {left} does not lie in {tall} x {wide}",
                    "位于 {top}、{left} 的 {height} x {width} 不在 {tall} x {wide} 之内",
                    height=height,
                    width=width,
                    top=top,
                    left=left,
                    tall=source[0],
                    wide=source[1],
                ),
                say("expected a crop within the source image (all height x width)", "裁剪应在源图像之内（均为高 x 宽）"),
                say("resize on the host to a size that holds it", "请先在主机上缩放到足够大的尺寸"),
            )
        odd = (kind.format == "YUV420SP_U8" and any(item % 2 for item in (top, left))) or (
            kind.format in ("YUV422SP_U8", "YUYV_U8") and left % 2
        )
        if odd and not (chip is not None and chip.odd_crop):
            text = say(
                "crop {height} x {width} at {top}, {left} (top, left): AIPP crops {format} at even places only",
                "在 {top}、{left}（上、左）裁剪 {height} x {width}：AIPP 只能在偶数位置裁剪 {format}",
                height=height,
                width=width,
                top=top,
                left=left,
                format=kind.format,
            )
            transform = replace(
                transform, host=(*transform.host, text), source=(height, width) if any(transform.padding) else None, crop=None, cropped=None
            )
    shape = transform.source or transform.size
    odd_size = shape is not None and (
        (kind.format == "YUV420SP_U8" and any(side % 2 for side in shape)) or (kind.format in ("YUV422SP_U8", "YUYV_U8") and shape[1] % 2)
    )
    if odd_size or (shape is not None and max(shape) > LARGEST_SIDE):
        raise refuse(
            say(
                "an image of {height} x {width} (height x width)",
                "{height} x {width}（高 x 宽）的图像",
                height=shape[0] if shape else 0,
                width=shape[1] if shape else 0,
            ),
            say("AIPP takes at most 4096, and even sizes of YUV", "AIPP 最大 4096，YUV 须为偶数"),
            say("use RGB images, or another source size", "请使用 RGB 图像，或其他源图大小"),
        )
    return transform, ()


def _geometry(transform: Transform) -> dict[str, Value]:
    place = crop_of(transform)
    top, bottom, left, right = transform.padding
    shape: Size | None = transform.source or transform.size
    if shape is not None and transform.source is None and any(transform.padding):
        shape = (shape[0] - top - bottom, shape[1] - left - right)
    if shape is None:
        return {}
    values: dict[str, Value] = {"src_image_size_w": shape[1], "src_image_size_h": shape[0]}
    if place is not None:
        (start_h, start_w), (height, width) = place
        values |= {"crop": True, "load_start_pos_w": start_w, "load_start_pos_h": start_h, "crop_size_w": width, "crop_size_h": height}
    if any(transform.padding):
        values |= {
            "padding": True,
            "left_padding_size": left,
            "right_padding_size": right,
            "top_padding_size": top,
            "bottom_padding_size": bottom,
        }
        values["padding_value"] = float(np.float16(transform.padding_value))
    return values


def _colours(kind: Image, transform: Transform, matrix: tuple[Standard, Range]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    if kind.first:
        values["ax_swap_switch"] = True
    if kind.order in ("YUV", "YVU"):
        order: Literal["RGB", "BGR"] = "BGR" if transform.order == "BGR" else "RGB"
        values |= {"csc_switch": True, "rbuv_swap_switch": kind.order == "YVU", **decoding(*matrix, order).fields()}
    elif transform.order == "GRAY" and kind.order != "GRAY":
        values |= {"csc_switch": True, "rbuv_swap_switch": kind.order == "BGR", **dict(zip(MATRIX, GRAY, strict=True))}
        values |= {f"output_bias_{index}": 0 for index in range(3)}
    elif kind.order != "GRAY":
        values |= {"csc_switch": False, "rbuv_swap_switch": kind.order != transform.order}
    return values


def _numbers(transform: Transform, spelling: Spelling) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for index, (exact, factor) in enumerate(zip(transform.subtract, transform.factor, strict=True)):
        off = float(f"{exact:.10g}")
        if not 0 <= off <= 510 or (off > 255 and spelling != "split"):
            raise refuse(
                say("channel {index} takes {off:g} off the pixels", "通道 {index} 从像素中减去 {off:g}", index=index, off=off),
                say("AIPP takes off 0 to 255 in mean_chn, and as much in min_chn", "AIPP 的 mean_chn 和 min_chn 各可减去 0 到 255"),
                say("leave the offset in the network", "请把该偏置留在网络中"),
            )
        if abs(factor) > 65504:
            raise refuse(
                say("channel {index} is multiplied by {factor:g}", "通道 {index} 乘以 {factor:g}", index=index, factor=factor),
                say("float16 ends at 65504", "float16 的上限是 65504"),
                say("leave the factor in the network", "请把该系数留在网络中"),
            )
        whole = min(math.floor(off), 255)
        if spelling == "mean" and off != whole:
            raise refuse(
                say("the mean {off:g} is no whole number", "均值 {off:g} 不是整数", off=off),
                say("mean_chn takes whole numbers", "mean_chn 只能是整数"),
                say("use the spelling split or min", "请使用 split 或 min 写法"),
            )
        if spelling == "min":
            values[f"min_chn_{index}"] = off
        else:
            if whole:
                values[f"mean_chn_{index}"] = whole
            if off != whole:
                values[f"min_chn_{index}"] = float(f"{off - whole:.10g}")
        values[f"var_reci_chn_{index}"] = float(f"{factor:.10g}")
    return values


def _error(op: AippOp, channel: int, transform: Transform, var: VarType) -> float:
    exact = (np.arange(256.0) - transform.subtract[channel]) * transform.factor[channel]
    return float(np.abs(channel_table(op, channel, var).astype(np.float64) - exact).max())


def make_dynamic(derived: Derived, batch: int, largest: Size | None = None) -> AippOp:
    """The dynamic block for the same input: its settings are given when the model runs (see ``runtime``).

    Args:
        batch: of the model, the largest gear.
        largest: height and width of the largest image; None is that of the static block.

    Raises:
        UsageError: no size is known.
    """
    size = largest or (int(derived.op["src_image_size_h"]), int(derived.op["src_image_size_w"]))
    if 0 in size:
        raise refuse(
            say("the size of the largest image is not known", "不知道最大图像的大小"),
            say("dynamic AIPP needs it", "动态 AIPP 需要它"),
            say("give --source HEIGHT,WIDTH", "请给出 --source 高,宽"),
        )
    return AippOp(
        {
            "aipp_mode": "dynamic",
            "related_input_rank": int(derived.op["related_input_rank"]),
            "max_src_image_size": frame_bytes(derived.op.format, *size) * batch,
        }
    )
