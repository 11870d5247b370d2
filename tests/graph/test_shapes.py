"""What is known of a tensor before anything runs."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import constant_of, infer_shapes, known_shape, pin_shapes, static_shape, symbol_values

HEADER = '<ir_version: 8, opset_import: ["" : 13]>\n'


def model_of(text: str) -> ir.Model:
    return ir.from_onnx_text(HEADER + text)


def value_of(model: ir.Model, name: str) -> ir.Value:
    return ir.convenience.create_value_mapping(model.graph)[name]


@pytest.mark.parametrize(
    ("shape", "known", "static"),
    [
        (None, None, None),
        (ir.Shape([]), (), ()),
        (ir.Shape([2, 3]), (2, 3), (2, 3)),
        (ir.Shape([2, "N", None]), (2, "N", None), None),
        (ir.Shape([0]), (0,), (0,)),
    ],
)
def test_shapes_are_read(shape: ir.Shape | None, known: object, static: object) -> None:
    value = ir.Value(name="x", shape=shape)
    assert known_shape(value) == known
    assert static_shape(value) == static


def test_of_nothing_nothing_is_known() -> None:
    assert known_shape(None) is static_shape(None) is constant_of(None) is None


def test_inference_propagates_shapes_as_data() -> None:
    model = model_of("agraph (float[2,3,4] x, float k) => (float[A,B,C] out) { s = Shape(x) y = Expand(k, s) out = Relu(y) }")
    infer_shapes(model)
    assert static_shape(value_of(model, "y")) == (2, 3, 4)
    assert value_of(model, "s").dtype == ir.DataType.INT64


def test_a_stale_shape_wins_unless_it_is_forgotten() -> None:
    model = model_of("agraph (float[N,3] x) => (float[N,3] y) { z = Relu(x) y = Relu(z) }")
    infer_shapes(model)
    assert known_shape(value_of(model, "z")) == ("N", 3)
    model.graph.inputs[0].shape = ir.Shape([5, 3])
    infer_shapes(model, forget=True)
    assert static_shape(value_of(model, "z")) == static_shape(value_of(model, "y")) == (5, 3)


def test_the_rank_of_an_output_stays_declared_when_shapes_are_forgotten() -> None:
    model = model_of("agraph (float[N,3] x, int64[2] s) => (float[A,B] y) { y = Reshape(x, s) }")
    infer_shapes(model, forget=True)
    assert len(known_shape(model.graph.outputs[0]) or ()) == 2


def test_pinning_fills_a_symbol_in_everywhere() -> None:
    model = model_of("agraph (float[N,3] x, float[N,M] z) => (float[N,3] y, float[N,M] w) { y = Relu(x) w = Abs(z) }")
    assert pin_shapes(model, {"x": (5, 3)}) == ["x", "z"]
    assert [known_shape(value) for value in model.graph.inputs] == [(5, 3), (5, "M")]
    assert static_shape(model.graph.outputs[0]) == (5, 3)
    assert known_shape(model.graph.outputs[1]) == (5, "M")
    assert pin_shapes(model, {"x": (5, 3)}) == []


def test_a_symbol_with_two_sizes_stands_for_nothing() -> None:
    model = model_of("agraph (float[N] x, float[N] z, float[N] w) => (float[N] y) { y = Relu(x) }")
    shapes = {"x": (5,), "z": (6,)}
    assert symbol_values(model, shapes) == {}
    assert pin_shapes(model, shapes) == ["x", "z"]
    assert known_shape(model.graph.inputs[2]) == ("N",)
    assert static_shape(model.graph.outputs[0]) == (5,)


def test_a_model_that_cannot_be_inferred_is_left_alone() -> None:
    model = model_of("agraph (float[2,3] x, float[4,5] z) => (y) { y = MatMul(x, z) }")
    infer_shapes(model)
    assert known_shape(value_of(model, "y")) is None


def test_constants_are_initializers_and_constant_nodes_only() -> None:
    model = model_of("""agraph (float[2] x, float[2] default) => (float[2] y) <float[2] w = {1, 2}, float[2] default = {5, 6}> {
        c = Constant<value_floats = [3.0, 4.0]>()
        a = Add(w, c)
        b = Add(a, default)
        y = Add(x, b)
    }""")
    for name, expected in (("w", [1, 2]), ("c", [3, 4])):
        found = constant_of(value_of(model, name))
        assert found is not None
        np.testing.assert_array_equal(found, np.array(expected, np.float32), strict=True)
    # The caller may override a weight that is an input too.
    assert constant_of(value_of(model, "default")) is None
    assert constant_of(value_of(model, "a")) is None
    assert constant_of(value_of(model, "x")) is None
