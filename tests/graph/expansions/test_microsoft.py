"""Operators of ONNX Runtime's own domain against ONNX Runtime itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from jumar import fix
from jumar.graph import Evaluator
from jumar.proof import FeedSet

BOUND = 2e-5
RANDOM = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def small(*shape: int) -> Any:
    return (RANDOM.standard_normal(shape) * 0.3).astype(np.float32)


X, MASK = normal(2, 4, 8), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
BYTES = RANDOM.integers(0, 255, (3, 8)).astype(np.uint8)
WEIGHT = RANDOM.integers(-127, 127, (8, 5)).astype(np.int8)
SCALE, ZERO = np.float32(0.02), np.uint8(120)
# Operator: inputs (None: absent), those of them that are fed, attributes, number of outputs.
CASES: dict[str, tuple[list[Any], int, dict[str, Any], int]] = {
    "Gelu": ([X], 1, {}, 1),
    "BiasGelu": ([X, normal(8)], 1, {}, 1),
    "FastGelu": ([X, normal(8)], 1, {}, 1),
    "QuickGelu": ([X], 1, {"alpha": 1.5}, 1),
    "FusedMatMul": ([normal(3, 4, 5), normal(6, 5)], 1, {"alpha": 0.5, "transB": 1}, 1),
    "FusedConv": (
        [normal(1, 2, 5, 5), small(3, 2, 3, 3), normal(3)],
        1,
        {"activation": "LeakyRelu", "activation_params": [0.2], "kernel_shape": [3, 3]},
        1,
    ),
    "FusedGemm": ([normal(3, 4), normal(4, 5), normal(5)], 1, {"activation": "Relu"}, 1),
    "SkipLayerNormalization": ([X, normal(2, 4, 8), normal(8), normal(8), normal(8)], 2, {"epsilon": 1e-5}, 1),
    "SkipSimplifiedLayerNormalization": ([X, normal(2, 4, 8), normal(8)], 2, {"epsilon": 1e-5}, 1),
    "Attention": ([X, small(8, 24), normal(24), MASK], 1, {"num_heads": 2}, 1),
    "Attention, unidirectional": ([X, small(8, 24), normal(24)], 1, {"num_heads": 2, "unidirectional": 1}, 1),
    "MultiHeadAttention": ([X, normal(2, 5, 8), normal(2, 5, 8)], 3, {"num_heads": 4}, 1),
    "EmbedLayerNormalization": (
        [np.array([[1, 2, 3]], np.int32), np.array([[0, 1, 0]], np.int32), normal(7, 8), normal(5, 8), normal(2, 8), normal(8), normal(8)],
        2,
        {"epsilon": 1e-5},
        2,
    ),
    "QLinearAdd": ([BYTES, SCALE, ZERO, BYTES[::-1].copy(), SCALE, ZERO, np.float32(0.05), ZERO], 1, {}, 1),
    "QLinearMul": ([BYTES, SCALE, ZERO, BYTES[::-1].copy(), SCALE, ZERO, np.float32(0.05), ZERO], 1, {}, 1),
    "QLinearLeakyRelu": ([BYTES, SCALE, ZERO, SCALE, ZERO], 1, {"alpha": 0.1}, 1),
    "MatMulIntegerToFloat": ([BYTES, WEIGHT, SCALE, np.float32(0.01), ZERO], 1, {}, 1),
    "DynamicQuantizeMatMul": ([normal(3, 8), WEIGHT, np.float32(0.01)], 1, {}, 1),
}


def build(name: str, opset: int) -> tuple[onnx.ModelProto, dict[str, Any]]:
    inputs, fed, attributes, outputs = CASES[name]
    names = [f"i{number}" if array is not None else "" for number, array in enumerate(inputs)]
    node = onnx.helper.make_node(
        name.split(",")[0], names, [f"y{number}" for number in range(outputs)], domain="com.microsoft", name="fused", **attributes
    )
    feed = {names[number]: np.asarray(inputs[number]) for number in range(fed)}
    ports = [
        onnx.helper.make_tensor_value_info(key, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for key, array in feed.items()
    ]
    weights = [
        onnx.numpy_helper.from_array(np.asarray(array), key) for key, array in zip(names, inputs, strict=True) if key and key not in feed
    ]
    kind = onnx.TensorProto.UINT8 if name.startswith("QLinear") else onnx.TensorProto.FLOAT
    kinds = [kind, onnx.TensorProto.INT32]
    ends = [onnx.helper.make_tensor_value_info(f"y{number}", kinds[number], None) for number in range(outputs)]
    graph = onnx.helper.make_graph([node], "g", ports, ends, weights)
    imports = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=8), feed


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("name", CASES)
def test_it_is_written_out_and_equal(name: str, opset: int, evaluator: Evaluator) -> None:
    import onnx_ir as ir

    proto, feed = build(name, opset)
    model = ir.from_proto(proto)
    case = fix(model, soc="Ascend310P3", feeds=FeedSet((feed,), "user"), evaluator=evaluator)
    assert all(node.domain in ("", "ai.onnx") for node in case.model.graph), [
        str(step.proof.reason) for step in case.record.steps if step.proof
    ]
    assert "com.microsoft" not in case.model.opset_imports
    expected = evaluator.run(model, feed)
    ports = {value.name for value in case.model.graph.inputs}
    found = evaluator.run(case.model, {key: array for key, array in feed.items() if key in ports})
    for key, right in expected.items():
        wrong = np.abs(found[key].astype(np.float64) - right.astype(np.float64)).max()
        assert wrong <= (0 if right.dtype.kind in "iu" else BOUND * max(np.abs(right).max(), 1e-6))
        assert right.size and np.abs(right.astype(np.float64) * 1.01 + 1 - right).max() > BOUND  # such an error would be seen
