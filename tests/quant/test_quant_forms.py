"""The two forms: what is in them, that they agree, and that a wrong one is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar.child.histogram import counted
from jumar.errors import UsageError
from jumar.graph import Evaluator, capture_model, infer_shapes, load, save
from jumar.quant.deploy import deploy_model
from jumar.quant.layers import survey
from jumar.quant.numbers import Scale, unpack_scales
from jumar.quant.observe import Histogram
from jumar.quant.plan import Plan, Quantised, WeightOptions, quantise_layer
from jumar.quant.proof import integer_layer, prove_layers
from jumar.quant.qdq import SWITCH, qdq_model
from jumar.quant.ranges import scale_of

TEXT = """<ir_version: 8, opset_import: ["" : %d]>
agraph (float[1,3,12,12] x) => (float[1,7] y, float[1,5] g) {
    c = Conv<pads = [1,1,1,1], strides = [2,2]>(x, w1, b1) r = Relu(c)
    d = Conv<group = 8, pads = [1,1,1,1]>(r, w2) s = Sigmoid(d) a = Add(r, s)
    t = ConvTranspose<strides = [2,2]>(a, w3, b3) m = GlobalAveragePool(t) f = Flatten(m)
    h = MatMul(f, w4) z = Add(b4, h) y = Tanh(z) g = Gemm<transB = 1>(f, w5, b5)
}"""
SHAPES = {
    "w1": (8, 3, 3, 3),
    "b1": (8,),
    "w2": (8, 1, 3, 3),
    "w3": (8, 6, 2, 2),
    "b3": (6,),
    "w4": (6, 7),
    "b4": (7,),
    "w5": (5, 6),
    "b5": (5,),
}


def make(opset: int, random: np.random.Generator) -> ir.Model:
    model = ir.from_onnx_text(
        TEXT % opset,
        initializers=[ir.tensor(random.standard_normal(shape).astype(np.float32), name=name) for name, shape in SHAPES.items()],
    )
    infer_shapes(model)
    return model


def planned(model: ir.Model, feeds: list[dict[str, Any]], evaluator: Evaluator, is_symmetric: bool = False, **options: bool) -> Plan:
    layers = survey(model).layers
    wanted = {layer.data.name or "" for layer in layers}
    found = [evaluator.run(capture_model(model, wanted - {"x"}), feed) | feed for feed in feeds]
    items = {}
    for layer in layers:
        histogram = Histogram()
        for number, tensors in enumerate(found):
            x = tensors[layer.data.name]
            counts, facts = counted(x)
            sums = x.sum(axis=(0, *range(2, x.ndim)), dtype=np.float64) if layer.input_axis == 1 else np.zeros(0)
            histogram.add(number, {**facts, "size": x.size}, counts, sums)
        items[layer.name] = quantise_layer(layer, scale_of(histogram, "max", is_symmetric), WeightOptions(**options), histogram)
    return Plan(items)


def inputs(random: np.random.Generator, count: int = 3) -> list[dict[str, Any]]:
    return [{"x": random.standard_normal((1, 3, 12, 12)).astype(np.float32)} for _ in range(count)]


@pytest.mark.parametrize("is_symmetric", [True, False])
@pytest.mark.parametrize("opset", [10, 11, 13, 18])
def test_both_forms_of_all_layers(opset: int, is_symmetric: bool, evaluator: Evaluator, random: np.random.Generator, tmp_path: Any) -> None:
    model, feeds = make(opset, random), inputs(random)
    plan = planned(model, feeds, evaluator, is_symmetric)
    assert [item.layer.op for item in plan.items.values()] == ["Conv", "Conv", "ConvTranspose", "MatMul", "Gemm"]
    qdq, deploy = qdq_model(model, plan), deploy_model(model, plan)
    assert qdq.opset_imports == deploy.opset_imports == model.opset_imports
    proofs = list(prove_layers(qdq, plan, feeds, evaluator))
    assert len(proofs) == 5 * len(feeds) and all(proof.passed for proof in proofs)
    save(deploy, tmp_path / "deploy.onnx")  # read again, as ATC would
    right, rounded = evaluator.run(model, feeds[0]), evaluator.run(qdq, feeds[0])
    found = evaluator.run(load(tmp_path / "deploy.onnx"), feeds[0])
    for name, value in right.items():
        largest = np.abs(value).max()
        assert 0 < np.abs(rounded[name] - value).max() < 0.1 * largest
        # A tie that falls the other way moves a layer by one step; without one the forms agree to rounding.
        assert np.abs(found[name] - rounded[name]).max() < 0.02 * largest
    assert not any(node.op_type.startswith("Ascend") for node in model.graph)  # the given model is as it was


def test_a_wrong_form_is_noticed(evaluator: Evaluator, random: np.random.Generator) -> None:
    model, feeds = make(13, random), inputs(random, 1)
    plan = planned(model, feeds, evaluator)
    qdq = qdq_model(model, plan)

    def failed(**changes: Any) -> set[str]:
        wrong = Plan({name: replace(item, **{key: value(item) for key, value in changes.items()}) for name, item in plan.items.items()})
        return {proof.name for proof in prove_layers(qdq, wrong, feeds, evaluator) if not proof.passed}

    def one_more(item: Quantised) -> Any:
        data = item.weight.data.copy()
        data.reshape(-1)[0] += 1 if data.reshape(-1)[0] < 127 else -1
        return replace(item.weight, data=data)

    everything = set(plan.items)
    assert not failed()
    assert failed(weight=one_more) == everything
    assert failed(activation=lambda item: Scale(item.activation.scale, item.activation.offset + 1)) == everything
    assert failed(activation=lambda item: Scale(item.activation.scale * 1.01, item.activation.offset)) == everything
    assert failed(bias=lambda item: None if item.bias is None else item.bias + 40) == {
        n for n, i in plan.items.items() if i.bias is not None
    }


def test_the_layout_of_the_deploy_form(evaluator: Evaluator, random: np.random.Generator) -> None:
    model, feeds = make(11, random), inputs(random, 1)
    plan = planned(model, feeds, evaluator)
    deploy = deploy_model(model, plan)
    nodes = {node.name: node for node in deploy.graph}
    made = {value.name: node for node in deploy.graph for value in node.outputs}
    weights = deploy.graph.initializers
    for name, item in plan.items.items():
        before, after = nodes[f"{name}.quant"], nodes[f"{name}.dequant"]
        assert (before.op_type, after.op_type, before.domain, after.domain) == ("AscendQuant", "AscendDequant", "", "")
        assert before.attributes["scale"].as_float() == np.float32(1) / np.float32(item.activation.scale)
        assert before.attributes["offset"].as_float() == item.activation.offset
        assert before.attributes["dst_type"].as_string() == "INT8"
        assert after.attributes["dtype"].as_int() == 0
        assert after.outputs[0].name == item.layer.output.name  # the float tensor keeps its name
        scales = after.inputs[1]
        assert scales is not None and scales.const_value is not None and scales.dtype == ir.DataType.UINT64
        assert np.array_equal(unpack_scales(scales.const_value.numpy()), item.deq)
        assert scales.name == f"{name}.dequant.param"
    assert made["z"].op_type == "AscendDequant" and made["z"].inputs[0].producer().op_type == "Add"  # type: ignore[union-attr]
    assert {name: weights[name].dtype for name in ("w1", "w2", "w3", "w4", "w5")} == dict.fromkeys(
        ("w1", "w2", "w3", "w4", "w5"), ir.DataType.INT8
    )
    assert "b1" not in weights and weights["c.bias"].dtype == ir.DataType.INT32
    assert {value.name for value in deploy.graph.outputs} == {"y", "g"}


def test_one_switched_model_stands_for_all(evaluator: Evaluator, random: np.random.Generator) -> None:
    model, feeds = make(13, random), inputs(random, 1)
    plan = planned(model, feeds, evaluator)
    names = list(plan.items)
    right, switched = evaluator.run(model, feeds[0]), qdq_model(model, plan, switched=True)
    with evaluator.session(switched) as session:
        for chosen in ([], names, names[:2], [names[3]]):
            flags = np.array([name in chosen for name in names])
            found = session.run({**feeds[0], SWITCH: flags})
            own = evaluator.run(qdq_model(model, plan.without(set(names) - set(chosen))), feeds[0]) if chosen else right
            assert all(np.array_equal(found[name], value) for name, value in own.items())


def test_a_shared_weight_and_tensor(evaluator: Evaluator, random: np.random.Generator) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,4] x) => (float[2,4] y) {
        a = MatMul(x, w) b = MatMul(x, w) c = Tanh(b) d = MatMul(c, w) e = Add(a, d) y = Add(e, w2)
    }"""
    weights = [ir.tensor(random.standard_normal(shape).astype(np.float32), name=name) for name, shape in {"w": (4, 4), "w2": (4,)}.items()]
    model = ir.from_onnx_text(text, initializers=weights)
    infer_shapes(model)
    x = {"x": random.standard_normal((2, 4)).astype(np.float32)}
    plan = planned(model, [x], evaluator)
    assert len(plan.items) == 3
    qdq, deploy = qdq_model(model, plan), deploy_model(model, plan)
    assert [node.op_type for node in qdq.graph].count("QuantizeLinear") == 2
    assert all(proof.passed for proof in prove_layers(qdq, plan, [x], evaluator))
    assert np.abs(evaluator.run(deploy, x)["y"] - evaluator.run(qdq, x)["y"]).max() < 0.05
    assert "w" not in deploy.graph.initializers or deploy.graph.initializers["w"].dtype == ir.DataType.INT8


