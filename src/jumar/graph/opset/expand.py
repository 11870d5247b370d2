"""Operators expanded with the function bodies that the ONNX schemas themselves carry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
import onnx_ir as ir

from ...text import say
from . import raise_forms  # noqa: F401 - it registers the steps up
from .schemas import Schema, find_schema
from .step import RAISE, RULE, Step


def function_body(step: Step, form: Schema, version: int) -> onnx.FunctionProto | None:
    """The body of the operator at ``version`` for this node; None where the schema has none (or none without knowing the dtypes)."""
    node = step.node
    schema: Any = form  # the stubs of ONNX leave its function bodies out
    written = _written(schema.function_opset_versions, version) if schema.has_function else None
    if written is not None:
        body: onnx.FunctionProto = onnx.FunctionProto.FromString(schema.get_function_with_opset_version(written))
        return body if _means_the_same(body, written, version) else None
    written = _written(schema.context_dependent_function_opset_versions, version) if schema.has_context_dependent_function else None
    if written is None:
        return None
    types = []
    for value in node.inputs:
        if value is None:
            types.append(b"")
            continue
        kind = ir.serde.serialize_type(value.type) if value.type is not None else None
        if kind is None:
            return None
        if isinstance(value.type, ir.TensorType) and value.shape is not None:
            kind = onnx.helper.make_tensor_type_proto(
                int(value.type.dtype), [dim if isinstance(dim, int) else dim.value for dim in value.shape]
            )
        types.append(kind.SerializeToString())
    found = schema.get_context_dependent_function_with_opset_version(written, ir.to_proto(node).SerializeToString(), types)
    body = onnx.FunctionProto.FromString(found) if found else onnx.FunctionProto()
    return body if body.node and _means_the_same(body, written, version) else None


def _written(versions: Iterable[int], version: int) -> int | None:
    """The newest version a body was written for that is not above the wanted one."""
    return max((item for item in versions if item <= version), default=None)


def _means_the_same(body: onnx.FunctionProto, written: int, version: int) -> bool:
    """Whether every operator of a body can be written, and means, at the wanted version what it does at its own."""
    return all(_unchanged_between(node, written, version) for node in body.node)


def _unchanged_between(node: onnx.NodeProto, written: int, version: int) -> bool:
    old, new = find_schema(node.op_type, written), find_schema(node.op_type, version)
    if old is None or new is None:
        return False
    if old.since_version == new.since_version:
        return True
    # A step up that has an adapter changes the form or the meaning; others only add types and options.
    changed = any((node.op_type, step) in RAISE for step in range(written + 1, version + 1))
    names = {attribute.name for attribute in node.attribute}
    return not changed and names <= set(new.attributes) and new.min_input <= len(node.input) <= new.max_input


def expand(step: Step, schema: Schema, version: int) -> bool:
    """Put the operator's body in its place; ``step.version`` must be ``version``, as the nodes made belong to it. Says whether it had one."""
    body = function_body(step, schema, version)
    if body is None or any(item.domain not in ("", "ai.onnx") for item in body.opset_import):
        return False
    node = step.node
    _check_flags(step, schema, version, body)
    for name in (attribute.name for attribute in node.attributes.values()):
        step.attr(name)  # an attribute that a function's caller gives cannot be filled in
    names: dict[str, ir.Value | None] = {
        formal: node.inputs[index] if index < len(node.inputs) else None for index, formal in enumerate(body.input)
    }
    names[""] = None
    for inner in body.node:
        _insert(step, schema, inner, names)
    step.finish(*[names.get(name) for name in body.output])
    return True


# Attributes that early versions of ONNX forgot in the function body, in some combinations of inputs.
_FORGOTTEN = {"Attention": "is_causal"}


