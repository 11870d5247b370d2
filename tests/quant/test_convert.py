"""QDQ models of others taken apart: the deploy form computes what they computed, and what cannot be taken over says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator, infer_shapes, load
from jumar.quant.convert import convert, is_quantised
from jumar.quant.deploy import deploy_model
from jumar.quant.proof import prove_layers
from jumar.quant.qdq import qdq_model


def model_of(body: str, **weights: Any) -> ir.Model:
    arrays = [ir.tensor(np.asarray(array), name=name) for name, array in weights.items()]
    made = ir.from_onnx_text(
        f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,3,8,8] x) => (float y) {{ {body} }}', initializers=arrays
    )
    infer_shapes(made)
    return made


CONV = """xq = QuantizeLinear(x, xs, xz) xd = DequantizeLinear(xq, xs, xz) wd = DequantizeLinear<axis = 0>(w, ws, wz)
          bd = DequantizeLinear<axis = 0>(b, bs) y = Conv<pads = [1,1,1,1]>(xd, wd, bd)"""


def conv_weights(random: np.random.Generator, kind: Any = np.int8) -> dict[str, Any]:
    shift = 128 if kind is np.uint8 else 0
    scales = random.uniform(0.005, 0.02, 4).astype(np.float32)
    return {
        "xs": np.float32(0.03),
        "xz": kind(shift - 9),
        "w": random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
        "ws": scales,
        "wz": np.zeros(4, np.int8),
        "b": random.integers(-4000, 4000, 4).astype(np.int32),
        "bs": (scales * np.float32(0.03)).astype(np.float32),
    }


def feed(random: np.random.Generator) -> dict[str, Any]:
    return {"x": random.standard_normal((1, 3, 8, 8)).astype(np.float32)}


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_a_convolution_of_onnx_runtime(kind: Any, evaluator: Evaluator, random: np.random.Generator) -> None:
    weights = conv_weights(random, kind)
    model, feeds = model_of(CONV, **weights), feed(random)
    assert is_quantised(model)
    found = convert(model)
    (item,) = found.plan.items.values()
    assert item.activation.offset == -9  # the same in int8, whatever it was
    assert np.array_equal(item.weight.data, weights["w"]) and item.bias is not None and np.array_equal(item.bias, weights["b"])
    assert not found.left and not found.dropped and not found.remaining
    right = evaluator.run(model, feeds)["y"]
    deploy = evaluator.run(deploy_model(found.model, found.plan), feeds)["y"]
    assert np.abs(deploy - right).max() < 2e-5 * np.abs(right).max()
    assert all(proof.passed for proof in prove_layers(qdq_model(found.model, found.plan), found.plan, [feeds], evaluator))
    weights["w"][0, 0, 0, 0] ^= 4
    assert np.abs(evaluator.run(model_of(CONV, **weights), feeds)["y"] - deploy).max() > 1e-4 * np.abs(right).max()


def test_float_weights_through_pairs_and_a_transpose(evaluator: Evaluator, random: np.random.Generator) -> None:
    """As PyTorch and TensorRT's tools write them."""
    body = """f = Flatten(x) fq = QuantizeLinear(f, xs, xz) fd = DequantizeLinear(fq, xs, xz)
              vq = QuantizeLinear(v, ws, wz) vd = DequantizeLinear(vq, ws, wz) vt = Transpose<perm = [1,0]>(vd) m = MatMul(fd, vt) y = Add(m, b)"""
    model = model_of(
        body,
        xs=np.float32(0.02),
        xz=np.int8(5),
        v=random.standard_normal((6, 192)).astype(np.float32),
        ws=np.float32(0.025),
        wz=np.int8(0),
        b=random.standard_normal(6).astype(np.float32),
    )
    found, feeds = convert(model), feed(random)
    assert [item.layer.op for item in found.plan.items.values()] == ["MatMul"] and not found.left
    right, deploy = evaluator.run(model, feeds)["y"], evaluator.run(deploy_model(found.model, found.plan), feeds)["y"]
    assert np.abs(deploy - right).max() < 1e-3 * np.abs(right).max()  # the bias was in floats


def test_pairs_between_other_operators_are_left_out(evaluator: Evaluator, random: np.random.Generator) -> None:
    body = (
        CONV.replace("y = Conv", "c = Conv")
        + " cq = QuantizeLinear(c, ys, xz) cd = DequantizeLinear(cq, ys, xz) r = Relu(cd) rq = QuantizeLinear(r, ys, xz) y = DequantizeLinear(rq, ys, xz)"
    )
    model = model_of(body, **conv_weights(random), ys=np.float32(0.2))
    found, feeds = convert(model), feed(random)
    assert found.dropped == 2 and len(found.plan.items) == 1 and not found.remaining
    deploy = deploy_model(found.model, found.plan)
    assert not [node for node in deploy.graph if "Linear" in node.op_type]
    right = evaluator.run(model, feeds)["y"]
    assert np.abs(evaluator.run(deploy, feeds)["y"] - right)[np.abs(right) < 10].max() <= 0.2 * 1.01


