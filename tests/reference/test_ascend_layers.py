"""Layers on int8 between AscendQuant and AscendDequant, against ONNX Runtime's float layers on small integers, whose sums are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from jumar.errors import EvaluationError
from jumar.graph import Evaluator
from jumar.quant.numbers import pack_scales
from jumar.reference.integer import convolved, convolved_back, padding


def layer_model(op: str, x: np.ndarray, w: np.ndarray, attributes: dict[str, Any]) -> ir.Model:
    node = helper.make_node(op, ["x", "w"], ["y"], **attributes)
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", *ports, [numpy_helper.from_array(w.astype(np.float32), "w")])
    return ir.from_proto(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]))


@st.composite
def layers(draw: st.DrawFn, back: bool) -> tuple[np.ndarray, np.ndarray, dict[str, Any], int]:
    rank = draw(st.integers(1, 2))
    group, per, out = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    sizes = draw(st.lists(st.integers(5, 8), min_size=rank, max_size=rank))
    attributes: dict[str, Any] = {
        "group": group,
        "strides": draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)),
        "dilations": draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank)),
    }
    if back:
        attributes["output_padding"] = [draw(st.integers(0, step - 1)) for step in attributes["strides"]]
        attributes["pads"] = draw(st.lists(st.integers(0, 1), min_size=2 * rank, max_size=2 * rank))
    elif draw(st.booleans()):
        attributes["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        attributes["dilations"] = [1] * rank  # ONNX Runtime refuses others here
    else:
        attributes["pads"] = draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    x = random.integers(-128, 128, (2, group * per, *sizes)).astype(np.int8)
    shape = (group * per, out, *kernel) if back else (group * out, per, *kernel)
    return x, random.integers(-127, 128, shape).astype(np.int8), attributes, draw(st.integers(-128, 127))


@settings(max_examples=60, deadline=None)
@given(layers(back=False))
def test_convolution(evaluator: Evaluator, drawn: tuple[np.ndarray, np.ndarray, dict[str, Any], int]) -> None:
    x, w, attributes, offset = drawn
    right = evaluator.run(layer_model("Conv", x, w, attributes), {"x": x.astype(np.float32) - offset})["y"]
    assert np.array_equal(convolved(x, w, offset=offset, **attributes), right)


@settings(max_examples=60, deadline=None)
@given(layers(back=True))
def test_transposed_convolution(evaluator: Evaluator, drawn: tuple[np.ndarray, np.ndarray, dict[str, Any], int]) -> None:
    x, w, attributes, offset = drawn
    right = evaluator.run(layer_model("ConvTranspose", x, w, attributes), {"x": x.astype(np.float32) - offset})["y"]
    assert np.array_equal(convolved_back(x, w, offset=offset, **attributes), right)


def test_padding_is_zero_and_not_the_integer_zero() -> None:
    x, w = np.full((1, 1, 3, 3), 7, np.int8), np.ones((1, 1, 3, 3), np.int8)
    assert convolved(x, w, offset=7, pads=[1, 1, 1, 1]).any() == np.False_  # everything, padding too, stands for zero
    assert convolved(x, w, pads=[1, 1, 1, 1])[0, 0].tolist() == [[28, 42, 28], [42, 63, 42], [28, 42, 28]]


def test_same_padding() -> None:
    assert padding(5, 3, 2, 1, "SAME_UPPER") == (1, 1)
    assert padding(6, 3, 2, 1, "SAME_UPPER") == (0, 1)
    assert padding(6, 3, 2, 1, "SAME_LOWER") == (1, 0)


def test_sums_beyond_int32_are_refused() -> None:
    x, w = np.full((1, 140_000, 1), -128, np.int8), np.full((1, 140_000, 1), 127, np.int8)
    with pytest.raises(OverflowError):
        convolved(x, w)


def deploy(body: str, inputs: str, output: str, **weights: np.ndarray) -> ir.Model:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> agraph ({inputs}) => ({output}) {{ {body} }}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return ir.from_proto(model)


def test_a_whole_layer_by_its_formula(evaluator: Evaluator, random: np.random.Generator) -> None:
    w, b = random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), random.integers(-5000, 5000, 4).astype(np.int32)
    scales = np.array([0.01, 0.02, 0.5, 3.0], np.float32)
    model = deploy(
        'q = AscendQuant<scale = 20.0, offset = -11.0, dst_type = "INT8">(x) c = Conv<pads = [1,1,1,1]>(q, w, b) y = AscendDequant<dtype = 0>(c, p)',
        "float[1,3,5,5] x",
        "float[1,4,5,5] y",
        w=w,
        b=b,
        p=pack_scales(scales),
    )
    x = random.standard_normal((1, 3, 5, 5)).astype(np.float32) * 4
    found = evaluator.run(model, {"x": x})["y"]
    q = np.pad(np.clip(np.rint(x * np.float32(20) - 11), -128, 127) + 11, [(0, 0), (0, 0), (1, 1), (1, 1)])
    sums = np.array([[[(q[0, :, i : i + 3, j : j + 3] * w[o]).sum() + b[o] for j in range(5)] for i in range(5)] for o in range(4)])
    assert np.array_equal(found[0], sums.astype(np.float32) * scales[:, None, None])
    assert not np.array_equal(found[0], (sums + 1).astype(np.float32) * scales[:, None, None])


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_products_of_matrices(op: str, evaluator: Evaluator, random: np.random.Generator) -> None:
    w, b = random.integers(-127, 128, (6, 4)).astype(np.int8), random.integers(-900, 900, 4).astype(np.int32)
    product = "m = MatMul(q, w) s = Add(m, b)" if op == "MatMul" else "s = Gemm<transB = 1>(q, w, b)"
    model = deploy(
        f"q = AscendQuant<scale = 10.0, offset = 5.0>(x) {product} y = AscendDequant<dtype = 0>(s, p)",
        "float[3,6] x",
        "float[3,4] y",
        w=w if op == "MatMul" else np.ascontiguousarray(w.T),
        b=b,
        p=pack_scales(np.array([0.25], np.float32)),
    )
    x = random.standard_normal((3, 6)).astype(np.float32) * 5
    q = np.clip(np.rint(x * np.float32(10) + 5), -128, 127) - 5
    assert np.array_equal(evaluator.run(model, {"x": x})["y"], (q @ w.astype(np.float64) + b).astype(np.float32) * np.float32(0.25))


def test_a_float_bias_is_no_bias_here(evaluator: Evaluator) -> None:
    weights: dict[str, np.ndarray] = {"w": np.ones((1, 1, 1, 1), np.int8), "b": np.ones(1, np.float32)}
    model = deploy("q = AscendQuant<scale = 1.0, offset = 0.0>(x) y = Conv(q, w, b)", "float[1,1,2,2] x", "int32[1,1,2,2] y", **weights)
    with pytest.raises(EvaluationError, match="a bias of float32"):
        evaluator.run(model, {"x": np.zeros((1, 1, 2, 2), np.float32)})
