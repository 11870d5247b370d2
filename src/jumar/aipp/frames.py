"""Images as AIPP is given them: bytes of one or more frames, and the components of each pixel behind the swaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UsageError
from ..text import say
from .config import AippOp
from .schema import FOUR, bytes_per_pixel

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def frame_bytes(name: str, height: int, width: int) -> int:
    """Bytes of one image; AIPP takes rows without gaps."""
    per_pixel = bytes_per_pixel(name)
    if per_pixel is None:
        raise ValueError(name)
    return int(height * width * per_pixel)


def split_frames(data: Any, name: str, height: int, width: int) -> Bytes:
    """The frames of a buffer or array, each flat: uint8 [frames, bytes].

    Args:
        data: bytes, or a uint8 array of any shape whose elements stand in the order of the memory (NHWC for packed formats).

    Raises:
        UsageError: another type, or no whole number of frames.
    """
    array = np.frombuffer(data, np.uint8) if isinstance(data, (bytes, bytearray, memoryview)) else np.asarray(data)
    wanted = frame_bytes(name, height, width)
    if array.dtype != np.uint8 or array.size == 0 or array.size % wanted:
        raise UsageError(
            say("the image has {count} elements of {dtype}", "图像有 {count} 个 {dtype} 元素", count=array.size, dtype=array.dtype),
            say(
                "expected bytes of {format}, {width} x {height}: {wanted} an image",
                "应为 {format} 的字节，{width} x {height}，每幅 {wanted} 字节",
                format=name,
                width=width,
                height=height,
                wanted=wanted,
            ),
            say(
                "give the image in the size and layout of the AIPP file (rows of packed pixels, then frames)",
                "请按 AIPP 文件的大小和布局给出图像（逐行打包的像素，再到下一帧）",
            ),
        )
    return np.ascontiguousarray(array).reshape(-1, wanted)


@dataclass(frozen=True)
class Band:
    """Some rows of an image: one array a component, [rows, width] of uint8; U and V may be stored once for ``share`` pixels.

    ``first`` is the row of the image at which the arrays begin.
    """

    planes: tuple[Bytes, ...]
    share: tuple[int, int]


def bands(op: AippOp, frame: Bytes, source: tuple[int, int], rows: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> Iterator[Band]:
    """The components of ranges of rows, in the order R, G, B(, X) or Y, U, V as the block's switches make it.

    Args:
        rows: first and behind the last row of each band; both even for YUV420SP.
    """
    height, width = source
    name, swap = op.format, bool(op["rbuv_swap_switch"])
    if name in ("YUV420SP_U8", "YUV422SP_U8"):
        luma = frame[: height * width].reshape(height, width)
        shared = 2 if name == "YUV420SP_U8" else 1
        chroma = frame[height * width :].reshape(height // shared, width // 2, 2)
        first, second = (1, 0) if swap else (0, 1)
        for top, bottom in rows:
            part = chroma[top // shared : bottom // shared]
            yield Band((luma[top:bottom], part[..., first], part[..., second]), (shared, 2))
        return
    if name == "YUYV_U8":
        packed = frame.reshape(height, width // 2, 4)
        first, second = (3, 1) if swap else (1, 3)
        for top, bottom in rows:
            part = packed[top:bottom]
            luma = np.ascontiguousarray(part[..., ::2]).reshape(bottom - top, width)
            yield Band((luma, part[..., first], part[..., second]), (1, 2))
        return
    count = {"YUV400_U8": 1, "RGB888_U8": 3}.get(name, 4)
    order = list(range(count))
    if name in FOUR and op["ax_swap_switch"]:
        order = [1, 2, 3, 0]
    if swap and name == "AYUV444_U8":
        order[1], order[2] = order[2], order[1]
    elif swap and count > 1:
        order[0], order[2] = order[2], order[0]
    pixels = frame.reshape(height, width, count)
    for top, bottom in rows:
        yield Band(tuple(pixels[top:bottom, :, place] for place in order), (1, 1))
