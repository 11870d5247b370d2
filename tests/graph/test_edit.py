"""Edits keep names, interfaces and the original model."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar.graph import Builder, Evaluator, capture_model, extract_model, infer_shapes, rename_value, replace_value, used_names
from jumar.graph.edit import can_take_over

HEADER = '<ir_version: 8, opset_import: ["" : 16]>\n'
CHAIN = "agraph (float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Neg(a) y = Abs(b) }"


def model_of(text: str) -> ir.Model:
    return ir.from_onnx_text(HEADER + text)


def check(model: ir.Model) -> None:
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def node_of(model: ir.Model, op_type: str) -> ir.Node:
    return next(node for node in model.graph if node.op_type == op_type)


def test_names_of_all_depths_are_used_names() -> None:
    model = model_of("""agraph (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
        y = If (c) <
            then_branch = a () => (float[2] p) <float[2] inner = {1, 2}> { p = Add(x, inner) },
            else_branch = b () => (float[2] q) { q = Add(x, w) }
        >
    }""")
    assert used_names(model) == {"x", "c", "y", "w", "p", "q", "inner"}


def test_a_renamed_value_keeps_its_users(evaluator: Evaluator) -> None:
    model = model_of(CHAIN)
    rename_value(model.graph[0].outputs[0], "new")
    check(model)
    assert model.graph[1].inputs[0].name == "new"  # type: ignore[union-attr]


def test_a_replaced_inner_value_loses_its_users() -> None:
    model = model_of(CHAIN)
    relu, neg, _ = model.graph
    replace_value(neg.outputs[0], relu.outputs[0])
    assert not neg.outputs[0].uses()
    assert node_of(model, "Abs").inputs[0] is relu.outputs[0]


def test_a_replaced_graph_output_keeps_name_type_and_shape(random: np.random.Generator, evaluator: Evaluator) -> None:
    model = model_of(CHAIN)
    last = node_of(model, "Abs")
    builder = Builder(model, last, "OP999")
    builder.replace(last.outputs[0], builder.op("Exp", last.inputs[0]))
    builder.remove(last)
    check(model)
    output = model.graph.outputs[0]
    assert (output.name, output.dtype, output.shape) == ("y", ir.DataType.FLOAT, ir.Shape([2, 3]))
    x = random.standard_normal((2, 3)).astype(np.float32)
    # Tolerance: two implementations of exp in float32.
    np.testing.assert_allclose(evaluator.run(model, {"x": x})["y"], np.exp(-np.maximum(x, 0)), rtol=1e-6)


@pytest.mark.parametrize("new", ["input", "weight", "other output"])
def test_what_cannot_take_over_an_output_goes_through_an_identity(new: str, evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2] x) => (float[2] y, float[2] z) <float[2] w = {7, 8}> { z = Neg(x) y = Add(x, w) }")
    add = node_of(model, "Add")
    value = {"input": model.graph.inputs[0], "weight": model.graph.initializers["w"], "other output": model.graph.outputs[1]}[new]
    assert not can_take_over(add.outputs[0], value)
    builder = Builder(model, add, "OP999")
    builder.replace(add.outputs[0], value)
    builder.remove(add)
    check(model)
    assert [output.name for output in model.graph.outputs] == ["y", "z"]
    x = np.array([1, -2], np.float32)
    expected = {"input": x, "weight": np.array([7, 8], np.float32), "other output": -x}[new]
    found = evaluator.run(model, {"x": x})
    np.testing.assert_array_equal(found["y"], expected)
    np.testing.assert_array_equal(found["z"], -x)


def test_new_names_never_collide() -> None:
    model = model_of("""agraph (float[2] x) => (float[2] y) <float[2] "Relu/constant" = {1, 2}> {
        "Relu/Add" = Neg(x)
        a = Add("Relu/Add", "Relu/constant")
        y = Relu(a)
    }""")
    anchor = node_of(model, "Relu")
    before = used_names(model)
    builder = Builder(model, anchor, "OP999")
    made = [builder.op("Add", anchor.inputs[0], builder.const([1, 2], np.float32)) for _ in range(3)]
    names = [value.name for value in made] + [name for name in model.graph.initializers if name not in before]
    assert len({*names}) == 6 and not before & {*names}
    assert len({node.name for node in builder.made}) == 3


def test_new_nodes_tell_their_rule_and_their_origin() -> None:
    model = model_of(CHAIN)
    anchor = node_of(model, "Neg")
    anchor.metadata_props["pkg.torch.onnx.stack_trace"] = 'File "/home/me/model.py", line 4, in forward'
    builder = Builder(model, anchor, "OP999")
    builder.op("Split", anchor.inputs[0], outputs=2, axis=0, absent=None)
    (node,) = builder.made
    assert node.metadata_props["jumar.rule"] == "OP999"
    assert node.metadata_props["jumar.source_line"] == "/home/me/model.py:4"
    assert len(node.outputs) == 2 and set(node.attributes) == {"axis"}
    assert [item.op_type for item in model.graph] == ["Relu", "Split", "Neg", "Abs"]


def test_an_anchor_must_be_in_a_graph() -> None:
    with pytest.raises(ValueError, match="anchor"):
        Builder(model_of(CHAIN), ir.node("Relu", [ir.Value(name="x")]), "OP999")


def test_a_node_in_use_is_not_removed() -> None:
    model = model_of(CHAIN)
    builder = Builder(model, node_of(model, "Neg"), "OP999")
    with pytest.raises(ValueError):
        builder.remove(node_of(model, "Neg"))


def test_a_piece_computes_what_the_model_computes_there(random: np.random.Generator, evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { a = Relu(x) b = Mul(a, w) y = Abs(b) }")
    infer_shapes(model)  # the ends of a piece need a type
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    piece = extract_model(model, ["a"], ["b"])
    check(piece)
    assert [node.op_type for node in piece.graph] == ["Mul"]
    assert piece.graph.initializers["w"].const_value is model.graph.initializers["w"].const_value
    a = random.standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_array_equal(evaluator.run(piece, {"a": a})["b"], a * np.array([1, 2, 3], np.float32))
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(("inputs", "outputs"), [(["nobody"], ["y"]), (["x"], ["nobody"]), (["b"], ["a"])])
def test_a_piece_that_is_not_bounded_is_refused(inputs: list[str], outputs: list[str]) -> None:
    with pytest.raises(ValueError):
        extract_model(model_of(CHAIN), inputs, outputs)


def test_captured_tensors_are_returned_beside_the_outputs(evaluator: Evaluator) -> None:
    model = model_of(CHAIN)
    captured = capture_model(model, ["a", "y", "b", "a"])
    assert [value.name for value in captured.graph.outputs] == ["y", "a", "b"]
    assert [value.name for value in model.graph.outputs] == ["y"]
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    found = evaluator.run(captured, {"x": x})
    np.testing.assert_array_equal(found["a"], np.maximum(x, 0))
    np.testing.assert_array_equal(found["b"], -np.maximum(x, 0))
