"""Which nodes can be computed in int8, and why the others cannot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from ..cutting.work import work_of
from ..graph import all_nodes, constant_of, copy_model, infer_shapes, node_place
from ..targets import Status, Target, support
from ..text import Text, say

QUANTISABLE = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_CARRIERS = ("AscendQuant", "AscendDequant")
_WEIGHTLESS = ("AveragePool", "GlobalAveragePool")
_RECURRENT = ("LSTM", "GRU", "RNN")


@dataclass(frozen=True, eq=False)
class Layer:
    """A node with a constant weight, and what belongs to it.

    Attributes:
        name: unique; the node's own name wherever it has one.
        bias_add: of a MatMul, the Add of a constant that alone reads it; it becomes part of the layer.
        axis: of the output channels in the weight; None: one scale for all (AMCT's rule for Gemm and MatMul).
        work: multiply-adds on the shapes the model has.
    """

    name: str
    node: ir.Node
    weight: np.ndarray
    bias: np.ndarray | None
    bias_add: ir.Node | None
    axis: int | None
    work: int

    @property
    def op(self) -> str:
        return self.node.op_type

    @property
    def data(self) -> ir.Value:
        """The activation it reads."""
        value = self.node.inputs[0]
        assert value is not None
        return value

    @property
    def output(self) -> ir.Value:
        """The float tensor it makes, with the bias."""
        return (self.bias_add or self.node).outputs[0]

    @property
    def channels(self) -> int:
        """Of the output."""
        if self.op == "ConvTranspose":
            return int(self.weight.shape[1]) * self.group
        return int(self.weight.shape[-1] if self.op == "MatMul" or (self.op == "Gemm" and not self.transposed) else self.weight.shape[0])

    @property
    def group(self) -> int:
        return int(self.node.attributes.get_int("group", 1))

    @property
    def transposed(self) -> bool:
        """Whether a Gemm reads its weight transposed."""
        return bool(self.node.attributes.get_int("transB", 0))

    @property
    def input_axis(self) -> int | None:
        """Axis of the input's channels, for the mean of each."""
        return 1 if self.op in ("Conv", "ConvTranspose", "Gemm") else None

    @property
    def is_depthwise(self) -> bool:
        return self.op == "Conv" and self.group > 1 and self.weight.shape[1] == 1


@dataclass(frozen=True)
class Refusal:
    """A node that multiplies and stays in floats, and why."""

    name: str
    op: str
    reason: Text
    work: int


@dataclass(frozen=True)
class Survey:
    """All layers in the order of execution, and the nodes that could have been ones."""

    layers: tuple[Layer, ...]
    refused: tuple[Refusal, ...]

    @property
    def work(self) -> int:
        """Multiply-adds of the whole model."""
        return sum(item.work for item in self.layers) + sum(item.work for item in self.refused)


def survey(model: ir.Model, target: Target | None = None, feeds: Mapping[str, Any] | None = None) -> Survey:
    """Look at every node that multiplies by something.

    Args:
        feeds: a sample; open sizes are counted as it has them.
    """
    shaped = _shaped(model, feeds or {})
    layers: list[Layer] = []
    refused: list[Refusal] = []
    names: set[str] = set()
    barrier = _barrier(target, model.opset_imports.get("", 1))
    for node in all_nodes(model):
        if node.domain not in ("", "ai.onnx") or node.op_type not in (*QUANTISABLE, *_WEIGHTLESS, *_RECURRENT):
            continue
        name = _name(node, names)
        reason = barrier if node.graph is model.graph else say("it is inside a branch or a loop", "位于分支或循环内部")
        work = 0 if node.op_type in _WEIGHTLESS else work_of(shaped.get(node, node))
        if reason is None:
            found = _layer(node, name, work)
            if isinstance(found, Layer):
                layers.append(found)
                continue
            reason = found
        refused.append(Refusal(name, node.op_type, reason, work))
    return Survey(tuple(layers), tuple(refused))


def _shaped(model: ir.Model, feeds: Mapping[str, Any]) -> dict[ir.Node, ir.Node]:
    """The nodes of a copy with the sizes of a sample, where the model's are open."""
    if all(value.shape is not None and value.shape.is_static() for value in model.graph.inputs) or not feeds:
        return {}
    copy = copy_model(model)
    for value in copy.graph.inputs:
        if (value.name or "") in feeds:
            value.shape = ir.Shape(feeds[value.name or ""].shape)
    for node in copy.graph:
        for output in node.outputs:
            output.shape = None
    infer_shapes(copy)
    return dict(zip(model.graph, copy.graph, strict=True))


def _barrier(target: Target | None, opset: int) -> Text | None:
    """Why nothing at all can be quantised for this target."""
    if target is None:
        return None
    for op in _CARRIERS:
        answer = support("", op, min(max(opset, target.opset_min), target.opset_max), target)
        if answer.status is not Status.SUPPORTED:
            return say("{target} does not run {op}", "{target} 不支持 {op}", target=target.label, op=op)
    return None


def _name(node: ir.Node, names: set[str]) -> str:
    stem = node.name or (node.outputs[0].name if node.outputs else None) or node_place(node)
    name, number = stem, 1
    while name in names:
        number += 1
        name = f"{stem}_{number}"
    names.add(name)
    return name


def _layer(node: ir.Node, name: str, work: int) -> Layer | Text:
    """The layer of a node, or why it is none."""
    if node.op_type in _WEIGHTLESS:
        return say("it has no weight: int8 would save neither size nor products", "没有权重：int8 既不减小体积也不减少乘法")
    if node.op_type in _RECURRENT:
        return say("ATC's quantised recurrent operators are not documented for ONNX", "ATC 的量化循环算子在 ONNX 下没有文档")
    data, weight_value = node.inputs[0], node.inputs[1]
    weight = None if weight_value is None else constant_of(weight_value)
    if data is None or weight is None:
        return say(
            "its second factor is computed; AscendDequant needs a constant int8 weight",
            "第二个因子是计算得到的；AscendDequant 需要常量 int8 权重",
        )
    if constant_of(data) is not None:
        return say("its first factor is constant", "第一个因子是常量")
    if weight.dtype != np.float32:
        return say("its weight is {dtype}; only float32 is quantised", "权重为 {dtype}；只量化 float32", dtype=str(weight.dtype))
    if not np.isfinite(weight).all() or not weight.size:
        return say("its weight is empty, infinite or NaN", "权重为空、无穷或 NaN")
    bias: np.ndarray | None = None
    bias_add: ir.Node | None = None
    if node.op_type in ("Conv", "ConvTranspose", "Gemm") and len(node.inputs) > 2 and node.inputs[2] is not None:
        bias = constant_of(node.inputs[2])
        if bias is None:
            return say("its bias is computed", "偏置是计算得到的")
    refusal = _form(node, weight)
    if refusal is not None:
        return refusal
    if node.op_type == "MatMul":
        bias_add, bias = _bias_add(node, int(weight.shape[-1]))
    axis = {"Conv": 0, "ConvTranspose": 1}.get(node.op_type)
    if node.op_type == "ConvTranspose" and node.attributes.get_int("group", 1) > 1:
        axis = None  # an output channel is a pair of group and place there, and AscendDequant's list follows the outputs
    layer = Layer(name, node, weight, None, bias_add, axis, work)
    if bias is not None:
        if bias.size not in (1, layer.channels) or not np.isfinite(bias).all():
            return say("its bias is not one number for each channel", "偏置不是每个通道一个数")
        bias = np.broadcast_to(bias.reshape(-1).astype(np.float32), (layer.channels,)).copy()
    return Layer(name, node, weight, bias, bias_add, axis, layer.work)


def _form(node: ir.Node, weight: np.ndarray) -> Text | None:
    if node.op_type in ("Conv", "ConvTranspose"):
        if weight.ndim not in (3, 4):
            return say(
                "its weight has {rank} dimensions; only 3 and 4 are known to be quantised",
                "权重为 {rank} 维；已知仅可量化 3 维和 4 维",
                rank=weight.ndim,
            )
        return None
    if weight.ndim != 2:
        return say("its weight has {rank} dimensions; ATC quantises 2", "权重为 {rank} 维；ATC 量化 2 维", rank=weight.ndim)
    if node.op_type == "Gemm":
        factors = [node.attributes.get_float("alpha", 1.0), node.attributes.get_float("beta", 1.0)]
        if factors != [1.0, 1.0] or node.attributes.get_int("transA", 0) == 1:
            return say("alpha, beta or transA is set", "设置了 alpha、beta 或 transA")
    return None


def _bias_add(node: ir.Node, channels: int) -> tuple[ir.Node | None, np.ndarray | None]:
    """The Add of a constant vector that alone reads a MatMul."""
    output = node.outputs[0]
    uses = list(output.uses())
    if output.is_graph_output() or len(uses) != 1 or uses[0].node.op_type != "Add" or uses[0].node.graph is not node.graph:
        return None, None
    add = uses[0].node
    other = constant_of(add.inputs[1 - uses[0].idx])
    if other is None or other.dtype != np.float32 or other.size != channels or math.prod(other.shape[:-1]) != 1:
        return None, None
    rank = None if output.shape is None else len(output.shape)
    if rank is None or other.ndim > rank:  # a longer constant would add dimensions
        return None, None
    return add, other


def readers(layers: tuple[Layer, ...]) -> dict[str, list[Layer]]:
    """Layers by the name of the tensor they read, in the order of execution."""
    found: dict[str, list[Layer]] = {}
    for layer in layers:
        found.setdefault(layer.data.name or "", []).append(layer)
    return found


def policies(layers: tuple[Layer, ...]) -> Iterator[tuple[Layer, Text]]:
    """What is worth knowing of single layers, beside that they are quantised."""
    for index, layer in enumerate(layers):
        if layer.is_depthwise:
            yield (
                layer,
                say(
                    "depthwise: few products for each rounding, so it costs more accuracy than it saves time",
                    "逐深度卷积：每次舍入对应的乘法很少，精度代价相对较大",
                ),
            )
        elif index == 0:
            yield (
                layer,
                say("first layer: its input is the model's own, often in few steps already", "首层：其输入即模型输入，往往已是少量级数"),
            )
        elif layer is layers[-1]:
            yield layer, say("last layer: its rounding goes to the output unchecked", "末层：其舍入直接进入输出")
