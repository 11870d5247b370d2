"""Fusions of arithmetic: where they apply the results stay the same within the stated tolerance, and elsewhere nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from arithmetic_cases import OPSETS, ROUNDING, build, check, far, feeds_of, left_alone, norm_weights, numbers, simplified, unchecked

from jumar.graph import Evaluator
from jumar.graph.simplify import affine

# Convolutions


CONVOLUTIONS = {
    "plain": ("Conv(x, w, b)", {"w": (6, 4, 3, 3), "b": (6,)}),
    "no bias": ("Conv<strides = [2, 1], pads = [0, 1, 2, 1]>(x, w)", {"w": (6, 4, 3, 3)}),
    "groups": ("Conv<group = 2, dilations = [2, 1], pads = [1, 0, 0, 2]>(x, w, b)", {"w": (6, 2, 3, 3), "b": (6,)}),
    "transposed": ("ConvTranspose<strides = [2, 2], output_padding = [1, 0]>(x, w, b)", {"w": (4, 6, 3, 3), "b": (6,)}),
    "transposed groups": ("ConvTranspose<group = 2, pads = [1, 1, 0, 0]>(x, w)", {"w": (4, 3, 3, 3)}),
}


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("form", CONVOLUTIONS)
def test_a_convolution_takes_what_scales_and_shifts_its_channels(form: str, opset: int, evaluator: Evaluator) -> None:
    expression, shapes = CONVOLUTIONS[form]
    weights = {name: numbers(*shape) for name, shape in shapes.items()} | norm_weights(6)
    weights |= {"c": numbers(6, 1, 1), "d": numbers(1, 6, 1, 1) + 4, "s": np.float32(0.3), "t": numbers(1)}
    op = expression.split("<")[0].split("(")[0]
    text = f"""agraph (float[N,4,7,8] x) => (float[N,6,H,W] y) {{
        a = {expression} n = BatchNormalization<epsilon = 0.001>(a, gamma, beta, mean, var)
        m = Mul(c, n) p = Add(m, d) q = Div(p, d) r = Sub(q, s) y = Sub(t, r)
    }}"""
    kinds = {"conv-batch-norm": 1, "conv-scale": 2, "conv-shift": 3}
    after = check(build(text, opset, weights), evaluator, kinds, [op])
    assert after.graph.outputs[0].name == "y"
    assert after.graph.node(0).metadata_props["jumar.rule"] in kinds


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dims", [1, 3])
def test_a_convolution_of_one_and_of_three_dimensions(dims: int, opset: int, evaluator: Evaluator) -> None:
    space = ",".join(["6"] * dims)
    text = f"agraph (float[2,3,{space}] x) => (float[2,5,{space.replace('6', '4')}] y) {{ a = Conv(x, w) y = Mul(a, c) }}"
    weights = {"w": numbers(5, 3, *[3] * dims), "c": numbers(5, *[1] * dims)}
    check(build(text, opset, weights), evaluator, {"conv-scale": 1}, ["Conv"])


@pytest.mark.parametrize("opset", OPSETS)
def test_a_scale_before_a_convolution_goes_into_the_weight(opset: int, evaluator: Evaluator) -> None:
    weights = {"w": numbers(6, 2, 3, 3), "c": numbers(4, 1, 1), "d": numbers(1, 4, 1, 1)} | norm_weights(4)
    padded = "agraph (float[2,4,5,5] x) => (float[2,6,5,5] y) { a = Mul(x, c) y = Conv<group = 2, pads = [1, 1, 1, 1]>(a, w) }"
    check(build(padded, opset, {"w": weights["w"], "c": weights["c"]}), evaluator, {"scale-conv": 1}, ["Conv"])
    whole = """agraph (float[2,4,5,5] x) => (float[2,6,3,3] y) {
        e = Relu(x) n = BatchNormalization(e, gamma, beta, mean, var) r = Relu(n) a = Mul(r, c) b = Sub(d, a) y = Conv<group = 2>(b, w)
    }"""
    check(build(whole, opset, weights), evaluator, {"scale-conv": 2}, ["Relu", "BatchNormalization", "Relu", "Conv"])
    norm = """agraph (float[2,4,5,5] x) => (float[2,6,3,3] y) {
        n = BatchNormalization(x, gamma, beta, mean, var) y = Conv<group = 2, auto_pad = "VALID">(n, w)
    }"""
    check(build(norm, opset, {k: v for k, v in weights.items() if k not in "cd"}), evaluator, {"scale-conv": 1}, ["Conv"])


def test_a_shift_before_padding_stays() -> None:
    text = "agraph (float[2,4,5,5] x) => (float[2,6,5,5] y) { a = Add(x, c) y = Conv<pads = [1, 1, 1, 1]>(a, w) }"
    left_alone(build(text, 13, {"w": numbers(6, 4, 3, 3), "c": numbers(4, 1, 1)}), "scale-conv")
    same = 'agraph (float[2,4,5,5] x) => (float[2,6,5,5] y) { a = Add(x, c) y = Conv<auto_pad = "SAME_UPPER">(a, w) }'
    left_alone(build(same, 13, {"w": numbers(6, 4, 3, 3), "c": numbers(4, 1, 1)}), "scale-conv")


NOT_PER_CHANNEL = {
    "the last axis": (4, [1, 1, 4]),
    "the batch": (6, [2, 1, 1, 1]),
    "channels of a vector": (6, [6]),
    "a rank more": (6, [1, 1, 6, 1, 1]),
    "one channel that becomes many": (1, [6, 1, 1]),
    "whole": (6, [6, 4, 4]),
}


@pytest.mark.parametrize("form", NOT_PER_CHANNEL)
@pytest.mark.parametrize("op", ["Mul", "Add"])
def test_a_constant_along_other_axes_stays(form: str, op: str) -> None:
    channels, shape = NOT_PER_CHANNEL[form]
    text = f"agraph (float[2,3,6,6] x) => (float y) {{ a = Conv(x, w) y = {op}(a, c) }}"
    if form == "channels of a vector":
        text = text.replace("float[2,3,6,6]", "float[2,3,8,8]")
    model = build(text, 13, {"w": numbers(channels, 3, 3, 3), "c": numbers(*shape)})
    model.graph.outputs[0].shape = None
    _, journal = unchecked(model, "conv-scale", "conv-shift")
    assert not journal.rewrites


CONV = "agraph (float[2,3,6,6] x) => (float[2,4,4,4] y"
LEFT = {
    "read twice": (CONV + ") { a = Conv(x, w) m = Mul(a, c) y = Sub(m, a) }", {}),
    "a graph output": (CONV + ", float[2,4,4,4] a) { a = Conv(x, w) y = Mul(a, c) }", {}),
    "a computed factor": (CONV + ") { a = Conv(x, w) r = ReduceMax<keepdims = 1>(x) y = Mul(a, r) }", {}),
    "a computed bias": (CONV + ") { b = Conv(x, w) r = ReduceMax<axes = [0, 2, 3], keepdims = 0>(b) a = Conv(x, w, r) y = Mul(a, c) }", {}),
    "a computed weight": (CONV + ") { v = Relu(w) a = Conv(x, v) y = Mul(a, c) }", {}),
    "divided by zero": (CONV + ") { a = Conv(x, w) y = Div(a, c) }", {"c": np.zeros((4, 1, 1), np.float32)}),
    "divided the other way": (CONV + ") { a = Conv(x, w) y = Div(c, a) }", {}),
    "infinite": (CONV + ") { a = Conv(x, w) y = Mul(a, c) }", {"c": np.full((4, 1, 1), np.inf, np.float32)}),
    "too large to hold": (CONV + ") { a = Conv(x, w) y = Mul(a, c) }", {"c": np.float32(3e38), "w": np.full((4, 3, 3, 3), 9, np.float32)}),
}


@pytest.mark.parametrize("form", LEFT)
def test_what_is_read_elsewhere_or_not_known_stays(form: str) -> None:
    text, weights = LEFT[form]
    model = build(text, 13, {"w": numbers(4, 3, 3, 3), "c": numbers(4, 1, 1)} | weights)
    left_alone(model, "conv-scale", "conv-shift")


def test_a_weight_the_caller_may_override_stays() -> None:
    text = "agraph (float[2,3,6,6] x, float[4,3,3,3] w) => (float[2,4,4,4] y) { a = Conv(x, w) y = Mul(a, c) }"
    left_alone(build(text, 13, {"w": numbers(4, 3, 3, 3), "c": numbers(4, 1, 1)}), "conv-scale")


def test_a_weight_read_by_others_is_copied_up_to_the_limit(evaluator: Evaluator) -> None:
    text = "agraph (float[2,4,6,6] x) => (float[2,4,2,2] y) { a = Conv(x, w) m = Mul(a, c) y = Conv(m, w) }"
    model = build(text, 13, {"w": numbers(4, 4, 3, 3), "c": numbers(4, 1, 1)})
    left_alone(model, "conv-scale", fold_limit=500)
    before = model.graph.initializers["w"].const_value.numpy().copy()
    after = check(model, evaluator, {"conv-scale": 1}, ["Conv", "Conv"])
    np.testing.assert_array_equal(after.graph.initializers["w"].const_value.numpy(), before)


def test_a_huge_weight_is_not_read(tmp_path: Path) -> None:
    model = build("agraph (float[1,4096] x) => (float[1,5000] y) { a = MatMul(x, w) y = Mul(a, c) }", 13, {"c": np.float32(2)})
    weight = ir.ExternalTensor(
        "absent.bin", 0, 4096 * 5000 * 4, ir.DataType.FLOAT, shape=ir.Shape([4096, 5000]), name="w", base_dir=tmp_path
    )
    value = next(value for node in model.graph for value in node.inputs if value.name == "w")
    value.const_value, value.shape, value.type = weight, ir.Shape([4096, 5000]), ir.TensorType(ir.DataType.FLOAT)
    model.graph.register_initializer(value)
    assert not unchecked(model, "matmul-scale")[1].rewrites


@pytest.mark.parametrize("opset", [9, 13, 14, 18])
def test_training_stays(opset: int) -> None:
    """Before opset 14, further outputs ask for training; then an attribute does."""
    extra, attribute = (", m1, v1, m2, v2", "") if opset < 14 else (", m1, v1", "<training_mode = 1>")
    text = f"agraph (float[2,3,6,6] x) => (float[2,3,4,4] y) {{ a = Conv(x, w) y{extra} = BatchNormalization{attribute}(a, gamma, beta, mean, var) }}"
    kinds = ("conv-batch-norm", "gemm-batch-norm", "batch-norm-twice", "scale-batch-norm")
    assert not unchecked(build(text, opset, {"w": numbers(3, 3, 3, 3)} | norm_weights(3)), *kinds)[1].rewrites


def test_a_mean_far_larger_than_the_result_stays() -> None:
    """The bias would be rounded with the mean: about 1e4 times the rounding of what is left when both cancel."""
    text = "agraph (float[2,3,6,6] x) => (float[2,3,4,4] y) { a = Conv(x, w) y = BatchNormalization(a, gamma, beta, mean, var) }"
    weights = {"w": numbers(3, 3, 3, 3)} | norm_weights(3) | {"mean": np.full(3, 1e4, np.float32)}
    left_alone(build(text, 13, weights), "conv-batch-norm")


def test_half_precision(evaluator: Evaluator) -> None:
    """Tolerance: a sum of 27 products rounded three times to 11 bits, against one time."""
    text = "agraph (float16[2,3,6,6] x) => (float16[2,4,4,4] y) { a = Conv(x, w) m = Mul(a, c) y = Add(m, c) }"
    weights = {"w": numbers(4, 3, 3, 3).astype(np.float16), "c": numbers(4, 1, 1).astype(np.float16)}
    check(build(text, 13, weights), evaluator, {"conv-scale": 1, "conv-shift": 1}, ["Conv"], 4e-3)
    left_alone(build(text, 13, weights | {"c": np.full((4, 1, 1), 3e-5, np.float16)}), "conv-scale")  # the weight would lose digits


def test_double_precision(evaluator: Evaluator) -> None:
    text = "agraph (double[2,3] x) => (double[2,4] y) { a = MatMul(x, w) m = Mul(a, c) b = Add(m, c) y = Mul(b, c) }"
    model = build(text, 13, {"w": numbers(3, 4).astype(np.float64), "c": numbers(4).astype(np.float64)})
    check(model, evaluator, {"matmul-scale": 1, "matmul-bias": 1, "gemm-scale": 1}, ["Gemm"], 1e-14)


def test_weights_of_one_number_stay_one_number(evaluator: Evaluator) -> None:
    text = "agraph (float[2,40,6,6] x) => (float[2,80,4,4] y) { w = ConstantOfShape<value = float[1] v {0.5}>(s) a = Conv(x, w) y = Mul(a, c) }"
    shape = np.array([80, 40, 3, 3], np.int64)
    same = build(text, 13, {"s": shape, "c": np.full((80, 1, 1), 3, np.float32)})
    after = check(same, evaluator, {"conv-scale": 1}, ["ConstantOfShape", "Conv"])
    assert sum(value.const_value.nbytes for value in after.graph.initializers.values()) < 1000
    left_alone(build(text, 13, {"s": shape, "c": numbers(80, 1, 1)}), "conv-scale")


# Padding


def pad_of(name: str, source: str, pads: list[int], opset: int, value: float = 0.0, mode: str = "constant") -> tuple[str, dict[str, Any]]:
    if opset < 11:
        return f'{name} = Pad<pads = {pads}, mode = "{mode}", value = {value!r}>({source})', {}
    return f'{name} = Pad<mode = "{mode}">({source}, {name}_pads, {name}_value)', {
        f"{name}_pads": np.array(pads, np.int64),
        f"{name}_value": np.float32(value),
    }


@pytest.mark.parametrize("opset", OPSETS)
def test_padding_goes_into_a_convolution(opset: int, evaluator: Evaluator) -> None:
    pad, weights = pad_of("p", "x", [0, 0, 1, 2, 0, 0, 3, 0], opset)
    weights["w"] = numbers(4, 3, 3, 3)
    text = "agraph (float[2,3,6,6] x) => (float y) { PAD y = Conv<ATTR strides = [2, 1]>(p, w) }".replace("PAD", pad)
    for attribute in ("pads = [0, 1, 1, 0],", 'auto_pad = "VALID",', ""):
        model = build(text.replace("ATTR", attribute), opset, weights)
        model.graph.outputs[0].shape = ir.Shape([None] * 4)
        check(model, evaluator, {"pad-conv": 1}, ["Conv"], 0.0)


def test_padding_of_named_axes(evaluator: Evaluator) -> None:
    text = "agraph (float[2,3,6,6] x) => (float[2,4,4,7] y) { p = Pad(x, pads, , axes) y = Conv(p, w) }"
    weights = {"w": numbers(4, 3, 3, 3), "pads": np.array([1, 2], np.int64), "axes": np.array([-1], np.int64)}
    check(build(text, 18, weights), evaluator, {"pad-conv": 1}, ["Conv"], 0.0)
    left_alone(build(text.replace("[2,4,4,7]", "[2,A,B,C]"), 18, weights | {"axes": np.array([1], np.int64)}), "pad-conv")


OTHER_PADDING: dict[str, tuple[list[int], float, str, str]] = {
    "the batch": ([1, 0, 0, 0, 0, 0, 0, 0], 0.0, "constant", "Conv(p, w)"),
    "the channels": ([0, 1, 0, 0, 0, -1, 0, 0], 0.0, "constant", "Conv(p, w)"),
    "cut off": ([0, 0, -1, 0, 0, 0, 0, 0], 0.0, "constant", "Conv(p, w)"),
    "not zero": ([0, 0, 1, 0, 0, 0, 0, 0], 1.0, "constant", "Conv(p, w)"),
    "the edge": ([0, 0, 1, 0, 0, 0, 0, 0], 0.0, "edge", "Conv(p, w)"),
    "the size matters": ([0, 0, 1, 0, 0, 0, 0, 0], 0.0, "constant", 'Conv<auto_pad = "SAME_UPPER">(p, w)'),
    "transposed": ([0, 0, 1, 0, 0, 0, 0, 0], 0.0, "constant", "ConvTranspose(p, v)"),
    "average": ([0, 0, 1, 0, 0, 0, 0, 0], 0.0, "constant", "AveragePool<kernel_shape = [2, 2]>(p)"),
    "zero is the largest": ([0, 0, 1, 0, 0, 0, 0, 0], 0.0, "constant", "MaxPool<kernel_shape = [2, 2]>(p)"),
    "a window of padding": ([0, 0, 2, 0, 0, 0, 0, 0], -np.inf, "constant", "MaxPool<kernel_shape = [2, 2]>(p)"),
    "rounded up": ([0, 0, 1, 0, 0, 0, 0, 0], -np.inf, "constant", "MaxPool<kernel_shape = [2, 2], ceil_mode = 1>(p)"),
}


@pytest.mark.parametrize("form", OTHER_PADDING)
def test_other_padding_stays(form: str) -> None:
    pads, value, mode, expression = OTHER_PADDING[form]
    pad, weights = pad_of("p", "x", pads, 13, value, mode)
    weights |= {"w": numbers(4, 3, 3, 3), "v": numbers(3, 4, 3, 3)}
    model = build(f"agraph (float[2,3,6,6] x) => (float[A,B,C,D] y) {{ {pad} y = {expression} }}", 13, weights)
    assert not unchecked(model, "pad-conv", "pad-max-pool")[1].rewrites


@pytest.mark.parametrize("opset", OPSETS)
def test_padding_that_is_never_the_largest_goes_into_a_pool(opset: int, evaluator: Evaluator) -> None:
    pads = [0, 0, 1, 0, 0, 0, 1, 1]
    zero, weights = pad_of("p", "r", pads, opset)
    text = f"agraph (float[2,3,6,6] x) => (float[2,3,C,D] y) {{ r = Relu(x) {zero} y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 0, 0, 1]>(p) }}"
    check(build(text, opset, weights), evaluator, {"pad-max-pool": 1}, ["Relu", "MaxPool"], 0.0)
    if opset >= 11:  # the text form has no word for an infinite attribute
        lowest, weights = pad_of("p", "x", pads, opset, -np.inf)
        text = f"agraph (float[2,3,6,6] x) => (float[2,3,C,D] y) {{ {lowest} y = MaxPool<kernel_shape = [3, 3]>(p) }}"
        check(build(text, opset, weights), evaluator, {"pad-max-pool": 1}, ["MaxPool"], 0.0)


# Matrix products


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("transposed", [0, 1])
def test_a_gemm_takes_what_scales_and_shifts_its_columns(transposed: int, opset: int, evaluator: Evaluator) -> None:
    text = f"""agraph (float[N,4] x) => (float[N,5] y) {{
        a = Gemm<alpha = 0.5, beta = 3.0, transB = {transposed}>(x, w, b) n = BatchNormalization(a, gamma, beta, mean, var)
        m = Div(n, c) p = Add(d, m) y = Sub(p, c)
    }}"""
    weights = {"w": numbers(*((5, 4) if transposed else (4, 5))), "b": numbers(1, 5), "c": numbers(5) + 3, "d": numbers(1)} | norm_weights(
        5
    )
    check(build(text, opset, weights), evaluator, {"gemm-batch-norm": 1, "gemm-scale": 1, "gemm-shift": 2}, ["Gemm"])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (1, 5), (3, 1), (3, 5)])
def test_a_product_and_a_bias_are_a_gemm(shape: tuple[int, ...], opset: int, evaluator: Evaluator) -> None:
    text = "agraph (float[3,4] x) => (float[3,5] y) { a = MatMul(x, w) y = Add(b, a) }"
    check(build(text, opset, {"w": numbers(4, 5), "b": numbers(*shape)}), evaluator, {"matmul-bias": 1}, ["Gemm"])
    computed = "agraph (float[3,4] x, float[4,5] w) => (float[3,5] y) { a = MatMul(x, w) e = Exp(b) y = Add(a, e) }"
    check(build(computed, opset, {"b": numbers(*shape)}), evaluator, {"matmul-bias": 1}, ["Exp", "Gemm"])


def test_a_product_that_is_no_matrix_stays_and_so_does_a_bias_that_enlarges() -> None:
    kinds = ("matmul-bias", "gemm-bias", "gemm-shift")
    batch = "agraph (float[2,3,4] x) => (float[2,3,5] y) { a = MatMul(x, w) y = Add(a, b) }"
    left_alone(build(batch, 13, {"w": numbers(4, 5), "b": numbers(5)}), *kinds)
    larger = "agraph (float[1,4] x) => (float[3,5] y) { a = MatMul(x, w) y = Add(a, b) }"
    left_alone(build(larger, 13, {"w": numbers(4, 5), "b": numbers(3, 5)}), *kinds)
    wider = "agraph (float[3,4] x) => (float[3,5] y) { a = MatMul(x, w) y = Add(a, b) }"
    left_alone(build(wider, 13, {"w": numbers(4, 1), "b": numbers(5)}), *kinds)
    whole = "agraph (int32[3,4] x) => (int32[3,5] y) { a = MatMul(x, w) y = Add(a, b) }"
    left_alone(build(whole, 13, {"w": np.ones((4, 5), np.int32), "b": np.ones(5, np.int32)}), *kinds)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_a_gemm_without_a_bias_takes_one(opset: int, evaluator: Evaluator) -> None:
    text = "agraph (float[3,4] x, float[4,5] w) => (float[3,5] y) { a = Gemm<alpha = 2.0, beta = 7.0>(x, w) y = Add(a, b) }"
    check(build(text, opset, {"b": numbers(5)}), evaluator, {"gemm-bias": 1}, ["Gemm"])


@pytest.mark.parametrize("opset", OPSETS)
def test_a_transposed_operand_is_an_attribute(opset: int, evaluator: Evaluator) -> None:
    text = """agraph (float[4,3] x, float[4,5] w) => (float[3,5] y) {
        t = Transpose<perm = [1, 0]>(x) u = Transpose(w) y = Gemm<transB = 1>(t, u, b)
    }"""
    check(build(text, opset, {"b": numbers(5)}), evaluator, {"gemm-transpose": 2}, ["Gemm"])


@pytest.mark.parametrize("opset", OPSETS)
def test_a_scaled_product_has_a_scaled_weight(opset: int, evaluator: Evaluator) -> None:
    right = "agraph (float[2,3,4] x) => (float[2,3,5] y) { a = MatMul(x, w) m = Mul(a, c) y = Div(m, s) }"
    weights = {"w": numbers(4, 5), "c": numbers(5), "s": np.float32(8)}
    check(build(right, opset, weights), evaluator, {"matmul-scale": 2}, ["MatMul"])
    left = "agraph (float[4,5] x) => (float[3,5] y) { a = MatMul(w, x) y = Mul(s, a) }"
    check(build(left, opset, {"w": numbers(3, 4), "s": np.float32([0.3])}), evaluator, {"matmul-scale": 1}, ["MatMul"])
    norm = "agraph (float[N,4] x) => (float[N,5] y) { a = MatMul(x, w) y = BatchNormalization(a, gamma, beta, mean, var) }"
    check(build(norm, opset, {"w": numbers(4, 5)} | norm_weights(5)), evaluator, {"gemm-batch-norm": 1}, ["Gemm"])
    left_alone(
        build(left.replace("[4,5] x", "[4,3] x").replace("[3,5] y", "[3,3] y"), opset, {"w": numbers(3, 4), "s": numbers(3)}),
        "matmul-scale",
    )
    batched = "agraph (float[2,3,4] x) => (float[2,3,3] y) { a = MatMul(x, w) y = BatchNormalization(a, gamma, beta, mean, var) }"
    left_alone(build(batched, opset, {"w": numbers(4, 3)} | norm_weights(3)), "gemm-batch-norm")


# Normalisation and reduction


@pytest.mark.parametrize("opset", OPSETS)
def test_a_normalisation_takes_what_is_around_it(opset: int, evaluator: Evaluator) -> None:
    weights = (
        norm_weights(4)
        | {f"{name}2": array for name, array in norm_weights(4).items()}
        | {"c": numbers(4, 1, 1) + 3, "d": numbers(1, 4, 1, 1)}
    )
    text = """agraph (float[N,4,5,6] x) => (float[N,4,5,6] y) {
        n = BatchNormalization(x, gamma, beta, mean, var) m = Mul(c, n) a = Sub(d, m) y = BatchNormalization(a, gamma2, beta2, mean2, var2)
    }"""
    kinds = {"batch-norm-scale": 1, "batch-norm-shift": 1, "batch-norm-twice": 1}
    check(build(text, opset, weights), evaluator, kinds, ["BatchNormalization"])
    text = (
        "agraph (float[N,4,5,6] x) => (float[N,4,5,6] y) { a = Div(x, c) b = Add(d, a) y = BatchNormalization(b, gamma, beta, mean, var) }"
    )
    weights = {name: array for name, array in weights.items() if not name.endswith("2")}
    check(build(text, opset, weights), evaluator, {"scale-batch-norm": 2}, ["BatchNormalization"])


def squeeze_of(name: str, source: str, axes: list[int], opset: int) -> tuple[str, dict[str, Any]]:
    if opset < 13:
        return f"{name} = Squeeze<axes = {axes}>({source})", {}
    return f"{name} = Squeeze({source}, {name}_axes)", {f"{name}_axes": np.array(axes, np.int64)}


@pytest.mark.parametrize("opset", OPSETS)
def test_a_reduction_drops_its_dimensions(opset: int, evaluator: Evaluator) -> None:
    squeeze, weights = squeeze_of("y", "r", [3, 2], opset)
    reduce = "ReduceMean<axes = [-1, 2]>(x)" if opset < 18 else "ReduceMean(x, axes)"
    if opset >= 18:
        weights["axes"] = np.array([-1, 2], np.int64)
    text = f"agraph (float[N,3,4,5] x) => (float[N,3] y) {{ r = {reduce} {squeeze} }}"
    check(build(text, opset, weights), evaluator, {"reduce-squeeze": 1}, ["ReduceMean"], 0.0)
    squeeze, weights = squeeze_of("y", "r", [1], opset)
    text = f"agraph (float[2,3] x) => (int64[2] y) {{ r = ArgMax<axis = -1>(x) {squeeze} }}"
    check(build(text, opset, weights), evaluator, {"reduce-squeeze": 1}, ["ArgMax"], 0.0)
    flat = "agraph (float[2,3,4] x) => (float[2,3] y) { r = ReduceL2<axes = [2]>(x) y = Flatten(r) }"
    if opset < 18:
        check(build(flat, opset), evaluator, {"reduce-squeeze": 1}, ["ReduceL2"], 0.0)
    other, weights = squeeze_of("y", "r", [0], opset)
    text = f"agraph (float[1,3] x) => (int64[1] y) {{ r = ArgMax<axis = -1>(x) {other} }}"
    left_alone(build(text, opset, weights), "reduce-squeeze")


def test_fusions_in_a_body(evaluator: Evaluator) -> None:
    """The weight is outside, read by both branches; each branch gets its own. A convolution outside is not drawn in."""
    text = """agraph (float[2,3,6,6] x, bool t) => (float[2,4,4,4] y) {
        o = Conv(x, w) y = If<
            then_branch = then () => (float[2,4,4,4] p) { a = Conv(x, w) p = Mul(a, c) },
            else_branch = other () => (float[2,4,4,4] q) { b = Conv(x, w) d = Add(b, c) q = Add(d, c) }
        >(t)
    }"""
    model = build(text, 13, {"w": numbers(4, 3, 3, 3), "c": numbers(4, 1, 1)})
    after, journal = simplified(model, {"conv-scale", "conv-shift", "unused-node"})
    assert [item.kind for item in journal.rewrites if item.kind != "unused-node"].count("conv-shift") == 2
    x = feeds_of(model)["x"]
    for side in (True, False):
        feeds = {"x": x, "t": np.bool_(side)}
        assert far(evaluator.run(after, feeds), evaluator.run(model, feeds)) <= ROUNDING
    outside = "agraph (float[2,3,6,6] x, bool t) => (float[2,4,4,4] y) { o = Conv(x, w) y = If<then_branch = then () => (float[2,4,4,4] p) { p = Mul(o, c) }, else_branch = other () => (float[2,4,4,4] q) { q = Identity(c4) }>(t) }"
    model = build(outside, 13, {"w": numbers(4, 3, 3, 3), "c": numbers(4, 1, 1), "c4": numbers(2, 4, 4, 4)})
    left_alone(model, "conv-scale")


# A wrong fusion is noticed


def test_a_planted_error_is_noticed(monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator) -> None:
    """Mean and bias exchanged."""
    text = "agraph (float[2,4,6,6] x) => (float[2,4,A,B] y) { a = Conv(x, w) y = BatchNormalization(a, gamma, beta, mean, var) }"
    model = build(text, 13, {"w": numbers(4, 4, 3, 3)} | norm_weights(4))
    right = affine._batch_norm

    def exchanged(node: ir.Node, channels: affine.Channels) -> affine.Affine | None:
        return right(ir.node("BatchNormalization", [node.inputs[place] for place in (0, 1, 3, 2, 4)], outputs=[_typed()]), channels)

    def _typed() -> ir.Value:
        return ir.Value(name="elsewhere", type=ir.TensorType(ir.DataType.FLOAT))

    monkeypatch.setattr(affine, "_batch_norm", exchanged)
    after, journal = simplified(model, {"conv-batch-norm"})
    assert journal.rewrites
    feeds = feeds_of(model)
    assert far(evaluator.run(after, feeds), evaluator.run(model, feeds)) > 100 * ROUNDING
