"""PF805: convolutions over one axis that follow each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, infer_shapes, known_shape, node_place, used_names
from ...graph.surgery.lookup import drop_dead
from ...text import say
from ..base import Change, Context, Example, ModelRule

_BY_ELEMENT = frozenset((
    "Abs", "Add", "Clip", "Div", "Elu", "Erf", "Exp", "HardSigmoid", "HardSwish", "LeakyRelu", "Max", "Min", "Mish", "Mul",
    "Neg", "Pow", "Relu", "Selu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh",
))  # fmt: skip
_WINDOWS = ("strides", "dilations")


def _fits(node: ir.Node, graph: ir.Graph) -> bool:
    """Whether the node says the same of [N, C, 1, L] as of [N, C, L]."""
    if node.domain not in ("", "ai.onnx") or node.graph is not graph:
        return False
    rank = known_shape(node.outputs[0])
    if rank is None or len(rank) != 3 or node.outputs[0].dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return False
    constants = [None if value is None else constant_of(value) for value in node.inputs]
    if node.op_type in ("Conv", "BatchNormalization"):
        used = [index for index, value in enumerate(node.inputs) if value is not None and index]
        return len(node.outputs) == 1 and constants[0] is None and all(constants[index] is not None for index in used)
    if node.op_type == "Concat":
        return "axis" in node.attributes and all(constant is None for constant in constants)
    if node.op_type not in _BY_ELEMENT:
        return False
    operands = node.inputs[:1] if node.op_type == "Clip" else node.inputs
    for value, constant in zip(operands, constants, strict=False):
        shape = known_shape(value)
        if shape is None or (constant is None and len(shape) != 3) or len(shape) > 3:
            return False
    return any(constant is None for constant in constants)


def _edges(nodes: Sequence[ir.Node]) -> int:
    """Tensors that come into a group and go out of it, each of which takes a node."""
    inside = set(nodes)
    coming = {
        value
        for node in nodes
        for value in (node.inputs if node.op_type in (*_BY_ELEMENT, "Concat") else node.inputs[:1])
        if value is not None and value.producer() not in inside and constant_of(value) is None
    }
    going = [node for node in nodes if _is_read_outside(node.outputs[0], inside)]
    return len(coming) + len(going)


def _is_read_outside(value: ir.Value, inside: Collection[ir.Node]) -> bool:
    return value.is_graph_output() or any(user not in inside for user, _ in value.uses())


def _groups(model: ir.Model) -> Iterator[list[ir.Node]]:
    """Connected nodes with two or more convolutions, in the order of the graph, where fewer nodes change dimensions than do now."""
    able = dict.fromkeys(node for node in model.graph if _fits(node, model.graph))
    group: dict[ir.Node, ir.Node] = {}
    for first in able:
        waiting = [first]
        while waiting:
            node = waiting.pop()
            if node not in able or node in group:
                continue
            group[node] = first
            waiting += [maker for value in node.inputs if value is not None and (maker := value.producer()) is not None]
            waiting += [user for user, _ in node.outputs[0].uses()]
    members: dict[ir.Node, list[ir.Node]] = {}
    for node in able:
        members.setdefault(group[node], []).append(node)
    for nodes in members.values():
        convolutions = sum(node.op_type == "Conv" for node in nodes)
        if convolutions > 1 and _edges(nodes) < 2 * convolutions:
            yield nodes


class _Widener:
    """Makes the nodes of a group again on tensors with one axis more, which has size 1 and stands before the last."""

    def __init__(self, model: ir.Model, rule: str, opset: int) -> None:
        self._model, self._rule, self._opset = model, rule, opset
        self._names = used_names(model)
        self._wide: dict[ir.Value, ir.Value] = {}

    def _along_two(self, builder: Builder, op: str, value: ir.Value) -> ir.Value:
        if self._opset >= 13:
            return builder.op(op, value, builder.const([2], np.int64, "axes"))
        return builder.op(op, value, axes=[2])

    def _operand(self, builder: Builder, node: ir.Node, index: int) -> ir.Value | None:
        value = node.inputs[index]
        constant = None if value is None else constant_of(value)
        if value is None or (node.op_type == "Clip" and index):
            return value
        if constant is not None:
            # Per channel or of one number: these have no axis that moves.
            if constant.ndim < 2:
                return value
            return builder.const(np.expand_dims(constant, -2), name="widened")
        if value not in self._wide:
            self._wide[value] = self._along_two(builder, "Unsqueeze", value)
        return self._wide[value]

    def widen(self, nodes: list[ir.Node]) -> None:
        inside = set(nodes)
        for node in nodes:
            builder = Builder(self._model, node, self._rule, self._names)
            attributes: dict[str, Any] = {}
            if node.op_type == "Conv":
                attributes = {name: [1, node.attributes[name].as_ints()[0]] for name in _WINDOWS if name in node.attributes}
                weight = None if node.inputs[1] is None else constant_of(node.inputs[1])
                if weight is not None:  # a parser may tell by it how many axes there are
                    attributes["kernel_shape"] = [1, weight.shape[2]]
                if "pads" in node.attributes:
                    begin, end = node.attributes["pads"].as_ints()
                    attributes["pads"] = [0, begin, 0, end]
            elif node.op_type == "Concat":
                attributes["axis"] = (0, 1, 3)[node.attributes["axis"].as_int() % 3]
            operands = [self._operand(builder, node, index) for index in range(len(node.inputs))]
            wide = self._wide[node.outputs[0]] = builder.op(node.op_type, *operands, **attributes)
            for name, attribute in node.attributes.items():
                builder.made[-1].attributes.setdefault(name, attribute)
            wide.type = node.outputs[0].type
        for node in nodes:
            old = node.outputs[0]
            if _is_read_outside(old, inside):
                builder = Builder(self._model, node, self._rule, self._names)
                narrow = self._along_two(builder, "Squeeze", self._wide[old])
                narrow.type, narrow.shape = old.type, old.shape
                builder.replace(old, narrow)
        self._model.graph.remove(nodes, safe=True)


class ConvolutionsOfOneAxis(ModelRule):
    code = "PF805"
    name = "convolutions-of-one-axis"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 78
    bound = 1e-5
    measure = "max_scaled"
    DOC_EN = """
    What: two or more convolutions over one axis with nothing but arithmetic by element, BatchNormalization or Concat between them, as speech models have them.

    Why on Ascend: ATC makes a 2-D convolution of each and puts a dimension in before and takes it out after, so that the data changes its format (TransData) around every one of them. Seven of 388 models in the public model zoo were changed by hand, and Huawei's surgeon had a rule for it.

    Fix: the whole group works on [N, C, 1, L]: one Unsqueeze where it begins, one Squeeze where it ends; kernels, strides, dilations, pads and constants get the dimension too.

    Fix safety: safe within 1e-5 of the largest element; every product is the same. Weights must be constant. That it is faster was not measured here, as no device was at hand.

    Evidence: hand-made changes in the public ModelZoo-PyTorch; KnowledgeConv1d2Conv2d of msit; proven on the user's model.
    """
    DOC_ZH = """
    问题：两个或更多沿单个维的卷积相连，其间只有逐元素运算、BatchNormalization 或 Concat，语音模型常见。

    在昇腾上的原因：ATC 会把每个卷积变为二维卷积，并在其前后插入和去掉一维，因此每个卷积前后数据都要转换格式（TransData）。公开模型库的 388 个模型中有 7 个手工做了修改，华为的 surgeon 也有对应规则。

    修复：整组节点在 [N, C, 1, L] 上计算：开始处一个 Unsqueeze，结束处一个 Squeeze；卷积核、步长、膨胀、填充与常量也增加该维。

    修复安全性：误差在最大元素的 1e-5 以内为安全；每个乘积都相同。权重必须为常量。由于没有设备，未测量速度。

    依据：公开的 ModelZoo-PyTorch 中的手工修改；msit 的 KnowledgeConv1d2Conv2d；在用户的模型上证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,8] x) => (float[1,2,8] y)
        <float[2,2,3] w = {1.0, 2.0, -1.0, 0.5, 1.5, -2.0, 1.0, 0.25, 0.75, -1.0, 2.0, 3.0}, float[2] b = {0.5, -0.5}, float[2,1] s = {2.0, 3.0}> {
            a = Conv<pads = [1, 1]>(x, w, b) r = Relu(a) m = Max(r, s) c = Conv<pads = [2, 2], dilations = [2]>(m, w) y = Tanh(c)
        }
        """,
            edges=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        if not ctx.takes("Conv", "Squeeze", "Unsqueeze"):
            return
        for nodes in _groups(ctx.model):
            convolutions = [node for node in nodes if node.op_type == "Conv"]
            yield self.finding(
                say(
                    "{count} convolutions over one axis follow each other",
                    "{count} 个沿单个维的卷积相连",
                    count=len(convolutions),
                ),
                say("the data changes its format around every one of them", "每个卷积前后数据都要转换格式"),
                say("give the group a dimension of size 1", "为整组节点增加一个大小为 1 的维"),
                place=node_place(convolutions[0]),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        groups = list(_groups(model)) if ctx.takes("Conv", "Squeeze", "Unsqueeze") else []
        if not groups:
            return None
        places = tuple(node_place(node) for nodes in groups for node in nodes)
        for nodes in groups:
            _Widener(model, self.code, ctx.opset).widen(nodes)
        drop_dead(model, model.graph, ())
        infer_shapes(model, forget=True)
        return Change(places)
