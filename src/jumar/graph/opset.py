"""Expressing a model at another opset: what changed between versions, form by form.

Most steps change nothing but the accepted types; those are recognised by comparing the two schemas. Forms that did change have an
adapter here. Whatever has neither is refused with the reason, and the caller proves the whole model afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from ..text import Text, say
from .edit import Builder
from .shapes import constant_of, known_shape, static_shape
from .walk import model_opset, node_place

RULE = "OP110"


class Unconvertible(Exception):  # noqa: N818 - a refusal with its reason
    """A node that cannot be expressed at the wanted opset."""

    def __init__(self, node: ir.Node, reason: Text) -> None:
        self.reason = say("`{node}` ({op}): {reason}", "`{node}`（{op}）：{reason}", node=node_place(node), op=node.op_type, reason=reason)
        super().__init__(str(self.reason))


def convert_opset(model: ir.Model, version: int) -> list[str]:
    """Rewrite every node of the standard domain for ``version``, in place.

    Returns:
        Places of the nodes whose form changed.

    Raises:
        Unconvertible: a node cannot be expressed; the model may then be half converted and must be thrown away.
    """
    old = model_opset(model)
    nodes = [node for graph in model.graphs() for node in graph if node.domain in ("", "ai.onnx")]
    changed = [node_place(node) for node in nodes if _convert_node(model, node, old, version)]
    for domain in ("", "ai.onnx"):
        if domain in model.opset_imports:
            model.opset_imports[domain] = version
    for graph in model.graphs():
        for domain in ("", "ai.onnx"):
            if domain in graph.opset_imports:
                graph.opset_imports[domain] = version
    return changed


def _schema(node: ir.Node, version: int) -> onnx.defs.OpSchema | None:
    try:
        found = onnx.defs.get_schema(node.op_type, version, "")
    except onnx.defs.SchemaError:
        return None
    return None if found.deprecated else found


def _convert_node(model: ir.Model, node: ir.Node, old: int, new: int) -> bool:
    source, target = _schema(node, old), _schema(node, new)
    if source is None:
        raise Unconvertible(node, say("it is not an operator of opset {version}", "它不是 opset {version} 的算子", version=old))
    if target is not None and source.since_version == target.since_version:
        return False
    if old < new:
        if target is None:
            raise Unconvertible(node, say("it no longer exists at opset {version}", "它在 opset {version} 中已不存在", version=new))
        _raise_generic(node, source, target)
        return False
    changed = False
    while source.since_version > new:
        adapter = _LOWER.get((node.op_type, source.since_version))
        lower = _schema(node, source.since_version - 1)
        if adapter is not None:
            changed |= adapter(model, node)
            if node.graph is None:  # replaced by other nodes, which are made for the lower version
                return True
        elif lower is None:
            raise Unconvertible(
                node, say("it exists only from opset {version} on", "它自 opset {version} 起才存在", version=source.since_version)
            )
        if lower is None:
            raise Unconvertible(
                node, say("it exists only from opset {version} on", "它自 opset {version} 起才存在", version=source.since_version)
            )
        changed |= _lower_generic(node, source, lower)
        source = lower
    return changed


def _value(attribute: Any) -> Any:
    """A schema default or a node attribute as a plain Python value."""
    value = onnx.helper.get_attribute_value(attribute) if isinstance(attribute, onnx.AttributeProto) else attribute.value
    if isinstance(value, bytes):
        return value.decode()
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _default(schema: onnx.defs.OpSchema, name: str) -> Any:
    proto = schema.attributes[name].default_value
    return _value(proto) if proto.name else None


def _lower_generic(node: ir.Node, higher: onnx.defs.OpSchema, lower: onnx.defs.OpSchema) -> bool:
    """Drop attributes and inputs the lower version lacks where they say what it does anyway; write out defaults that changed."""
    changed = False
    for name in set(higher.attributes) - set(lower.attributes):
        if name not in node.attributes:
            continue
        if _value(node.attributes[name]) != _default(higher, name):
            raise Unconvertible(
                node,
                say(
                    "attribute {name} has no counterpart at opset {version}",
                    "属性 {name} 在 opset {version} 中没有对应",
                    name=name,
                    version=lower.since_version,
                ),
            )
        del node.attributes[name]
        changed = True
    for name in set(higher.attributes) & set(lower.attributes):
        before, after = _default(higher, name), _default(lower, name)
        if before != after and name not in node.attributes:
            if before is None:
                raise Unconvertible(
                    node, say("attribute {name} became mandatory or its default changed", "属性 {name} 变为必填或默认值改变", name=name)
                )
            node.attributes[name] = ir.convenience.convert_attribute(name, before)
            changed = True
    for name in set(lower.attributes) - set(higher.attributes):
        if lower.attributes[name].required and name not in node.attributes:
            raise Unconvertible(
                node,
                say(
                    "attribute {name} is mandatory at opset {version}",
                    "属性 {name} 在 opset {version} 中为必填",
                    name=name,
                    version=lower.since_version,
                ),
            )
    _check_arity(node, lower)
    return changed


def _raise_generic(node: ir.Node, lower: onnx.defs.OpSchema, higher: onnx.defs.OpSchema) -> None:
    """A step up is taken only where the form stays the same: same inputs, no attribute lost, no default changed."""
    lost = [name for name in node.attributes if name not in higher.attributes]
    moved = [
        name
        for name in lower.attributes
        if name in higher.attributes and name not in node.attributes and _default(lower, name) != _default(higher, name)
    ]
    if lost or moved or [item.name for item in lower.inputs] != [item.name for item in higher.inputs][: len(lower.inputs)]:
        names = ", ".join([*lost, *moved]) or "inputs"
        raise Unconvertible(
            node,
            say(
                "its form changed at opset {version} ({names})",
                "其形式在 opset {version} 改变（{names}）",
                version=higher.since_version,
                names=names,
            ),
        )


def _check_arity(node: ir.Node, schema: onnx.defs.OpSchema) -> None:
    used = len(node.inputs)
    while used and node.inputs[used - 1] is None:
        used -= 1
    outputs = len([value for value in node.outputs if value.uses() or value.is_graph_output()])
    if used > schema.max_input or outputs > schema.max_output:
        raise Unconvertible(
            node, say("opset {version} takes fewer inputs or outputs", "opset {version} 的输入或输出更少", version=schema.since_version)
        )


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
    builder.replace(node.outputs[0], builder.op("Transpose", result, perm=order))
    builder.remove(node)
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
        node.attributes["value"] = ir.AttrFloat32("value", float(value.reshape(-1)[0]))
    return True


def _clip_to_attributes(_model: ir.Model, node: ir.Node) -> bool:
    bounds = {name: _constant_input(node, index, name) for index, name in ((1, "min"), (2, "max"))}
    _drop_inputs(node, 1)
    for name, bound in bounds.items():
        if bound is not None:
            node.attributes[name] = ir.AttrFloat32(name, float(bound.reshape(-1)[0]))
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
    builder.replace(node.outputs[0], builder.op("Slice", whole, *limits))
    builder.remove(node)
    return True


def _resize_inputs(model: ir.Model, node: ir.Node) -> bool:
    """Before 13 roi and scales are mandatory inputs; an absent one is written as an empty tensor."""
    builder = Builder(model, node, RULE)
    while len(node.inputs) < 3:
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
    builder.replace(node.outputs[0], builder.op("Or", strict, equal))
    builder.remove(node)
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
_LOWER: dict[tuple[str, int], Callable[[ir.Model, ir.Node], bool]] = {
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
    ("Shape", 15): _shape_slice,
    ("Resize", 13): _resize_inputs,
    ("GreaterOrEqual", 12): _ordered_comparison,
    ("LessOrEqual", 12): _ordered_comparison,
}
