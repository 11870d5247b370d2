"""A block against the training transform: the emulated input of the model beside the one in float64, and the slip that explains a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..errors import UsageError
from ..text import Text, say
from .arithmetic import coefficients
from .config import AippOp
from .derive.block import IMAGES
from .emulate import emulate
from .frames import bands, split_frames
from .geometry import geometry
from .images import from_yuv, lay_out
from .matrices import Range, Standard, identify
from .schema import RGB, YUV, VarType
from .slips import COLOURS_SWAPPED, NUMBERS_REVERSED, Slip, explain
from .transform import GRAY_WEIGHTS, Size, Transform, apply, crop_of

Pair = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""The model's input of one image: what the device makes, and what the transform makes."""
DEFAULT_SIZE: Size = (16, 16)
"""Of the pattern, where neither file nor model gives a size."""
_DECODING_LEVELS = 2.5
"""Levels of 255 by which integers of 256ths, cut off, may differ from the standard's own matrix."""


@dataclass(frozen=True)
class Difference:
    """What one block does otherwise than the transform.

    Attributes:
        largest: difference over all pixels that were tried, a channel.
        mean: average of the absolute difference, a channel.
        allowed: what rounding explains, a channel.
        slips: that explain the difference; empty where nothing is wrong, None where no usual slip explains it.
        problems: in words: sizes, colours, matrices.
        notes: what was assumed of the images.
        reach: least and largest number that the model gets from AIPP, and from the transform.
        pairs: both inputs of each image that was tried, the pattern first.
    """

    largest: tuple[float, ...]
    mean: tuple[float, ...]
    allowed: tuple[float, ...]
    slips: tuple[Slip, ...] | None
    problems: tuple[Text, ...]
    notes: tuple[Text, ...]
    reach: tuple[tuple[float, float], tuple[float, float]]
    pairs: tuple[Pair, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether all is explained by rounding."""
        return not self.problems and all(one <= two for one, two in zip(self.largest, self.allowed, strict=True))


def image_kind(op: AippOp, image: str | None = None) -> tuple[str, Text | None]:
    """The kind of image that a block is given: as told, else what its format and switches suit, with a note on what was assumed."""
    if image is not None:
        return image, None
    swap = bool(op["rbuv_swap_switch"])
    if op.format == "RGB888_U8":
        return "rgb", say(
            "assumed: the images given to AIPP are RGB (--input says otherwise)", "假定输入 AIPP 的图像为 RGB（可用 --input 指定）"
        )
    if op.format == "XRGB8888_U8":
        name = "xrgb" if op["ax_swap_switch"] else "rgbx"
        return name, say(
            "assumed: the images given to AIPP are {name} (--input says otherwise)",
            "假定输入 AIPP 的图像为 {name}（可用 --input 指定）",
            name=name,
        )
    if op.format == "YUV400_U8":
        return "gray", None
    names = {"YUV420SP_U8": ("nv12", "nv21"), "YUV422SP_U8": ("nv16", "nv61"), "YUYV_U8": ("yuyv", "yvyu")}
    name = names.get(op.format, ("nv12", "nv21"))[swap]
    return name, say(
        "assumed: the images given to AIPP are {name}, as rbuv_swap_switch has it",
        "按 rbuv_swap_switch 假定输入 AIPP 的图像为 {name}",
        name=name,
    )


def pattern(size: Size) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An RGB image with all values of each channel where there is room, none of them alike in two channels."""
    height, width = size
    ramp = (np.arange(height * width) * 255 // max(1, height * width - 1)).reshape(height, width)
    random = np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.int64)
    image = np.stack([ramp, ramp[::-1, ::-1], random[..., 2]], axis=-1)
    return np.asarray(image, np.uint8)


def compare(
    op: AippOp,
    transform: Transform,
    *,
    image: str | None = None,
    matrix: tuple[Standard, Range] | None = None,
    pixels: Sequence[np.ndarray[Any, Any]] = (),
    network: Size | None = None,
    var: VarType = "float16",
) -> Difference:
    """Compare a static block with a transform.

    Args:
        image: the kind of images the block is given; None as :func:`image_kind` assumes.
        matrix: standard of YUV images; None believes the block's own matrix.
        pixels: RGB images of the block's source size to try besides the pattern.
        network: height and width of the model's input.

    Raises:
        UsageError: a block that cannot be emulated, or an image of another size.
    """
    kind, note = image_kind(op, image)
    notes = [] if note is None else [note]
    size = geometry(op, network or transform.size) or geometry(op, transform.source or DEFAULT_SIZE)
    if size is None:
        raise UsageError(
            say("the block leaves the size of its image open", "该块没有给出图像大小"),
            say(
                "expected src_image_size_w and src_image_size_h, since it crops, pads or resizes",
                "开启裁剪、补边或缩放时应给出 src_image_size_w 和 src_image_size_h",
            ),
            say("write them", "请写出"),
        )
    problems = _size_problems(op, transform, size.source, size.output, network)
    shape = size.source
    problems += _matrix_problem(op, matrix)
    matrix, more = _matrix(op, matrix)
    notes += more
    wanted = _fitting(transform, op, size.source, problems)
    found: list[Pair] = []
    for item in (pattern(shape), *pixels):
        data = lay_out(item, kind, matrix)
        made = emulate(op, data, var=var, network=network or transform.size or DEFAULT_SIZE)[0].astype(np.float64)
        exact = apply(wanted, _seen(op, kind, data, item, shape, matrix))
        if made.shape[0] > exact.shape[0]:
            made = made[: exact.shape[0]]
        if made.shape == exact.shape:
            found.append((made, exact))
        elif made.shape[0] != exact.shape[0]:
            problems.append(
                say(
                    "AIPP gives {made} channels, the transform {wanted}",
                    "AIPP 得到 {made} 个通道，预处理为 {wanted} 个",
                    made=made.shape[0],
                    wanted=exact.shape[0],
                )
            )
            break
    return _difference(op, transform, found, problems, notes, kind, var)


def _size_problems(op: AippOp, transform: Transform, source: Size, output: Size, network: Size | None) -> list[Text]:
    problems = []
    size = transform.size or network
    if size is not None and output != size:
        problems.append(
            say(
                "AIPP gives {tall} x {wide} (height x width), training {height} x {width}",
                "AIPP 输出 {tall} x {wide}（高 x 宽），训练时为 {height} x {width}",
                tall=output[0],
                wide=output[1],
                height=size[0],
                width=size[1],
            )
        )
    if transform.source is not None and source != transform.source and (op["src_image_size_w"] or op["src_image_size_h"]):
        problems.append(
            say(
                "the source is {tall} x {wide} (height x width), the transform starts from {height} x {width}",
                "源图为 {tall} x {wide}（高 x 宽），预处理从 {height} x {width} 开始",
                tall=source[0],
                wide=source[1],
                height=transform.source[0],
                width=transform.source[1],
            )
        )
    place = crop_of(transform)
    if place is not None and op["crop"] and source == transform.source:
        at = (int(op["load_start_pos_h"]), int(op["load_start_pos_w"]))
        if at != place[0]:
            problems.append(
                say(
                    "AIPP crops at {top}, {left} (top, left), training at {wanted_top}, {wanted_left}",
                    "AIPP 在 {top}、{left}（上、左）处裁剪，训练时在 {wanted_top}、{wanted_left}",
                    top=at[0],
                    left=at[1],
                    wanted_top=place[0][0],
                    wanted_left=place[0][1],
                )
            )
    return problems


def _fitting(transform: Transform, op: AippOp, source: Size, problems: list[Text]) -> Transform:
    """The transform with the block's own crop and padding, where its own sizes are not those of the block: pixels can then be compared."""
    own = crop_of(transform) is not None or any(transform.padding)
    if own and not problems:
        return transform
    size = geometry(op, source)
    if size is None:
        return transform
    top, left, height, width = size.crop
    padding = float(np.float16(op["padding_value"])) if op["padding"] else 0.0
    return replace(
        transform, source=source, size=size.output, crop=(top, left), cropped=(height, width), padding=size.padding, padding_value=padding
    )


def _matrix_problem(op: AippOp, matrix: tuple[Standard, Range] | None) -> list[Text]:
    """A matrix of another standard than that of the images, as the caller stated it."""
    if matrix is None or op.format not in YUV or not op["csc_switch"]:
        return []
    found = identify(op)
    if found.matrix is not None and (found.matrix.standard, found.matrix.range) == matrix:
        return []
    return [
        say(
            "the images are BT.{standard} {range}, and the matrix is: {text}",
            "图像为 BT.{standard} {range}，而矩阵是：{text}",
            standard=matrix[0],
            range=matrix[1],
            text=found.text,
        )
    ]


def _matrix(op: AippOp, matrix: tuple[Standard, Range] | None) -> tuple[tuple[Standard, Range], list[Text]]:
    if op.format not in YUV:
        return matrix or ("601", "narrow"), []
    if matrix is not None:
        return matrix, []
    found = identify(op).matrix if op["csc_switch"] else None
    if found is None:
        return ("601", "narrow"), [
            say("assumed: the images are BT.601 narrow (--matrix says otherwise)", "假定图像为 BT.601 窄范围（可用 --matrix 指定）")
        ]
    note = say(
        "assumed: the images are BT.{standard} {range}, as the matrix has it (--matrix says otherwise)",
        "按矩阵假定图像为 BT.{standard} {range}（可用 --matrix 指定）",
        standard=found.standard,
        range=found.range,
    )
    return (found.standard, found.range), [note]


def _seen(
    op: AippOp, kind: str, data: Any, item: np.ndarray[Any, Any], shape: Size, matrix: tuple[Standard, Range]
) -> np.ndarray[Any, Any]:
    """The pixels as the transform sees them: for YUV what the bytes decode to in floats, since that is all the device can know."""
    described = IMAGES[kind]
    if described.order not in ("YUV", "YVU"):
        return item
    plain = AippOp({"input_format": op.format, "rbuv_swap_switch": described.order == "YVU"})
    frame = split_frames(data, op.format, *shape)[0]
    band = next(iter(bands(plain, frame, shape, [(0, shape[0])])))
    planes = [band.planes[0], *(plane.repeat(band.share[0], axis=0).repeat(band.share[1], axis=1) for plane in band.planes[1:3])]
    return from_yuv(np.stack(planes, axis=-1), matrix)


def _difference(
    op: AippOp, transform: Transform, found: list[Pair], problems: list[Text], notes: list[Text], kind: str, var: VarType
) -> Difference:
    count = transform.channels
    delivered = _delivered(op, kind)
    swapped = count == 3 and delivered is not None and delivered != transform.order
    if op.format in YUV and not op["csc_switch"] and count == 3:
        problems.append(say("csc_switch is off: the model gets Y, U, V", "csc_switch 关闭：模型得到的是 Y、U、V"))
    if transform.order == "GRAY" and op.format in RGB and not op["csc_switch"]:
        problems.append(say("the model takes gray, AIPP gives colours", "模型需要灰度，AIPP 给出彩色"))
    given = [coefficients(op, index, "float32") for index in range(count)]
    subtract = tuple(mean + float(op[f"min_chn_{index}"]) for index, (mean, _, _) in enumerate(given))
    factor = tuple(float(op[f"var_reci_chn_{index}"]) for index in range(count))
    slips = explain(transform.subtract, transform.factor, subtract, factor, swapped=swapped)
    allowed = tuple(_allowed(transform, index, op, var) for index in range(count))
    largest, mean = [0.0] * count, [0.0] * count
    reach = [(0.0, 0.0), (0.0, 0.0)]
    for made, exact in found:
        with np.errstate(invalid="ignore"):
            apart = np.abs(made - exact)
        for index in range(count):
            largest[index] = max(largest[index], float(apart[index].max()))
            mean[index] = max(mean[index], float(apart[index].mean()))
    if found:
        reach = [(float(found[0][side].min()), float(found[0][side].max())) for side in (0, 1)]
    named = None if slips is None else tuple(slips)
    if named == () and any(one > two for one, two in zip(largest, allowed, strict=True)):
        named = None
    return Difference(tuple(largest), tuple(mean), allowed, named, tuple(problems), tuple(notes), (reach[0], reach[1]), tuple(found))


def _delivered(op: AippOp, kind: str) -> Literal["RGB", "BGR"] | None:
    """The order of colours that a block gives for a kind of image; None where it gives none."""
    described = IMAGES[kind]
    swap = bool(op["rbuv_swap_switch"])
    if described.order in ("RGB", "BGR") and not op["csc_switch"]:
        return "RGB" if (described.order == "RGB") is not swap else "BGR"
    if described.order in ("YUV", "YVU") and op["csc_switch"]:
        order = identify(op).order
        if order is None or (described.order == "YVU") is swap:
            return order
        return "BGR" if order == "RGB" else "RGB"  # U and V exchanged is nearly red and blue exchanged
    return None


def _allowed(transform: Transform, channel: int, op: AippOp, var: VarType) -> float:
    """What rounding explains: float16 of min_chn, of var_reci_chn and of the result; for YUV also of the matrix; for gray of its weights."""
    subtract, factor = transform.subtract[channel], abs(transform.factor[channel])
    top = max(abs(0 - subtract), abs(255 - subtract)) * factor
    step = float(np.spacing(np.float16(max(subtract, 2.0**-14))))
    allowed = factor * step + (3 if var == "float16" else 2) * 2.0**-11 * top
    if op.format in YUV:
        allowed += _DECODING_LEVELS * factor
    if transform.order == "GRAY" and op.format in RGB:
        allowed += (1.5 + 255 * sum(abs(one / 256 - two) for one, two in zip((76, 150, 30), GRAY_WEIGHTS, strict=True))) * factor
    return allowed


def describe(slip: Slip, transform: Transform) -> Text:
    """A slip in words, with the colours of this transform."""
    if slip is COLOURS_SWAPPED:
        other = "BGR" if transform.order == "RGB" else "RGB"
        return say(
            "red and blue are exchanged: the model takes {wanted}, AIPP gives {given}",
            "红蓝颠倒：模型需要 {wanted}，AIPP 给出 {given}",
            wanted=transform.order,
            given=other,
        )
    if slip is NUMBERS_REVERSED:
        return say(
            "the numbers stand in the order of the other colours: channel 0 must have those of {colour}",
            "数值按相反的颜色顺序排列：通道 0 应写 {colour} 的数值",
            colour=transform.order[0],
        )
    return slip.text
