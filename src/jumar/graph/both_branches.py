"""An If on values of the run time: both branches are computed, and each output is chosen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import onnx_ir as ir

from ..text import Text, say
from .edit import Builder
from .harmless import WHERE_OPSET, can_choose, choose, hazard
from .ranges import Ranges
from .shapes import constant_of, known_shape, static_shape
from .simplify import Journal
from .simplify.base import Edit
from .simplify.carried import sound_shapes
from .simplify.inline import inline_body, inner_graphs
from .simplify.known import known_scalar
from .walk import bodies, node_place

NODE_LIMIT = 200
"""Nodes of a branch that may be computed for nothing."""
RULE = "GR510"
_STANDARD = ("", "ai.onnx")
_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
# Operators whose work is worth a model of its own for each value of a switch.
_HEAVY = frozenset(("Attention", "Conv", "ConvTranspose", "DeformConv", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN"))


def runtime_ifs(graph: Iterable[ir.Node]) -> list[ir.Node]:
    """The Ifs whose condition is not known, at any depth, inner ones first."""
    found = []
    for node in graph:
        for body in bodies(node):
            found += runtime_ifs(body)
        if node.op_type == "If" and node.domain in _STANDARD and known_scalar(node.inputs[0]) is None:
            found.append(node)
    return found


def compute_both(
    model: ir.Model, ranges_of: Callable[[ir.Model], Ranges], only: Collection[ir.Node] | None = None
) -> tuple[list[str], dict[str, Text]]:
    """Rewrite, in place, every If of which both branches may be computed, the innermost first.

    Args:
        ranges_of: analyses the model as it is, types and shapes inferred.
        only: the nodes to look at (with what is in their bodies); all if None.

    Returns:
        The places of the Ifs that are gone, and by place the reason why each other one stands.
    """
    nodes = runtime_ifs(model.graph if only is None else [node for node in model.graph if node in only])
    if not nodes:
        return [], {}
    sound_shapes(model)
    ranges = ranges_of(model)
    edit = Edit(model, Journal(), 0)
    done, reasons = [], {}
    for node in nodes:
        reason = _obstacle(node, ranges, edit)
        if reason is None:
            done.append(node_place(node))
            _replace(edit, node)
        else:
            reasons[node_place(node)] = reason
    if done:
        sound_shapes(model)
    return done, reasons


def _branches(node: ir.Node) -> tuple[ir.Graph, ir.Graph]:
    return node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()


def _obstacle(node: ir.Node, ranges: Ranges, edit: Edit) -> Text | None:
    """Why both branches may not be computed; None if they may."""
    condition = node.inputs[0]
    if edit.opset < WHERE_OPSET:
        return say("opset {opset} has no Where", "opset {opset} 没有 Where", opset=edit.opset)
    shape = known_shape(condition)
    if condition is None or shape is None or len(shape) > 1:
        return say("its condition is no scalar", "其条件不是标量")
    for branch in _branches(node):
        count = len(branch) + sum(len(inner) for inner in inner_graphs(branch))
        if count > NODE_LIMIT:
            return say(
                "a branch has {count} nodes; {limit} are allowed",
                "有分支包含 {count} 个节点，上限为 {limit}",
                count=count,
                limit=NODE_LIMIT,
            )
    for one, other in zip(*(branch.outputs for branch in _branches(node)), strict=True):
        reason = _differ(one, other)
        if reason is not None:
            return reason
    for branch in _branches(node):
        reason = next((reason for item in branch if (reason := hazard(item, ranges.of)) is not None), None)
        if reason is not None:
            return say("in a branch, {reason}", "某个分支中，{reason}", reason=reason)
    switch = switch_of(node, edit.model)
    heavy = sorted({item.op_type for branch in _branches(node) for item in branch if item.op_type in _HEAVY})
    if switch is not None and heavy:
        return say(
            "`{name}` only switches between two ways of computing, and both would cost time in every run ({ops})",
            "`{name}` 只在两种计算方式之间切换，两者都计算会在每次运行中耗时（{ops}）",
            name=switch[0],
            ops=", ".join(heavy),
        )
    return None


def _differ(one: ir.Value, other: ir.Value) -> Text | None:
    if not isinstance(one.type, ir.TensorType) or not isinstance(other.type, ir.TensorType):
        return say("a result is no tensor", "有结果不是张量")
    shapes = [static_shape(value) for value in (one, other)]
    if None in shapes:
        return say(
            "the shape of its result `{name}` is not fixed", "其结果 `{name}` 的形状不固定", name=(one if shapes[0] is None else other).name
        )
    if shapes[0] != shapes[1]:
        return say("its branches give the shapes {one} and {other}", "两个分支的形状为 {one} 与 {other}", one=shapes[0], other=shapes[1])
    if one.dtype != other.dtype or not can_choose(one.dtype):
        return say("a result is {dtype}", "有结果的类型为 {dtype}", dtype=str(one.dtype))
    return None


def _replace(edit: Edit, node: ir.Node) -> None:
    builder = Builder(edit.model, node, RULE, edit.names)
    condition = scalar(builder, node.inputs[0])
    # The results of the branches by value and shape, before the branches are gone.
    results = [(value.dtype, static_shape(value)) for value in _branches(node)[0].outputs]
    yes, no = (inline_body(edit, node, branch, []) for branch in _branches(node))
    for old, one, other, (dtype, shape) in zip(list(node.outputs), yes, no, results, strict=True):
        if old.uses() or old.is_graph_output():
            builder.replace(old, choose(builder, condition, one, other, dtype or ir.DataType.FLOAT, shape or ()))
    edit.discard(node)


def scalar(builder: Builder, condition: ir.Value | None) -> ir.Value:
    """A condition without dimensions: one of the shape [1] would give a scalar that it chooses a dimension."""
    if condition is None:
        raise ValueError("an If has a condition")
    if static_shape(condition) == ():
        return condition
    made = builder.op("Reshape", condition, builder.const([], "int64", "scalar"))
    made.type, made.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([])
    return made


def switch_of(node: ir.Node, model: ir.Model) -> tuple[str, list[object]] | None:
    """The scalar input of the model that alone decides the condition, and the values it is compared with."""
    names: set[str] = set()
    values: list[object] = []
    waiting, seen = [node.inputs[0]], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value is None or value in seen or constant_of(value) is not None:
            continue
        seen.add(value)
        maker = value.producer()
        if maker is None:
            if (
                value not in model.graph.inputs
                or static_shape(value) not in ((), (1,))
                or value.dtype is None
                or value.dtype.is_floating_point()
            ):
                return None  # data, or a tensor that a loop carries, is no switch
            names.add(value.name or "")
            continue
        if any(True for _ in bodies(maker)):
            return None
        if maker.op_type in _COMPARISONS:
            constants = [constant for item in maker.inputs if (constant := constant_of(item)) is not None and constant.size == 1]
            values += [constant.reshape(-1)[0].item() for constant in constants]
        waiting += maker.inputs
    return (names.pop(), sorted(set(values), key=str)) if len(names) == 1 else None


__all__ = ["NODE_LIMIT", "compute_both", "runtime_ifs", "scalar", "switch_of"]