def _check_flags(step: Step, schema: Schema, version: int, body: onnx.FunctionProto) -> None:
    """A body that is the same without an attribute that is set does not compute what the operator does."""
    name = _FORGOTTEN.get(step.node.op_type)
    if name is None or not step.attr(name, 0):
        return
    attribute = step.node.attributes.pop(name)
    without = function_body(step, schema, version)
    step.node.attributes[name] = attribute
    if without is not None and list(without.node) == list(body.node):
        step.refuse(
            say(
                "the function body in the installed ONNX {version} leaves {name} out",
                "已安装的 ONNX {version} 的函数体忽略了 {name}",
                version=onnx.__version__,
                name=name,
            )
        )


def _insert(step: Step, schema: Schema, proto: onnx.NodeProto, names: dict[str, ir.Value | None]) -> None:
    attributes: dict[str, Any] = {}
    for attribute in proto.attribute:
        filled = _body(step, attribute, names) if attribute.type == onnx.AttributeProto.GRAPH else _filled(step, schema, attribute)
        if filled is not None:
            attributes[filled.name] = filled
    if proto.op_type == "Constant":
        names[proto.output[0]] = _constant(step, attributes)
        return
    inputs = [names[name] for name in proto.input]
    while inputs and inputs[-1] is None:
        inputs.pop()
    result = step.op(proto.op_type, *inputs, outputs=len(proto.output), **attributes)
    if len(proto.output) == 1:
        names[proto.output[0]] = result
        return
    names.update(zip(proto.output, step.made[-1].outputs, strict=True))


def _body(step: Step, attribute: onnx.AttributeProto, names: dict[str, ir.Value | None]) -> ir.Attr:
    """A body of control flow: its own tensors get new names, and what it reads from outside is what has that name by now."""
    proto = onnx.AttributeProto()
    proto.CopyFrom(attribute)
    own = {item.name for item in (*proto.g.input, *proto.g.initializer)} | {name for node in proto.g.node for name in node.output}
    free = sorted({name for node in proto.g.node for name in node.input if name} - own)
    # Read as inputs at first, so that they can be told from its own.
    proto.g.input.extend(onnx.ValueInfoProto(name=name) for name in free)
    found = ir.serde.deserialize_attribute(proto)
    graph = found.as_graph()
    for value in [value for value in graph.inputs if value.name in free]:
        outer = names.get(value.name or "")
        if outer is None:
            step.refuse(say("its function body reads what is not there", "其函数体读取了不存在的张量"))
        value.replace_all_uses_with(step.place(outer))
        graph.inputs.remove(value)
    for value in (*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)):
        value.name = step.fresh(value.name or "inner")
    for node in graph:
        node.name = step.fresh(node.name or node.op_type)
        node.metadata_props["jumar.rule"] = RULE
        if any(inner.ref_attr_name for inner in node.attributes.values()) or _graphs_of(node):
            step.refuse(say("its function body holds nested bodies", "其函数体含有嵌套的子图"))
    return found


def _graphs_of(node: ir.Node) -> list[ir.Attr]:
    return [item for item in node.attributes.values() if item.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)]


def _filled(step: Step, schema: Schema, attribute: onnx.AttributeProto) -> ir.Attr | None:
    """An attribute of the body; one that refers to the operator's is taken from the node, or from the schema's default."""
    if not attribute.ref_attr_name:
        return ir.serde.deserialize_attribute(attribute)
    given = step.node.attributes.get(attribute.ref_attr_name)
    if given is not None:
        return ir.Attr(attribute.name, given.type, given.value)
    default = schema.attributes[attribute.ref_attr_name].default_value
    if not default.name:
        return None
    copy = onnx.AttributeProto()
    copy.CopyFrom(default)
    copy.name = attribute.name
    return ir.serde.deserialize_attribute(copy)


def _constant(step: Step, attributes: dict[str, ir.Attr]) -> ir.Value:
    node = ir.Node("", "Constant", [], list(attributes.values()))
    tensor = ir.convenience.get_const_tensor(node.outputs[0])
    if tensor is None:
        step.refuse(say("its function body has a constant of a kind not known here", "其函数体含有此处未知的常量"))
    return step.const(tensor.numpy())
