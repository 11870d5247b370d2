"""Steps up: attributes become inputs, and what changed its meaning is said in the new words."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import say
from ..shapes import known_shape
from .lower.axes import REDUCTIONS
from .lower.common import is_float
from .step import Step, raises

_LARGEST = float(np.finfo(np.float32).max)


def _append(step: Step, index: int, value: ir.Value | None) -> None:
    if value is None:
        return
    if len(step.node.inputs) <= index:
        step.node.resize_inputs(index + 1)
    step.node.replace_input_with(index, value)


def _ints_to_input(step: Step, name: str, index: int) -> bool:
    values = step.attr(name)
    if values is None:
        return False
    step.node.attributes.pop(name)
    _append(step, index, step.ints(list(values) if isinstance(values, tuple) else [values], name))
    return True


@raises(13, "Squeeze", "Unsqueeze", "ReduceSum")
@raises(18, *REDUCTIONS)
def _axes_to_input(step: Step) -> bool:
    return _ints_to_input(step, "axes", 1)


@raises(13, "Split")
def _split_to_input(step: Step) -> bool:
    return _ints_to_input(step, "split", 1)


@raises(18, "Split")
def _split_count(step: Step) -> bool:
    """From 18 on equal chunks are asked for by their number."""
    if step.input(1) is not None:
        return False
    step.node.attributes["num_outputs"] = ir.AttrInt64("num_outputs", len(step.node.outputs))
    return True


@raises(13, "Softmax", "LogSoftmax", "Hardmax")
def _softmax(step: Step) -> bool:
    """Before 13 everything from the axis on was one row."""
    axis, shape = step.attr("axis", 1), known_shape(step.input(0))
    if (shape is not None and axis % max(len(shape), 1) == len(shape) - 1) or axis == -1:
        step.node.attributes["axis"] = ir.AttrInt64("axis", -1)
        return True
    data = step.needed(0)
    rows = step.op("Flatten", data, axis=axis)
    step.finish(step.op("Reshape", step.op(step.node.op_type, rows, axis=-1), step.op("Shape", data)))
    return True


@raises(11, "Pad")
def _pad_to_inputs(step: Step) -> bool:
    value = step.attr("value", 0.0)
    _ints_to_input(step, "pads", 1)
    step.node.attributes.pop("value", None)
    if value:
        _append(step, 2, step.like(value, name="value"))
    return True


@raises(11, "Clip")
def _clip_to_inputs(step: Step) -> bool:
    """A bound that is not given is the largest finite number on both sides, before 11 that of float32."""
    for index, name, default in ((1, "min", -_LARGEST), (2, "max", _LARGEST)):
        value = step.attr(name, default)
        step.node.attributes.pop(name, None)
        if value != default or step.dtype() == ir.DataType.DOUBLE:
            _append(step, index, step.like(value, name=name))
    return True


@raises(10, "Slice")
def _slice_to_inputs(step: Step) -> bool:
    for index, name in ((1, "starts"), (2, "ends"), (3, "axes")):
        _ints_to_input(step, name, index)
    return True


@raises(10, "TopK")
def _topk_to_input(step: Step) -> bool:
    return _ints_to_input(step, "k", 1)


@raises(12, "Dropout")
def _dropout_to_input(step: Step) -> bool:
    ratio = step.attr("ratio")
    step.node.attributes.pop("ratio", None)
    if ratio is not None:
        _append(step, 1, step.const(np.float32(ratio), np.float32, "ratio"))
    return True


@raises(9, "BatchNormalization")
def _batch_normalization_spatial(step: Step) -> bool:
    """spatial 0 normalises each place by itself, which only plain arithmetic says later on."""
    if step.attr("spatial", 1):
        return step.node.attributes.pop("spatial", None) is not None
    data = step.needed(0)
    scale, bias, mean, variance = (step.needed(index) for index in range(1, 5))
    epsilon = step.const(np.float32(step.attr("epsilon", np.float32(1e-5))), step.dtype().numpy(), "epsilon")
    normalized = step.op("Div", step.op("Sub", data, mean), step.op("Sqrt", step.op("Add", variance, epsilon)))
    step.finish(step.op("Add", step.op("Mul", normalized, scale), bias))
    return True


@raises(14, "BatchNormalization")
def _batch_normalization_training(step: Step) -> bool:
    """Before 14 the number of outputs chose training."""
    if len(step.node.outputs) == 1:
        return False
    if step.used(3) or step.used(4):
        step.refuse(say("saved_mean and saved_var no longer exist", "saved_mean 和 saved_var 已不存在"))
    step.node.resize_outputs(3)
    step.node.attributes["training_mode"] = ir.AttrInt64("training_mode", 1)
    return True


@raises(9, "Upsample")
def _upsample_to_input(step: Step) -> bool:
    scales = step.attr("scales")
    step.node.attributes.pop("scales", None)
    _append(step, 1, step.const(scales, np.float32, "scales"))
    return True


@raises(10, "Upsample")
def _upsample_to_resize(step: Step) -> bool:
    step.finish(step.op("Resize", *step.node.inputs, mode=step.attr("mode", "nearest")))
    return True


@raises(11, "Resize")
def _resize_coordinates(step: Step) -> bool:
    """Before 11: asymmetric coordinates, and the place below is the nearest."""
    scales = step.input(1)
    step.node.resize_inputs(3)
    step.node.replace_input_with(1, step.const([], np.float32, "roi"))
    step.node.replace_input_with(2, scales)
    step.node.attributes["coordinate_transformation_mode"] = ir.AttrString("coordinate_transformation_mode", "asymmetric")
    if step.attr("mode", "nearest") == "nearest":
        step.node.attributes["nearest_mode"] = ir.AttrString("nearest_mode", "floor")
    return True


@raises(11, "Scatter")
def _scatter_name(step: Step) -> bool:
    step.finish(step.op("ScatterElements", *step.node.inputs, axis=step.attr("axis", 0)))
    return True


@raises(20, "GridSample")
def _grid_sample(step: Step) -> bool:
    mode = step.attr("mode", "bilinear")
    step.node.attributes["mode"] = ir.AttrString("mode", {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))
    return True


@raises(20, "DFT")
def _dft_axis(step: Step) -> bool:
    axis = step.attr("axis", 1)
    step.node.attributes.pop("axis", None)
    _append(step, 2, step.ints(axis, "axis"))
    return True


@raises(21, "GroupNormalization")
def _group_scales(step: Step) -> bool:
    """Opset 18's scale and bias were those of groups; they are repeated for each channel."""
    groups, channels = step.attr("num_groups"), step.dim(1)
    places = step.ints(np.repeat(np.arange(groups), channels // groups).tolist(), "groups")
    for index in (1, 2):
        step.node.replace_input_with(index, step.op("Gather", step.needed(index), places, axis=0))
    step.node.attributes["stash_type"] = ir.AttrInt64("stash_type", int(step.dtype()) if is_float(step.dtype()) else 1)
    return True
