"""What the surgery functions share: finding tensors and nodes by name at every depth, fresh names, and the check of a result."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir

from ...errors import UsageError
from ...text import Text, say
from .. import native
from ..edit import copy_model
from ..load import load
from ..save import proto_without_weights
from ..shapes import known_shape
from ..walk import node_place

AnyModel = ir.Model | str | Path


def opened(model: AnyModel) -> ir.Model:
    """A copy of a model, or the model of a file."""
    return copy_model(model) if isinstance(model, ir.Model) else load(model)


@dataclass(frozen=True)
class Scope:
    """A graph of the model and where it stands: ``""``, ``If_3/then_branch``, ``local::function``."""

    place: str
    graph: ir.Graph
    function: ir.Function | None = None

    def values(self) -> Iterator[ir.Value]:
        yield from self.graph.inputs
        given = {id(value) for value in self.graph.inputs}
        yield from (value for value in self.graph.initializers.values() if id(value) not in given)
        for node in self.graph:
            yield from (value for value in node.outputs if value.name)


def scopes(model: ir.Model) -> list[Scope]:
    """All graphs of a model: the main graph first, bodies under the node that owns them, functions last."""
    found: list[Scope] = []

    def visit(place: str, graph: ir.Graph, function: ir.Function | None) -> None:
        found.append(Scope(place, graph, function))
        for node in graph:
            for name, bodies in bodies_of(node):
                for number, body in enumerate(bodies):
                    inner = f"{node_place(node)}/{name}" + (f"[{number}]" if len(bodies) > 1 else "")
                    visit(f"{place}/{inner}" if place else inner, body, function)

    visit("", model.graph, None)
    for function in model.functions.values():
        visit(f"{function.domain}::{function.name}", function.graph, function)
    return found


def bodies_of(node: ir.Node) -> Iterator[tuple[str, list[ir.Graph]]]:
    for name, attribute in node.attributes.items():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield name, [attribute.as_graph()]
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield name, list(attribute.as_graphs())


def captures(node: ir.Node) -> set[ir.Value]:
    """Tensors from outside that the bodies of a node read."""
    inside, read = set[ir.Graph](), set[ir.Value]()
    waiting = [body for _, bodies in bodies_of(node) for body in bodies]
    while waiting:
        graph = waiting.pop()
        inside.add(graph)
        read.update(graph.outputs)
        for inner in graph:
            read.update(value for value in inner.inputs if value is not None)
            waiting += [body for _, bodies in bodies_of(inner) for body in bodies]
    return {value for value in read if value.graph not in inside}


def reads(node: ir.Node) -> set[ir.Value]:
    """Inputs of a node and captures of its bodies."""
    return {value for value in node.inputs if value is not None} | captures(node)


def behind(values: Iterable[ir.Value]) -> list[ir.Node]:
    """Nodes that values need, of their graph."""
    seen, waiting = dict[ir.Node, None](), list(values)
    while waiting:
        producer = waiting.pop().producer()
        if producer is not None and producer not in seen:
            seen[producer] = None
            waiting += reads(producer)
    return list(seen)


def chosen_scopes(model: ir.Model, scope: str | None) -> list[Scope]:
    """All scopes, or the one that is named.

    Raises:
        UsageError: there is no such scope.
    """
    found = scopes(model)
    if scope is None:
        return found
    named = [item for item in found if item.place == scope]
    if not named:
        raise unknown(say("body or function", "子图或函数"), scope, [item.place for item in found if item.place])
    return named


def find_value(model: ir.Model, name: str, scope: str | None = None) -> tuple[ir.Value, Scope]:
    """A tensor by name.

    Raises:
        UsageError: no tensor, or tensors of several bodies, have this name.
    """
    places = chosen_scopes(model, scope)
    hits = [(value, place) for place in places for value in place.values() if value.name == name]
    if not hits:
        raise unknown(say("tensor", "张量"), name, (value.name or "" for place in places for value in place.values()))
    if len(hits) > 1:
        raise _ambiguous(name, [place.place for _, place in hits])
    return hits[0]


def find_node(model: ir.Model, name: str, scope: str | None = None) -> tuple[ir.Node, Scope]:
    """A node by its name or, as exporters may leave that empty, by the name of one of its outputs.

    Raises:
        UsageError: no node, or several, have this name.
    """
    places = chosen_scopes(model, scope)
    hits = [(node, place) for place in places for node in place.graph if node.name == name]
    if not hits:
        hits = [(node, place) for place in places for node in place.graph if any(value.name == name for value in node.outputs)]
    if not hits:
        raise unknown(say("node", "节点"), name, (node_place(node) for place in places for node in place.graph))
    if len(hits) > 1:
        raise _ambiguous(name, [place.place for _, place in hits])
    return hits[0]


def _ambiguous(name: str, places: Sequence[str]) -> UsageError:
    named = ", ".join(f"`{place or 'main graph'}`" for place in places)
    return UsageError(
        say("`{name}` is there {count} times: {named}", "`{name}` 出现了 {count} 次：{named}", name=name, count=len(places), named=named),
        say("expected a name that is there once", "应为唯一的名称"),
        say("give scope= with the place of the one that is meant, or rename one", "请用 scope= 指明位置，或先重命名其中一个"),
    )


def unknown(kind: Text, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that the model does not have: it lists the nearest ones."""
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names[:20000], n=3, cutoff=0.5) or names[:3]
    return UsageError(
        say("the model has no {kind} `{name}`", "模型中没有{kind} `{name}`", kind=kind, name=name),
        say("nearest: {near}", "最接近的有：{near}", near=", ".join(f"`{item}`" for item in near) or "-"),
        say("check the name", "请检查名称"),
    )


