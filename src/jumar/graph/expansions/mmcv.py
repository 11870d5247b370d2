"""MMCV's operators by those of the standard. What each computes is said, with its sources, in :mod:`jumar.reference.mmcv`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import section, squeeze, unsqueeze
from ..opset.lower.sampled import grid_sample
from ..opset.step import Step
from .base import Expansion, expands
from .common import normal_axis, take
from .sampling import Bins, Deformed, deformed, pooled_regions

DOMAINS = ("mmcv", "mmdeploy")
_LEAST = -10000.0
"""No maximum of a region is below this."""


def _expands(operator: str) -> Callable[[Expansion], Expansion]:
    return expands(*(f"{domain}::{operator}" for domain in DOMAINS))


def _stated(step: Step, name: str) -> Any:
    """An attribute that has no default.

    Raises:
        Unconvertible: it is absent.
    """
    found = step.attr(name)
    if found is None:
        step.refuse(say("attribute {name} is missing", "缺少属性 {name}", name=name))
    return found


def _pair(step: Step, name: str) -> tuple[int, int]:
    """An attribute of two whole numbers, for height and width."""
    found = _stated(step, name)
    if not isinstance(found, tuple) or len(found) != 2:
        step.refuse(say("attribute {name} is {found}, not two numbers", "属性 {name} 为 {found}，不是两个数", name=name, found=str(found)))
    return int(found[0]), int(found[1])


def _regions(step: Step) -> tuple[ir.Value, ir.Value, Bins]:
    """The boxes [count, 4], the image of each (int64 [count]), and how they are pooled."""
    regions = step.needed(1)
    if step.rank(1) != 2 or step.dim(1, 1) != 5 or step.rank(0) != 4:
        step.refuse(say("regions that are not [count, 5], or no image", "区域不是 [count, 5]，或输入不是图像"))
    mode = _stated(step, "mode")
    if mode not in ("avg", "max"):
        step.refuse(say("mode {mode}", "模式 {mode}", mode=str(mode)))
    form = Bins(
        int(_stated(step, "output_height")),
        int(_stated(step, "output_width")),
        int(_stated(step, "sampling_ratio")),
        float(_stated(step, "spatial_scale")),
        bool(_stated(step, "aligned")),
        _LEAST if mode == "max" else None,
    )
    owners = step.cast(squeeze(step, take(step, regions, 1, [0]), [1]), ir.DataType.INT64)
    return take(step, regions, 1, [1, 2, 3, 4]), owners, form


@_expands("MMCVRoiAlign")
def roi_align_of_the_standard(step: Step) -> None:
    """The standard's RoiAlign, whose regions and images are two operands."""
    boxes, owners, form = _regions(step)
    if form.least is not None:
        step.refuse(
            say(
                "mode max takes the largest sample, and the standard's RoiAlign the largest product with a weight",
                "max 模式取最大的采样值，而标准 RoiAlign 取与权重乘积的最大值",
            )
        )
    if form.half and step.version < 16:
        step.refuse(
            say(
                "aligned = 1 needs RoiAlign of opset 16 (half_pixel), or a fixed sampling_ratio to be written out",
                "aligned = 1 需要 opset 16 的 RoiAlign（half_pixel），或固定的 sampling_ratio 以便展开",
            )
        )
    half = ("half_pixel" if form.half else "output_half_pixel") if step.version >= 16 else None
    step.finish(
        step.op(
            "RoiAlign",
            step.needed(0),
            boxes,
            owners,
            output_height=form.rows,
            output_width=form.columns,
            sampling_ratio=max(form.samples, 0),
            spatial_scale=form.scale,
            coordinate_transformation_mode=half,
        )
    )


@_expands("MMCVRoiAlign")
def roi_align_written_out(step: Step) -> None:
    """The samples of every bin by plain arithmetic."""
    boxes, owners, form = _regions(step)
    step.finish(pooled_regions(step, boxes, owners, form))


