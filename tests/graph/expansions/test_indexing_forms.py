"""Gather, Scatter, TopK, OneHot, ArgMax, ReverseSequence and TfIdfVectorizer with random forms.

Every expansion gives what ONNX Runtime gives, or refuses. Moves and integers are equal; sums of floats are held to 2e-5 of the largest element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from single_nodes import differences, expanded, single

from jumar.graph import Evaluator
from jumar.graph.expansions import expansions_of, load_expansions

quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
KINDS = [np.float32, np.int64, np.int32, np.bool_]


def values(draw: Any, shape: Any, dtype: Any) -> Any:
    random = np.random.default_rng(draw(st.integers(0, 999)))
    if dtype == np.bool_:
        return random.random(shape) < 0.5
    array = random.integers(-9, 10, shape).astype(dtype)
    return array + random.random(shape).astype(dtype) if np.dtype(dtype).kind == "f" else array


def indices(draw: Any, shape: Any, size: int, dtype: Any = None) -> Any:
    """Counted from either end."""
    random = np.random.default_rng(draw(st.integers(0, 999)))
    return random.integers(-size, size, shape).astype(dtype or draw(st.sampled_from([np.int64, np.int32])))


def equal(proto: Any, feed: Any, evaluator: Evaluator, at_least: int = 1) -> None:
    wrong, count = differences(proto, [feed], evaluator)
    assert not wrong
    assert count >= at_least


@quick
@given(data=st.data())
def test_gather_elements(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    listed = [draw(st.integers(1, size + 2 if place == axis % len(shape) else size)) for place, size in enumerate(shape)]
    feed = {"x": values(draw, shape, draw(st.sampled_from(KINDS))), "i": indices(draw, listed, shape[axis])}
    equal(single("GatherElements", draw(st.sampled_from([11, 13])), ["x", "i"], feed, {}, axis=axis), feed, evaluator)


@quick
@given(data=st.data())
def test_gather_nd(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    batch = draw(st.integers(0, len(shape) - 1))
    depth = draw(st.integers(1, len(shape) - batch))
    front = [*shape[:batch], *draw(st.lists(st.integers(1, 3), max_size=2))]
    tuples = np.stack([indices(draw, front, shape[batch + place], np.int64) for place in range(depth)], axis=-1)
    feed = {"x": values(draw, shape, draw(st.sampled_from(KINDS))), "i": tuples}
    equal(single("GatherND", draw(st.sampled_from([12, 13])), ["x", "i"], feed, {}, batch_dims=batch), feed, evaluator)


@quick
@given(data=st.data(), reduction=st.sampled_from(["none", "add", "mul", "max", "min"]))
def test_scatter_elements(data: st.DataObject, reduction: str, evaluator: Evaluator) -> None:
    """With repeated places too, where there is a reduction; without one they have no defined result."""
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    place, size = axis % len(shape), shape[axis]
    listed = list(shape)
    if reduction == "none":
        listed = [draw(st.integers(1, extent)) for extent in shape]
        order = np.random.default_rng(draw(st.integers(0, 99))).permutation(size)[: listed[place]]
        places = np.broadcast_to(order.reshape([-1 if item == place else 1 for item in range(len(shape))]), listed)
        places = np.where(draw(st.booleans()), places - size, places).astype(np.int64)
    else:
        listed[place] = draw(st.integers(1, 5))
        places = indices(draw, listed, size, np.int64)
    dtype = draw(st.sampled_from([np.float32, np.int64, np.int32] if reduction != "none" else KINDS))
    feed = {"x": values(draw, shape, dtype), "i": places, "u": values(draw, listed, dtype)}
    attributes = {"axis": axis} | ({} if reduction == "none" else {"reduction": reduction})
    equal(single("ScatterElements", 18 if reduction != "none" else 11, ["x", "i", "u"], feed, {}, **attributes), feed, evaluator)


@quick
@given(data=st.data(), reduction=st.sampled_from(["none", "add", "mul", "max", "min"]))
def test_scatter_nd(data: st.DataObject, reduction: str, evaluator: Evaluator) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    depth = draw(st.integers(1, len(shape)))
    rows = int(np.prod(shape[:depth]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    count = draw(st.integers(1, rows))
    flat = random.permutation(rows)[:count] if reduction == "none" else random.integers(0, rows, count)
    tuples = np.stack(np.unravel_index(flat, shape[:depth]), axis=-1).astype(np.int64)
    if draw(st.booleans()):
        tuples = tuples - np.array(shape[:depth])
    dtype = draw(st.sampled_from([np.float32, np.int64, np.int32] if reduction != "none" else KINDS))
    feed = {"x": values(draw, shape, dtype), "i": tuples, "u": values(draw, [count, *shape[depth:]], dtype)}
    attributes = {} if reduction == "none" else {"reduction": reduction}
    equal(single("ScatterND", 18 if reduction != "none" else 11, ["x", "i", "u"], feed, {}, **attributes), feed, evaluator)


@quick
@given(data=st.data())
def test_reverse_sequence(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    time = draw(st.integers(0, 1))
    lengths = np.random.default_rng(draw(st.integers(0, 99))).integers(1, shape[time] + 1, shape[1 - time])
    feed = {"x": values(draw, shape, draw(st.sampled_from(KINDS))), "n": lengths}
    equal(single("ReverseSequence", 11, ["x", "n"], feed, {}, time_axis=time, batch_axis=1 - time), feed, evaluator)


@quick
@given(data=st.data(), op=st.sampled_from(["ArgMax", "ArgMin"]))
def test_last_of_equals(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    feed = {"x": random.integers(0, 3, shape).astype(draw(st.sampled_from([np.float32, np.int32])))}
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    proto = single(op, 13, ["x"], feed, {}, axis=axis, keepdims=draw(st.integers(0, 1)), select_last_index=draw(st.integers(0, 1)))
    equal(proto, feed, evaluator, 0)


@quick
@given(data=st.data())
def test_one_hot(data: st.DataObject, evaluator: Evaluator) -> None:
    """Indices outside [-depth, depth - 1] give no hot place."""
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    random, depth = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(1, 5))
    feed = {"i": random.integers(-depth - 2, depth + 3, shape).astype(np.int64)}
    kind = draw(st.sampled_from([np.float32, np.int64]))
    constants = {"d": np.array([depth], np.int64), "v": np.array(draw(st.sampled_from([[0, 1], [3, -2]])), kind)}
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    equal(single("OneHot", 11, ["i", "d", "v"], feed, constants, axis=axis), feed, evaluator, 0)


@quick
@given(data=st.data(), mode=st.sampled_from(["TF", "IDF", "TFIDF"]))
def test_n_grams(data: st.DataObject, mode: str, evaluator: Evaluator) -> None:
    draw = data.draw
    random = np.random.default_rng(draw(st.integers(0, 999)))
    grams = [np.unique(random.integers(0, 4, (random.integers(1, 5), length)), axis=0) for length in (1, 2, 3)]
    starts = np.cumsum([0, *(gram.size for gram in grams)])[:-1]
    count = sum(len(gram) for gram in grams)
    least = draw(st.integers(1, 2))
    attributes: dict[str, Any] = {
        "mode": mode,
        "min_gram_length": least,
        "max_gram_length": draw(st.integers(least, 3)),
        "max_skip_count": draw(st.integers(0, 3)),
        "ngram_counts": starts.tolist(),
        "ngram_indexes": random.permutation(count + 2)[:count].tolist(),
        "pool_int64s": np.concatenate([gram.reshape(-1) for gram in grams]).tolist(),
    }
    if draw(st.booleans()):
        # ONNX Runtime 1.23 reads weights in the order of the outputs (and beyond their end), not in that of the pool: here they are the same.
        attributes |= {"weights": random.standard_normal(count).astype(np.float32).tolist(), "ngram_indexes": list(range(count))}
    shape = draw(st.sampled_from([[5], [7], [2, 6], [1, 4]]))
    feed = {"x": random.integers(0, 4, shape).astype(draw(st.sampled_from([np.int32, np.int64])))}
    equal(single("TfIdfVectorizer", 9, ["x"], feed, {}, **attributes), feed, evaluator)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_what_is_written_stays_in_its_place(number: float, evaluator: Evaluator) -> None:
    load_expansions()
    feed = {"x": np.array([1, np.inf, np.nan, -0.0], np.float32), "i": np.array([[0]], np.int64), "u": np.array([number], np.float32)}
    proto = single("ScatterND", 11, ["x", "i", "u"], feed, {})
    models = [model for expansion in expansions_of("ScatterND") if (model := expanded(proto, expansion)) is not None]
    assert models
    for model in models:
        found = next(iter(evaluator.run(model, feed).values()))
        assert np.array_equal(found, np.array([number, np.inf, np.nan, -0.0], np.float32), equal_nan=True)


def test_integers_are_sorted_as_floats_only_where_floats_hold_them() -> None:
    load_expansions()
    feed = {"x": np.zeros(5, np.int64)}
    proto = single("TopK", 11, ["x", "k"], feed, {"k": np.array([2], np.int64)}, outputs=2)
    refused = [expanded(proto, expansion) for expansion in expansions_of("TopK")]
    assert all(model is None for model in refused), "an int64 of which nothing is known may lie beyond 2^24"


def test_a_dense_form_is_refused_above_its_budget() -> None:
    load_expansions()
    feed = {"x": np.zeros((3000, 1), np.float32), "i": np.zeros((3000, 1), np.int64), "u": np.zeros((3000, 1), np.float32)}
    proto = single("ScatterElements", 18, ["x", "i", "u"], feed, {}, axis=0, reduction="max")
    for expansion in expansions_of("ScatterElements"):
        model = expanded(proto, expansion)
        assert model is None or "ScatterND" in {node.op_type for node in model.graph}


@pytest.mark.parametrize("planted", [True, False])
def test_a_planted_error_is_found(planted: bool, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without counting negative indices from the end, a gathered element is another one."""
    from jumar.graph.expansions import indexing

    def from_front(step: Any, places: ir.Value, _size: int, _negative: bool = True) -> ir.Value:
        return step.op("Abs", places)

    if planted:
        monkeypatch.setattr(indexing, "from_front", from_front)
    feed = {"x": np.arange(4, dtype=np.float32), "i": np.array([[-1], [0]], np.int64)}
    wrong, _ = differences(single("GatherND", 12, ["x", "i"], feed, {}), [feed], evaluator)
    assert bool(wrong) == planted
