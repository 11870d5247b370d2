"""Steps down of Resize: options that came later are worked out for known sizes, or become weighted neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from ....text import say
from ..step import Array, Step, lowers
from .common import is_float


@lowers(13, "Resize")
def _resize_inputs(step: Step) -> bool:
    """Before 13 roi and scales are mandatory inputs; an absent one is written as an empty tensor."""
    if len(step.node.inputs) < 3:
        step.node.resize_inputs(3)
    for index, name in ((1, "roi"), (2, "scales")):
        if step.node.inputs[index] is None:
            step.node.replace_input_with(index, step.const([], np.float32, name))
    return True


@lowers(19, "Resize")
def _resize_symmetric(step: Step) -> bool:
    """Opset 19's half_pixel_symmetric is half_pixel where the scales give whole sizes, and taps of known places otherwise."""
    if step.attr("coordinate_transformation_mode", "half_pixel") != "half_pixel_symmetric":
        return False
    plan = Plan(step)
    if all(size == float(scale) * length for size, scale, length in zip(plan.sizes, plan.scales, plan.lengths, strict=True)):
        step.node.attributes["coordinate_transformation_mode"] = ir.AttrString("coordinate_transformation_mode", "half_pixel")
        return True
    step.finish(plan.taps(step))
    return True


@lowers(18, "Resize")
def _resize_options(step: Step) -> bool:
    """Opset 18's axes are written out for all dimensions; the aspect ratio is worked out; antialiasing becomes taps."""
    policy, axes = step.attr("keep_aspect_ratio_policy", "stretch"), step.attr("axes")
    antialias = bool(step.attr("antialias", 0))
    if antialias and step.attr("mode", "nearest") == "nearest":
        antialias = False
    if antialias and step.attr("exclude_outside", 0) and step.attr("mode", "nearest") == "linear":
        step.finish(Plan(step).taps(step))  # without antialiasing ONNX Runtime excludes for cubic only
        return True
    if antialias and step.value_of(step.input(2)) is not None and min(_values(step, 2), default=0) >= 1:
        antialias = False  # it matters where the image shrinks only
    if not antialias and policy == "stretch" and axes is None:
        return any(step.node.attributes.pop(name, None) is not None for name in ("antialias", "keep_aspect_ratio_policy"))
    plan = Plan(step)
    if antialias and any(scale < 1 for scale in plan.scales):
        step.finish(plan.taps(step))
        return True
    for name in ("antialias", "keep_aspect_ratio_policy", "axes"):
        step.node.attributes.pop(name, None)
    if step.attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        step.node.replace_input_with(1, step.const(plan.roi, step.dtype(1).numpy(), "roi"))
    if step.input(3) is None or not _whole(plan.sizes, plan.scales, plan.lengths):
        # The sizes follow from the scales as they did before.
        if any(
            size != int(np.floor(np.float32(scale) * length))
            for size, scale, length in zip(plan.sizes, plan.scales, plan.lengths, strict=True)
        ):
            step.finish(plan.taps(step))
            return True
        step.node.replace_input_with(2, step.const(plan.scales, np.float32, "scales"))
        step.node.resize_inputs(3)
    else:
        step.node.replace_input_with(3, step.ints(plan.sizes, "sizes"))
    return True


def _values(step: Step, index: int) -> list[float]:
    found = step.value_of(step.input(index))
    return [] if found is None else found.reshape(-1).tolist()


def _whole(sizes: list[int], scales: list[float], lengths: list[int]) -> bool:
    """Whether the scale of each dimension is just the quotient of its sizes, as it is for sizes without a policy."""
    return all(size / length == scale for size, scale, length in zip(sizes, scales, lengths, strict=True) if length)


def _is_whole(size: int, scale: float, length: int) -> bool:
    """Whether the scale gives just this size, but for the rounding of a quotient."""
    return abs(size - scale * length) <= 1e-4


MATRIX_LIMIT = 1 << 20
"""Elements that the matrix of a dimension may have."""


