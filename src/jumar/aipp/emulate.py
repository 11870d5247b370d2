"""AIPP in numpy, bit by bit: bytes of images in, the model's input out.

The order is that of the hardware: swaps, crop, colour conversion, mean and min and var_reci, padding. U and V that two or four pixels share
are taken for each of them as they are: no source speaks of interpolation.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import UsageError
from ..text import say
from .arithmetic import channel_table, check_eight_bit
from .config import AippOp, matrix_of
from .frames import Band, bands, frame_bytes, split_frames
from .geometry import Geometry, geometry
from .schema import FOUR, YUV, VarType

Layout = Literal["NCHW", "NHWC"]
_ROWS = 32
"""Rows at a time, so that what is computed between stays in the cache."""


def emulate(
    op: AippOp,
    data: Any,
    *,
    var: VarType = "float16",
    network: tuple[int, int] | None = None,
    channels: int | None = None,
    layout: Layout = "NCHW",
    dtype: Literal["float16", "uint8"] = "float16",
) -> np.ndarray[Any, np.dtype[Any]]:
    """What a static block makes of images.

    Args:
        data: bytes or uint8 array of one or more images in the block's format and source size.
        var: how the chip keeps var_reci_chn (see ``schema.chip``).
        network: height and width of the model's input, for sizes that the block leaves open.
        channels: of the model's input; further ones (X of XRGB) are dropped.
        dtype: of the model's input; where it is uint8, mean, min and var_reci have no effect.

    Returns:
        [frames, channels, height, width], or [frames, height, width, channels] for NHWC.

    Raises:
        UsageError: a format or a setting that is not emulated, an open size, or bytes that are not whole images.
    """
    check_eight_bit(op)
    size = _sizes(op, network)
    frames = split_frames(data, op.format, *size.source)
    tables = _tables(op, var, dtype)
    count = min(len(tables), channels or len(tables))
    if channels is not None and channels > len(tables):
        raise UsageError(
            say("{format} gives {made} channels", "{format} 得到 {made} 个通道", format=op.format, made=len(tables)),
            say("expected {wanted}, as the model takes", "模型需要 {wanted} 个", wanted=channels),
            say("choose another format", "请选择其他格式"),
        )
    out = np.empty((len(frames), count, *size.output), np.float16 if dtype == "float16" else np.uint8)
    if op["padding"]:
        with np.errstate(over="ignore", invalid="ignore"):
            out[...] = np.float64(op["padding_value"]).astype(out.dtype)
    top, _, left, _ = size.padding
    height, width = size.crop[2:]
    for index, frame in enumerate(frames):
        _frame(op, frame, size, tables[:count], out[index, :, top : top + height, left : left + width])
    return out if layout == "NCHW" else np.ascontiguousarray(out.transpose(0, 2, 3, 1))


def _sizes(op: AippOp, network: tuple[int, int] | None) -> Geometry:
    if op["resize"]:
        raise UsageError(
            say("the block resizes", "该块开启了 resize"),
            say("expected none: how the vision chips interpolate is not public", "应关闭：视觉芯片的插值方式没有公开"),
            say("resize on the host", "请在主机上缩放"),
        )
    size = geometry(op, network)
    if size is None:
        raise UsageError(
            say("the block leaves the size of the image open", "该块没有给出图像大小"),
            say(
                "expected src_image_size_w and src_image_size_h, or the size of the model's input",
                "应给出 src_image_size_w 和 src_image_size_h，或模型输入的大小",
            ),
            say("write them, or give the model", "请写出，或给出模型"),
        )
    top, left, height, width = size.crop
    even = (2 if op.format == "YUV420SP_U8" else 1, 2 if op.format in ("YUV420SP_U8", "YUV422SP_U8", "YUYV_U8") else 1)
    outside = top < 0 or left < 0 or height <= 0 or width <= 0 or top + height > size.source[0] or left + width > size.source[1]
    if outside or min(size.padding) < 0 or min(size.source) < 1 or size.source[0] % even[0] or size.source[1] % even[1]:
        raise UsageError(
            say("the sizes of the block do not fit together", "该块的各个大小互相矛盾"),
            say(
                "expected a crop inside of the image, even sizes for YUV, and no negative padding",
                "裁剪应在图像之内，YUV 的大小应为偶数，补边不能为负",
            ),
            say("see `jumar lint`", "请用 `jumar lint` 检查"),
        )
    return size


def _tables(op: AippOp, var: VarType, dtype: str) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """What each value becomes, a table a channel."""
    count = 1 if op.format == "YUV400_U8" else 3 if op["csc_switch"] or op.format not in FOUR else 4
    if dtype == "uint8":
        return [np.arange(256, dtype=np.uint8)] * count
    return [channel_table(op, index, var) for index in range(count)]


def _frame(op: AippOp, frame: np.ndarray[Any, Any], size: Geometry, tables: list[Any], out: np.ndarray[Any, Any]) -> None:
    """Fill ``out`` [channels, height, width] with the crop of one frame."""
    top, left, height, width = size.crop
    step = 2 if op.format == "YUV420SP_U8" else 1
    first = top - top % step
    edges = list(range(first, top + height, _ROWS))
    rows = [(edge, min(edge + _ROWS, size.source[0])) for edge in edges]
    for (begin, _), band in zip(rows, bands(op, frame, size.source, rows), strict=True):
        above, below = max(begin, top), min(begin + _ROWS, top + height)
        inside = slice(above - begin, below - begin)
        place = out[:, above - top : below - top]
        _band(op, band, inside, slice(left, left + width), tables, place)


def _band(op: AippOp, band: Band, rows: slice, columns: slice, tables: list[Any], out: np.ndarray[Any, Any]) -> None:
    if not op["csc_switch"]:
        for channel, table in enumerate(tables):
            plane = band.planes[channel]
            full = plane if channel == 0 or band.share == (1, 1) else _spread(plane, band.share)
            np.take(table, full[rows, columns], out=out[channel], mode="clip")
        return
    elements = matrix_of(op)
    decode = op.format in YUV
    terms: dict[int, np.ndarray[Any, Any]] = {}
    for channel, table in enumerate(tables):
        row = elements[3 * channel : 3 * channel + 3]
        constant = -sum(element * int(op[f"input_bias_{index}"]) for index, element in enumerate(row)) if decode else 0
        if row[0] not in terms:
            terms[row[0]] = np.multiply(band.planes[0], row[0], dtype=np.int32)
        rest = _weighted(band.planes[1:3], row[1:], constant)
        total = _joined(terms[row[0]], rest, band.share)[rows, columns]
        total >>= 8
        if not decode:
            total += int(op[f"output_bias_{channel}"])
        # mode="clip" is the saturation to 0..255
        np.take(table, total, out=out[channel], mode="clip")


def _weighted(planes: tuple[Any, ...], weights: tuple[int, ...], constant: int) -> np.ndarray[Any, Any]:
    used = [(plane, weight) for plane, weight in zip(planes, weights, strict=True) if weight] or [(planes[0], 0)]
    total: np.ndarray[Any, Any] = np.multiply(used[0][0], used[0][1], dtype=np.int32)
    for plane, weight in used[1:]:
        total += np.multiply(plane, weight, dtype=np.int32)
    if constant:
        total += constant
    return total


def _spread(plane: np.ndarray[Any, Any], share: tuple[int, int]) -> np.ndarray[Any, Any]:
    return plane.repeat(share[0], axis=0).repeat(share[1], axis=1)


def _joined(full: np.ndarray[Any, Any], shared: np.ndarray[Any, Any], share: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Sum of a term that each pixel has and one that some pixels share; a new array."""
    if share == (1, 1):
        return np.asarray(full + shared)
    height, width = full.shape
    wide = np.empty((shared.shape[0], width), np.int32)
    wide[:, 0::2] = shared
    wide[:, 1::2] = shared
    if share[0] == 1:
        wide += full
        return wide
    return np.asarray((full.reshape(-1, share[0], width) + wide[:, None]).reshape(height, width))


def input_bytes(op: AippOp, network: tuple[int, int] | None = None) -> int | None:
    """Bytes of one image as the compiled model takes it; None where the size is open."""
    size = geometry(op, network)
    return None if size is None else frame_bytes(op.format, *size.source)
