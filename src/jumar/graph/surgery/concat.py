"""Join two models: outputs of the first feed inputs of the second."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from ...errors import UsageError
from ...text import say
from ..shapes import infer_shapes, known_shape
from ..walk import model_opset
from .guest import adopt_functions, cannot_meet, converted, move_in, must_share_domains, rename_clashes
from .lookup import AnyModel, Names, Scope, described, differ, drop_dead, must_be_valid, opened, scopes, unknown
from .rename import rename_symbols


def concat(
    first: AnyModel, second: AnyModel, io_map: Mapping[str, str] | None = None, *, prefix: str = "second/", keep_outputs: bool = False
) -> ir.Model:
    """One model of two. ``io_map`` says which output of ``first`` feeds which input of ``second``.

    Without ``io_map``, outputs and inputs of the same name are joined; where there are none, the one output to the one input. All other
    inputs and outputs of both stay. Where both use a name (of a tensor, node, or symbolic dimension) that of ``second`` gets ``prefix``;
    a dimension at the seam takes the name or size that ``first`` gives it. The result has the higher opset and IR version of the two.

    Args:
        io_map: outputs of ``first`` to inputs of ``second``; an output may feed several inputs by a second call of :func:`rename` first.
        prefix: for names of ``second`` that ``first`` has too.
        keep_outputs: outputs of ``first`` that feed ``second`` stay outputs.

    Raises:
        UsageError: no such output or input, nothing to join, dtype or shape that do not fit at the seam, or opsets that cannot be brought
            together (with the reason).
    """
    one, two = opened(first), opened(second)
    must_share_domains(one, two)
    one, two = _same_opset(one, two)
    pairs = _pairs(one, two, io_map)
    for source, target in pairs:
        if differ(source, target):
            raise UsageError(
                say("`{name}` is {found}", "`{name}` 为 {found}", name=source.name, found=described(source)),
                say("expected {wanted}, as `{name}` is", "应与 `{name}` 相同，为 {wanted}", wanted=described(target), name=target.name),
                say("put a Cast, Reshape or Transpose in between (jumar.graph.insert)", "请用 jumar.graph.insert 在其间加入转换算子"),
            )
    _join_dims(one, two, pairs, prefix)
    one.ir_version = max(one.ir_version, two.ir_version)
    for domain, version in two.opset_imports.items():
        one.opset_imports.setdefault(domain, version)
    for key, text in two.metadata_props.items():
        one.metadata_props.setdefault(key, text)
    adopt_functions(one, two)
    _join_graphs(one, two, pairs, prefix, keep_outputs)
    infer_shapes(one)
    return must_be_valid(one)


def _same_opset(one: ir.Model, two: ir.Model) -> tuple[ir.Model, ir.Model]:
    """Both at the higher opset or, where the lower cannot be raised, at the lower."""
    versions = model_opset(one), model_opset(two)
    if not all(versions) or versions[0] == versions[1]:
        return one, two
    low, high = (one, two) if versions[0] < versions[1] else (two, one)
    raised, reason = converted(low, max(versions))
    if raised is not None:
        return (raised, high) if low is one else (high, raised)
    lowered, _ = converted(high, min(versions))
    if lowered is None:
        raise cannot_meet(min(versions), max(versions), reason)
    return (low, lowered) if low is one else (lowered, low)


def _pairs(one: ir.Model, two: ir.Model, io_map: Mapping[str, str] | None) -> list[tuple[ir.Value, ir.Value]]:
    outputs = {value.name or "": value for value in one.graph.outputs}
    inputs = {value.name or "": value for value in two.graph.inputs}
    needed = [name for name, value in inputs.items() if not value.is_initializer()]
    if io_map is None:
        io_map = {name: name for name in outputs if name in inputs}
        if not io_map and len(outputs) == 1 and len(needed) == 1:
            io_map = {next(iter(outputs)): needed[0]}
    for output, target in io_map.items():
        if output not in outputs:
            raise unknown(say("output", "输出"), output, outputs)
        if target not in inputs:
            raise unknown(say("input", "输入"), target, inputs)
    if not io_map or len(set(io_map.values())) != len(io_map):
        raise UsageError(
            say("nothing says which output feeds which input, or two feed one", "未指明输出与输入的对应关系，或两个输出对应同一输入"),
            say("expected io_map, from outputs of the first to inputs of the second", "应给出 io_map：由前者的输出到后者的输入"),
            say(
                "outputs: {outputs}; inputs: {inputs}",
                "输出：{outputs}；输入：{inputs}",
                outputs=", ".join(outputs),
                inputs=", ".join(needed),
            ),
        )
    return [(outputs[output], inputs[target]) for output, target in io_map.items()]


def _join_dims(one: ir.Model, two: ir.Model, pairs: list[tuple[ir.Value, ir.Value]], prefix: str) -> None:
    """A symbol of the second model that the seam gives a meaning takes it; one that the first uses for something else gets the prefix."""
    meanings: dict[str, set[str | int]] = {}
    for source, target in pairs:
        for given, dim in zip(known_shape(source) or (), known_shape(target) or (), strict=False):
            if isinstance(dim, str) and given is not None:
                meanings.setdefault(dim, set()).add(given)
    used = _symbols(one)
    changes: dict[str, str | int] = {symbol: f"{prefix}{symbol}" for symbol in _symbols(two) if symbol in used}
    changes.update({symbol: found.pop() for symbol, found in meanings.items() if len(found) == 1})
    for scope in scopes(two):
        rename_symbols(scope, changes)


def _symbols(model: ir.Model) -> set[str]:
    shapes = [value.shape for scope in scopes(model) for value in scope.values() if value.shape is not None]
    return {dim.value for shape in shapes for dim in shape if isinstance(dim, ir.SymbolicDim) and dim.value}


def _join_graphs(one: ir.Model, two: ir.Model, pairs: list[tuple[ir.Value, ir.Value]], prefix: str, keep_outputs: bool) -> None:
    graph, names = one.graph, Names(one)
    joined = {target: source for source, target in pairs}
    for target in joined:  # a default value that is now never used
        if target.is_initializer():
            two.graph.initializers.pop(target.name or "")
            target.const_value = None
    wanted = [value.name or "" for value in two.graph.outputs]
    changed = rename_clashes(two, names, prefix)
    names.tensors.difference_update(target.name or "" for target in joined)
    rest = [value for value in two.graph.inputs if value not in joined]
    defaults = [value for value in rest if value.is_initializer()]
    if not keep_outputs:
        used = set(joined.values())
        kept = [value for value in graph.outputs if value not in used]
        graph.outputs.clear()
        graph.outputs.extend(kept)
    given = [value for value in two.graph.inputs if not value.is_initializer()]
    nodes, outputs = move_in(two.graph, Scope("", graph), [joined.get(value, value) for value in given], names)
    graph.extend(nodes)
    graph.inputs.extend([value for value in rest if value not in defaults] + defaults)
    for value, name in zip(outputs, wanted, strict=True):
        graph.outputs.append(_own_output(graph, value, changed.get(name, name), names))
    drop_dead(one, graph, ())


def _own_output(graph: ir.Graph, value: ir.Value, name: str, names: Names) -> ir.Value:
    """The output of the second model. Where it is an input, a weight, or a tensor of the first, an Identity makes it."""
    if value.producer() is not None and value.name == name and not value.is_graph_output():
        return value
    result = ir.Value(name=names.tensor(name if all(item.name != name for item in graph.outputs) else f"{name}_output"))
    result.type, result.shape = value.type, value.shape
    graph.append(ir.node("Identity", [value], outputs=[result], name=names.node(f"{name}/Identity")))
    return result
