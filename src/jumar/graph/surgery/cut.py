"""Pieces of a model: extract, cut in two, choose outputs and inputs, pin shapes. Every function returns a new model and shares the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from ...errors import ShapeError, UsageError
from ...text import say
from ..edit import rename_value
from ..shapes import infer_shapes, known_shape, pin_shapes
from .lookup import (
    AnyModel,
    Names,
    captures,
    discard,
    drop_dead,
    must_be_distinct,
    must_be_valid,
    opened,
    reads,
    unknown,
)

# What these make is another tensor every time: doing it twice, once in each half, is not the same as doing it once.
_RANDOM = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"})


def extract(model: AnyModel, inputs: Sequence[str], outputs: Sequence[str]) -> ir.Model:
    """The part of a model between tensors of its main graph, as a model of its own.

    Args:
        inputs: tensors that become inputs, in this order: graph inputs, results of nodes, or weights (which are then fed).
        outputs: tensors that become outputs, in this order. An input asked for as an output comes out as ``<name>_output``.

    Kept are what ``outputs`` need, the bodies and functions these nodes use, opset imports and metadata. Unknown dtypes and shapes at the
    ends are inferred.

    Raises:
        UsageError: a tensor does not exist (the nearest names are listed), ``inputs`` do not bound ``outputs`` (the missing ones are
            named), or dtype or rank of an end is not known.
    """
    must_be_distinct(inputs, say("inputs", "输入"))
    must_be_distinct(outputs, say("outputs", "输出"))
    if not outputs:
        raise UsageError(say("no outputs are named", "未指定输出"), None, say("name at least one tensor", "请至少指定一个张量"))
    result = opened(model)
    values = _main_values(result)
    for name in (*inputs, *outputs):
        if name not in values:
            raise unknown(say("tensor in its main graph", "主图张量"), name, values)
    _know_types(result, [values[name] for name in (*inputs, *outputs)])
    kept, defaults = _needed(result, {values[name] for name in inputs}, [values[name] for name in outputs])
    _rebuild(result, [values[name] for name in inputs], [values[name] for name in outputs], kept, defaults)
    return must_be_valid(result)


def _main_values(model: ir.Model) -> dict[str, ir.Value]:
    found = {value.name: value for value in (*model.graph.inputs, *model.graph.initializers.values()) if value.name}
    found.update({value.name: value for node in model.graph for value in node.outputs if value.name})
    return found


def _know_types(model: ir.Model, ends: Sequence[ir.Value]) -> None:
    def is_open(value: ir.Value) -> bool:
        return value.type is None or (isinstance(value.type, ir.TensorType) and value.shape is None)

    if any(is_open(value) for value in ends):
        infer_shapes(model)
    for value in ends:
        if is_open(value):
            raise UsageError(
                say("dtype or rank of `{name}` is not known", "`{name}` 的数据类型或维数未知", name=value.name),
                say("expected a tensor whose type can be inferred", "应为可推断类型的张量"),
                say(
                    "simplify the model or pin its input shapes first, or choose another tensor",
                    "请先简化模型或固定输入形状，或选择其他张量",
                ),
            )


def _needed(model: ir.Model, inputs: set[ir.Value], outputs: Sequence[ir.Value]) -> tuple[set[ir.Node], list[ir.Value]]:
    """Nodes between the ends, and inputs with a default value that are needed but not given."""
    kept, defaults, missing = set[ir.Node](), dict[ir.Value, None](), dict[str, None]()
    seen, waiting = set(inputs), [value for value in outputs if value not in inputs]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        producer = value.producer()
        if producer is not None:
            if producer not in kept:
                kept.add(producer)
                waiting += reads(producer)
        elif value.is_initializer():
            if value.is_graph_input():
                defaults[value] = None
        else:
            missing[value.name or ""] = None
    if missing:
        order = [value.name for value in model.graph.inputs if value.name in missing] or list(missing)
        raise UsageError(
            say(
                "the outputs also need {names}, which the given inputs do not replace",
                "这些输出还需要 {names}，给定的输入无法替代",
                names=", ".join(f"`{name}`" for name in order),
            ),
            say("expected inputs that bound the outputs", "输入应能界定输出"),
            say("name them among the inputs too", "请一并列入输入"),
        )
    return kept, [value for value in model.graph.inputs if value in defaults]


def _rebuild(
    model: ir.Model, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], kept: set[ir.Node], defaults: Sequence[ir.Value]
) -> None:
    graph, names = model.graph, Names(model)
    graph.outputs.clear()
    heads: dict[ir.Value, ir.Value] = {}
    for value in inputs:
        head = heads[value] = value
        if value.is_initializer():
            graph.initializers.pop(value.name or "")
            value.const_value = None
        if value.producer() is not None:
            head = heads[value] = ir.Value(name=value.name, type=value.type, shape=value.shape)
            head.metadata_props.update(value.metadata_props)
            value.replace_all_uses_with(head)
            value.name = names.tensor(f"{head.name}_unused")
    dropped = [node for node in graph if node not in kept]
    graph.inputs.clear()
    discard(graph, dropped)
    graph.inputs.extend([*heads.values(), *defaults])
    for value in outputs:
        graph.outputs.append(_as_output(graph, heads.get(value, value), value in heads, names))
    drop_dead(model, graph, ())


def _as_output(graph: ir.Graph, value: ir.Value, is_input: bool, names: Names) -> ir.Value:
    """The tensor, or a copy of it by an Identity where an input or a weight is to be an output."""
    if value.producer() is not None:
        return value
    name = value.name or ""
    if is_input or value.is_graph_input():
        name = names.tensor(f"{name}_output")
    else:
        rename_value(value, names.tensor(f"{name}_weight"))
    result = ir.Value(name=name, type=value.type, shape=value.shape)
    graph.append(ir.node("Identity", [value], outputs=[result], name=names.node(f"{name}/Identity")))
    return result


@dataclass(frozen=True)
class Cut:
    """Two models that together are one: ``before, after = cut(...)``.

    Attributes:
        before: makes the tensors of the cut; with them the ``carried`` ones.
        after: the rest. Its inputs are tensors of the cut, ``carried`` ones, and inputs of the original.
        carried: tensors that pass beside the cut, from ``before`` to ``after``, although they were not named.
    """

    before: ir.Model
    after: ir.Model
    carried: tuple[str, ...]

    def __iter__(self) -> Iterator[ir.Model]:
        return iter((self.before, self.after))


def cut(model: AnyModel, tensors: Sequence[str]) -> Cut:
    """Cut a model in two at tensors of its main graph.

    ``before`` holds what these tensors need, ``after`` all else. An output of the original that ``before`` makes is an output of
    ``before`` only. Constants stay with who reads them; what only constants make is made on both sides. To run both one after the other,
    feeding ``after`` from the inputs and from the outputs of ``before``, gives the outputs of the original.

    Raises:
        UsageError: a tensor does not exist or is no result of a node, or nothing but it is left for one of the two.
    """
    must_be_distinct(tensors, say("tensors", "张量"))
    whole = opened(model)
    values = _main_values(whole)
    for name in tensors:
        if name not in values:
            raise unknown(say("tensor in its main graph", "主图张量"), name, values)
        if values[name].producer() is None:
            raise UsageError(
                say("`{name}` is an input or a weight", "`{name}` 是输入或权重", name=name),
                say("expected results of nodes", "应为节点的结果"),
                say("cut at a tensor that a node makes", "请在节点产生的张量处切分"),
            )
    front, front_inputs = _ancestors([values[name] for name in tensors])
    ends = [value for value in whole.graph.outputs if value.producer() not in front and value.name not in tensors]
    if not tensors or not ends:
        raise UsageError(
            say("nothing is left on one side of the cut", "切分后有一侧为空"),
            say("expected tensors inside the model", "应为模型内部的张量"),
            say("cut further from the ends", "请在离两端更远处切分"),
        )
    crossing, back_inputs = _crossing(ends, front)
    carried = [value.name or "" for value in crossing if value.name not in tensors]
    early = [value.name or "" for value in whole.graph.outputs if value.producer() in front]
    given = [value for value in whole.graph.inputs if not value.is_initializer()]
    spare = [value for value in given if value not in front_inputs and value not in back_inputs]
    first_inputs = [value.name or "" for value in given if value in front_inputs or value in spare]
    before = extract(whole, first_inputs, list(dict.fromkeys([*tensors, *carried, *early])))
    second_inputs = [value.name or "" for value in crossing] + [value.name or "" for value in given if value in back_inputs]
    after = extract(whole, second_inputs, [value.name or "" for value in ends])
    return Cut(before, after, tuple(carried))


def _ancestors(values: Sequence[ir.Value]) -> tuple[set[ir.Node], set[ir.Value]]:
    """Nodes that values need, and the graph inputs among what these read."""
    nodes, inputs, waiting = set[ir.Node](), set[ir.Value](), list(values)
    while waiting:
        value = waiting.pop()
        producer = value.producer()
        if producer is None:
            inputs.add(value)
        elif producer not in nodes:
            nodes.add(producer)
            waiting += reads(producer)
    return nodes, inputs


def _crossing(ends: Sequence[ir.Value], front: set[ir.Node]) -> tuple[list[ir.Value], set[ir.Value]]:
    """What the rest reads from the front (in the order in which it is made), and what it reads that no node makes."""
    crossing, free, seen, waiting = set[ir.Value](), set[ir.Value](), set[ir.Value](), list(ends)
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        producer = value.producer()
        if producer is None:
            free.add(value)
        elif producer in front and not _is_constant(producer):
            crossing.add(value)
        else:
            waiting += reads(producer)
    graph = next(iter(ends)).graph
    ordered = [] if graph is None else [value for node in graph for value in node.outputs if value in crossing]
    return ordered, free


def _is_constant(node: ir.Node) -> bool:
    """Whether a node makes the same from constants alone, so that it may stand on both sides."""
    nodes, inputs = _ancestors(list(node.outputs))
    if any(item.op_type in _RANDOM or item.domain not in ("", "ai.onnx") or captures(item) for item in nodes):
        return False
    return all(value.is_initializer() and not value.is_graph_input() for value in inputs)


def set_outputs(model: AnyModel, outputs: Sequence[str]) -> ir.Model:
    """The model with these tensors of its main graph as outputs, in this order: to add, remove or reorder outputs.

    All inputs stay; nodes that no output needs any more go.

    Raises:
        UsageError: as :func:`extract`.
    """
    whole = opened(model)
    return extract(whole, [value.name or "" for value in whole.graph.inputs if not value.is_initializer()], outputs)


def set_inputs(model: AnyModel, inputs: Sequence[str]) -> ir.Model:
    """The model with these inputs, in this order: to reorder inputs, to drop unused ones, or to feed an inner tensor or a weight.

    Raises:
        UsageError: as :func:`extract`.
    """
    whole = opened(model)
    return extract(whole, inputs, [value.name or "" for value in whole.graph.outputs])


def pin(model: AnyModel, shapes: Mapping[str, Sequence[int]]) -> ir.Model:
    """The model with inputs of these sizes; a symbol that thereby has a value is filled in everywhere.

    Raises:
        ShapeError: no such input, another rank, a size below 0, or a size that contradicts the model.
    """
    result = opened(model)
    inputs = {value.name or "": value for value in result.graph.inputs}
    for name, sizes in shapes.items():
        if name not in inputs:
            error = unknown(say("input", "输入"), name, inputs)
            raise ShapeError(error.found, error.expected, error.remedy)
        shape = known_shape(inputs[name])
        wrong = any(size < 0 for size in sizes) or (
            shape is not None
            and (len(shape) != len(sizes) or any(isinstance(dim, int) and dim != size for dim, size in zip(shape, sizes, strict=True)))
        )
        if wrong:
            raise ShapeError(
                say("`{name}` cannot have the shape {sizes}", "`{name}` 的形状不能为 {sizes}", name=name, sizes=list(sizes)),
                say("the model says {shape}", "模型中为 {shape}", shape=list(shape or ())),
                say("give sizes for its open dimensions", "请为其未定维度给出大小"),
            )
    pin_shapes(result, {name: tuple(sizes) for name, sizes in shapes.items()})
    return result