def _deformed(step: Step, first: int, bias: ir.Value | None, mask: ir.Value | None) -> Deformed:
    """``first``: which input the weights are."""
    top, left = _pair(step, "padding")
    return Deformed(
        step.needed(first),
        step.needed(1),
        bias,
        mask,
        _pair(step, "stride"),
        _pair(step, "dilation"),
        (top, left, top, left),
        int(_stated(step, "groups")),
        int(_stated(step, "deform_groups")),
    )


def _convolution(step: Step) -> Deformed:
    modulated = step.node.op_type == "MMCVModulatedDeformConv2d"
    form = _deformed(step, 3, step.input(4), step.needed(2)) if modulated else _deformed(step, 2, None, None)
    if modulated and form.groups > 1 and form.moved > 1:
        step.refuse(
            say(
                "groups and deform_groups are both above 1: PyTorch and MMCV's plug-in for ONNX Runtime give the offsets to other channels",
                "groups 与 deform_groups 均大于 1：PyTorch 与 MMCV 的 ONNX Runtime 插件把偏移分配给不同的通道",
            )
        )
    return form


@_expands("MMCVModulatedDeformConv2d")
@_expands("MMCVDeformConv2d")
def deform_conv_of_the_standard(step: Step) -> None:
    """The standard's DeformConv, whose offsets lie in the same order."""
    form = _convolution(step)
    if step.version < 19:
        step.refuse(say("DeformConv begins with opset 19", "DeformConv 从 opset 19 开始"))
    step.finish(
        step.op(
            "DeformConv",
            step.needed(0),
            form.weight,
            form.offset,
            form.bias,
            form.mask,
            strides=list(form.strides),
            dilations=list(form.dilations),
            pads=list(form.pads),
            group=form.groups,
            offset_group=form.moved,
        )
    )


@_expands("MMCVModulatedDeformConv2d")
@_expands("MMCVDeformConv2d")
def deform_conv_written_out(step: Step) -> None:
    """Every tap of the kernel sampled at its own place, then one product with the weights."""
    step.finish(deformed(step, _convolution(step)))


_PADDINGS = ("zeros", "border", "reflection")


def _sampling(step: Step) -> tuple[str, str, bool]:
    mode, padding = int(_stated(step, "interpolation_mode")), int(_stated(step, "padding_mode"))
    if mode not in (0, 1) or padding not in range(3) or step.rank() != 4:
        step.refuse(
            say(
                "interpolation_mode {mode}, padding_mode {padding}, {rank} dimensions",
                "interpolation_mode 为 {mode}，padding_mode 为 {padding}，{rank} 维",
                mode=mode,
                padding=padding,
                rank=step.rank(),
            )
        )
    return ("bilinear", "nearest")[mode], _PADDINGS[padding], bool(_stated(step, "align_corners"))


@_expands("grid_sampler")
def grid_sample_of_the_standard(step: Step) -> None:
    """The standard's GridSample."""
    mode, padding, aligned = _sampling(step)
    if step.version < 16:
        step.refuse(say("GridSample begins with opset 16", "GridSample 从 opset 16 开始"))
    if step.version >= 20 and mode == "bilinear":
        mode = "linear"
    operands = step.needed(0), step.needed(1)
    step.finish(step.op("GridSample", *operands, mode=mode, padding_mode=padding, align_corners=int(aligned)))


@_expands("grid_sampler")
def grid_sample_written_out(step: Step) -> None:
    """Neighbours gathered and weighted."""
    step.finish(grid_sample(step, _sampling(step)))


