"""Expressing a model at another opset: what changed between versions, form by form.

Most steps change nothing but the accepted types; those are recognised by comparing the two schemas. Forms that did change have an
adapter in :mod:`jumar.graph.lower`. Whatever has neither is refused with the reason, and the caller proves the whole model afterwards.
"""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir

from ..text import say
from .lower import FORMER, LOWER, NEW_VALUES, RAISE_CHANGES, RULE, Unconvertible
from .walk import model_opset, node_place

__all__ = ["Unconvertible", "convert_opset"]


def convert_opset(model: ir.Model, version: int) -> list[str]:
    """Rewrite every node of the standard domain for ``version``, in place.

    Returns:
        Places of the nodes whose form changed.

    Raises:
        Unconvertible: a node cannot be expressed; the model may then be half converted and must be thrown away.
    """
    old = model_opset(model)
    changed: dict[str, None] = {}
    if version > old:
        for node in _standard_nodes(model):
            _raise_node(node, old, version)
    # One version at a time over the whole model: the nodes an adapter makes are of the version below and may have to go lower still.
    for above in range(old, version, -1):
        for node in _standard_nodes(model):
            given = node.metadata_props.get("jumar.rule") != RULE
            place = node_place(node)
            if _lower_node(model, node, above) and given:
                changed[place] = None
    for domain in ("", "ai.onnx"):
        if domain in model.opset_imports:
            model.opset_imports[domain] = version
    for graph in model.graphs():
        for domain in ("", "ai.onnx"):
            if domain in graph.opset_imports:
                graph.opset_imports[domain] = version
    return list(changed)


def _standard_nodes(model: ir.Model) -> list[ir.Node]:
    return [node for graph in model.graphs() for node in graph if node.domain in ("", "ai.onnx")]


def _schema(node: ir.Node, version: int) -> onnx.defs.OpSchema | None:
    try:
        found = onnx.defs.get_schema(node.op_type, version, "")
    except onnx.defs.SchemaError:
        return None
    return None if found.deprecated else found


def _known_schema(node: ir.Node, version: int) -> onnx.defs.OpSchema:
    schema = _schema(node, version)
    if schema is None:
        raise Unconvertible(node, say("it is not an operator of opset {version}", "它不是 opset {version} 的算子", version=version))
    return schema


def _raise_node(node: ir.Node, old: int, new: int) -> None:
    source, target = _known_schema(node, old), _schema(node, new)
    if target is None:
        raise Unconvertible(node, say("it no longer exists at opset {version}", "它在 opset {version} 中已不存在", version=new))
    if source.since_version != target.since_version:
        _raise_generic(node, source, target)


def _lower_node(model: ir.Model, node: ir.Node, above: int) -> bool:
    """Express a node of opset ``above`` at the version just below; says whether its form changed."""
    source = _known_schema(node, above)
    if source.since_version != above:
        return False
    adapter, lower = LOWER.get((node.op_type, above)), _schema(node, above - 1)
    changed = False
    if adapter is not None:
        changed = adapter(model, node)
        if node.graph is None:  # replaced by other nodes, which are made for the lower version
            return True
    if lower is None:
        raise Unconvertible(node, say("it exists only from opset {version} on", "它自 opset {version} 起才存在", version=above))
    return _lower_generic(node, source, lower) or changed


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
    for name in sorted(set(higher.attributes) - set(lower.attributes)):
        former = FORMER.get((node.op_type, higher.since_version, name), _default(higher, name))
        if name not in node.attributes:
            if former == _default(higher, name):
                continue
            value = _default(higher, name)
        else:
            value = _value(node.attributes[name])
        if value != former:
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
    for name in sorted(set(higher.attributes) & set(lower.attributes)):
        if name in node.attributes and _value(node.attributes[name]) in NEW_VALUES.get((node.op_type, higher.since_version, name), ()):
            raise Unconvertible(
                node,
                say(
                    "{name} = {value} exists only from opset {version} on",
                    "{name} = {value} 自 opset {version} 起才存在",
                    name=name,
                    value=_value(node.attributes[name]),
                    version=higher.since_version,
                ),
            )
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
    _check_inputs(node, higher, lower)
    _check_types(node, lower)
    return changed


def _raise_generic(node: ir.Node, lower: onnx.defs.OpSchema, higher: onnx.defs.OpSchema) -> None:
    """A step up is taken only where the form stays the same: same inputs, no attribute lost, no default changed."""
    for (op, version), means_the_same in RAISE_CHANGES.items():
        if op == node.op_type and lower.since_version < version <= higher.since_version and not means_the_same(node):
            raise Unconvertible(
                node, say("it means something else from opset {version} on", "它自 opset {version} 起含义不同", version=version)
            )
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


def _check_inputs(node: ir.Node, higher: onnx.defs.OpSchema, lower: onnx.defs.OpSchema) -> None:
    """The inputs used must be the same ones at the lower version, and enough for it."""
    used = len(node.inputs)
    while used and node.inputs[used - 1] is None:
        used -= 1
    outputs = max((index for index, value in enumerate(node.outputs, start=1) if value.uses() or value.is_graph_output()), default=0)
    names = [[item.name for item in schema.inputs][:used] for schema in (higher, lower)]
    # With as many inputs as before only their names changed (BatchNormalization).
    moved = len(higher.inputs) != len(lower.inputs) and names[0] != names[1]
    if moved or not lower.min_input <= used <= lower.max_input or outputs > lower.max_output:
        raise Unconvertible(
            node, say("opset {version} takes other inputs or outputs", "opset {version} 的输入或输出不同", version=lower.since_version)
        )


def _check_types(node: ir.Node, schema: onnx.defs.OpSchema) -> None:
    """Most versions only widen the accepted dtypes; a dtype that came later has no way down."""
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for index, value in enumerate(values):
            if value is None or not formals or not isinstance(value.type, ir.TensorType):
                continue
            formal = formals[min(index, len(formals) - 1)]
            if formal.types and f"tensor({value.type.dtype.name.lower()})" not in formal.types:
                raise Unconvertible(
                    node,
                    say(
                        "opset {version} does not take {dtype} for {name}",
                        "opset {version} 的 {name} 不支持 {dtype}",
                        version=schema.since_version,
                        dtype=value.type.dtype.name.lower(),
                        name=formal.name,
                    ),
                )
