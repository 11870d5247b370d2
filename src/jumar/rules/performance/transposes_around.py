"""PF803: what lies between two Transposes that undo each other, and need not be transposed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, infer_shapes, node_place, used_names
from ...graph.surgery.lookup import drop_dead
from ...text import say
from ..base import Change, Context, Example, ModelRule

# By element: the order of axes does not matter to them. Reductions are not among them, though they could be turned as Softmax is: compilers
# look for the mean and variance of the last axes to make a layer normalisation of them.
_ELEMENTWISE = frozenset((
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Cos", "Div", "Elu",
    "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "Identity", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish", "Mul",
    "Neg", "Not", "Or", "Pow", "PRelu", "Reciprocal", "Relu", "Round", "Selu",
    "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Sub", "Tanh", "Where",
))  # fmt: skip
_SOFTMAX = frozenset(("Softmax", "LogSoftmax"))
_LARGEST = 256
"""Nodes of a region."""


@dataclass
class _Region:
    """Nodes that read transposed tensors and constants only, and are read through the opposite Transpose only.

    Attributes:
        perm: axis i of a tensor inside is axis ``perm[i]`` of what was transposed.
    """

    perm: tuple[int, ...]
    nodes: set[ir.Node] = field(default_factory=set)
    sources: set[ir.Node] = field(default_factory=set)
    sinks: set[ir.Node] = field(default_factory=set)


def _perm(node: ir.Node | None, graph: ir.Graph) -> tuple[int, ...] | None:
    """Of a Transpose of this graph."""
    if node is None or node.op_type != "Transpose" or node.domain not in ("", "ai.onnx") or node.graph is not graph:
        return None
    return tuple(node.attributes["perm"].as_ints()) if "perm" in node.attributes else None


def _axis(node: ir.Node, rank: int, opset: int) -> int:
    """The axis of a Softmax or Concat, counted from the front."""
    given = node.attributes.get("axis")
    return (given.as_int() if given is not None else -1 if opset >= 13 else 1) % rank


def _moves(node: ir.Node, perm: tuple[int, ...], graph: ir.Graph, opset: int) -> bool:
    """Whether the node can work on the tensors as they were before they were transposed."""
    if node.domain not in ("", "ai.onnx") or node.graph is not graph:
        return False
    if node.op_type in _ELEMENTWISE or (node.op_type == "Concat" and "axis" in node.attributes):
        return True
    # Before opset 13 a Softmax means every axis from its own on.
    last = len(perm) - 1
    return node.op_type in _SOFTMAX and (opset >= 13 or _axis(node, len(perm), opset) == perm[last] == last)


def _operands(node: ir.Node) -> list[ir.Value]:
    """The inputs that are laid out like the output: not bounds."""
    return [value for value in (node.inputs[:1] if node.op_type == "Clip" else node.inputs) if value is not None]


def _region(sink: ir.Node, graph: ir.Graph, opset: int) -> _Region | None:
    """What lies between this Transpose and the ones that it undoes."""
    back = _perm(sink, graph)
    if back is None or back == tuple(sorted(back)) or sink.inputs[0] is None:
        return None
    region = _Region(tuple(int(axis) for axis in np.argsort(back)))
    waiting, seen = [sink.inputs[0]], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        maker = value.producer()
        if maker is not None and _perm(maker, graph) == region.perm:
            region.sources.add(maker)
            continue
        if maker is None or value.is_graph_output() or not _moves(maker, region.perm, graph, opset) or len(region.nodes) >= _LARGEST:
            return None
        region.nodes.add(maker)
        for operand in _operands(maker):
            constant = constant_of(operand)
            if constant is None:
                waiting.append(operand)
            elif constant.ndim > len(region.perm):
                return None
        for user, _ in value.uses():
            if _perm(user, graph) == back:
                region.sinks.add(user)
            elif _moves(user, region.perm, graph, opset) and value in _operands(user):
                waiting += user.outputs
            else:
                return None
    return region if region.nodes and region.sources else None


def _regions(model: ir.Model, opset: int) -> Iterator[_Region]:
    """All regions; they do not overlap."""
    ended = set[ir.Node]()
    for node in list(model.graph):
        region = None if node.op_type != "Transpose" or node in ended else _region(node, model.graph, opset)
        if region is not None:
            ended |= region.sinks
            yield region


def _turned(
    builder: Builder, value: ir.Value | None, untransposed: Mapping[ir.Value, ir.Value | None], perm: Sequence[int]
) -> ir.Value | None:
    """An operand as it was before it was transposed; a constant that has axes is turned the other way."""
    constant = None if value is None else constant_of(value)
    if value is None or constant is None:
        return None if value is None else untransposed[value]
    if constant.size == 1 and constant.ndim <= 1:
        return value
    whole = constant.reshape([1] * (len(perm) - constant.ndim) + list(constant.shape))
    return builder.const(np.transpose(whole, np.argsort(perm)), name="untransposed")


def _untranspose(model: ir.Model, region: _Region, rule: str, opset: int) -> None:
    """Make the nodes of a region again on what was transposed, and let the readers of the last Transposes read these."""
    names = used_names(model)
    untransposed = {source.outputs[0]: source.inputs[0] for source in region.sources}
    for node in [item for item in model.graph if item in region.nodes]:
        builder = Builder(model, node, rule, names)
        inputs = [_turned(builder, value, untransposed, region.perm) if value in _operands(node) else value for value in node.inputs]
        attributes: dict[str, Any] = {}
        if node.op_type == "Concat" or node.op_type in _SOFTMAX:
            attributes["axis"] = region.perm[_axis(node, len(region.perm), opset)]
        result = builder.op(node.op_type, *inputs, **attributes)
        for name, attribute in node.attributes.items():
            builder.made[-1].attributes.setdefault(name, attribute)
        result.type = node.outputs[0].type
        untransposed[node.outputs[0]] = result
    for sink in region.sinks:
        inside = sink.inputs[0]
        new = None if inside is None else untransposed[inside]
        assert new is not None  # no Transpose goes without its operand
        Builder(model, sink, rule, names).replace(sink.outputs[0], new)
    model.graph.remove(region.sinks, safe=True)
    model.graph.remove(region.nodes, safe=True)
    unread = [source for source in region.sources if not source.outputs[0].uses() and not source.outputs[0].is_graph_output()]
    model.graph.remove(unread, safe=True)


class TransposesAround(ModelRule):
    code = "PF803"
    name = "transposes-around"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 76
    bound = 1e-6
    measure = "max_scaled"
    DOC_EN = """
    What: Transposes before and after nodes that do not mind the order of axes (arithmetic by element, Softmax, Concat), where the last undo the first.

    Why on Ascend: a Transpose moves every element through memory and does nothing else. Seven of 388 models in the public model zoo had those around a Softmax taken out by hand.

    Fix: the nodes work on the tensors as they were before; their axes and constants are turned instead, and the Transposes go.

    Fix safety: safe within 1e-6 of the largest element: sums are the same ones, which a kernel may add in another order. Left alone where a result is read in the transposed order too, where a reduction lies between (a compiler may see a layer normalisation of the last axes in it), and for Softmax before opset 13 unless its axis stays the last. That it is faster was not measured here, as no device was at hand.

    Evidence: hand-made changes in the public ModelZoo-PyTorch; proven on the user's model.
    """
    DOC_ZH = """
    问题：一些节点不在意各维的次序（逐元素运算、Softmax、Concat），其前后各有 Transpose，且后者抵消前者。

    在昇腾上的原因：Transpose 要把每个元素搬移一次，除此之外什么也不做。公开模型库的 388 个模型中有 7 个手工去掉了 Softmax 前后的 Transpose。

    修复：这些节点直接在转置之前的张量上计算，相应调整其 axis 与常量，并去掉 Transpose。

    修复安全性：误差在最大元素的 1e-6 以内为安全：求和的各项相同，只是算子实现可能以其他次序相加。转置后的结果另有读取者时不改写；其间有归约时也不改写（编译器可能从中识别出对最后几维的层归一化）；opset 13 之前的 Softmax 只有在其 axis 仍是最后一维时才改写。由于没有设备，未测量速度。

    依据：公开的 ModelZoo-PyTorch 中的手工修改；在用户的模型上证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (float[2,3,4] y) <float[3] bias = {0.5, -1.0, 2.0}> {
            t = Transpose<perm = [0, 2, 1]>(x) a = Add(t, bias) r = Relu(a) y = Transpose<perm = [0, 2, 1]>(r)
        }
        """,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (float[2,3,4] y) {
            t = Transpose<perm = [0, 2, 1]>(x) s = Softmax<axis = -1>(t) y = Transpose<perm = [0, 2, 1]>(s)
        }
        """,
            opsets=(13, 18),
            edges=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for region in _regions(ctx.model, ctx.opset):
            first = next(node for node in ctx.model.graph if node in region.sources)
            yield self.finding(
                say(
                    "{count} Transposes around {inside} nodes undo each other",
                    "{inside} 个节点前后的 {count} 个 Transpose 相互抵消",
                    count=len(region.sources) + len(region.sinks),
                    inside=len(region.nodes),
                ),
                say("a Transpose only moves elements, all of them", "Transpose 只是搬移全部元素"),
                say("leave the tensors as they are", "保持张量原有的次序"),
                place=node_place(first),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        done = []
        # One region may end where another begins, so each is looked for in the model as the last one left it.
        while (region := next(_regions(model, ctx.opset), None)) is not None:
            done += [node_place(node) for node in model.graph if node in region.sources | region.sinks]
            _untranspose(model, region, self.code, ctx.opset)
        if not done:
            return None
        drop_dead(model, model.graph, ())
        infer_shapes(model, forget=True)
        return Change(tuple(done))
