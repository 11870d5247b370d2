"""GR504: nodes that do nothing, do something twice, or are not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, DeduplicateInitializersPass, RemoveUnusedNodesPass

from ...case import Finding
from ...graph import constant_of, known_shape, model_opset, node_place, replace_value, static_shape
from ...graph.edit import can_take_over
from ...text import say
from ..base import Change, Context, Example, ModelRule

_DEDUPLICATE_LIMIT = 1 << 20


def _is_inference_dropout(node: ir.Node) -> bool:
    """Dropout passes its input through unless training is asked for; a mask that somebody reads keeps the node."""
    if len(node.outputs) > 1 and (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        return False
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return True
    mode = constant_of(node.inputs[2])
    return mode is not None and not bool(mode.reshape(-1)[0])


def _is_same_cast(node: ir.Node) -> bool:
    source = node.inputs[0]
    return (
        source is not None and source.dtype is not None and "to" in node.attributes and source.dtype.value == node.attributes["to"].as_int()
    )


def _is_same_reshape(node: ir.Node) -> bool:
    """Reshape, Expand, Tile, Flatten... to the shape the tensor has already."""
    before, after = static_shape(node.inputs[0]), static_shape(node.outputs[0])
    return before is not None and before == after


def _is_same_transpose(node: ir.Node) -> bool:
    shape = known_shape(node.inputs[0])
    if "perm" in node.attributes:
        permutation = list(node.attributes["perm"].as_ints())
        return permutation == list(range(len(permutation)))
    return shape is not None and len(shape) < 2


def _is_empty_pad(node: ir.Node) -> bool:
    if "pads" in node.attributes:
        return not any(node.attributes["pads"].as_ints())
    pads = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    return pads is not None and not np.any(pads)


def _is_whole_slice(node: ir.Node) -> bool:
    """A Slice that keeps every element, in order: same static shape and no negative step."""
    steps = node.inputs[4] if len(node.inputs) > 4 else None
    values = constant_of(steps)
    if steps is not None and (values is None or bool(np.any(values.astype(np.int64) != 1))):
        return False
    return _is_same_reshape(node)


def _is_single_concat(node: ir.Node) -> bool:
    return len(node.inputs) == 1


_NO_OPS: dict[str, Callable[[ir.Node], bool]] = {
    "Cast": _is_same_cast,
    "Concat": _is_single_concat,
    "Dropout": _is_inference_dropout,
    "Expand": _is_same_reshape,
    "Flatten": _is_same_reshape,
    "Identity": lambda _node: True,
    "Pad": _is_empty_pad,
    "Reshape": _is_same_reshape,
    "Slice": _is_whole_slice,
    "Squeeze": _is_same_reshape,
    "Sum": _is_single_concat,
    "Max": _is_single_concat,
    "Min": _is_single_concat,
    "Mean": _is_single_concat,
    "Tile": _is_same_reshape,
    "Transpose": _is_same_transpose,
    "Unsqueeze": _is_same_reshape,
}


def is_no_op(node: ir.Node) -> bool:
    """Whether the node's first output always equals its first input."""
    test = _NO_OPS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if test is None or not node.inputs or node.inputs[0] is None or not isinstance(node.graph, ir.Graph):
        return False
    return can_take_over(node.outputs[0], node.inputs[0]) and test(node)


