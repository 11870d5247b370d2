"""MMCV's operators, which its exporter and MMDeploy's write into the domains ``mmcv`` and ``mmdeploy``.

Sources: MMCV's page "ONNX Runtime custom ops" (inputs, outputs, types), the symbolic functions of ``mmcv.ops`` 1.x (names of attributes,
which the page partly has otherwise: ``groups`` and ``deform_groups`` are what is written and read), and the behaviour of MMCV 1.7's own
plug-in for ONNX Runtime. Computed in float32. Left out are MMCVRoIAlignRotated, MMCVRotatedFeatureAlign, SoftNonMaxSuppression (order
among equal scores, exponentials), the operators of the TensorRT plug-ins (MMCVMultiLevelRoiAlign, TRTBatchedNMS: no rows, filled rows), and
forms for which the plug-in and PyTorch disagree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .base import Operator

Array = Any
DOMAINS = ("mmcv", "mmdeploy")
FLOOR = np.float32(-10000)
"""No maximum of a region is below this."""


class MMCVRoiAlign(Operator):
    """Regions [regions, (image, x1, y1, x2, y2)] of images [images, channels, height, width], as bins of averaged samples."""

    def _run(self, image: Array, regions: Array, **_: Any) -> tuple[Array]:
        rows, columns = int(self.attribute("output_height")), int(self.attribute("output_width"))
        half = np.float32(0.5 if self.attribute("aligned") else 0.0)
        scale = np.float32(self.attribute("spatial_scale"))
        result = np.zeros((len(regions), image.shape[1], rows, columns), np.float32)
        for index, region in enumerate(regions.astype(np.float32)):
            left, top, right, bottom = region[1:] * scale - half
            lines = [
                self._samples(start, end, bins, size)
                for start, end, bins, size in ((top, bottom, rows, image.shape[2]), (left, right, columns, image.shape[3]))
            ]
            result[index] = self._pooled(image[int(region[0])], lines, (rows, columns))
        return (result,)

    def _samples(self, start: Array, end: Array, bins: int, size: int) -> tuple[Array, Array, int]:
        """A matrix [bins * samples, size] of the weights of an axis, which samples lie in the image, and samples a bin."""
        extent = end - start
        if not self.attribute("aligned"):
            extent = max(extent, np.float32(1))
        width = np.float32(extent / np.float32(bins))
        fixed = int(self.attribute("sampling_ratio", 0))
        count = fixed if fixed > 0 else max(math.ceil(width), 0)
        weights, inside = np.zeros((bins * count, size), np.float32), np.zeros(bins * count, bool)
        for place in range(bins * count):
            bin_number, sample = divmod(place, count)
            at = start + np.float32(bin_number) * width + np.float32(sample + 0.5) * width / np.float32(count)
            inside[place] = -1.0 <= at <= size
            at = min(max(at, np.float32(0)), np.float32(size - 1))
            low = int(at)
            weights[place, low] += 1 - (at - low)
            weights[place, min(low + 1, size - 1)] += at - low
        weights[~inside] = 0
        return weights, inside, count

    def _pooled(self, image: Array, lines: list[Any], bins: tuple[int, int]) -> Array:
        (vertical, _, high), (horizontal, _, wide) = lines
        largest = self.attribute("mode", "avg") == "max"
        if not high or not wide:
            return np.full((len(image), *bins), FLOOR if largest else 0, np.float32)
        values = np.einsum("yh,chw,xw->cyx", vertical, image.astype(np.float32), horizontal)
        values = values.reshape(len(image), bins[0], high, bins[1], wide)
        return np.maximum(values.max(axis=(2, 4)), FLOOR) if largest else values.mean(axis=(2, 4), dtype=np.float32)


class MMCVModulatedDeformConv2d(Operator):
    """Deformable convolution with a mask (inputs: image, offsets, mask, weights, bias); padding, stride and dilation are (y, x)."""

    def _run(self, image: Array, offset: Array, mask: Array, weight: Array, bias: Array = None, **_: Any) -> tuple[Array]:
        if int(self.attribute("groups")) > 1 and int(self.attribute("deform_groups")) > 1:
            raise ValueError("groups and deform_groups above 1: PyTorch and the plug-in for ONNX Runtime assign other channels")
        result = self._convolved(image, offset, mask, weight)
        return (result if bias is None else result + bias.reshape(1, -1, 1, 1),)

    def _convolved(self, image: Array, offset: Array, mask: Array, weight: Array) -> Array:
        batch, channels = image.shape[:2]
        groups, moved = int(self.attribute("groups")), int(self.attribute("deform_groups"))
        (down, right), (top, left), (tall, wide) = (self.attribute(name) for name in ("stride", "padding", "dilation"))
        out, _, *kernel = weight.shape
        size = offset.shape[2:]
        columns = np.zeros((batch, channels, *kernel, *size), np.float32)
        ys, xs = np.meshgrid(np.arange(size[0]), np.arange(size[1]), indexing="ij")
        each = channels // moved
        for image_number, group, row, column in np.ndindex(batch, moved, *kernel):
            tap = group * kernel[0] * kernel[1] + row * kernel[1] + column
            y = (ys * down - top + row * tall + offset[image_number, 2 * tap]).astype(np.float32)
            x = (xs * right - left + column * wide + offset[image_number, 2 * tap + 1]).astype(np.float32)
            found = _bilinear(image[image_number, group * each : (group + 1) * each], y, x)
            factor = 1 if mask is None else mask[image_number, tap]
            columns[image_number, group * each : (group + 1) * each, row, column] = found * factor
        columns = columns.reshape(batch, groups, -1, math.prod(size))
        product = np.matmul(weight.reshape(1, groups, out // groups, -1).astype(np.float32), columns)
        return product.reshape(batch, out, *size)


class MMCVDeformConv2d(MMCVModulatedDeformConv2d):
    """Deformable convolution without a mask or bias (inputs: image, offsets, weights)."""

    def _run(self, image: Array, offset: Array, weight: Array, **_: Any) -> tuple[Array]:  # type: ignore[override]
        return (self._convolved(image, offset, None, weight),)


def _at(image: Array, rows: Array, columns: Array) -> Array:
    """The image [channels, height, width] at whole places; zero outside."""
    height, width = image.shape[1:]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return image[:, np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)] * inside


def _bilinear(image: Array, y: Array, x: Array) -> Array:
    low_y, low_x = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    part_y, part_x = y - low_y, x - low_x
    result = np.zeros((len(image), *y.shape), np.float32)
    for down, right in np.ndindex(2, 2):
        weight = (part_y if down else 1 - part_y) * (part_x if right else 1 - part_x)
        result += _at(image, low_y + down, low_x + right) * weight.astype(np.float32)
    return result


class grid_sampler(Operator):  # noqa: N801 - the operator's name
    """As PyTorch's grid_sample; interpolation 0 bilinear, 1 nearest; padding 0 zeros, 1 border, 2 reflection."""

    def _run(self, image: Array, grid: Array, **_: Any) -> tuple[Array]:
        if image.ndim != 4 or int(self.attribute("interpolation_mode")) not in (0, 1):
            raise ValueError("grid_sampler of other than four dimensions, or of another interpolation than bilinear and nearest")
        found = []
        for picture, places in zip(image.astype(np.float32), grid.astype(np.float32), strict=True):
            x, y = (self._place(places[..., axis], picture.shape[2 - axis]) for axis in (0, 1))
            if self.attribute("interpolation_mode"):
                found.append(_at(picture, np.rint(y).astype(np.int64), np.rint(x).astype(np.int64)))
            else:
                found.append(_bilinear(picture, y, x))
        return (np.stack(found).astype(np.float32),)

    def _place(self, part: Array, size: int) -> Array:
        """Coordinates from -1 to 1 as places of an axis."""
        aligned, padding = bool(self.attribute("align_corners")), int(self.attribute("padding_mode"))
        at = (part + 1) / 2 * (size - 1) if aligned else ((part + 1) * size - 1) / 2
        if padding == 2:
            low, span = (0.0, size - 1.0) if aligned else (-0.5, float(size))
            if span == 0:
                return np.zeros_like(at)
            turns, rest = np.divmod(np.abs(at - low), span)
            at = np.where(turns % 2 == 0, rest, span - rest) + low
        return (np.clip(at, 0, size - 1) if padding else at).astype(np.float32)