@_expands("NonMaxSuppression")
def selection_of_the_standard(step: Step) -> None:
    """The standard's NonMaxSuppression of one image and one class, and the column of its boxes."""
    if step.rank(0) != 2 or step.rank(1) != 1:
        step.refuse(
            say(
                "boxes of several images or classes, the form of MMCV's TensorRT plug-in, which fills absent rows with -1",
                "多图像或多类别的框，是 MMCV 的 TensorRT 插件形式，缺失的行填 -1",
            )
        )
    count = step.dim(0, 0)
    threshold = float(_stated(step, "iou_threshold"))
    if int(_stated(step, "offset")) or not 0 <= threshold <= 1 or not count:
        step.refuse(
            say(
                "offset {offset}, iou_threshold {threshold}, {count} boxes: the standard's operator has offset 0 and thresholds from 0 to 1",
                "offset 为 {offset}，iou_threshold 为 {threshold}，{count} 个框：标准算子的 offset 为 0，阈值在 0 到 1 之间",
                offset=int(_stated(step, "offset")),
                threshold=threshold,
                count=count,
            )
        )
    low, high = take(step, step.needed(0), 1, [0, 1]), take(step, step.needed(0), 1, [2, 3])
    # A box of negative size overlaps nothing; two corners in the other order would make it one of positive size.
    boxes = step.op("Concat", low, step.op("Max", low, high), axis=1)
    rows = step.op(
        "NonMaxSuppression",
        unsqueeze(step, boxes, [0]),
        unsqueeze(step, step.needed(1), [0, 1]),
        step.ints([count], "max_output_boxes_per_class"),
        step.const([threshold], np.float32, "iou_threshold"),
        step.const([np.finfo(np.float32).min], np.float32, "score_threshold"),
    )
    step.finish(squeeze(step, take(step, rows, 1, [2]), [1]))


@_expands("cummax")
def largest_so_far(step: Step) -> None:
    _running(step, "Max", "Less")


@_expands("cummin")
def smallest_so_far(step: Step) -> None:
    _running(step, "Min", "Greater")


def _running(step: Step, choose: str, loses: str) -> None:
    """The winner so far and its place: two neighbours are compared, then groups of two, of four, and so on."""
    shape = step.static(0)
    axis = normal_axis(step, int(_stated(step, "dim")), len(shape))
    if step.used(1):
        wide = [1] * len(shape)
        wide[axis] = shape[axis]
        own = np.broadcast_to(np.arange(shape[axis]).reshape(wide), shape)
        values, places = _so_far(step, [step.needed(0), step.const(own, np.int32, "places")], axis, loses)
        step.finish(values, step.cast(places, ir.DataType.INT64))
    else:
        step.finish(_accumulated(step, step.needed(0), axis, choose))


def _so_far(step: Step, pair: Sequence[ir.Value], axis: int, loses: str) -> list[ir.Value]:
    size, reach, now = step.dim(axis), 1, list(pair)
    while reach < size:
        earlier, later = ([section(step, item, axis, start, start + size - reach) for item in now] for start in (0, reach))
        older = step.op(loses, later[0], earlier[0])  # among equal ones the last wins
        tails = [step.op("Where", older, one, other) for one, other in zip(earlier, later, strict=True)]
        heads = [section(step, item, axis, 0, reach) for item in now]
        now = [step.op("Concat", head, tail, axis=axis) for head, tail in zip(heads, tails, strict=True)]
        reach *= 2
    return now


def _accumulated(step: Step, data: ir.Value, axis: int, choose: str, backward: bool = False) -> ir.Value:
    size, reach = step.dim(axis), 1
    while reach < size:
        first, second = (section(step, data, axis, start, start + size - reach) for start in (0, reach))
        both = step.op(choose, first, second)
        rest = section(step, data, axis, *((size - reach, size) if backward else (0, reach)))
        data = step.op("Concat", *((both, rest) if backward else (rest, both)), axis=axis)
        reach *= 2
    return data


@_expands("MMCVCornerPool")
def corner_pool(step: Step) -> None:
    """The largest element from here to an edge."""
    mode = int(_stated(step, "mode"))
    if mode not in range(4) or len(step.static(0)) != 4:
        step.refuse(say("mode {mode}, {rank} dimensions", "模式为 {mode}，{rank} 维", mode=mode, rank=step.rank()))
    step.finish(_accumulated(step, step.needed(0), 2 + mode // 2, "Max", backward=mode % 2 == 0))
