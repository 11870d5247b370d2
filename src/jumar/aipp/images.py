"""Images for AIPP: reading files, and laying RGB pixels out in the formats that the device is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ToolError, UsageError
from ..text import say
from .derive.block import IMAGES
from .frames import Bytes
from .matrices import Range, Standard, decoding, exact_rows

LARGEST_FILE = 1 << 30
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


def read_image(path: str | Path) -> tuple[np.ndarray[Any, Any], bool]:
    """The pixels of a file.

    Args:
        path: ``.npy``, ``.npz`` with one array, ``.ppm``/``.pgm``, a picture (with Pillow), or raw bytes.

    Returns:
        uint8 pixels, and whether they are RGB pictures ([height, width, 3] or gray [height, width]) rather than bytes in the device's layout.

    Raises:
        UsageError: absent, unreadable, too large, or not uint8.
        ToolError: a picture, and Pillow is not installed.
    """
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(
                say("`{path}` is larger than {size} GB", "`{path}` 大于 {size} GB", path=path, size=LARGEST_FILE >> 30),
                say("expected one image", "应为一幅图像"),
            )
        suffix = path.suffix.lower()
        if suffix in PICTURES:
            return _picture(path), True
        if suffix in (".npy", ".npz"):
            array = _array(path)
            if array.dtype != np.uint8:
                raise ValueError(f"dtype {array.dtype}")
            return array, array.ndim in (2, 3) and (array.ndim == 2 or array.shape[-1] in (1, 3))
        data = path.read_bytes()
        if suffix in (".ppm", ".pgm"):
            return _netpbm(data), True
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UsageError(
            say("`{path}` cannot be read: {reason}", "无法读取 `{path}`：{reason}", path=str(path)[-80:], reason=reason[:100]),
            say(
                "expected an image: .npy of uint8, .ppm, .png, .jpg, or raw bytes", "应为图像：uint8 的 .npy、.ppm、.png、.jpg，或原始字节"
            ),
            say("check the file", "请检查文件"),
        ) from error
    return np.frombuffer(data, np.uint8), False


def _array(path: Path) -> np.ndarray[Any, Any]:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        if len(loaded.files) != 1:
            raise ValueError(f"{len(loaded.files)} arrays")
        return np.asarray(loaded[loaded.files[0]])


def _picture(path: Path) -> np.ndarray[Any, Any]:
    try:
        from PIL import Image  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ToolError(
            say("Pillow is not installed", "没有安装 Pillow"),
            say("expected it, to read {suffix}", "读取 {suffix} 需要它", suffix=path.suffix),
            say("`pip install pillow`, or give a .npy or .ppm file", "`pip install pillow`，或给出 .npy、.ppm 文件"),
        ) from error
    try:
        with Image.open(path) as picture:
            if picture.width * picture.height > 1 << 26:
                raise ValueError(f"{picture.width} x {picture.height} pixels")
            return np.asarray(picture.convert("L" if picture.mode in ("L", "1") else "RGB"))
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from error


def _netpbm(data: bytes) -> np.ndarray[Any, Any]:
    """Binary PPM (P6) and PGM (P5) of 8 bits."""
    words: list[bytes] = []
    place = 0
    while len(words) < 4 and place < min(len(data), 1 << 16):
        if data[place : place + 1] == b"#":
            place = data.index(b"\n", place)
        elif data[place : place + 1].isspace():
            place += 1
        else:
            end = place
            while end < len(data) and not data[end : end + 1].isspace():
                end += 1
            words.append(data[place:end])
            place = end
    if len(words) < 4 or words[0] not in (b"P5", b"P6") or words[3] != b"255":
        raise ValueError("no binary PPM or PGM of 8 bits")
    width, height, channels = int(words[1]), int(words[2]), 3 if words[0] == b"P6" else 1
    pixels = np.frombuffer(data, np.uint8, offset=place + 1)
    if width < 1 or height < 1 or pixels.size < height * width * channels:
        raise ValueError("the file ends early")
    return pixels[: height * width * channels].reshape((height, width, 3) if channels == 3 else (height, width))


def lay_out(pixels: np.ndarray[Any, Any], image: str, matrix: tuple[Standard, Range] = ("601", "narrow")) -> Bytes:
    """RGB pixels as the bytes that a camera or decoder would give, one frame.

    Args:
        pixels: uint8 [height, width, 3], or [height, width] for ``gray``.
        image: one of ``derive.block.IMAGES``. YUV is computed in floats by the standard, U and V averaged over the pixels that share them.

    Raises:
        UsageError: odd sizes for YUV, gray pixels for a colour format, or an unknown name.
    """
    kind = IMAGES.get(image)
    height, width = pixels.shape[:2]
    color = pixels.ndim == 3 and pixels.shape[-1] == 3
    shared = (2, 2) if kind and kind.format == "YUV420SP_U8" else (1, 2) if kind and kind.format in ("YUV422SP_U8", "YUYV_U8") else (1, 1)
    if kind is None or (kind.order != "GRAY" and not color) or height % shared[0] or width % shared[1]:
        raise UsageError(
            say(
                "pixels of the shape {shape} do not become `{image}`",
                "形状为 {shape} 的像素不能转换为 `{image}`",
                shape=list(pixels.shape),
                image=image,
            ),
            say("expected [height, width, 3], of even size for YUV", "应为 [高, 宽, 3]，YUV 须为偶数大小"),
            say("crop the image, or give it as bytes", "请裁剪图像，或以字节形式给出"),
        )
    if kind.order == "GRAY":
        gray = np.rint(pixels.astype(np.float64) @ (0.299, 0.587, 0.114)).astype(np.uint8) if color else pixels
        return np.ascontiguousarray(gray).reshape(-1)
    if kind.order in ("RGB", "BGR"):
        packed = pixels if kind.order == "RGB" else pixels[..., ::-1]
        if kind.format == "XRGB8888_U8":
            fill = np.full((height, width, 1), 255, np.uint8)
            packed = np.concatenate([fill, packed] if kind.first else [packed, fill], axis=-1)
        return np.ascontiguousarray(packed).reshape(-1)
    yuv = to_yuv(pixels, matrix)
    luma = _byte(yuv[..., 0])
    chroma = yuv[..., 1:].reshape(height // shared[0], shared[0], width // 2, 2, 2).mean(axis=(1, 3))
    pairs = _byte(chroma if kind.order == "YUV" else chroma[..., ::-1])
    if kind.format != "YUYV_U8":
        return np.concatenate([luma.reshape(-1), pairs.reshape(-1)])
    packed = np.empty((height, width // 2, 4), np.uint8)
    packed[..., 0], packed[..., 2] = luma[:, 0::2], luma[:, 1::2]
    packed[..., 1], packed[..., 3] = pairs[..., 0], pairs[..., 1]
    return packed.reshape(-1)


def _byte(values: np.ndarray[Any, Any]) -> Bytes:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)


def exact_decoding(matrix: tuple[Standard, Range]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The matrix from YUV to RGB in float64, not rounded to 256ths, and what is taken off before."""
    return np.array(exact_rows(*matrix)), np.array(decoding(*matrix).bias, np.float64)


def to_yuv(pixels: np.ndarray[Any, Any], matrix: tuple[Standard, Range]) -> np.ndarray[Any, Any]:
    """Y, U, V of RGB pixels in float64, a triple a pixel."""
    table, bias = exact_decoding(matrix)
    return np.asarray(pixels.astype(np.float64) @ np.linalg.inv(table).T + bias)


def from_yuv(yuv: np.ndarray[Any, Any], matrix: tuple[Standard, Range]) -> np.ndarray[Any, Any]:
    """RGB of YUV in float64, held to 0..255."""
    table, bias = exact_decoding(matrix)
    return np.asarray(np.clip((yuv.astype(np.float64) - bias) @ table.T, 0, 255))
