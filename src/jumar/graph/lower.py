"""What the schemas of two operator versions do not say: adapters, values that came later, meanings that changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from ..text import Text, say
from .edit import Builder
from .shapes import constant_of, known_shape, static_shape
from .walk import node_place

RULE = "OP110"


class Unconvertible(Exception):  # noqa: N818 - a refusal with its reason
    """A node that cannot be expressed at the wanted opset."""

    def __init__(self, node: ir.Node, reason: Text) -> None:
        self.reason = say("`{node}` ({op}): {reason}", "`{node}`（{op}）：{reason}", node=node_place(node), op=node.op_type, reason=reason)
        super().__init__(str(self.reason))


# Adapters: each lowers one node across one version and says whether it changed it.


def _constant_input(node: ir.Node, index: int, name: str) -> np.ndarray | None:
    """The constant an input holds (None if absent).

    Raises:
        Unconvertible: it is computed, and the lower version has it as an attribute.
    """
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return None
    constant = constant_of(value)
    if constant is None:
        raise Unconvertible(
            node,
            say(
                "{name} is computed and the lower opset has it as an attribute",
                "{name} 是计算得到的，而较低的 opset 以属性保存它",
                name=name,
            ),
        )
    return constant


def _float_attribute(node: ir.Node, name: str, constant: np.ndarray) -> ir.Attr:
    """A constant as a float attribute, which has 32 bits.

    Raises:
        Unconvertible: that would round it.
    """
    value = float(constant.reshape(-1)[0])
    with np.errstate(over="ignore"):
        exact = np.isnan(value) or float(np.float32(value)) == value
    if not exact:
        raise Unconvertible(node, say("{name} does not fit a float32 attribute", "{name} 无法用 float32 属性精确表示", name=name))
    return ir.AttrFloat32(name, value)


def _replace_node(builder: Builder, node: ir.Node, new: ir.Value) -> None:
    """``new`` takes the place of the node's output, with what is known of it: the next node's adapter may need the rank."""
    if new.shape is None:
        new.shape = node.outputs[0].shape
    if new.type is None:
        new.type = node.outputs[0].type
    builder.replace(node.outputs[0], new)
    builder.remove(node)


def _drop_inputs(node: ir.Node, keep: int) -> None:
    node.resize_inputs(min(keep, len(node.inputs)))


def _axes_to_attribute(_model: ir.Model, node: ir.Node) -> bool:
    axes = _constant_input(node, 1, "axes")
    empty_means_all = "noop_with_empty_axes" not in node.attributes or not node.attributes["noop_with_empty_axes"].as_int()
    if (axes is None or axes.size == 0) and not empty_means_all:
        raise Unconvertible(node, say("noop_with_empty_axes has no counterpart", "noop_with_empty_axes 没有对应"))
    _drop_inputs(node, 1)
    node.attributes.pop("noop_with_empty_axes", None)
    if axes is not None and axes.size:
        node.attributes["axes"] = ir.AttrInt64s("axes", [int(axis) for axis in axes.reshape(-1)])
    return True


def _split_to_attribute(_model: ir.Model, node: ir.Node) -> bool:
    sizes = _constant_input(node, 1, "split")
    _drop_inputs(node, 1)
    if sizes is not None:
        node.attributes["split"] = ir.AttrInt64s("split", [int(size) for size in sizes.reshape(-1)])
    return True


def _split_count_to_sizes(model: ir.Model, node: ir.Node) -> bool:
    """Opset 18's num_outputs: the last chunk may be smaller, which older versions only say with explicit sizes."""
    if "num_outputs" not in node.attributes:
        return False
    shape = static_shape(node.inputs[0])
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    count = node.attributes["num_outputs"].as_int()
    if shape is None or len(node.outputs) != count:
        raise Unconvertible(node, say("num_outputs of a dimension that is not known", "对未知维度使用 num_outputs"))
    chunk = -(-shape[axis] // count)
    sizes = [max(0, min(chunk, shape[axis] - index * chunk)) for index in range(count)]
    builder = Builder(model, node, RULE)
    del node.attributes["num_outputs"]
    node.resize_inputs(2)
    node.replace_input_with(1, builder.const(sizes, np.int64, "split"))
    return True


def _softmax(model: ir.Model, node: ir.Node) -> bool:
    """Before 13 the axes from ``axis`` on are flattened; equal only for the last axis, so another axis is moved there."""
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else -1
    shape = known_shape(node.inputs[0])
    if shape is None:
        raise Unconvertible(node, say("its rank is not known", "其秩未知"))
    last = len(shape) - 1
    axis %= max(len(shape), 1)
    if axis == last:
        node.attributes["axis"] = ir.AttrInt64("axis", last)
        return True
    order = list(range(len(shape)))
    order[axis], order[last] = order[last], order[axis]
    builder = Builder(model, node, RULE)
    moved = builder.op("Transpose", node.inputs[0], perm=order)
    result = builder.op(node.op_type, moved, axis=last)
    _replace_node(builder, node, builder.op("Transpose", result, perm=order))
    return True


def _pad_axes_to_all(model: ir.Model, node: ir.Node) -> bool:
    axes = _constant_input(node, 3, "axes")
    if axes is None:
        _drop_inputs(node, 3)
        return False
    pads, shape = _constant_input(node, 1, "pads"), known_shape(node.inputs[0])
    if pads is None or shape is None:
        raise Unconvertible(node, say("its rank is not known", "其秩未知"))
    full = np.zeros(2 * len(shape), np.int64)
    for position, axis in enumerate(axes.reshape(-1)):
        full[int(axis) % len(shape)] = pads[position]
        full[int(axis) % len(shape) + len(shape)] = pads[position + axes.size]
    builder = Builder(model, node, RULE)
    node.replace_input_with(1, builder.const(full, np.int64, "pads"))
    _drop_inputs(node, 3)
    return True


def _pad_to_attributes(_model: ir.Model, node: ir.Node) -> bool:
    pads, value = _constant_input(node, 1, "pads"), _constant_input(node, 2, "constant_value")
    _drop_inputs(node, 1)
    if pads is not None:
        node.attributes["pads"] = ir.AttrInt64s("pads", [int(pad) for pad in pads.reshape(-1)])
    if value is not None:
        node.attributes["value"] = _float_attribute(node, "value", value)
    return True


def _clip_to_attributes(_model: ir.Model, node: ir.Node) -> bool:
    for index, name in ((1, "min"), (2, "max")):
        bound = _constant_input(node, index, name)
        if bound is not None:
            node.attributes[name] = _float_attribute(node, name, bound)
    _drop_inputs(node, 1)
    return True


def _slice_to_attributes(_model: ir.Model, node: ir.Node) -> bool:
    found = {name: _constant_input(node, index, name) for index, name in enumerate(("starts", "ends", "axes", "steps"), start=1)}
    steps = found.pop("steps")
    if steps is not None and np.any(steps != 1):
        raise Unconvertible(node, say("steps have no counterpart before opset 10", "opset 10 之前没有 steps"))
    _drop_inputs(node, 1)
    for name, values in found.items():
        if values is not None:
            node.attributes[name] = ir.AttrInt64s(name, [int(value) for value in values.reshape(-1)])
    return True


def _topk_to_attribute(_model: ir.Model, node: ir.Node) -> bool:
    k = _constant_input(node, 1, "K")
    _drop_inputs(node, 1)
    if k is not None:
        node.attributes["k"] = ir.AttrInt64("k", int(k.reshape(-1)[0]))
    return True


def _dropout_to_attribute(_model: ir.Model, node: ir.Node) -> bool:
    training = _constant_input(node, 2, "training_mode")
    if training is not None and bool(training.reshape(-1)[0]):
        raise Unconvertible(node, say("it is in training mode", "它处于训练模式"))
    ratio = _constant_input(node, 1, "ratio")
    _drop_inputs(node, 1)
    node.attributes.pop("seed", None)
    if ratio is not None:
        node.attributes["ratio"] = ir.AttrFloat32("ratio", float(ratio.reshape(-1)[0]))
    return True


def _shape_slice(model: ir.Model, node: ir.Node) -> bool:
    """Opset 15's start and end become a Slice of the whole shape."""
    start = node.attributes["start"].as_int() if "start" in node.attributes else 0
    end = node.attributes["end"].as_int() if "end" in node.attributes else None
    if start == 0 and end is None:
        node.attributes.pop("start", None)
        return False
    builder = Builder(model, node, RULE)
    whole = builder.op("Shape", node.inputs[0])
    limits = [
        builder.const([limit], np.int64, name)
        for name, limit in (("start", start), ("end", np.iinfo(np.int64).max if end is None else end))
    ]
    _replace_node(builder, node, builder.op("Slice", whole, *limits))
    return True


def _grid_sample(_model: ir.Model, node: ir.Node) -> bool:
    """Opset 20 renamed the modes and added volumes."""
    shape = known_shape(node.inputs[0])
    if shape is None or len(shape) != 4:
        raise Unconvertible(node, say("it is not known to sample images (rank 4)", "无法确认其对图像（秩为 4）采样"))
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "linear"
    node.attributes["mode"] = ir.AttrString("mode", {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))
    return True


def _resize_inputs(model: ir.Model, node: ir.Node) -> bool:
    """Before 13 roi and scales are mandatory inputs; an absent one is written as an empty tensor."""
    builder = Builder(model, node, RULE)
    if len(node.inputs) < 3:
        node.resize_inputs(3)
    for index, name in ((1, "roi"), (2, "scales")):
        if node.inputs[index] is None:
            node.replace_input_with(index, builder.const([], np.float32, name))
    return True


def _ordered_comparison(model: ir.Model, node: ir.Node) -> bool:
    """GreaterOrEqual before 12: Greater or Equal (not Not(Less), which says yes to NaN)."""
    builder = Builder(model, node, RULE)
    strict = builder.op("Greater" if node.op_type == "GreaterOrEqual" else "Less", *node.inputs)
    equal = builder.op("Equal", *node.inputs)
    _replace_node(builder, node, builder.op("Or", strict, equal))
    return True


_REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)
LOWER: dict[tuple[str, int], Callable[[ir.Model, ir.Node], bool]] = {
    ("Squeeze", 13): _axes_to_attribute,
    ("Unsqueeze", 13): _axes_to_attribute,
    ("ReduceSum", 13): _axes_to_attribute,
    **{(op, 18): _axes_to_attribute for op in _REDUCTIONS},
    ("Split", 13): _split_to_attribute,
    ("Split", 18): _split_count_to_sizes,
    ("Softmax", 13): _softmax,
    ("LogSoftmax", 13): _softmax,
    ("Hardmax", 13): _softmax,
    ("Pad", 18): _pad_axes_to_all,
    ("Pad", 11): _pad_to_attributes,
    ("Clip", 11): _clip_to_attributes,
    ("Slice", 10): _slice_to_attributes,
    ("TopK", 10): _topk_to_attribute,
    ("Dropout", 12): _dropout_to_attribute,
    ("GridSample", 20): _grid_sample,
    ("Shape", 15): _shape_slice,
    ("Resize", 13): _resize_inputs,
    ("GreaterOrEqual", 12): _ordered_comparison,
    ("LessOrEqual", 12): _ordered_comparison,
}
# Values an attribute of both versions takes only from this version on; the schemas do not list values.
NEW_VALUES: dict[tuple[str, int, str], tuple[str, ...]] = {
    ("Pad", 19, "mode"): ("wrap",),
    ("Resize", 19, "coordinate_transformation_mode"): ("half_pixel_symmetric",),
    ("ScatterElements", 18, "reduction"): ("max", "min"),
    ("ScatterND", 18, "reduction"): ("max", "min"),
}
# What the operator did before it had the attribute, where that is not the attribute's default.
FORMER: dict[tuple[str, int, str], str] = {("RoiAlign", 16, "coordinate_transformation_mode"): "output_half_pixel"}


def _normalises_last_axis(node: ir.Node) -> bool:
    shape = known_shape(node.inputs[0])
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
    return bool(shape) and axis % len(shape or ()) == len(shape or ()) - 1


# Steps up whose schemas look alike while the meaning changed, and when a node means the same on both sides.
RAISE_CHANGES: dict[tuple[str, int], Callable[[ir.Node], bool]] = {
    **{(op, 13): _normalises_last_axis for op in ("Softmax", "LogSoftmax", "Hardmax")},
    ("GridSample", 20): lambda node: "mode" in node.attributes and node.attributes["mode"].as_string() == "nearest",
    ("RoiAlign", 16): lambda _node: False,
}
