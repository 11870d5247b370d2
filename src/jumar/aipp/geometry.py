"""Sizes on the way through AIPP: source, crop, resize, padding, output."""

from __future__ import annotations

from dataclasses import dataclass

from .config import AippOp


@dataclass(frozen=True)
class Geometry:
    """All in pixels. ``source`` and ``output`` are (height, width); ``crop`` is (top, left, height, width) within the source.

    ``padding`` is (top, bottom, left, right).
    """

    source: tuple[int, int]
    crop: tuple[int, int, int, int]
    resized: tuple[int, int]
    padding: tuple[int, int, int, int]

    @property
    def output(self) -> tuple[int, int]:
        top, bottom, left, right = self.padding
        return self.resized[0] + top + bottom, self.resized[1] + left + right


def geometry(op: AippOp, network: tuple[int, int] | None = None) -> Geometry | None:
    """The sizes in force; None where one is left open and ``network`` (height and width of the model's input) is not known."""
    source = (int(op["src_image_size_h"]), int(op["src_image_size_w"]))
    if 0 in source and network is not None and not (op["crop"] or op["padding"] or op["resize"]):
        source = (source[0] or network[0], source[1] or network[1])
    height, width = source
    top = left = 0
    if op["crop"]:
        top, left = int(op["load_start_pos_h"]), int(op["load_start_pos_w"])
        height, width = (
            int(op[f"crop_size_{axis}"]) or (network[index] if network is not None else 0) for index, axis in enumerate(("h", "w"))
        )
    resized = (height, width)
    if op["resize"]:
        resized = (
            int(op["resize_output_h"]) or (network[0] if network is not None else 0),
            int(op["resize_output_w"]) or (network[1] if network is not None else 0),
        )
    if 0 in source or 0 in (height, width) or 0 in resized:
        return None
    sides = ("top", "bottom", "left", "right")
    above, below, before, behind = (int(op[f"{side}_padding_size"]) if op["padding"] else 0 for side in sides)
    return Geometry(source, (top, left, height, width), resized, (above, below, before, behind))
