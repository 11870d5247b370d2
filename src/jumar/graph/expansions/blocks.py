"""Blocks of an image moved into channels and back, as a Transpose between two shapes."""

from __future__ import annotations

from ...text import say
from ..opset.step import Step
from .base import expands
from .common import reshape


@expands("DepthToSpace")
def depth_to_space(step: Step) -> None:
    """Channels become blocks: the block counts faster than the channels (DCR), or slower (CRD)."""
    batch, channels, height, width = _image(step)
    size = int(step.attr("blocksize"))
    rest = channels // (size * size)
    if step.attr("mode", "DCR") == "DCR":
        split, order = [batch, size, size, rest, height, width], [0, 3, 4, 1, 5, 2]
    else:
        split, order = [batch, rest, size, size, height, width], [0, 1, 4, 2, 5, 3]
    _moved(step, size, split, order, [batch, rest, height * size, width * size])


@expands("SpaceToDepth")
def space_to_depth(step: Step) -> None:
    """Blocks become channels: the place in the block counts slower than the channels (DCR, and all there was), or faster (CRD)."""
    batch, channels, height, width = _image(step)
    size = int(step.attr("blocksize"))
    split = [batch, channels, height // size, size, width // size, size]
    order = [0, 3, 5, 1, 2, 4] if step.attr("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    _moved(step, size, split, order, [batch, channels * size * size, height // size, width // size])


def _image(step: Step) -> tuple[int, ...]:
    shape = step.static()
    if len(shape) != 4:
        step.refuse(say("it is not an image of rank 4", "它不是 4 维图像"))
    return shape


def _moved(step: Step, size: int, split: list[int], order: list[int], shape: list[int]) -> None:
    data = step.needed(0)
    step.finish(data if size == 1 else reshape(step, step.op("Transpose", reshape(step, data, split), perm=order), shape))