class NonMaxSuppression(Operator):
    """Places of the boxes (x1, y1, x2, y2) that are kept, by falling score; among equal scores, the first one first."""

    def _run(self, boxes: Array, scores: Array, **_: Any) -> tuple[Array]:
        if boxes.ndim != 2 or scores.ndim != 1:
            raise ValueError("boxes of several images or classes, the form of MMCV's TensorRT plug-in")
        more, threshold = np.float32(self.attribute("offset")), np.float32(self.attribute("iou_threshold"))
        low, high = boxes[:, :2].astype(np.float32), boxes[:, 2:].astype(np.float32)
        areas = np.prod(high - low + more, axis=1)
        kept, left = [], list(np.argsort(-scores, kind="stable"))
        while left:
            best = left.pop(0)
            kept.append(best)
            sides = np.minimum(high[best], high[left]) - np.maximum(low[best], low[left]) + more
            shared = np.prod(np.maximum(sides, 0), axis=1)
            with np.errstate(all="ignore"):
                overlap = shared / (areas[best] + areas[left] - shared)
            left = [place for place, value in zip(left, overlap, strict=True) if not value > threshold]
        return (np.asarray(kept, np.int64),)


class cummax(Operator):  # noqa: N801 - the operator's name
    """The largest element so far along ``dim``, and its place (int64); among equal ones the last."""

    wins = staticmethod(np.greater_equal)

    def _run(self, data: Array, **_: Any) -> tuple[Array, Array]:
        lines = np.moveaxis(data, int(self.attribute("dim")), 0)
        values, places = lines.copy(), np.zeros(lines.shape, np.int64)
        for place in range(1, len(lines)):
            newer = self.wins(lines[place], values[place - 1])
            values[place] = np.where(newer, lines[place], values[place - 1])
            places[place] = np.where(newer, place, places[place - 1])
        return tuple(np.ascontiguousarray(np.moveaxis(part, 0, int(self.attribute("dim")))) for part in (values, places))  # type: ignore[return-value]


class cummin(cummax):  # noqa: N801 - the operator's name
    """The smallest element so far along ``dim``, and its place (int64); among equal ones the last."""

    wins = staticmethod(np.less_equal)


class MMCVCornerPool(Operator):
    """The largest element from here to an edge: mode 0 to the lower one (top pool), 1 to the upper, 2 to the right, 3 to the left."""

    def _run(self, data: Array, **_: Any) -> tuple[Array]:
        mode = int(self.attribute("mode"))
        axis, backward = 2 + mode // 2, mode % 2 == 0
        turned = np.flip(data, axis) if backward else data
        found = np.maximum.accumulate(turned, axis=axis)
        return (np.ascontiguousarray(np.flip(found, axis) if backward else found),)


_CLASSES = (
    MMCVRoiAlign,
    MMCVModulatedDeformConv2d,
    MMCVDeformConv2d,
    grid_sampler,
    NonMaxSuppression,
    cummax,
    cummin,
    MMCVCornerPool,
)
OPERATORS = [type(kind.__name__, (kind,), {"op_domain": domain}) for kind in _CLASSES for domain in DOMAINS]
