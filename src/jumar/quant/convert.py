"""Models that come quantised: QuantizeLinear and DequantizeLinear taken apart into floats and a plan for the deploy form.

Written by PyTorch, TensorRT's tools and ONNX Runtime: integers of the weight behind a DequantizeLinear, or a float weight through a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from ..graph import Builder, constant_of, copy_model, infer_shapes
from ..text import Text, say
from .layers import QUANTISABLE, Layer, survey
from .numbers import INT8_HIGH, INT8_LOW, Scale, Weight, quantise_bias
from .plan import Plan, Quantised
from .qdq import drop_unread

_SHIFTS = {np.dtype(np.int8): 0, np.dtype(np.uint8): 128}
"""What is taken off integers and zero points to make them int8."""


@dataclass(frozen=True)
class Steps:
    """Integers and what they stand for: ``(integer - zero) * scale``."""

    scale: np.ndarray
    zero: np.ndarray
    axis: int | None
    kind: np.dtype[Any]

    @property
    def activation(self) -> Scale | None:
        """As one scale for all, in int8; None where there are several."""
        if self.scale.size != 1 or self.kind not in _SHIFTS:
            return None
        offset = int(self.zero.reshape(-1)[0]) - _SHIFTS[self.kind]
        value = float(self.scale.reshape(-1)[0])
        return Scale(value, offset) if value > 0 and INT8_LOW <= offset <= INT8_HIGH else None


@dataclass
class Converted:
    """Attributes:
    model: in floats, without any QuantizeLinear or DequantizeLinear that could be taken out.
    plan: the layers that came in integers.
    left: layers that had integers and are floats now, and why.
    dropped: pairs between operators that are no layers: their rounding is left out.
    remaining: QuantizeLinear and DequantizeLinear that could not be taken out.
    """

    model: ir.Model
    plan: Plan
    left: dict[str, Text] = field(default_factory=dict)
    dropped: int = 0
    remaining: int = 0


def is_quantised(model: ir.Model) -> bool:
    """Whether a model has activations that are rounded to integers and back."""
    return any(True for _ in _pairs(model))


def convert(model: ir.Model) -> Converted:
    """Take a QDQ model apart; the model given is not changed."""
    copy = copy_model(model)
    inputs: dict[ir.Node, Steps] = {}
    weights: dict[ir.Node, tuple[np.ndarray, Steps]] = {}
    for node in copy.graph:
        if node.op_type in QUANTISABLE and node.domain in ("", "ai.onnx") and len(node.inputs) > 1:
            pair = _pair(node.inputs[0])
            found = _integers(node.inputs[1])
            if pair is not None:
                inputs[node] = pair[1]
            if found is not None:
                weights[node] = found
    dropped = len(list(_pairs(copy))) - len({node.inputs[0] for node in inputs})
    _to_floats(copy)
    infer_shapes(copy)
    result = Converted(copy, Plan({}), dropped=dropped)
    items = {}
    for layer in survey(copy).layers:
        if layer.node not in inputs and layer.node not in weights:
            continue
        made = _quantised(layer, inputs.get(layer.node), weights.get(layer.node))
        if isinstance(made, Quantised):
            items[layer.name] = made
        else:
            result.left[layer.name] = made
    result.plan = Plan(items)
    result.remaining = sum(node.op_type in ("QuantizeLinear", "DequantizeLinear") for graph in copy.graphs() for node in graph)
    return result


def _quantised(layer: Layer, data: Steps | None, weight: tuple[np.ndarray, Steps] | None) -> Quantised | Text:
    """A layer in the integers it came with, or why that cannot be."""
    if data is None or weight is None:
        return say("only one of its factors was in integers", "只有一个因子是整数")
    activation = data.activation
    if activation is None:
        return say("its input has several scales, or another type than 8 bits", "其输入有多个 scale，或不是 8 位类型")
    integers, steps = weight
    shift = _SHIFTS.get(steps.kind)
    if shift is None or (steps.zero.astype(np.int64) != shift).any():
        return say("its weight is not symmetric; ATC wants an offset of 0", "其权重不是对称量化；ATC 要求 offset 为 0")
    axis = None if steps.scale.size == 1 else steps.axis
    if axis is not None and layer.axis != axis:
        return say(
            "its weight has a scale for each channel, of which ATC takes one for {op}",
            "其权重每个通道一个 scale，而 ATC 对 {op} 只接受一个",
            op=layer.op,
        )
    narrow = (integers.astype(np.int64) - shift).astype(np.int8)
    made = Weight(narrow, np.asarray(steps.scale, np.float32).reshape(-1), axis)
    try:
        bias = None if layer.bias is None else quantise_bias(layer.bias, made, activation)
    except OverflowError:
        return say("its bias does not fit into int32", "其偏置超出 int32")
    return Quantised(replace(layer, axis=axis), activation, made, bias)


def _steps(node: ir.Node) -> Steps | None:
    """Scale, zero point and axis of a QuantizeLinear or DequantizeLinear; None where they are computed or of another form."""
    scale = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    given = node.inputs[2] if len(node.inputs) > 2 else None
    zero = None if given is None else constant_of(given)
    if scale is None or scale.dtype != np.float32 or (given is not None and zero is None) or node.attributes.get_int("block_size", 0) > 0:
        return None
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero is None:
        integers = node.inputs[0] if node.op_type == "DequantizeLinear" else None
        value = None if integers is None else constant_of(integers)
        kind = value.dtype if value is not None else kind
    zeros = np.zeros(scale.shape, np.int64) if zero is None else zero.astype(np.int64)
    return Steps(scale, zeros, None if scale.size == 1 else int(node.attributes.get_int("axis", 1)), kind)


def _same(one: Steps, other: Steps) -> bool:
    return (
        one.kind == other.kind
        and one.axis == other.axis
        and np.array_equal(one.scale, other.scale)
        and np.array_equal(one.zero, other.zero)
    )


def _pair(value: ir.Value | None) -> tuple[ir.Value, Steps] | None:
    """The float tensor that is rounded to integers and back to make this one, with equal factors both ways."""
    back = None if value is None else value.producer()
    if back is None or back.op_type != "DequantizeLinear" or back.inputs[0] is None:
        return None
    there = back.inputs[0].producer()
    if there is None or there.op_type != "QuantizeLinear" or there.inputs[0] is None:
        return None
    one, other = _steps(there), _steps(back)
    return (there.inputs[0], one) if one is not None and other is not None and _same(one, other) else None


def _pairs(model: ir.Model) -> Iterator[ir.Node]:
    """The DequantizeLinear of each pair on something that is computed."""
    for node in model.graph:
        if node.op_type == "DequantizeLinear" and node.domain in ("", "ai.onnx"):
            pair = _pair(node.outputs[0])
            if pair is not None and constant_of(pair[0]) is None:
                yield node


def _integers(value: ir.Value | None) -> tuple[np.ndarray, Steps] | None:
    """The integers of a weight with their steps, also through a Transpose if there is one scale."""
    node = None if value is None else value.producer()
    if node is None:
        return None
    if node.op_type == "Transpose":
        found = _integers(node.inputs[0])
        if found is None or found[1].scale.size != 1:
            return None
        order = node.attributes["perm"].as_ints() if "perm" in node.attributes else None
        return np.ascontiguousarray(found[0].transpose(order)), found[1]
    if node.op_type == "Mul":
        return _scaled(node)
    if node.op_type != "DequantizeLinear" or node.inputs[0] is None:
        return None
    steps, stored = _steps(node), constant_of(node.inputs[0])
    if steps is None:
        return None
    if stored is not None:
        return stored, steps
    pair = _pair(node.outputs[0])
    weight = None if pair is None else constant_of(pair[0])
    if weight is None or pair is None:
        return None
    return _rounded(weight, pair[1]), pair[1]


def _scaled(node: ir.Node) -> tuple[np.ndarray, Steps] | None:
    """Integers that are cast and multiplied, which is what :mod:`~jumar.quant.qdq` writes before opset 13."""
    cast = None if node.inputs[0] is None else node.inputs[0].producer()
    scale = constant_of(node.inputs[1])
    stored = constant_of(cast.inputs[0]) if cast is not None and cast.op_type == "Cast" else None
    if stored is None or stored.dtype != np.int8 or scale is None or scale.dtype != np.float32 or scale.ndim != stored.ndim:
        return None
    axes = [axis for axis, size in enumerate(scale.shape) if size != 1]
    if len(axes) > 1:
        return None
    return stored, Steps(scale.reshape(-1), np.zeros(scale.size, np.int64), axes[0] if axes else None, stored.dtype)


def _rounded(weight: np.ndarray, steps: Steps) -> np.ndarray:
    """What QuantizeLinear makes of a float weight."""
    shape = [-1 if place == steps.axis else 1 for place in range(weight.ndim)] if steps.axis is not None else []
    limits = np.iinfo(steps.kind)
    moved = np.rint(weight / steps.scale.reshape(shape)) + steps.zero.reshape(shape)
    return np.asarray(np.clip(moved, limits.min, limits.max), steps.kind)


def _to_floats(model: ir.Model) -> None:
    """Give the readers of each pair what is rounded, and the readers of stored integers the floats they stand for. What nothing reads goes."""
    graph = model.graph
    for node in list(graph):
        scaled = _scaled(node) if node.op_type == "Mul" and node.domain in ("", "ai.onnx") else None
        if scaled is not None and not node.outputs[0].is_graph_output():
            folded = Builder(model, node, "quantize").const(_wide(*scaled), name="weight")
            node.outputs[0].replace_all_uses_with(folded)
        if node.op_type != "DequantizeLinear" or node.domain not in ("", "ai.onnx"):
            continue
        pair = _pair(node.outputs[0])
        stored = constant_of(node.inputs[0]) if node.inputs[0] is not None else None
        steps = _steps(node)
        build = Builder(model, node, "quantize")
        if pair is not None:
            weight = constant_of(pair[0])
            if weight is not None:  # rounded, as the quantised model has it
                wide = _wide(_rounded(weight, pair[1]), pair[1])
                node.outputs[0].replace_all_uses_with(build.const(wide, name="weight"))
            elif node.outputs[0].is_graph_output():
                build.replace(node.outputs[0], build.op("Identity", pair[0]))
            else:
                node.outputs[0].replace_all_uses_with(pair[0])
        elif stored is not None and steps is not None and not node.outputs[0].is_graph_output():
            node.outputs[0].replace_all_uses_with(build.const(_wide(stored, steps), name="weight"))
    for op in ("DequantizeLinear", "QuantizeLinear", "Mul", "Cast"):
        idle = [node for node in graph if node.op_type == op and not any(value.uses() or value.is_graph_output() for value in node.outputs)]
        graph.remove(idle, safe=True)
    _fold_moves(model)
    drop_unread(model)


def _wide(integers: np.ndarray, steps: Steps) -> np.ndarray:
    shape = [-1 if place == steps.axis else 1 for place in range(integers.ndim)] if steps.axis is not None else []
    return np.asarray((integers.astype(np.int64) - steps.zero.reshape(shape)).astype(np.float32) * steps.scale.reshape(shape), np.float32)


def _fold_moves(model: ir.Model) -> None:
    """A Transpose of a weight is done here, so that the layer behind it reads a constant."""
    for node in list(model.graph):
        if node.op_type != "Transpose" or node.inputs[0] is None or node.outputs[0].is_graph_output():
            continue
        value = constant_of(node.inputs[0])
        if value is None:
            continue
        order = node.attributes["perm"].as_ints() if "perm" in node.attributes else None
        build = Builder(model, node, "quantize")
        node.outputs[0].replace_all_uses_with(build.const(np.ascontiguousarray(value.transpose(order)), name="weight"))
        model.graph.remove([node], safe=True)
