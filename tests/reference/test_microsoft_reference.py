"""The numpy forms of ONNX Runtime's operators against ONNX Runtime where it runs them, and against the standard's operators where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from jumar.graph import Evaluator
from jumar.reference import operators

BOUND = 2e-5
"""Of the largest element: sums of a few dozen products in float32."""


def single(op: str, inputs: list[Any], outputs: int = 1, **attributes: Any) -> tuple[onnx.ModelProto, dict[str, Any]]:
    names = ["" if array is None else f"i{number}" for number, array in enumerate(inputs)]
    feed = {name: array for name, array in zip(names, inputs, strict=True) if name}
    ports = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in feed.items()]
    results = [helper.make_tensor_value_info(f"y{number}", onnx.TensorProto.FLOAT, None) for number in range(outputs)]
    node = helper.make_node(op, names, [f"y{number}" for number in range(outputs)], domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", ports, results)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8), feed


def by_reference(proto: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    found: list[Any] = ReferenceEvaluator(proto, new_ops=list(operators())).run(None, feed)
    return found


def far(one: Any, other: Any) -> float:
    assert one.shape == other.shape
    return float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-6))


RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


X, MASK = normal(2, 4, 8), np.array([[1, 1, 1, 0, 1], [1, 0, 1, 1, 1]], np.int32)
RUN: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "Gelu": ([X], {}),
    "BiasGelu": ([X, normal(8)], {}),
    "FastGelu": ([X, normal(8)], {}),
    "QuickGelu": ([X], {"alpha": 1.3}),
    "FusedMatMul": ([normal(2, 3, 4), normal(2, 5, 4)], {"transB": 1, "alpha": 0.3}),
    "SkipLayerNormalization": ([X, normal(2, 4, 8), normal(8), normal(8), normal(8)], {"epsilon": 1e-3}),
    "SkipSimplifiedLayerNormalization": ([X, normal(2, 4, 8), normal(8), normal(8)], {"epsilon": 1e-3}),
    "MultiHeadAttention": ([X, normal(2, 5, 8), normal(2, 5, 12), normal(28), MASK], {"num_heads": 2}),
    "MultiHeadAttention, apart": ([X, normal(2, 2, 5, 4), normal(2, 2, 5, 4)], {"num_heads": 2, "scale": 0.7}),
    "MultiHeadAttention, unidirectional": ([X, normal(2, 4, 8), normal(2, 4, 8)], {"num_heads": 2, "unidirectional": 1}),
}


@pytest.mark.parametrize("name", RUN)
def test_as_onnx_runtime(name: str, evaluator: Evaluator) -> None:
    inputs, attributes = RUN[name]
    proto, feed = single(name.split(",")[0], inputs, **attributes)
    with evaluator.session(ir.from_proto(proto)) as session:
        expected = session.run(feed)["y0"]
        assert session.engine == "onnxruntime"
    found = by_reference(proto, feed)[0]
    assert far(found, expected) <= BOUND
    assert far(found * np.float32(1.01), expected) > BOUND


def standard(text: str, feed: dict[str, Any], evaluator: Evaluator, weights: dict[str, Any]) -> Any:
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return evaluator.run(ir.from_proto(proto), feed)["y"]


def test_group_norm_is_the_standard_one_with_channels_last(evaluator: Evaluator) -> None:
    x, gamma, beta = normal(2, 5, 6, 4), normal(4), normal(4)
    text = """<ir_version: 8, opset_import: ["" : 18]> agraph (float[2,5,6,4] x) => (float[2,5,6,4] y) {
        c = Transpose<perm = [0, 3, 1, 2]>(x) n = GroupNormalization<num_groups = 2, epsilon = 0.001>(c, one, zero) t = Transpose<perm = [0, 2, 3, 1]>(n)
        s = Mul(t, gamma) m = Add(s, beta) g = Sigmoid(m) y = Mul(m, g) }"""
    weights = {"one": np.ones(2, np.float32), "zero": np.zeros(2, np.float32), "gamma": gamma, "beta": beta}
    expected = standard(text, {"x": x}, evaluator, weights)
    proto, feed = single("GroupNorm", [x, gamma, beta], groups=2, activation=1, epsilon=1e-3)
    assert far(by_reference(proto, feed)[0], expected) <= BOUND
    skip = normal(2, 4)
    proto, feed = single("SkipGroupNorm", [x - skip[:, None, None, :], gamma, beta, skip], 2, groups=2, activation=1, epsilon=1e-3)
    normed, total = by_reference(proto, feed)
    assert far(normed, expected) <= BOUND * 5  # x is not exactly restored
    assert far(total, x) <= BOUND


def test_nhwc_conv_is_a_conv_between_transposes(evaluator: Evaluator) -> None:
    x, weight, bias = normal(2, 7, 6, 4), normal(6, 3, 2, 2), normal(6)
    text = """<ir_version: 8, opset_import: ["" : 18]> agraph (float[2,7,6,4] x) => (float y) {
        c = Transpose<perm = [0, 3, 1, 2]>(x) r = Conv<group = 2, pads = [1, 0, 2, 1], strides = [2, 1], dilations = [1, 2]>(c, w, b)
        y = Transpose<perm = [0, 2, 3, 1]>(r) }"""
    text = text.replace("(float y)", "(float[2,4,5,6] y)")
    expected = standard(text, {"x": x}, evaluator, {"w": np.ascontiguousarray(weight.transpose(0, 3, 1, 2)), "b": bias})
    proto, feed = single("NhwcConv", [x, weight, bias], group=2, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2])
    assert far(by_reference(proto, feed)[0], expected) <= BOUND


def test_packed_heads_are_the_same_heads() -> None:
    query, key, value = normal(2, 4, 2, 4), normal(2, 4, 2, 4), normal(2, 4, 2, 4)
    flat = [item.reshape(2, 4, 8) for item in (query, key, value)]
    expected = by_reference(*single("MultiHeadAttention", flat, num_heads=2))[0]
    packed = by_reference(*single("MultiHeadAttention", [np.stack([query, key, value], axis=3)], num_heads=2))[0]
    pair = by_reference(*single("MultiHeadAttention", [flat[0], np.stack([key, value], axis=3)], num_heads=2))[0]
    assert far(packed, expected) <= BOUND
    assert far(pair, expected) <= BOUND


def test_closed_forms_of_the_small_ones() -> None:
    x, bias, skip = normal(2, 3, 4), normal(4), normal(2, 3, 4)
    assert far(by_reference(*single("BiasAdd", [x, bias, skip]))[0], x + bias + skip) <= BOUND
    halves = by_reference(*single("BiasSplitGelu", [x, bias]))[0]
    gelu = by_reference(*single("Gelu", [(x + bias)[..., 2:]]))[0]
    assert far(halves, (x + bias)[..., :2] * gelu) <= BOUND
    shares = by_reference(*single("BiasSoftmax", [x, np.zeros((2, 1, 4), np.float32)], axis=1))[0]
    assert far(shares.sum(axis=(1, 2)), np.ones(2, np.float32)) <= BOUND
