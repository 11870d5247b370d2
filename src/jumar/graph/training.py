"""Nodes in training mode, and the same in inference mode."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..text import Text, say
from .shapes import constant_of
from .walk import model_opset

_MODE_ATTRIBUTE_OPSET = 14


def batchnorm_trains(node: ir.Node, opset: int) -> bool:
    """Whether a BatchNormalization takes the mean and variance of the batch: by its attribute, before opset 14 by its number of outputs."""
    if opset >= _MODE_ATTRIBUTE_OPSET:
        return "training_mode" in node.attributes and bool(node.attributes["training_mode"].as_int())
    return any(value.name for value in node.outputs[1:])


def batchnorm_obstacle(node: ir.Node) -> Text | None:
    """Why the statistics that a BatchNormalization holds cannot stand in for those of the batch; None if they can."""
    if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        return say("its statistics are read", "其统计量被读取")
    mean, variance = (constant_of(value) for value in node.inputs[3:5])
    if mean is None or variance is None:
        return say("its running statistics are no weights", "其滑动统计量不是权重")
    if not np.any(mean) and bool(np.all(variance == 1)):
        return say("its running statistics are those of a layer that never trained (0 and 1)", "其滑动统计量为未训练的初始值（0 和 1）")
    return None


def to_inference(node: ir.Node, model: ir.Model) -> None:
    """Put a BatchNormalization or Dropout into inference mode, in place."""
    if node.op_type == "Dropout":
        node.resize_inputs(min(len(node.inputs), 2))
        return
    if model_opset(model) >= _MODE_ATTRIBUTE_OPSET:
        node.attributes.pop("training_mode", None)
    node.resize_outputs(1)


def dropout_trains(node: ir.Node) -> bool:
    """Whether a Dropout drops anything. A mode or ratio that is computed may be any."""
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return False
    mode, ratio = constant_of(node.inputs[2]), constant_of(node.inputs[1])
    if mode is not None and not np.any(mode):
        return False
    return not (node.inputs[1] is not None and ratio is not None and not np.any(ratio))


__all__ = ["batchnorm_obstacle", "batchnorm_trains", "dropout_trains", "to_inference"]
