"""Scan: sequences of known length are unrolled, along any axis and in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from control_cases import OPSETS, assert_same, model_of, ops_of, simplified
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator
from jumar.graph.simplify import simplify_graph

SCAN = """agraph (float[3] h, float[{x}] x, float[{u}] u) => (float[3] h_last, float[{y}] y, float[{z}] z) {{
    h_last, y, z = Scan<num_scan_inputs = 2{attributes}, body = b (float[3] s, float[3] a, float[3,2] m)
            => (float[3] s_out, float[3] e, float[3,2] d) <float[3] w = {{0.5, 2, -1}}> {{
        q = Mul(s, w)
        s_out = Add(q, a)
        e = Sin(s_out)
        d = Neg(m)
    }}>(h, x, u)
}}"""


def scan_of(length: int | str, *, in_axes: tuple[int, int], out_axes: tuple[int, int], backwards: tuple[int, int, int, int]) -> str:
    def shape(axis: int, *dims: int) -> str:
        sizes: list[int | str] = [*dims]
        sizes.insert(axis % (len(dims) + 1), length)
        return ",".join(str(size) for size in sizes)

    attributes = {
        "scan_input_axes": in_axes,
        "scan_output_axes": out_axes,
        "scan_input_directions": backwards[:2],
        "scan_output_directions": backwards[2:],
    }
    written = "".join(f", {name} = [{', '.join(str(item) for item in items)}]" for name, items in attributes.items() if any(items))
    return SCAN.format(
        x=shape(in_axes[0], 3), u=shape(in_axes[1], 3, 2), y=shape(out_axes[0], 3), z=shape(out_axes[1], 3, 2), attributes=written
    )


def feeds_of(length: int, in_axes: tuple[int, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    x, u = random.standard_normal((length, 3)), random.standard_normal((length, 3, 2))
    arrays = {"h": random.standard_normal(3), "x": np.moveaxis(x, 0, in_axes[0]), "u": np.moveaxis(u, 0, in_axes[1])}
    return {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.integers(1, 4),
    in_axes=st.tuples(st.sampled_from([0, 1, -1]), st.sampled_from([0, 1, 2, -1])),
    out_axes=st.tuples(st.sampled_from([0, 1, -2]), st.sampled_from([0, 1, 2, -1])),
    backwards=st.tuples(*[st.integers(0, 1)] * 4),
    opset=st.sampled_from(OPSETS),
)
def test_a_known_length_is_unrolled(
    length: int,
    in_axes: tuple[int, int],
    out_axes: tuple[int, int],
    backwards: tuple[int, int, int, int],
    opset: int,
    evaluator: Evaluator,
) -> None:
    model = model_of(scan_of(length, in_axes=in_axes, out_axes=out_axes, backwards=backwards), opset)
    after, _ = simplified(model, evaluator, feeds_of(length, in_axes))
    assert "Scan" not in ops_of(after)
    assert ops_of(after).count("Sin") == length


def test_an_open_length_stays(evaluator: Evaluator) -> None:
    model = model_of(scan_of("N", in_axes=(0, 0), out_axes=(0, 0), backwards=(0, 0, 0, 0)))
    after, _ = simplified(model, evaluator, *(feeds_of(length, (0, 0)) for length in (1, 3)))
    assert "Scan" in ops_of(after)


def test_a_long_sequence_stays(evaluator: Evaluator) -> None:
    model = model_of(scan_of(300, in_axes=(0, 0), out_axes=(0, 0), backwards=(0, 0, 0, 0)))
    assert "Scan" in ops_of(simplified(model, evaluator, feeds_of(300, (0, 0)))[0])


BATCHED = """agraph (float[{batch},3] h, float[{batch},{length},3] x, float[{batch},{length},3] z)
        => (float[{batch},3] h_last, float[{batch},{length},3] y) <{weights}> {{
    h_last, y = Scan<num_scan_inputs = 2, directions = [{first}, {second}], body = b (float[3] s, float[3] a, float[3] c)
            => (float[3] s_out, float[3] e) {{
        d = Sub(a, c)
        t = Sin(s)
        s_out = Add(t, d)
        e = Neg(s_out)
    }}>({lengths}, h, x, z)
}}"""


def batched_feeds(batch: int, length: int) -> dict[str, Any]:
    random = np.random.default_rng(batch + 10 * length)
    shapes = {"h": (batch, 3), "x": (batch, length, 3), "z": (batch, length, 3)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.integers(1, 3), length=st.integers(1, 3), directions=st.tuples(st.integers(0, 1), st.integers(0, 1)), given=st.booleans())
def test_the_form_with_a_batch(batch: int, length: int, directions: tuple[int, int], given: bool, evaluator: Evaluator) -> None:
    """Scan of opset 8: every sequence of the batch for itself."""
    weights = f"int64[{batch}] n = {{{', '.join([str(length)] * batch)}}}" if given else "float unused = {0}"
    text = BATCHED.format(
        batch=batch, length=length, first=directions[0], second=directions[1], weights=weights, lengths="n" if given else ""
    )
    after, _ = simplified(model_of(text, 8), evaluator, batched_feeds(batch, length))
    assert "Scan" not in ops_of(after)
    assert ops_of(after).count("Sin") == batch * length


def test_sequences_of_a_batch_with_lengths_of_their_own_stay(evaluator: Evaluator) -> None:
    text = BATCHED.format(batch=2, length=3, first=0, second=0, weights="int64[2] n = {3, 2}", lengths="n")
    assert "Scan" in ops_of(simplified(model_of(text, 8), evaluator)[0])


def test_nothing_to_scan_stays(evaluator: Evaluator) -> None:
    """ONNX Runtime refuses it; what it would be nobody can prove."""
    model = model_of(scan_of(0, in_axes=(0, 0), out_axes=(0, 0), backwards=(0, 0, 0, 0)))
    assert "Scan" in ops_of(simplified(model, evaluator)[0])


@pytest.mark.parametrize("backwards", [(1, 0, 0, 0), (0, 0, 1, 0)])
def test_a_direction_forgotten_is_noticed(backwards: tuple[int, int, int, int], evaluator: Evaluator) -> None:
    """Planted error: read or written from the other end."""
    model = model_of(scan_of(3, in_axes=(0, 0), out_axes=(0, 0), backwards=backwards))
    wrong = model_of(scan_of(3, in_axes=(0, 0), out_axes=(0, 0), backwards=(0, 0, 0, 0)))
    simplify_graph(wrong, evaluator)
    with pytest.raises(AssertionError):
        assert_same(model, wrong, evaluator, feeds_of(3, (0, 0)))
