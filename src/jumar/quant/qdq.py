"""The form that runs anywhere: QuantizeLinear and DequantizeLinear before each layer, weights in int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ..errors import UsageError
from ..graph import Builder, copy_model, model_opset
from ..text import say
from .numbers import Scale, along
from .plan import Plan, Quantised

SWITCH = "jumar.quantised"
"""Name of the boolean input of a switched model."""
_LEAST, _PER_CHANNEL = 10, 13
"""Opsets from which on QuantizeLinear exists, and DequantizeLinear knows an axis."""


def qdq_model(model: ir.Model, plan: Plan, *, switched: bool = False) -> ir.Model:
    """A copy of the model in which the layers of the plan compute on rounded numbers, at the opset the model has.

    Args:
        switched: add an input of one boolean for each layer, in the order of the plan: whether it is quantised. One loaded model then
            stands for all combinations.

    Raises:
        UsageError: the opset has no QuantizeLinear.
    """
    opset = model_opset(model)
    if opset < _LEAST:
        raise UsageError(
            say("the model has opset {opset}", "模型的 opset 为 {opset}", opset=opset),
            say("expected 10 or more: QuantizeLinear begins there", "应不低于 10：QuantizeLinear 自此版本开始"),
            say("convert it with `jumar fix`, or export it again", "请用 `jumar fix` 转换，或重新导出"),
        )
    copy = copy_model(model)
    nodes = dict(zip(model.graph, copy.graph, strict=True))
    switch: ir.Value | None = None
    if switched:
        switch = ir.Value(name=SWITCH, shape=ir.Shape([len(plan.items)]), type=ir.TensorType(ir.DataType.BOOL))
        copy.graph.inputs.append(switch)
    writer = _Writer(copy, opset, switch)
    for number, item in enumerate(plan.items.values()):
        writer.layer(item, nodes[item.layer.node], None if item.layer.bias_add is None else nodes[item.layer.bias_add], number)
    drop_unread(copy)
    return copy


class _Writer:
    def __init__(self, model: ir.Model, opset: int, switch: ir.Value | None) -> None:
        self._model, self._opset, self._switch = model, opset, switch
        self._rounded: dict[tuple[ir.Value, Scale], ir.Value] = {}

    def layer(self, item: Quantised, node: ir.Node, bias_add: ir.Node | None, number: int) -> None:
        build = Builder(self._model, node, "quantize")
        chosen = None
        if self._switch is not None:
            chosen = build.op("Gather", self._switch, build.const(np.array(number, np.int64)), axis=0)

        def choose(new: ir.Value, old: ir.Value | None) -> ir.Value:
            return new if chosen is None or old is None else build.op("Where", chosen, new, old)

        data, weight = node.inputs[0], node.inputs[1]
        assert data is not None
        node.replace_input_with(0, choose(self._activation(build, data, item.activation), data))
        node.replace_input_with(1, choose(self._weight(build, item), weight))
        if item.wide_bias is None:
            return
        bias = item.wide_bias
        if bias_add is not None:
            place = 1 if bias_add.inputs[0] is node.outputs[0] else 0
            old = bias_add.inputs[place]
            bias_add.replace_input_with(place, choose(build.const(bias, name="bias"), old))
        elif len(node.inputs) > 2 and node.inputs[2] is not None:
            node.replace_input_with(2, choose(build.const(bias, name="bias"), node.inputs[2]))
        else:  # only a correction makes a bias where there was none
            zero = build.const(np.zeros_like(bias), name="no_bias")
            node.resize_inputs(3)
            node.replace_input_with(2, choose(build.const(bias, name="bias"), zero))

    def _activation(self, build: Builder, value: ir.Value, scale: Scale) -> ir.Value:
        """One pair for all readers of a tensor, placed before the first."""
        key = (value, scale)
        if key not in self._rounded:
            step = build.const(np.float32(scale.scale), name="scale")
            zero = build.const(np.int8(scale.offset), name="zero")
            self._rounded[key] = build.op("DequantizeLinear", build.op("QuantizeLinear", value, step, zero), step, zero)
        return self._rounded[key]

    def _weight(self, build: Builder, item: Quantised) -> ir.Value:
        weight = item.weight
        data = build.const(weight.data, name="weight")
        if weight.axis is None:
            return build.op("DequantizeLinear", data, build.const(weight.scales.reshape(()), name="weight_scale"), build.const(np.int8(0)))
        if self._opset >= _PER_CHANNEL:
            zeros = build.const(np.zeros(weight.scales.size, np.int8), name="weight_zero")
            return build.op("DequantizeLinear", data, build.const(weight.scales, name="weight_scale"), zeros, axis=weight.axis)
        wide: Any = along(weight.scales, weight.axis, weight.data.ndim)
        return build.op("Mul", build.op("Cast", data, to=ir.DataType.FLOAT.value), build.const(wide, name="weight_scale"))


def drop_unread(model: ir.Model) -> None:
    """Remove float weights that nothing reads any more, also those that are Constant nodes."""
    graph, outputs = model.graph, set(model.graph.outputs)
    idle = [node for node in graph if node.op_type == "Constant" and not node.outputs[0].uses() and node.outputs[0] not in outputs]
    graph.remove(idle, safe=True)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and value not in outputs and value not in graph.inputs:
            del graph.initializers[name]