def _dead(model: ir.Model) -> list[ir.Node]:
    """Nodes of the main graph from which no graph output can be reached."""
    alive: set[ir.Node] = set()
    waiting = [value.producer() for value in model.graph.outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in alive:
            continue
        alive.add(node)
        waiting += [value.producer() for value in node.inputs if value is not None]
        for attribute in node.attributes.values():
            for graph in (
                [attribute.as_graph()]
                if attribute.type == ir.AttributeType.GRAPH
                else list(attribute.as_graphs())
                if attribute.type == ir.AttributeType.GRAPHS
                else []
            ):
                for inner in ir.traversal.RecursiveGraphIterator(graph):
                    waiting += [value.producer() for value in inner.inputs if value is not None]
                waiting += [value.producer() for value in graph.outputs]
    return [node for node in model.graph if node not in alive]


class RedundantNode(ModelRule):
    code = "GR504"
    name = "redundant-node"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 45
    DOC_EN = """
    What: nodes that pass their input through (Identity, inference Dropout, Cast to the same type, Reshape/Expand/Tile/Slice/Pad that change nothing, identity Transpose, single-input Concat/Sum), compute what another node computes, or are not used.

    Why on Ascend: each may cost a kernel launch or a copy, and dead nodes can still be refused by the parser.

    Fix: they are removed. A Cast pair that truncates is not touched; the order of inputs is kept.

    Fix safety: safe; equal in every element.

    Evidence: ONNX operator definitions.
    """
    DOC_ZH = """
    问题：直接透传输入的节点（Identity、推理态 Dropout、同类型 Cast、不改变内容的 Reshape/Expand/Tile/Slice/Pad、恒等 Transpose、单输入 Concat/Sum）、重复计算的节点，以及未被使用的节点。

    在昇腾上的原因：每个都可能带来一次算子下发或拷贝；未使用的节点仍可能被解析器拒绝。

    修复：将其删除。会截断的 Cast 对不做改动；输入顺序保持不变。

    修复安全性：安全；逐元素相等。

    依据：ONNX 算子定义。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y)
        <int64[2] shape = {2, 3}> { a = Identity(x) b = Reshape(a, shape) c = Transpose<perm = [0, 1]>(b) d = Cast<to = 1>(c) y = Relu(d) }
        """),
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { a = Exp(x) b = Exp(x) unused = Abs(x) y = Add(a, b) }
        """),
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Identity(a) }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        no_ops = [node for node in ctx.model.graph if is_no_op(node)]
        dead = _dead(ctx.model)
        twins = _twins(ctx.model)
        if no_ops or dead or twins:
            redundant = [node_place(node) for node in dict.fromkeys([*no_ops, *twins, *dead])]
            yield self.finding(
                say(
                    "{count} nodes are redundant: pass their input through ({passed}), repeat another ({twins}), are not used ({dead}): {places}{more}",
                    "{count} 个节点是多余的：透传输入（{passed}）、与其他节点重复（{twins}）、未被使用（{dead}）：{places}{more}",
                    count=len(redundant),
                    passed=len(no_ops),
                    twins=len(twins),
                    dead=len(dead),
                    places=", ".join(f"`{place}`" for place in redundant[:3]),
                    more=", ..." if len(redundant) > 3 else "",
                ),
                say("each may cost a kernel launch or a copy", "每个都可能带来一次算子下发或拷贝"),
                say("remove them", "请将其删除"),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        before = {node_place(node) for node in model.graph}
        count = len(model.graph)
        RemoveUnusedNodesPass()(model)
        for node in list(model.graph):
            if is_no_op(node):
                source = node.inputs[0]
                if source is not None:
                    replace_value(node.outputs[0], source)
                    model.graph.remove(node, safe=True)
        DeduplicateInitializersPass(size_limit=_DEDUPLICATE_LIMIT)(model)
        CommonSubexpressionEliminationPass(size_limit=1024)(model)
        RemoveUnusedNodesPass()(model)
        if len(model.graph) == count:
            return None
        after = {node_place(node) for node in model.graph}
        return Change(tuple(sorted(before - after)))


def _twins(model: ir.Model) -> list[ir.Node]:
    """Nodes that repeat an earlier one: same operator, attributes and inputs (what the library's elimination pass merges)."""
    seen: set[object] = set()
    found: list[ir.Node] = []
    if model_opset(model) == 0:
        return found
    for node in model.graph:
        if node.op_type == "Constant" or _has_body(node) or _is_random(node):
            continue
        key = (
            node.domain,
            node.op_type,
            node.overload,
            tuple(_content(value) for value in node.inputs),
            len(node.outputs),
            tuple(sorted((name, repr(attribute.value)) for name, attribute in node.attributes.items())),
        )
        if key in seen and not any(value.is_graph_output() for value in node.outputs):
            found.append(node)
        seen.add(key)
    return found


def _content(value: ir.Value | None) -> object:
    """A small weight is known by its content, anything else by itself."""
    tensor = None if value is None or value.is_graph_input() else value.const_value
    if tensor is None or tensor.nbytes > 1024 or tensor.dtype == ir.DataType.STRING:
        return id(value)
    return tensor.dtype, str(tensor.shape), tensor.tobytes()


def _has_body(node: ir.Node) -> bool:
    return any(attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for attribute in node.attributes.values())


def _is_random(node: ir.Node) -> bool:
    return node.op_type.startswith("Random") or node.op_type in ("Multinomial", "Bernoulli", "Dropout")
