"""Pieces in which two models differ are found by tensor names, cut out, and compared on captured tensors."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jumar.graph import Evaluator, copy_model, infer_shapes
from jumar.graph.simplify import simplify_graph
from jumar.proof import FeedSet, Interface, Prover
from jumar.proof.pieces import piece_batches

CHAIN = """<ir_version: 8, opset_import: ["" : 13]>
agraph (float[1,2,4,4] x) => (float[1,2,4,4] y)
<float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}, float[2,1,1] scale = {2.0, -3.0}, float[2,2,1,1] v = {-1.0, 0.5, 0.25, 4.0}, float[2,1,1] shift = {0.5, 7.0}> {
    a = Conv(x, w)
    b = Mul(a, scale)
    c = Relu(b)
    d = Conv(c, v)
    e = Add(d, shift)
    y = Sigmoid(e)
}"""


def models(evaluator: Evaluator) -> tuple[ir.Model, ir.Model]:
    before = ir.from_onnx_text(CHAIN)
    after = copy_model(before)
    simplify_graph(after, evaluator)
    assert [node.op_type for node in after.graph] == ["Conv", "Relu", "Conv", "Sigmoid"]
    return before, after


def prover(model: ir.Model, evaluator: Evaluator) -> Prover:
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    return Prover(model, evaluator, FeedSet(({"x": x},), "user"))


def test_each_piece_starts_and_ends_at_tensors_of_both_models(evaluator: Evaluator) -> None:
    before, after = models(evaluator)
    (batch,) = piece_batches(before, after)
    assert set(batch.inputs) == {"x", "c"}
    assert dict(batch.outputs) == {"b": "b__found", "e": "e__found"}
    assert [node.op_type for node in batch.model.graph] == ["Conv", "Conv"]


def test_pieces_are_proven_and_one_wrong_weight_fails(evaluator: Evaluator) -> None:
    before, after = models(evaluator)
    proof = prover(before, evaluator).prove_pieces(after, Interface.of(before), 1e-5, "max_scaled")
    assert proof is not None
    assert proof.passed
    assert 0.0 <= proof.max_scaled <= 1e-5
    weight = next(node for node in after.graph if node.outputs[0].name == "b").inputs[1]
    assert weight is not None
    assert weight.const_value is not None
    weight.const_value = ir.tensor(weight.const_value.numpy() * np.float32(1.01), name=weight.name)
    wrong = prover(before, evaluator).prove_pieces(after, Interface.of(before), 1e-5, "max_scaled")
    assert wrong is not None
    assert not wrong.passed
    assert wrong.max_scaled > 1e-3


def test_an_error_that_the_outputs_hide_is_seen(evaluator: Evaluator) -> None:
    """Sigmoid saturates: the whole-model comparison would pass."""
    text = CHAIN.replace("0.5, 7.0", "90.0, 95.0")
    before = ir.from_onnx_text(text)
    after = copy_model(before)
    simplify_graph(after, evaluator)
    bias = next(node for node in after.graph if node.outputs[0].name == "e").inputs[2]
    assert bias is not None
    assert bias.const_value is not None
    bias.const_value = ir.tensor(bias.const_value.numpy() + np.float32(1.0), name=bias.name)
    running = prover(before, evaluator)
    assert running.prove_model(after, Interface.of(before), 1e-5, measure="max_scaled", accept=False, magnified=True).passed
    pieces = running.prove_pieces(after, Interface.of(before), 1e-5, "max_scaled")
    assert pieces is not None
    assert not pieces.passed


def test_equal_models_have_no_pieces(evaluator: Evaluator) -> None:
    before = ir.from_onnx_text(CHAIN)
    assert prover(before, evaluator).prove_pieces(copy_model(before), Interface.of(before), 0.0) is None


def test_a_piece_within_which_a_body_reads_outer_tensors(evaluator: Evaluator) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]>
    agraph (float[2,3] x, bool yes) => (float[2,3] y) {
        a = Exp(x)
        b = If (yes) <
            then_branch = t () => (float[2,3] p) { p = Relu(a) },
            else_branch = e () => (float[2,3] q) { q = Neg(a) }
        >
        y = Tanh(b)
    }"""
    before = ir.from_onnx_text(text)
    after = ir.from_onnx_text(text.replace("p = Relu(a)", "r = Relu(a) p = Relu(r)"))
    infer_shapes(after)
    (batch,) = piece_batches(before, after)
    assert set(batch.inputs) == {"a", "yes"}
    assert dict(batch.outputs) == {"b": "b__found"}
    feeds = FeedSet(({"x": np.ones((2, 3), np.float32), "yes": np.array(True)},), "user")
    proof = Prover(before, evaluator, feeds).prove_pieces(after, Interface.of(before), 0.0)
    assert proof is not None
    assert proof.passed