class Plan:
    """What a Resize of known sizes does, dimension by dimension."""

    def __init__(self, step: Step) -> None:
        self.lengths = list(step.static())
        rank = len(self.lengths)
        axes = [axis % rank for axis in step.attr("axes", tuple(range(rank)))]
        sizes, scales = step.constant(3, "sizes"), step.constant(2, "scales")
        self.sizes, self.scales = list(self.lengths), [1.0] * rank
        if 0 in self.lengths:
            step.refuse(say("an empty image is resized", "对空图像做缩放"))
        if sizes is not None and sizes.size:
            for axis, size in zip(axes, sizes.reshape(-1).tolist(), strict=True):
                self.sizes[axis], self.scales[axis] = size, size / self.lengths[axis]
            self._keep_aspect(step.attr("keep_aspect_ratio_policy", "stretch"), axes)
        elif scales is not None:
            for axis, scale in zip(axes, scales.reshape(-1).tolist(), strict=True):
                self.scales[axis], self.sizes[axis] = scale, int(np.floor(np.float32(scale) * np.float32(self.lengths[axis])))
        roi = np.asarray([0.0] * rank + [1.0] * rank)
        given = step.value_of(step.input(1))
        if step.attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
            if given is None:
                step.refuse(say("its roi is computed", "其 roi 是计算得到的"))
            for position, axis in enumerate(axes):
                roi[axis], roi[rank + axis] = given[position], given[len(axes) + position]
        self.roi = roi

    def _keep_aspect(self, policy: str, axes: list[int]) -> None:
        if policy == "stretch":
            return
        scale = (min if policy == "not_larger" else max)(self.scales[axis] for axis in axes)
        for axis in axes:
            self.scales[axis], self.sizes[axis] = scale, int(scale * self.lengths[axis] + 0.5)

    def taps(self, step: Step) -> ir.Value:
        """Each dimension in turn: gather the neighbours of every new place, weigh them, add them up."""
        return self._in_turn(step, self._added)

    def products(self, step: Step) -> ir.Value:
        """Each dimension in turn as the product with a constant matrix, one row of weights for every new place.

        Raises:
            Unconvertible: a dimension before the last two changes, or a matrix has more than :data:`MATRIX_LIMIT` elements.
        """
        return self._in_turn(step, self._multiplied)

    def _in_turn(self, step: Step, combine: Callable[[Step, ir.Value, int, Array, Array], ir.Value]) -> ir.Value:
        mode, data = step.attr("mode", "nearest"), step.needed(0)
        if not is_float(step.dtype()) and mode != "nearest":
            step.refuse(say("it interpolates integers", "对整数做插值"))
        crops = step.attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
        outside = np.zeros(1, bool)
        for axis, (size, scale, length) in enumerate(zip(self.sizes, self.scales, self.lengths, strict=True)):
            if scale == 1 and size == length and not (crops and self._is_cropped(axis)):
                continue
            centres = self._centres(step, axis)
            if crops:
                beyond = self._beyond(step, axis, centres)
                outside = outside | beyond.reshape([-1 if place == axis else 1 for place in range(len(self.lengths))])
            if mode == "nearest":
                places = _nearest(step, centres, length)
                data = step.op("Gather", data, step.ints(places.tolist(), "places"), axis=axis)
                continue
            places, weights = _neighbours(step, centres, min(scale, 1.0) if step.attr("antialias", 0) else 1.0, length)
            data = combine(step, data, axis, places, weights)
        if outside.any():
            value = step.const(step.attr("extrapolation_value", 0.0), step.dtype().numpy(), "extrapolation")
            data = step.op("Where", step.const(outside, np.bool_, "outside"), value, data)
        return data

    def _added(self, step: Step, data: ir.Value, axis: int, places: Array, weights: Array) -> ir.Value:
        parts = []
        for place, weight in zip(places.T, weights.T, strict=True):
            shape = [-1] + [1] * (len(self.lengths) - axis - 1)
            factor = step.const(weight.reshape(shape), step.dtype().numpy(), "weights")
            parts.append(step.op("Mul", step.op("Gather", data, step.ints(place.tolist(), "places"), axis=axis), factor))
        data = parts[0]
        for part in parts[1:]:
            data = step.op("Add", data, part)
        return data

    def _multiplied(self, step: Step, data: ir.Value, axis: int, places: Array, weights: Array) -> ir.Value:
        rank, length = len(self.lengths), self.lengths[axis]
        if axis < rank - 2:
            step.refuse(say("a dimension before the last two changes", "最后两维之前的维度发生变化"))
        if len(places) * length > MATRIX_LIMIT:
            step.refuse(
                say(
                    "its matrix would have {count} elements; {limit} are allowed",
                    "其矩阵将有 {count} 个元素，上限为 {limit}",
                    count=len(places) * length,
                    limit=MATRIX_LIMIT,
                )
            )
        matrix = np.zeros((len(places), length))
        np.add.at(matrix, (np.arange(len(places))[:, None], places), weights)
        if axis == rank - 1:
            return step.op("MatMul", data, step.const(matrix.T, step.dtype().numpy(), "weights"))
        return step.op("MatMul", step.const(matrix, step.dtype().numpy(), "weights"), data)

    def _beyond(self, step: Step, axis: int, centres: Array) -> Array:
        """Which places of a crop are outside the image.

        Raises:
            Unconvertible: one is so near the border that rounding decides.
        """
        length, start, end = self.lengths[axis], self.roi[axis], self.roi[len(self.lengths) + axis]
        near = np.minimum(np.abs(centres), np.abs(centres - length + 1)) < 1e-5 * length
        if start == 0:  # the first place is exact, and the last one of the whole image
            near[0] = False
        if near.any() and (start, end) != (0, 1):
            step.refuse(say("whether a place is outside depends on rounding", "某个位置是否在图像外取决于舍入误差"))
        return (centres < 0) | (centres > length - 1)

    def _is_cropped(self, axis: int) -> bool:
        return bool(self.roi[axis] != 0 or self.roi[len(self.lengths) + axis] != 1)

    def _centres(self, step: Step, axis: int) -> Array:
        size, scale, length = self.sizes[axis], self.scales[axis], self.lengths[axis]
        mode, places = step.attr("coordinate_transformation_mode", "half_pixel"), np.arange(size)
        if mode == "asymmetric":
            return places / scale
        if mode == "tf_crop_and_resize":
            if not _is_whole(size, scale, length):
                step.refuse(say("its size is not whole, and its last place is read in two ways", "其大小不是整数，最后一个位置有两种解释"))
            start, end = self.roi[axis] * (length - 1), self.roi[len(self.lengths) + axis] * (length - 1)
            return start + places * (end - start) / (size - 1) if size > 1 else np.asarray([(start + end) / 2])
        if mode == "align_corners" and _is_whole(size, scale, length):
            return places * (length - 1) / (size - 1) if size > 1 else np.zeros(1)
        if mode not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
            step.refuse(say("{mode} with an option that older versions lack", "{mode} 与较低版本没有的选项同时使用", mode=mode))
        if mode == "pytorch_half_pixel" and size == 1:
            return np.zeros(1)  # by the text of the standard and by ONNX Runtime (its reference evaluator says -0.5)
        offset = length / 2 * (1 - size / (scale * length)) if mode == "half_pixel_symmetric" else 0.0
        return offset + (places + 0.5) / scale - 0.5


