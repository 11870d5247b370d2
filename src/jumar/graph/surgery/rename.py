"""Rename tensors, nodes and symbolic dimensions, at every depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import onnx_ir as ir

from ...errors import UsageError
from ...text import Text, say
from ..edit import rename_value
from .lookup import AnyModel, Names, Scope, chosen_scopes, find_node, find_value, must_be_valid, opened, scopes, unknown


def rename(
    model: AnyModel,
    tensors: Mapping[str, str] | None = None,
    *,
    nodes: Mapping[str, str] | None = None,
    dims: Mapping[str, str] | None = None,
    scope: str | None = None,
) -> ir.Model:
    """A model with other names; nothing that it computes changes.

    Args:
        tensors: old to new names of tensors, inputs, outputs and weights. Names may be exchanged.
        nodes: the same for nodes; a node without a name is meant by the name of one of its outputs.
        dims: the same for symbolic dimensions, in all shapes of the model.
        scope: the body or function in which tensors and nodes are looked for (``If_3/then_branch``, ``domain::function``), by default
            anywhere. Needed for a name that two branches use.

    Raises:
        UsageError: a name does not exist or is ambiguous, a new one is empty or taken (also by a body or, seen from a body, by the graph
            around it: ONNX allows no shadowing), or two dimensions would become one.
    """
    result = opened(model)
    _rename_tensors(result, tensors or {}, scope)
    _rename_nodes(result, nodes or {}, scope)
    _rename_dims(result, dims or {})
    return must_be_valid(result)


def _rename_tensors(model: ir.Model, tensors: Mapping[str, str], scope: str | None) -> None:
    found = [(*find_value(model, old, scope), new) for old, new in tensors.items()]
    for function in dict.fromkeys(place.function for _, place, _ in found):
        chosen = [(value, new) for value, place, new in found if place.function is function]
        # A name that another body uses too is not free once this tensor has lost it.
        uses = Counter(value.name for place in scopes(model) if place.function is function for value in place.values())
        taken = Names(model, function).tensors - {value.name for value, _ in chosen if uses[value.name] == 1}
        _must_be_free([new for _, new in chosen], taken, say("tensor", "张量"))
        # Through names that nobody has, so that two names can change places.
        for number, (value, _) in enumerate(chosen):
            rename_value(value, f"\0{number}")
        for value, new in chosen:
            rename_value(value, new)


def _rename_nodes(model: ir.Model, nodes: Mapping[str, str], scope: str | None) -> None:
    found = [(*find_node(model, old, scope), new) for old, new in nodes.items()]
    for function in dict.fromkeys(place.function for _, place, _ in found):
        chosen = [(node, new) for node, place, new in found if place.function is function]
        taken = Names(model, function).nodes - {node.name for node, _ in chosen if node.name}
        _must_be_free([new for _, new in chosen], taken, say("node", "节点"))
        for node, new in chosen:
            node.name = new


def _must_be_free(new: list[str], taken: set[str], kind: Text) -> None:
    for name in new:
        if not name or name in taken or new.count(name) > 1:
            raise UsageError(
                say("the name `{name}` for a {kind} is empty or taken", "{kind}名称 `{name}` 为空或已被占用", name=name, kind=kind),
                say("expected a name that the model does not use", "应为模型中未使用的名称"),
                say("choose another one", "请另选名称"),
            )


def _rename_dims(model: ir.Model, dims: Mapping[str, str]) -> None:
    if not dims:
        return
    places = chosen_scopes(model, None)
    symbols = {dim.value for place in places for value in place.values() for dim in value.shape or () if isinstance(dim, ir.SymbolicDim)}
    known = {symbol for symbol in symbols if symbol}
    for old in dims:
        if old not in known:
            raise unknown(say("dimension", "维度"), old, sorted(known))
    _must_be_free(list(dims.values()), known - set(dims), say("dimension", "维度"))
    for place in places:
        rename_symbols(place, dims)


def rename_symbols(place: Scope, dims: Mapping[str, str | int]) -> None:
    """Exchange symbols in all shapes of a graph."""
    for value in place.values():
        shape = value.shape
        if shape is None or value.const_value is not None:
            continue
        new = [dims.get(dim.value, dim) if isinstance(dim, ir.SymbolicDim) and dim.value else dim for dim in shape]
        if new != list(shape):
            value.shape = ir.Shape(new)