REFUSED = {
    "not symmetric": ({"wz": np.full(4, 3, np.int8)}, CONV),
    "computed factors": ({}, CONV.replace("DequantizeLinear(xq, xs, xz)", "DequantizeLinear(xq, xs2, xz)")),
    "several scales": (
        {"xs": np.full(3, 0.03, np.float32), "xz": np.zeros(3, np.int8)},
        CONV.replace("(xq, xs, xz)", "<axis = 1>(xq, xs, xz)")
        .replace("QuantizeLinear(x,", "QuantizeLinear<axis = 1>(x,")
        .replace("DeQuantize", "Dequantize"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_over(name: str, evaluator: Evaluator, random: np.random.Generator) -> None:
    changes, body = REFUSED[name]
    weights = {**conv_weights(random), "xs2": np.float32(0.04), **changes}
    if "xs2" not in body:
        del weights["xs2"]
    model, feeds = model_of(body, **weights), feed(random)
    found = convert(model)
    assert not found.plan.items and len(found.left) == (0 if name == "nothing" else 1)
    assert found.remaining == (2 if name == "computed factors" else 0)
    right, floats = evaluator.run(model, feeds)["y"], evaluator.run(found.model, feeds)["y"]
    assert np.abs(floats - right).max() < 0.05 * np.abs(right).max()  # only the rounding of the input is gone


def test_a_scale_for_each_channel_of_a_matrix_is_not_taken(random: np.random.Generator) -> None:
    body = "f = Flatten(x) fq = QuantizeLinear(f, xs, xz) fd = DequantizeLinear(fq, xs, xz) wd = DequantizeLinear<axis = 1>(w, ws) y = MatMul(fd, wd)"
    found = convert(
        model_of(
            body, xs=np.float32(0.1), xz=np.int8(0), w=random.integers(-127, 128, (192, 4)).astype(np.int8), ws=np.full(4, 0.1, np.float32)
        )
    )
    assert "scale for each channel" in str(next(iter(found.left.values())))


def test_what_onnx_runtime_writes(tmp_path: Path, evaluator: Evaluator, random: np.random.Generator) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,3,8,8] x) => (float[1,5] y) {
        c = Conv<pads = [1,1,1,1]>(x, w1, b1) r = Relu(c) d = Conv(r, w2) a = GlobalAveragePool(d) f = Flatten(a) y = Gemm(f, w3, b3) }"""
    shapes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 3, 3), "w3": (8, 5), "b3": (5,)}
    weights = [ir.tensor(random.standard_normal(shape).astype(np.float32), name=name) for name, shape in shapes.items()]
    ir.save(ir.from_onnx_text(text, initializers=weights), tmp_path / "float.onnx")
    samples = iter([feed(random) for _ in range(4)])

    class Reader:
        def get_next(self) -> Any:
            return next(samples, None)

    quantize_static(
        str(tmp_path / "float.onnx"),
        str(tmp_path / "int8.onnx"),
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        extra_options={"WeightSymmetric": True, "QDQKeepRemovableActivations": True},
    )
    onnx.checker.check_model(str(tmp_path / "int8.onnx"))
    model, feeds = load(tmp_path / "int8.onnx"), feed(random)
    infer_shapes(model)
    found = convert(model)
    assert {item.layer.op for item in found.plan.items.values()} >= {"Conv"} and len(found.plan.items) + len(found.left) == 3
    right, deploy = evaluator.run(model, feeds)["y"], evaluator.run(deploy_model(found.model, found.plan), feeds)["y"]
    assert np.abs(deploy - right).max() < 0.05 * np.abs(right).max()


def test_the_public_case(shared: Path, evaluator: Evaluator) -> None:
    folder = shared / "cases" / "op-qdq-model"
    model = load(folder / "qdq.onnx")
    infer_shapes(model)
    found = convert(model)
    (item,) = found.plan.items.values()
    assert found.dropped == 1 and item.activation.scale == pytest.approx(0.03)
    with np.load(folder / "qdq.onnx.in.npz") as feeds, np.load(folder / "qdq.onnx.ref.npz") as reference:
        deploy = evaluator.run(deploy_model(found.model, found.plan), dict(feeds))["y"]
        right = reference["y"]
    inside = (right < 0.2 * (127 - 3) - 0.1) & (right > 0.2 * (-128 - 3) + 0.1)
    assert inside.any() and np.abs(deploy - right)[inside].max() <= 0.1 * 1.001  # half a step of the output