def test_bias_correction_takes_the_mean_error_away(evaluator: Evaluator, random: np.random.Generator) -> None:
    model = make(13, random)
    feeds = [{"x": np.abs(random.standard_normal((1, 3, 12, 12))).astype(np.float32) + 2} for _ in range(8)]
    plain, corrected = planned(model, feeds, evaluator), planned(model, feeds, evaluator, correct_bias=True)
    first = next(iter(plain.items))
    right = np.concatenate([evaluator.run(capture_model(model, ["c"]), feed)["c"] for feed in feeds])

    def mean_error(plan: Plan) -> float:
        q = qdq_model(model, plan.without(set(plan.items) - {first}))
        found = np.concatenate([evaluator.run(capture_model(q, ["c"]), feed)["c"] for feed in feeds])
        return float(np.abs((found - right)[:, :, 1:-1, 1:-1].mean(axis=(0, 2, 3))).sum())

    assert mean_error(corrected) < 0.6 * mean_error(plain)


def test_no_quantize_linear_before_opset_10(evaluator: Evaluator, random: np.random.Generator) -> None:
    model = make(9, random)
    with pytest.raises(UsageError, match="opset 9"):
        qdq_model(model, Plan({}))


def test_integer_layer_sees_the_offset(evaluator: Evaluator, random: np.random.Generator) -> None:
    model, feeds = make(13, random), inputs(random, 1)
    item = next(iter(planned(model, feeds, evaluator).items.values()))
    assert item.activation.offset != 0
    zeros = np.full((1, 3, 12, 12), item.activation.offset, np.int8)
    assert item.bias is not None
    assert integer_layer(item, zeros)[0, :, 3, 3] == pytest.approx(item.bias * item.deq.astype(np.float64), rel=1e-6)