def must_be_distinct(names: Sequence[str], what: Text) -> None:
    """Raises:
    UsageError: a name is given twice.
    """
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise UsageError(
            say("`{name}` is given twice among the {what}", "{what}中 `{name}` 重复出现", name=twice[0], what=what),
            say("expected each name once", "每个名称应只出现一次"),
            say("leave one out", "请去掉一个"),
        )


class Names:
    """Names that are taken, of tensors and of nodes, in one name space of the model (a function has its own)."""

    def __init__(self, model: ir.Model, function: ir.Function | None = None) -> None:
        self.tensors, self.nodes = set[str](), set[str]()
        for scope in scopes(model):
            if scope.function is function:
                self.tensors.update(value.name for value in scope.values() if value.name)
                self.nodes.update(node.name for node in scope.graph if node.name)

    def tensor(self, stem: str) -> str:
        return _fresh(stem, self.tensors)

    def node(self, stem: str) -> str:
        return _fresh(stem, self.nodes)


def _fresh(stem: str, taken: set[str]) -> str:
    name, number = stem, 0
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    taken.add(name)
    return name


def take_over(old: ir.Value, new: ir.Value, names: Names) -> None:
    """Let every user of ``old`` read ``new``. Where ``old`` is an output of its graph, ``new`` gets its name, if need be by an Identity."""
    graph = old.graph
    if old.is_graph_output() and graph is not None:
        if new.producer() is None or new.is_graph_output() or new.graph is not graph:
            made = ir.node("Identity", [new], outputs=[ir.Value(name=names.tensor(f"{old.name}_identity"), type=new.type, shape=new.shape)])
            made.name = names.node(f"{old.name}/Identity")
            graph.append(made)
            new = made.outputs[0]
        name = old.name
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name = names.tensor(f"{name}_replaced")
        new.name = name
    else:
        old.replace_all_uses_with(new)


def discard(graph: ir.Graph, nodes: Iterable[ir.Node]) -> None:
    """Remove nodes that nobody else reads. Their bodies no longer count as readers either."""
    gone = list(nodes)
    waiting = [body for node in gone for _, bodies in bodies_of(node) for body in bodies]
    while waiting:
        body = waiting.pop()
        body.outputs.clear()
        for node in body:
            waiting += [inner for _, bodies in bodies_of(node) for inner in bodies]
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)
    graph.remove(gone, safe=True)


def drop_dead(model: ir.Model, graph: ir.Graph, nodes: Iterable[ir.Node] | None = None) -> None:
    """Remove nodes (of these; by default any) that nobody reads, initializers that nobody reads, and functions nobody calls."""
    candidates = set(graph if nodes is None else nodes)
    for node in reversed(list(graph)):
        if node in candidates and not any(value.uses() or value.is_graph_output() for value in node.outputs):
            discard(graph, [node])
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            graph.initializers.pop(name)
    drop_uncalled(model)


def drop_uncalled(model: ir.Model) -> None:
    called, waiting = set[ir.OperatorIdentifier](), [scope.graph for scope in scopes(model) if scope.function is None]
    while waiting:
        for node in waiting.pop():
            key = node.op_identifier()
            if key in model.functions and key not in called:
                called.add(key)
                waiting += [scope.graph for scope in scopes(model) if scope.function is model.functions[key]]
    for key in [key for key in model.functions if key not in called]:
        del model.functions[key]


