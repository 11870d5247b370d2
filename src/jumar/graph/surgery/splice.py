"""Put nodes into a model and take nodes out, in the main graph, in bodies and in functions. Every function returns a new model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ...errors import UsageError
from ...text import say
from ..edit import rename_value
from ..shapes import infer_shapes
from ..walk import node_place
from .lookup import (
    AnyModel,
    Names,
    Scope,
    behind,
    described,
    differ,
    discard,
    drop_dead,
    find_node,
    find_value,
    must_be_valid,
    must_fit_operators,
    must_match,
    opened,
    reads,
    scopes,
    sort_graph,
    take_over,
    unknown,
)

Operand = str | npt.ArrayLike
"""A tensor by name, or the elements of a new weight."""


def insert(
    model: AnyModel,
    tensor: str,
    op_type: str,
    *,
    inputs: Sequence[Operand] = (),
    attributes: Mapping[str, Any] | None = None,
    domain: str = "",
    position: Literal["after", "before"] = "after",
    consumers: Sequence[str] | None = None,
    name: str | None = None,
    scope: str | None = None,
) -> ir.Model:
    """Put a node between a tensor and those who read it.

    Args:
        inputs: what the node reads besides ``tensor``: names, or arrays that become weights. ``tensor`` is its first input, unless it is
            itself in this list.
        position: who keeps the name. ``"after"``: the tensor; the node's result gets a new name. ``"before"``: the result; then the
            tensor of the former maker gets a new one. A model's inputs and outputs always keep theirs.
        consumers: only these nodes (by name, or by the name of an output) read the result; all others, and the outputs of the model, stay
            with the tensor.
        name: of the node.
        scope: the body or function meant, where several have a tensor of this name.

    Raises:
        UsageError: unknown or ambiguous name, a consumer that does not read the tensor, ``position="before"`` for an input, or a result
            that is not valid (operator, number of inputs, dtypes).
    """
    result = opened(model)
    value, place = find_value(result, tensor, scope)
    names = Names(result, place.function)
    if position == "before" and value.is_graph_input():
        raise UsageError(
            say("`{name}` is an input, and no node makes it", "`{name}` 是输入，并非由节点产生", name=tensor),
            say("expected position='after'", "应为 position='after'"),
            say("insert after it", "请在其后插入"),
        )
    readers = _readers(value, consumers)
    given = [value if isinstance(item, str) and item == tensor else operand(result, place, item, names) for item in inputs]
    if value not in given:
        given.insert(0, value)
    stem = f"{tensor}/{op_type}"
    made = ir.node(
        op_type, given, attributes=dict(attributes or {}), domain=domain, outputs=[ir.Value(name=names.tensor(f"{stem}_output"))]
    )
    made.name = names.node(name or stem)
    _place_after_inputs(place.graph, made)
    new = made.outputs[0]
    for node, index in readers:
        node.replace_input_with(index, new)
    if consumers is None and value.is_graph_output():
        for index, output in enumerate(place.graph.outputs):
            if output is value:
                place.graph.outputs[index] = new
        _swap_names(value, new, names, f"{tensor}_before_{op_type}")
    elif position == "before":
        _swap_names(value, new, names, f"{tensor}_before_{op_type}")
    import_domain(result, place, domain)
    return finished(result, place, [new])


def _swap_names(old: ir.Value, new: ir.Value, names: Names, stem: str) -> None:
    """``new`` takes the name of ``old``; an input of the model keeps its own all the same."""
    if old.is_graph_input():
        return
    name = old.name or ""
    rename_value(old, names.tensor(stem))
    new.name = name


def _readers(value: ir.Value, consumers: Sequence[str] | None) -> list[tuple[ir.Node, int]]:
    uses = [(use.node, use.idx) for use in value.uses()]
    if consumers is None:
        return uses
    chosen = []
    for name in consumers:
        hits = [(node, index) for node, index in uses if node.name == name or any(output.name == name for output in node.outputs)]
        if not hits:
            raise unknown(
                say("reader of `{name}` called", "读取 `{name}` 的节点", name=value.name), name, (node_place(node) for node, _ in uses)
            )
        chosen += hits
    return chosen


def operand(model: ir.Model, place: Scope, item: Operand, names: Names) -> ir.Value:
    if isinstance(item, str):
        return visible(model, place, item)
    tensor = ir.tensor(np.asarray(item))
    value = ir.Value(name=names.tensor("weight"), type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()))
    tensor.name = value.name
    if place.function is None:
        value.const_value = tensor
        place.graph.register_initializer(value)
    else:  # a function has no weights
        node = ir.node("Constant", [], attributes={"value": tensor}, outputs=[value], name=names.node(f"{value.name}/Constant"))
        first = next(iter(place.graph), None)
        if first is None:
            place.graph.append(node)
        else:
            place.graph.insert_before(first, node)
    return value


def visible(model: ir.Model, place: Scope, name: str) -> ir.Value:
    """A tensor of this graph or, in a body, of a graph around it."""
    around = [item for item in scopes(model) if item.function is place.function]
    reach = [item for item in around if item.place == place.place or item.graph is model.graph or place.place.startswith(f"{item.place}/")]
    found = {value.name or "": value for item in reach for value in item.values()}
    if name not in found:
        raise unknown(say("tensor", "张量"), name, found)
    return found[name]


def _place_after_inputs(graph: ir.Graph, node: ir.Node) -> None:
    makers = {value.producer() for value in node.inputs if value is not None and value.graph is graph}
    last = next((other for other in reversed(list(graph)) if other in makers), None)
    first = next(iter(graph), None)
    if last is not None:
        graph.insert_after(last, node)
    elif first is not None:
        graph.insert_before(first, node)
    else:
        graph.append(node)


def import_domain(model: ir.Model, place: Scope, domain: str) -> None:
    imports = model.opset_imports if place.function is None else place.function.opset_imports
    version = model.opset_imports.setdefault(domain, 1)
    imports.setdefault(domain, version)


def finished(model: ir.Model, place: Scope, new: Sequence[ir.Value], expected: Sequence[ir.Value] = ()) -> ir.Model:
    """The edited model with its nodes in order, shapes inferred, and checked.

    Raises:
        UsageError: it is not valid, or one of the ``new`` tensors is not as the ``expected`` one that it replaces.
    """
    sort_graph(place.graph)
    infer_shapes(model)
    for value, old in zip(new, expected, strict=False):
        must_match(old, value, old.name or "")
    must_fit_operators(model)
    for value in new:
        if value.is_graph_output() and place.function is None and (value.type is None or value.shape is None):
            raise UsageError(
                say("type and rank of the output `{name}` cannot be inferred", "无法推断输出 `{name}` 的类型和维数", name=value.name),
                say("expected operators that ONNX knows", "应为 ONNX 已知的算子"),
                say("edit before the end of the model, or use standard operators", "请在模型末端之前编辑，或使用标准算子"),
            )
    return must_be_valid(model)


def remove(model: AnyModel, nodes: str | Sequence[str], *, bypass: Mapping[str, str] | None = None, scope: str | None = None) -> ir.Model:
    """Take nodes out. Who read a result of such a node reads what goes into it instead.

    Args:
        nodes: by name, or by the name of an output.
        bypass: which tensor takes the place of which result, where this is not the node's first input.

    Raises:
        UsageError: unknown or ambiguous name, a result that has nothing to take its place, or one of another dtype or shape.
    """
    result = opened(model)
    infer_shapes(result)
    given = dict(bypass or {})
    found = [find_node(result, name, scope) for name in ([nodes] if isinstance(nodes, str) else nodes)]
    for output in given:
        if not any(value.name == output for node, _ in found for value in node.outputs):
            raise unknown(
                say("result of a removed node", "被删除节点的结果"), output, (v.name or "" for node, _ in found for v in node.outputs)
            )
    for node, place in found:
        names = Names(result, place.function)
        for value in [value for value in node.outputs if value.uses() or value.is_graph_output()]:
            take_over(value, _substitute(result, node, value, place, given), names)
        before = behind(list(reads(node)))
        discard(place.graph, [node])
        drop_dead(result, place.graph, before)
    for place in {id(place.graph): place for _, place in found}.values():
        sort_graph(place.graph)
    infer_shapes(result)
    return must_be_valid(result)


def _substitute(model: ir.Model, node: ir.Node, value: ir.Value, place: Scope, bypass: Mapping[str, str]) -> ir.Value:
    if value.name is not None and value.name in bypass:
        new = visible(model, place, bypass[value.name])
    elif value is node.outputs[0] and node.inputs and node.inputs[0] is not None:
        new = node.inputs[0]
    else:
        raise UsageError(
            say("nothing takes the place of `{name}` when its node is removed", "删除节点后没有张量可替代 `{name}`", name=value.name),
            say("expected bypass={{'{name}': tensor}}", "应给出 bypass={{'{name}': 张量}}", name=value.name),
            say("name the tensor that its readers shall read", "请指明其读取者应改读的张量"),
        )
    if differ(value, new):
        raise UsageError(
            say("`{new}` is {found}", "`{new}` 为 {found}", new=new.name, found=described(new)),
            say("expected {old} in the place of `{name}`", "替代 `{name}` 应为 {old}", old=described(value), name=value.name),
            say("name another tensor with bypass=, or use replace", "请用 bypass= 指定其他张量，或使用 replace"),
        )
    return new
