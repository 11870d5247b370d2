"""Bringing a part of one model into another: one opset, one set of functions, no name twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx
import onnx_ir as ir

from ...errors import UsageError
from ...text import Text, say
from ..edit import copy_model, rename_value
from ..opset import Unconvertible, convert_opset
from ..walk import model_opset
from .lookup import Names, Scope, scopes


def at_opset(guest: ir.Model, host: ir.Model) -> ir.Model:
    """The guest expressed at the opset of the host (itself if it is there already).

    Raises:
        UsageError: it cannot be expressed there, or the two use different versions of another operator domain.
    """
    must_share_domains(host, guest)
    version = model_opset(host)
    if not model_opset(guest) or model_opset(guest) == version:
        return guest
    moved, reason = converted(guest, version)
    if moved is None:
        raise cannot_meet(model_opset(guest), version, reason)
    return moved


def converted(model: ir.Model, version: int) -> tuple[ir.Model | None, Text]:
    """A copy at another opset, or None and why not."""
    if any(function.opset_imports.get("", version) != version for function in model.functions.values()):
        return None, say("its functions are of another opset", "其函数使用其他 opset")
    copy = copy_model(model)
    try:
        convert_opset(copy, version)
    except Unconvertible as refusal:
        return None, refusal.reason
    return copy, say("", "")


def cannot_meet(found: int, expected: int, reason: Text) -> UsageError:
    return UsageError(
        say(
            "a model of opset {found} cannot be brought to {expected}: {reason}",
            "opset {found} 的模型无法转换到 {expected}：{reason}",
            found=found,
            expected=expected,
            reason=reason,
        ),
        say("expected two models of one opset", "两个模型应使用同一 opset"),
        say("export one of them again at the opset of the other", "请以另一模型的 opset 重新导出其中之一"),
    )


def must_share_domains(first: ir.Model, second: ir.Model) -> None:
    for domain, version in second.opset_imports.items():
        other = first.opset_imports.get(domain, version)
        if domain not in ("", "ai.onnx") and other != version:
            raise UsageError(
                say(
                    "the models import versions {one} and {two} of `{domain}`",
                    "两个模型分别引用 `{domain}` 的版本 {one} 和 {two}",
                    one=other,
                    two=version,
                    domain=domain,
                ),
                say("expected one version", "应为同一版本"),
                say("export one of them again", "请重新导出其中之一"),
            )


def adopt_functions(host: ir.Model, guest: ir.Model) -> None:
    """Move the guest's functions into the host; one with the name of another function but another content gets a name of its own."""
    for key in list(guest.functions):
        function = guest.functions[key]
        other = host.functions.get(key)
        if other is not None and _text(other) != _text(function):
            taken = {name for model in (host, guest) for domain, name, _ in model.functions if domain == function.domain}
            number = 1
            while f"{function.name}_{number}" in taken:
                number += 1
            _rename_function(guest, function, f"{function.name}_{number}")
    for key, function in list(guest.functions.items()):
        del guest.functions[key]
        host.functions.setdefault(function.identifier(), function)


def _text(function: ir.Function) -> bytes:
    return bytes(ir.serde.serialize_function(function).SerializeToString(deterministic=True))


def _rename_function(model: ir.Model, function: ir.Function, name: str) -> None:
    old = function.identifier()
    for scope in scopes(model):
        for node in scope.graph:
            if node.op_identifier() == old:
                node.op_type = name
    function.name = name
    # The dictionary is keyed by what the function was called.
    del model.functions[old]
    model.functions[function.identifier()] = function


def rename_clashes(guest: ir.Model, names: Names, prefix: str) -> dict[str, str]:
    """Give tensors and nodes of the guest, at every depth, new names where the host has theirs; returns old to new names of tensors."""
    changed: dict[str, str] = {}
    for scope in scopes(guest):
        if scope.function is not None:
            continue
        for value in list(scope.values()):
            name = value.name or ""
            new = names.tensor(prefix + name if name in names.tensors else name)
            if new != name:
                changed[name] = new
                rename_value(value, new)
        for node in scope.graph:
            if node.name:
                node.name = names.node(prefix + node.name if node.name in names.nodes else node.name)
    return changed


def move_in(graph: ir.Graph, place: Scope, read: Sequence[ir.Value], names: Names) -> tuple[list[ir.Node], list[ir.Value]]:
    """Take a graph apart: its inputs become the tensors ``read``, its weights weights of ``place``; its nodes are returned, with its outputs."""
    outputs = list(graph.outputs)
    graph.outputs.clear()
    given = [value for value in graph.inputs if not value.is_initializer()]
    for value, other in zip(given, read, strict=True):
        if value is not other:
            value.replace_all_uses_with(other)
            outputs = [other if output is value else output for output in outputs]
    weights = list(graph.initializers.values())
    graph.inputs.clear()
    graph.initializers.clear()
    nodes = list(graph)
    graph.remove(nodes)
    made: list[ir.Node] = []
    for value in weights:
        if place.function is None:
            place.graph.register_initializer(value)
        elif value.const_value is not None:  # a function has no weights
            constant = ir.node("Constant", [], attributes={"value": value.const_value}, name=names.node(f"{value.name}/Constant"))
            constant.outputs[0].name = names.tensor(f"{value.name}_constant")
            value.replace_all_uses_with(constant.outputs[0])
            made.append(constant)
    return [*made, *nodes], outputs


def free_names(nodes: Iterable[onnx.NodeProto]) -> list[str]:
    """Tensors that nodes, or their bodies, read and none of them makes, in the order of first use."""
    made, read = set[str](), dict[str, None]()
    for node in nodes:
        inner = (name for attribute in node.attribute for graph in (attribute.g, *attribute.graphs) for name in _free_of(graph))
        for name in (*node.input, *inner):
            if name and name not in made:
                read[name] = None
        made.update(node.output)
    return list(read)


def _free_of(graph: onnx.GraphProto) -> list[str]:
    own = {item.name for item in (*graph.input, *graph.initializer)}
    return [name for name in free_names(graph.node) if name not in own]
