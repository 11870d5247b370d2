#!/usr/bin/env python3
"""How long the AIPP emulator takes for one 1080p image, beside numpy in plain floats and, where it is installed, OpenCV.

usage: python benchmarks/aipp.py [--runs N]

The peers do less: numpy's and OpenCV's floats are not those of the device. The best of N runs counts; nothing is asserted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jumar.aipp.config import AippOp
from jumar.aipp.emulate import emulate
from jumar.aipp.matrices import decoding

HEIGHT, WIDTH = 1080, 1920
MEAN, STD = np.array([123.675, 116.28, 103.53], np.float32), np.array([58.395, 57.12, 57.375], np.float32)


def block(name: str, **more: Any) -> AippOp:
    numbers = {f"min_chn_{index}": float(value) for index, value in enumerate(MEAN)}
    numbers |= {f"var_reci_chn_{index}": float(1 / value) for index, value in enumerate(STD)}
    return AippOp({"aipp_mode": "static", "input_format": name, "src_image_size_h": HEIGHT, "src_image_size_w": WIDTH, **numbers, **more})


def best(function: Callable[[], Any], runs: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times[1:]) * 1e3


def numpy_rgb(image: np.ndarray[Any, Any]) -> Any:
    return np.ascontiguousarray(((image.astype(np.float32) - MEAN) / STD).transpose(2, 0, 1)).astype(np.float16)


def numpy_nv12(data: np.ndarray[Any, Any]) -> Any:
    luma = data[: HEIGHT * WIDTH].reshape(HEIGHT, WIDTH).astype(np.float32) - 16
    chroma = data[HEIGHT * WIDTH :].reshape(HEIGHT // 2, WIDTH // 2, 2).astype(np.float32).repeat(2, 0).repeat(2, 1) - 128
    table = np.array(decoding("601", "narrow").elements, np.float32).reshape(3, 3) / 256
    yuv = np.concatenate([luma[..., None], chroma], axis=-1)
    return numpy_rgb(np.clip(yuv @ table.T, 0, 255))


def opencv() -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    try:
        import cv2  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None

    def rgb(image: Any) -> Any:
        return cv2.dnn.blobFromImage(image, 1 / 57.63, mean=tuple(float(value) for value in MEAN))

    def nv12(data: Any) -> Any:
        return rgb(cv2.cvtColor(data.reshape(HEIGHT * 3 // 2, WIDTH), cv2.COLOR_YUV2RGB_NV12))

    return rgb, nv12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    random = np.random.default_rng(0)
    image = random.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    nv12 = random.integers(0, 256, HEIGHT * WIDTH * 3 // 2, dtype=np.uint8)
    colour = block("YUV420SP_U8", csc_switch=True, **decoding("601", "narrow").fields())
    peers = opencv()
    print(f"{'':24}{'emulator':>12}{'numpy':>12}{'OpenCV':>12}")
    for name, ours, theirs, index in (
        ("RGB888_U8", lambda: emulate(block("RGB888_U8"), image), lambda: numpy_rgb(image), 0),
        ("YUV420SP_U8 to RGB", lambda: emulate(colour, nv12), lambda: numpy_nv12(nv12), 1),
    ):
        mine, plain = best(ours, runs), best(theirs, max(3, runs // 3))
        other = "-" if peers is None else f"{best(lambda index=index: peers[index](image if index == 0 else nv12), runs):.1f} ms"  # type: ignore[misc]
        print(f"{name:24}{mine:>9.1f} ms{plain:>9.1f} ms{other:>12}   {plain / mine:.1f} times faster than numpy")


if __name__ == "__main__":
    main()
