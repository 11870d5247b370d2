"""What a file declares of the tensors a loop carries is a claim; only what every trip gives back is known."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from control_cases import X, model_of, ops_of, simplified

from jumar.graph import Evaluator, infer_shapes
from jumar.graph.shapes import known_shape, static_shape
from jumar.graph.simplify.carried import settle_shapes

# s doubles; t turns into s; q is as it was.
CARRIED = """agraph (float[3,K] x, int64 n) => (float[N,K] y, float[A,K] u, float[B,K] v) <bool yes = {1}> {
    y, u, v = Loop(n, yes, x, x, x) <
        body = b (int64 i, bool on, float[3,K] s, float[3,K] t, float[A,B] q)
              => (bool on_out, float[C,K] s_out, float[D,K] t_out, float[E,K] q_out) {
        on_out = Identity(on)
        s_out = Concat<axis = 0>(s, s)
        t_out = Identity(s)
        q_out = Sin(q)
    }>
}"""


def test_a_carried_shape_is_what_every_trip_gives_back() -> None:
    model = model_of(CARRIED)
    infer_shapes(model, forget=True)
    settle_shapes(model)
    body = model.graph[0].attributes["body"].as_graph()
    first, second, third = (known_shape(value) for value in body.inputs[2:])
    assert third == (3, "K")
    for shape in (first, second):
        assert shape is not None
        assert not isinstance(shape[0], int)
        assert shape[1] == "K"


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_a_loop_that_its_own_size_ends(trips: int, evaluator: Evaluator) -> None:
    """The body claims three elements, as they are in the first trip; it stops when there are more than twenty."""
    model = model_of(
        f"""agraph (float[3] x) => (float[N] y) <bool yes = {{1}}, int64 limit = {{20}}, int64 n = {{{trips}}}> {{
            y = Loop(n, yes, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[E] s_out) {{
                h = Exp(s)
                s_out = Concat<axis = 0>(s, h)
                size = Size(s_out)
                on_out = Less(size, limit)
            }}>
        }}"""
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert np.prod(evaluator.run(after, {"x": X})["y"].shape) == 3 * 2 ** min(trips, 3)


def test_a_model_without_loops_is_left_alone() -> None:
    model = model_of("agraph (float[3] x) => (float[3] y) { y = Exp(x) }")
    before = ir.to_proto(model)
    settle_shapes(model)
    assert ir.to_proto(model) == before
    assert ops_of(model) == ["Exp"]


def test_a_slice_that_only_the_first_trip_needs_not_is_kept() -> None:
    """With the declared shape taken at its word, the Slice would keep everything, and go."""
    model = model_of(
        """agraph (float[3] x, int64 n) => (float[N] y) <bool yes = {1}> {
            y = Loop(n, yes, x) <body = b (int64 i, bool on, float[3] s) => (bool on_out, float[E] s_out)
                <int64[1] zero = {0}, int64[1] three = {3}> {
                on_out = Identity(on)
                h = Slice(s, zero, three)
                s_out = Concat<axis = 0>(h, s)
            }>
        }"""
    )
    infer_shapes(model, forget=True)
    slicing = model.graph[0].attributes["body"].as_graph()[1]
    assert static_shape(slicing.inputs[0]) == static_shape(slicing.outputs[0]) == (3,)
    settle_shapes(model)
    assert static_shape(slicing.inputs[0]) is None
