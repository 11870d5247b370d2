"""DT306 on the types that ONNX text cannot write: 4-bit, float8, bfloat16, blocks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator
from jumar.proof import FeedSet
from jumar.verbs.fix import fix

RANDOM = np.random.default_rng(3)


def model_of(weight: ir.TensorProtocol, op: str, parameters: list[Any], opset: int, **attributes: Any) -> ir.Model:
    shape = tuple(weight.shape.numpy())
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(shape))
    weights = [ir.Value(name="w", const_value=weight, type=ir.TensorType(weight.dtype), shape=weight.shape)]
    for index, item in enumerate(parameters):
        tensor = item if isinstance(item, ir.Tensor) else ir.tensor(item)
        weights.append(ir.Value(name=f"p{index}", const_value=tensor, type=ir.TensorType(tensor.dtype), shape=tensor.shape))
    wide = ir.node(op, weights, attributes, name="widen")
    result = ir.node("Add", [x, wide.outputs[0]], name="add")
    wide.outputs[0].name, result.outputs[0].name = "wide", "y"
    result.outputs[0].type, result.outputs[0].shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(shape)
    graph = ir.Graph([x], result.outputs, nodes=[wide, result], initializers=weights, opset_imports={"": opset}, name="g")
    return ir.Model(graph, ir_version=10)


def tensor(array: Any, dtype: ir.DataType) -> ir.Tensor:
    return ir.Tensor(np.asarray(array).astype(dtype.numpy()), dtype=dtype)


INTS = RANDOM.integers(-8, 8, (4, 6))
SCALES = np.array([0.1, 0.3, 0.7, 1.1], np.float32)
CASES = {
    "int4": (tensor(INTS, ir.DataType.INT4), "DequantizeLinear", [SCALES, tensor([1, -2, 3, 0], ir.DataType.INT4)], 21, {"axis": 0}),
    "uint4": (tensor(INTS + 8, ir.DataType.UINT4), "DequantizeLinear", [np.float32(0.3)], 21, {}),
    "blocks": (
        tensor(INTS, ir.DataType.INT4),
        "DequantizeLinear",
        [RANDOM.random((4, 3)).astype(np.float32)],
        21,
        {"axis": 1, "block_size": 2},
    ),
    "float8": (tensor(RANDOM.standard_normal((4, 6)), ir.DataType.FLOAT8E4M3FN), "DequantizeLinear", [np.float32(0.3)], 19, {}),
    "int32": (tensor(INTS * 2**27, ir.DataType.INT32), "DequantizeLinear", [np.float32(0.3)], 13, {}),
    "bfloat16 cast": (tensor(RANDOM.standard_normal((4, 6)), ir.DataType.BFLOAT16), "Cast", [], 18, {"to": 1}),
    "float8 cast": (tensor(RANDOM.standard_normal((4, 6)), ir.DataType.FLOAT8E5M2), "Cast", [], 19, {"to": 1}),
    "int4 cast": (tensor(INTS, ir.DataType.INT4), "Cast", [], 21, {"to": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stored_weight_becomes_what_it_stands_for(name: str, evaluator: Evaluator) -> None:
    weight, op, parameters, opset, attributes = CASES[name]
    model = model_of(weight, op, parameters, opset, **attributes)
    feeds = FeedSet(({"x": RANDOM.standard_normal((4, 6)).astype(np.float32)},), "test")
    case = fix(model, soc="Ascend310P3", select=["DT306"], feeds=feeds, evaluator=evaluator)
    assert [step.status for step in case.record.steps] == ["applied"], [step.proof for step in case.record.steps]
    assert case.record.steps[0].proof is not None
    assert case.record.steps[0].proof.max_abs == 0.0
    assert [node.op_type for node in case.model.graph] == ["Add"]
    onnx.checker.check_model(ir.to_proto(case.model), full_check=True)


def test_a_weight_that_is_half_a_step_off_would_be_noticed(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    from jumar.rules.dtype import stored_weight_type

    weight, op, parameters, opset, attributes = CASES["int4"]
    right = stored_weight_type._dequantised
    monkeypatch.setattr(stored_weight_type, "_dequantised", lambda node: right(node) + np.float32(1e-6))
    case = fix(model_of(weight, op, parameters, opset, **attributes), soc="Ascend310P3", select=["DT306"], evaluator=evaluator)
    assert [step.status for step in case.record.steps] == ["rolled-back"]


def test_bfloat16_holds_exactly_what_float32_then_holds() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    every = every[~np.isnan(every.astype(np.float32))]
    back = every.astype(np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(every.view(np.uint16), back.view(np.uint16))