def sort_graph(graph: ir.Graph) -> None:
    """Bring nodes into an order in which each reads what is made before it.

    Raises:
        UsageError: there is none, because a node would need its own result.
    """
    try:
        graph.sort()
    except ValueError as error:
        raise UsageError(
            say("a node would read what is made from its own result", "有节点会读取由其自身结果得到的张量"),
            say("expected inputs that do not depend on the outputs", "输入不应依赖于输出"),
            say("choose other tensors", "请选择其他张量"),
        ) from error


def must_match(old: ir.Value, new: ir.Value, place: str) -> None:
    """Raises:
    UsageError: dtype or shape are known to differ.
    """
    if differ(old, new):
        raise UsageError(
            say("`{place}` would be {new}", "`{place}` 将变为 {new}", place=place, new=described(new)),
            say("expected {old}", "应为 {old}", old=described(old)),
            say(
                "put a Cast, Reshape or Transpose in between, or choose other tensors", "请加入 Cast、Reshape 或 Transpose，或选择其他张量"
            ),
        )


def differ(first: ir.Value, second: ir.Value) -> bool:
    """Whether two tensors certainly have another dtype or shape."""
    if first.type is not None and second.type is not None and first.type != second.type:
        return True
    one, two = known_shape(first), known_shape(second)
    if one is None or two is None:
        return False
    return len(one) != len(two) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(one, two, strict=True))


def described(value: ir.Value) -> str:
    """dtype and shape as people write them: ``float[2,n,?]``."""
    dtype = "unknown" if value.dtype is None else value.dtype.name.lower()
    shape = known_shape(value)
    return dtype + ("[...]" if shape is None else f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]")


def must_be_valid(model: ir.Model) -> ir.Model:
    """The model, after the ONNX checker and a look at the dtypes of every node.

    Raises:
        UsageError: the edit made an invalid model.
    """
    must_fit_operators(model)
    must_pass_checker(model)
    return model


def must_pass_checker(model: ir.Model) -> None:
    """Raises:
    UsageError: the ONNX checker refuses the model.
    """
    reason = native.check_model(proto_without_weights(model))
    if reason is not None:
        raise _invalid(reason)


def must_fit_operators(model: ir.Model) -> None:
    """Raises:
    UsageError: a node of the standard domain has an operator or a dtype that its opset does not have.
    """
    reason = _type_conflict(model)
    if reason is not None:
        raise _invalid(reason)


def _invalid(reason: str) -> UsageError:
    return UsageError(
        say("the result would not be a valid model: {reason}", "结果不是有效的模型：{reason}", reason=reason),
        say("expected an edit that fits operators, names and dtypes", "编辑应与算子、名称和数据类型相符"),
        say("change the edit; the model itself is untouched", "请修改该操作；原模型未被改动"),
    )


def _type_conflict(model: ir.Model) -> str | None:
    opset = model.opset_imports.get("", 0)
    for scope in scopes(model):
        if scope.function is not None:
            continue
        for node in scope.graph:
            ours = node.domain in ("", "ai.onnx") and node.op_identifier() not in model.functions
            reason = _node_conflict(node, opset) if ours else None
            if reason is not None:
                return f"{node_place(node)}: {reason}"
    return None


def _node_conflict(node: ir.Node, opset: int) -> str | None:
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return f"opset {opset} has no operator {node.op_type}"
    allowed = {item.type_param_str: set(item.allowed_type_strs) for item in schema.type_constraints}
    bound: dict[str, str] = {}
    for index, value in enumerate(node.inputs):
        formals = schema.inputs
        if value is None or not isinstance(value.type, ir.TensorType) or not formals:
            continue
        formal = formals[min(index, len(formals) - 1)]
        kind = f"tensor({value.type.dtype.name.lower()})"
        if formal.type_str in allowed:
            if kind not in allowed[formal.type_str]:
                return f"{node.op_type} takes no {kind}"
            if formal.is_homogeneous and bound.setdefault(formal.type_str, kind) != kind:
                return f"{node.op_type} reads {bound[formal.type_str]} and {kind}"
        elif formal.type_str.startswith("tensor(") and formal.type_str != kind:
            return f"{node.op_type} takes {formal.type_str}, not {kind}"
    return None
