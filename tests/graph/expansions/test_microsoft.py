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
    "Attention, lengths": ([X, small(8, 24), normal(24), np.array([3, 2], np.int32)], 1, {"num_heads": 2}, 1),
    "Attention, past": ([X, small(8, 24), normal(24), None, normal(2, 2, 2, 3, 4)], 1, {"num_heads": 2}, 2),
    "Attention, sizes": ([X, small(8, 28), normal(28)], 1, {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 12]}, 1),
    "MultiHeadAttention, bias": ([X, normal(2, 5, 8), normal(2, 5, 12), normal(28)], 3, {"num_heads": 2}, 1),
    "MultiHeadAttention, packed": ([normal(2, 4, 2, 3, 4)], 1, {"num_heads": 2}, 1),
    "MultiHeadAttention, past": (
        [X, normal(2, 4, 8), normal(2, 4, 8), None, None, None, normal(2, 2, 3, 4), normal(2, 2, 3, 4)],
        3,
        {"num_heads": 2},
        3,
    ),
    "RotaryEmbedding": ([X, np.array([1], np.int64), normal(10, 2), normal(10, 2)], 1, {}, 1),
    "RotaryEmbedding, interleaved": (
        [normal(2, 2, 4, 8), np.array([[0, 3, 2, 5], [7, 1, 2, 3]], np.int64), normal(10, 2), normal(10, 2)],
        1,
        {"interleaved": 1, "rotary_embedding_dim": 4, "num_heads": 2},
        1,
    ),
    "MatMulNBits": (
        [normal(2, 40), RANDOM.integers(0, 256, (3, 2, 16)).astype(np.uint8), small(6), RANDOM.integers(0, 256, 3).astype(np.uint8)],
        1,
        {"K": 40, "N": 3, "block_size": 32, "bits": 4},
        1,
    ),
    "GroupNorm": ([normal(2, 5, 6, 4), normal(4), normal(4)], 1, {"groups": 2, "activation": 1}, 1),
    "SkipGroupNorm": ([normal(2, 5, 6, 4), normal(4), normal(4), normal(2, 4), normal(4)], 1, {"groups": 2, "activation": 0}, 2),
    "NhwcConv": ([normal(1, 6, 5, 4), small(6, 3, 3, 2), normal(6)], 1, {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1]}, 1),
    "BiasAdd": ([X, normal(8), normal(2, 4, 8)], 1, {}, 1),
    "BiasSplitGelu": ([X, normal(8)], 1, {}, 1),
    "BiasSoftmax": ([X, normal(2, 1, 8)], 1, {"axis": 2, "is_inner_broadcast": 1}, 1),
    "FusedMatMulActivation": ([normal(3, 4), normal(5, 4)], 1, {"transB": 1, "activation": "Tanh"}, 1),
    "Trilu": ([normal(2, 4, 5), np.int64(1)], 1, {"upper": 0}, 1),
    "QAttention": (
        [BYTES.reshape(1, 3, 8), RANDOM.integers(-127, 127, (8, 24)).astype(np.int8), normal(24), SCALE, SCALE, None, ZERO, np.int8(0)],
        1,
        {"num_heads": 2},
        1,
    ),
    "QLinearSigmoid": ([BYTES, SCALE, ZERO, np.float32(1 / 256), np.uint8(0)], 1, {}, 1),
    "QLinearSoftmax": ([BYTES, SCALE, ZERO, np.float32(1 / 256), np.uint8(0)], 1, {"axis": -1, "opset": 13}, 1),
    "QLinearConcat": ([np.float32(0.03), ZERO, BYTES, SCALE, ZERO, BYTES[::-1].copy(), np.float32(0.05), np.uint8(7)], 0, {"axis": 0}, 1),
    "QLinearGlobalAveragePool": ([BYTES.reshape(1, 2, 3, 4), SCALE, ZERO, np.float32(0.03), ZERO], 1, {}, 1),
    "QLinearAveragePool": ([BYTES.reshape(1, 1, 4, 6), SCALE, ZERO, np.float32(0.03), ZERO], 1, {"kernel_shape": [2, 3]}, 1),
    "QGemm": ([BYTES, SCALE, ZERO, WEIGHT, np.float32(0.01), np.int8(0), None, np.float32(0.5), ZERO], 1, {}, 1),
    "QLinearConv": (
        [BYTES.reshape(1, 4, 3, 2), SCALE, ZERO, WEIGHT[:, :2].reshape(4, 2, 2, 1), np.float32(0.01), np.int8(0), np.float32(0.3), ZERO],
        1,
        {"channels_last": 1},
        1,
    ),
    "QLinearAdd": ([BYTES, SCALE, ZERO, BYTES[::-1].copy(), SCALE, ZERO, np.float32(0.05), ZERO], 1, {}, 1),
    "QLinearMul": ([BYTES, SCALE, ZERO, BYTES[::-1].copy(), SCALE, ZERO, np.float32(0.05), ZERO], 1, {}, 1),
    "QLinearLeakyRelu": ([BYTES, SCALE, ZERO, SCALE, ZERO], 1, {"alpha": 0.1}, 1),
    "MatMulIntegerToFloat": ([BYTES, WEIGHT, SCALE, np.float32(0.01), ZERO], 1, {}, 1),
    "DynamicQuantizeMatMul": ([normal(3, 8), WEIGHT, np.float32(0.01)], 1, {}, 1),
}