def _nearest(step: Step, centres: Array, length: int) -> Array:
    """The nearest places; refused where the last bit of the arithmetic would decide."""
    rounded: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda value: np.ceil(value - 0.5),
        "round_prefer_ceil": lambda value: np.floor(value + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    function = rounded[step.attr("nearest_mode", "round_prefer_floor")]
    found = function(centres).clip(0, length - 1)
    near = [function(centres + shift).clip(0, length - 1) for shift in (-1e-5 * length, 1e-5 * length)]
    exact = centres * 2 == np.round(centres * 2)
    if any(np.any((other != found) & ~exact) for other in near):
        step.refuse(say("which place is nearest depends on rounding", "最近的位置取决于舍入误差"))
    return found.astype(np.int64)


def _neighbours(step: Step, centres: Array, scale: float, length: int) -> tuple[Array, Array]:
    """Places and weights of what each new place is made from; ``scale`` below one widens the kernel (antialiasing)."""
    cubic = step.attr("mode", "nearest") == "cubic"
    sharpness = step.attr("cubic_coeff_a", -0.75)
    reach = 2 if cubic else 1
    first = int(np.floor(-reach / scale) + 1)
    taps = np.arange(first, 2 - first)
    whole = np.floor(centres)
    whole = np.where(whole == centres, whole - 1, whole)  # an exact place counts as the right end of its gap
    distance = np.abs((taps[None] - (centres - whole)[:, None]) * scale)
    if cubic:
        near = (sharpness + 2) * distance**3 - (sharpness + 3) * distance**2 + 1
        far = sharpness * (distance**3 - 5 * distance**2 + 8 * distance - 4)
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    else:
        weights = np.clip(1 - distance, 0, 1)
    places = whole[:, None] + taps[None]
    if step.attr("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= length), 0, weights)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return places.clip(0, length - 1).astype(np.int64), weights


@lowers(11, "Resize")
def _resize_to_scales(step: Step) -> bool:
    """Before 11 coordinates are asymmetric and the place below is the nearest; anything else becomes taps."""
    mode, nearest = step.attr("mode", "nearest"), step.attr("nearest_mode", "round_prefer_floor")
    asymmetric = step.attr("coordinate_transformation_mode", "half_pixel") == "asymmetric"
    sizes, scales = step.input(3), step.value_of(step.input(2))
    simple = asymmetric and (mode == "linear" or (mode == "nearest" and nearest == "floor")) and sizes is None and scales is not None
    if simple:
        kept = {"mode": mode}
        step.finish(step.op("Resize", step.needed(0), step.needed(2), **kept))
        return True
    if step.attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        return False
    step.finish(Plan(step).taps(step))
    return True


@lowers(10, "Resize")
def _resize_to_upsample(step: Step) -> bool:
    scales = step.constant(1, "scales")
    if scales is None or np.any(scales < 1):
        step.refuse(say("Upsample does not shrink", "Upsample 不能缩小"))
    step.finish(step.op("Upsample", step.needed(0), step.needed(1), mode=step.attr("mode", "nearest")))
    return True


@lowers(9, "Upsample")
def _upsample_scales(step: Step) -> bool:
    scales = step.constant(1, "scales")
    step.node.resize_inputs(1)
    if scales is not None:
        step.node.attributes["scales"] = ir.AttrFloat32s("scales", [float(scale) for scale in scales.reshape(-1)])
    return True
