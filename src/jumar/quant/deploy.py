"""The form that ATC parses: AscendQuant, int8 weights, int32 biases, AscendDequant; laid out and named as AMCT does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ..graph import copy_model, used_names
from .numbers import Scale, pack_scales
from .plan import Plan, Quantised
from .qdq import drop_unread

FLOAT = 0
"""GE's number of float32, in the attribute ``dtype`` of AscendDequant."""


def deploy_model(model: ir.Model, plan: Plan) -> ir.Model:
    """A copy of the model with the layers of the plan in integers. The opset stays; ONNX's checker and ONNX Runtime do not know the operators."""
    copy = copy_model(model)
    nodes = dict(zip(model.graph, copy.graph, strict=True))
    writer = _Writer(copy)
    for item in plan.items.values():
        writer.layer(item, nodes[item.layer.node], None if item.layer.bias_add is None else nodes[item.layer.bias_add])
    drop_unread(copy)
    return copy


def quant_node(value: ir.Value, scale: Scale, name: str, output: ir.Value) -> ir.Node:
    """``AscendQuant``; its scale is a factor, the reciprocal of what one step is worth."""
    attributes: dict[str, Any] = {"scale": float(scale.reciprocal), "offset": float(scale.offset), "dst_type": "INT8"}
    return ir.node("AscendQuant", [value], attributes=attributes, outputs=[output], name=name)


class _Writer:
    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._names = used_names(model)
        self._nodes = {node.name for node in model.graph}

    def _fresh(self, stem: str) -> str:
        name, number = stem, 0
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name

    def _constant(self, stem: str, array: np.ndarray) -> ir.Value:
        tensor = ir.tensor(array, name=self._fresh(stem))
        value = ir.Value(name=tensor.name, const_value=tensor, shape=ir.Shape(list(array.shape)), type=ir.TensorType(tensor.dtype))
        self._model.graph.register_initializer(value)
        return value

    def _made(self, stem: str, like: ir.Value | None, dtype: ir.DataType) -> ir.Value:
        shape = None if like is None or like.shape is None else ir.Shape(list(like.shape))
        return ir.Value(name=self._fresh(stem), shape=shape, type=ir.TensorType(dtype))

    def _node_name(self, stem: str) -> str:
        name, number = stem, 0
        while name in self._nodes:
            number += 1
            name = f"{stem}_{number}"
        self._nodes.add(name)
        return name

    def layer(self, item: Quantised, node: ir.Node, bias_add: ir.Node | None) -> None:
        name, graph = item.layer.name, self._model.graph
        data, old_weight = node.inputs[0], node.inputs[1]
        assert data is not None and old_weight is not None
        whole = self._made(f"{name}.quant.output", data, ir.DataType.INT8)
        graph.insert_before(node, [quant_node(data, item.activation, self._node_name(f"{name}.quant"), whole)])
        node.replace_input_with(0, whole)
        node.replace_input_with(1, self._weight(item, old_weight))
        if item.bias is not None:
            if bias_add is not None:
                place = 1 if bias_add.inputs[0] is node.outputs[0] else 0
                bias_add.replace_input_with(place, self._constant(f"{name}.bias", item.bias))
            else:
                node.resize_inputs(3)
                node.replace_input_with(2, self._constant(f"{name}.bias", item.bias))
        self._dequant(item, node, bias_add or node)

    def _weight(self, item: Quantised, old: ir.Value) -> ir.Value:
        """Under the name of the float one where nothing else reads that: what AMCT does."""
        graph = self._model.graph
        if (
            len(old.uses()) == 1
            and not old.is_graph_output()
            and old.name
            and graph.initializers.get(old.name) is old
            and old not in graph.inputs
        ):
            old.const_value = ir.tensor(item.weight.data, name=old.name)
            old.type = ir.TensorType(ir.DataType.INT8)
            return old
        return self._constant(f"{item.layer.name}.weight", item.weight.data)

    def _dequant(self, item: Quantised, node: ir.Node, last: ir.Node) -> None:
        """After the layer; the float tensor keeps its name, the sums get a new one."""
        name, result = item.layer.name, last.outputs[0]
        if last is not node:
            node.outputs[0].type = ir.TensorType(ir.DataType.INT32)
        scales = self._constant(f"{name}.dequant.param", pack_scales(item.deq))
        after = ir.node("AscendDequant", [result, scales], attributes={"dtype": FLOAT}, name=self._node_name(f"{name}.dequant"))
        self._model.graph.insert_after(last, [after])
        wide = after.outputs[0]
        wide.shape, wide.type = result.shape, ir.TensorType(ir.DataType.FLOAT)
        result.replace_all_uses_with(wide, replace_graph_outputs=True)
        after.replace_input_with(0, result)
        title = result.name
        result.name = self._fresh(f"{title}.sum")
        wide.name = title
        result.type = ir.TensorType(ir.DataType.INT32)