def _is_past(array: Any) -> bool:
    return np.asarray(array).shape in ((2, 2, 2, 3, 4), (2, 2, 3, 4))


def build(name: str, opset: int) -> tuple[onnx.ModelProto, dict[str, Any]]:
    inputs, fed, attributes, outputs = CASES[name]
    names = [f"i{number}" if array is not None else "" for number, array in enumerate(inputs)]
    node = onnx.helper.make_node(
        name.split(",")[0], names, [f"y{number}" for number in range(outputs)], domain="com.microsoft", name="fused", **attributes
    )
    # A past is data as well.
    feed = {
        names[number]: np.asarray(array) for number, array in enumerate(inputs) if array is not None and (number < fed or _is_past(array))
    }
    if not fed:
        feed = {
            name: np.asarray(array) for name, array in zip(names, inputs, strict=True) if array is not None and np.asarray(array).ndim > 1
        }
    ports = [
        onnx.helper.make_tensor_value_info(key, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for key, array in feed.items()
    ]
    weights = [
        onnx.numpy_helper.from_array(np.asarray(array), key) for key, array in zip(names, inputs, strict=True) if key and key not in feed
    ]
    kind = onnx.TensorProto.UINT8 if name.startswith(("QLinear", "QGemm")) else onnx.TensorProto.FLOAT
    kinds = [kind, onnx.TensorProto.INT32 if name.startswith("Embed") else kind, kind]
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
    case = fix(model, soc="Ascend310P3", unsafe=["OP276"], feeds=FeedSet((feed,), "user"), evaluator=evaluator)
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


LAYER_NORM = """<ir_version: 8, opset_import: ["" : 11]> agraph (float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y) {
    y = LayerNormalization<axis = -1, epsilon = 0.001>(x, s, b) }"""
SIMPLIFIED = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3,4] x, float[4] s) => (float[2,3,4] y) {
    y = SimplifiedLayerNormalization<axis = -1, epsilon = 0.001>(x, s) }"""


@pytest.mark.parametrize("text", [LAYER_NORM, SIMPLIFIED])
def test_operators_the_runtime_has_in_the_standards_domain(text: str, evaluator: Evaluator, tmp_path: Any) -> None:
    import onnx_ir as ir

    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    case = fix(path, soc="Ascend310P3", evaluator=evaluator)
    assert not {node.op_type for node in case.model.graph} & {"LayerNormalization", "SimplifiedLayerNormalization"}
    feed = {"x": X[:, :3, :4].copy(), "s": normal(4), "b": normal(4)}
    feed = {value.name: feed[value.name] for value in case.model.graph.inputs}
    expected, found = evaluator.run(ir.from_onnx_text(text), feed)["y"], evaluator.run(case.model, feed)["y"]
    assert np.abs(found - expected).max() <= BOUND * np.abs(expected).max()


def test_shapes_behind_fused_operators_are_known() -> None:
    import onnx_ir as ir

    from jumar.graph import infer_shapes, known_shape

    text = """<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
    agraph (float[1,3,8,8] x, float[4,3,3,3] w, float[1,1,4,36] t) => (float y) {
        c = com.microsoft.FusedConv<activation = "Relu">(x, w) g = com.microsoft.Gelu(c) shape = Constant<value_ints = [1, 1, 4, 36]>()
        r = Reshape(g, shape) p = com.microsoft.FusedMatMul<transB = 1>(r, t) y = ReduceSum(p) }"""
    model = ir.from_onnx_text(text)
    infer_shapes(model)
    shapes = {node.op_type: known_shape(node.outputs[0]) for node in model.graph}
    assert shapes["FusedConv"] == shapes["Gelu"] == (1, 4, 6, 6)
    assert shapes["FusedMatMul"] == (1, 1, 4, 4)
    assert model.graph[0].op_type == "FusedConv"  # the model itself is as it was


def test_a_product_whose_data_the_runtime_rounds_is_refused(evaluator: Evaluator) -> None:
    import onnx_ir as ir

    proto, feed = build("MatMulNBits", 18)
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("accuracy_level", 4))
    case = fix(ir.from_proto(proto), soc="Ascend310P3", feeds=FeedSet((feed,), "user"), evaluator=evaluator)
    finding = next(item for item in case.record.findings if item.code == "OP237")
    assert finding.fix == "none"
    assert "accuracy_level" in str(finding.remedy)
