"""Range analysis is sound: whatever ONNX Runtime computes lies within the interval, cell by cell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_graphs import WIDE, Drawn, graphs

from jumar import UsageError
from jumar.graph import Evaluator, infer_shapes
from jumar.graph.ranges import Interval, Ranges, value_ranges
from jumar.graph.ranges.view import TRANSFER, View


def outside(model: ir.Model, ranges: Ranges, feeds: dict[str, Any], evaluator: Evaluator) -> list[str]:
    """What was computed and is not in its interval."""
    with evaluator.session(model) as session:
        computed = session.run(feeds)
    wrong = []
    for value in (*model.graph.inputs, *model.graph.outputs):
        array = np.asarray(feeds.get(value.name or "", computed.get(value.name or "")))
        interval = ranges[value]
        flat = array.reshape(-1).tolist()
        elements = ranges.elements(value) or [interval] * len(flat)
        if len(elements) != len(flat):
            wrong.append(f"{value.name}: {len(elements)} intervals for {len(flat)} elements")
            continue
        for item, known in zip(flat, elements, strict=True):
            if math.isnan(item) if isinstance(item, float) else False:
                if not known.nan:
                    wrong.append(f"{value.name}: NaN")
            elif not (known.lo <= item <= known.hi and interval.lo <= item <= interval.hi):
                maker = value.producer()
                wrong.append(f"{value.name} ({'input' if maker is None else maker.op_type}): {item} is not in {known}")
    return wrong


def examine(graph: Drawn, seed: int, evaluator: Evaluator) -> list[str]:
    model = graph.model()
    if not len(model.graph):  # no step applied: ONNX Runtime refuses a graph without nodes
        return []
    return outside(model, value_ranges(model, graph.declared), graph.feeds(seed), evaluator)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(graph=graphs(), seed=st.integers(0, 99))
def test_what_is_computed_lies_within_its_interval(graph: Drawn, seed: int, evaluator: Evaluator) -> None:
    assert examine(graph, seed, evaluator) == []


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(graph=graphs(), seed=st.integers(0, 99))
def test_many_graphs(graph: Drawn, seed: int, evaluator: Evaluator) -> None:
    assert examine(graph, seed, evaluator) == []


def unsound_sub(view: View) -> Interval:
    one, other = view.hull(0), view.hull(1)
    return Interval(one.lo - other.lo, one.hi - other.hi) if one.lo - other.lo <= one.hi - other.hi else one


def test_an_unsound_transfer_function_is_caught(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed("(int64[40] x, int64[40] y) => (int64[40] z) { z = Sub(x, y) }")
    feeds = {name: np.random.default_rng(seed).integers(0, 9, 40, endpoint=True) for seed, name in enumerate("xy")}
    declared = {"x": (0, 9), "y": (0, 9)}
    assert outside(model, value_ranges(model, declared), feeds, evaluator) == []
    monkeypatch.setitem(TRANSFER, "Sub", unsound_sub)
    assert outside(model, value_ranges(model, declared), feeds, evaluator) != []


def parsed(body: str, opset: int = 18) -> ir.Model:
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]> agraph {body}')
    infer_shapes(model)
    return model


def of(model: ir.Model, name: str, declared: dict[str, tuple[int, int]] | None = None, **options: Any) -> Interval:
    ranges = value_ranges(model, declared, **options)
    return next(interval for value, interval in ranges.items() if value.name == name)


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("y = Add(x, one)", 1, 11),
        ("y = Mul(x, x)", 0, 100),
        ("y = Sub(x, x)", -10, 10),
        ("y = Mul(x, huge)", -(2**63), 2**63 - 1),  # it may wrap around
        ("y = Mod(x, seven)", 0, 6),
        ("y = Div(x, seven)", 0, 1),
        ("y = Div(seven, x)", -(2**63), 2**63 - 1),  # x may be 0
        ("y = CumSum(x, zero)", 0, 50),
        ("y = CumSum<exclusive = 1>(x, zero)", 0, 40),
        ("y = ReduceSum<keepdims = 0>(x)", 0, 50),
        ("y = Pad(x, two)", 0, 10),
        ("y = Shape(x)", 5, 5),
        ("y = NonZero(x)", 0, 4),
        ("y = ArgMax(x)", 0, 4),
        ("y = Clip(x, one, seven)", 1, 7),
        ("f = Cast<to = 1>(x) g = Sqrt(f) h = Floor(g) y = Cast<to = 7>(h)", 0, 3),
    ],
)
def test_a_known_operator(body: str, low: int, high: int) -> None:
    weights = "int64 one = {1}, int64 seven = {7}, int64 zero = {0}, int64[2] two = {1, 1}, int64 huge = {4611686018427387904}"
    model = parsed(f"(int64[5] x) => (int64[N] y) <{weights}> {{ {body} }}")
    assert (of(model, "y", {"x": (0, 10)}).lo, of(model, "y", {"x": (0, 10)}).hi) == (low, high)


def test_shape_arithmetic_is_exact_element_by_element() -> None:
    model = parsed(
        """(float[2,3,N] x) => (int64[K] y) <int64[1] two = {2}, int64[1] zero = {0}, int64[1] minus = {-1}> {
        s = Shape(x) last = Gather<axis = 0>(s, two) first = Slice(s, zero, two) y = Concat<axis = 0>(minus, first, last) }"""
    )
    ranges = value_ranges(model)
    y = model.graph.outputs[0]
    assert [str(item) for item in ranges.elements(y) or ()] == ["-1 to -1", "2 to 2", "3 to 3", f"0 to {2**31 - 1}"]
    assert of(model, "last", shapes={"x": (2, 3, 7)}) == Interval(7, 7)


def test_an_input_that_indexes_lies_within_the_axis() -> None:
    model = parsed(
        "(int64[2,3] ids, float[9,4] table) => (float[6,4] y) <int64[1] flat = {-1}> { i = Reshape(ids, flat) y = Gather(table, i) }"
    )
    assert of(model, "ids") == Interval(-9, 8)
    sliced = parsed(
        "(int64[3] ids, float[9] t) => (float[2] y) <int64[1] a = {1}, int64[1] b = {3}> { i = Slice(ids, a, b) y = Gather(t, i) }"
    )
    assert of(sliced, "ids").lo == -(2**63)  # the first element indexes nothing


def test_an_index_in_a_branch_that_may_not_run_says_nothing() -> None:
    model = parsed(
        """(int64[3] ids, bool c) => (float[3] y) <float[9] t = {0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}, float[3] z = {0.0, 0.0, 0.0}> {
        y = If (c) <then_branch = g1 () => (float[3] a) { a = Gather(t, ids) }, else_branch = g2 () => (float[3] b) { b = Identity(z) }> }"""
    )
    assert of(model, "ids").lo == -(2**63)


LOOP = """(int64 trips) => (int64 y, int64 z) <bool go = {{1}}, int64 start = {{3}}> {{
    y, z = Loop (trips, go, start, start) <body = b (int64 i, bool c, int64 p, int64 q) => (bool d, int64 r, int64 s)
    <int64 two = {{2}}> {{ d = Identity(c) r = {body}(p, two) s = Min(q, i) }}> }}"""


def test_what_a_loop_carries_is_joined_or_unknown() -> None:
    grows, stays = parsed(LOOP.format(body="Add")), parsed(LOOP.format(body="Mod"))
    assert of(grows, "y") == Interval(-(2**63), 2**63 - 1)
    assert of(stays, "y") == Interval(0, 3)
    assert of(stays, "z") == Interval(0, 3)
    assert of(stays, "i", {"trips": (0, 8)}) == Interval(0, 7)


@pytest.mark.parametrize("declared", [{"nothing": (0, 1)}, {"x": (2, 1)}, {"x": (0, 2**70)}, {"f": (0, 1)}])
def test_a_declared_range_that_makes_no_sense_is_refused(declared: dict[str, tuple[int, int]]) -> None:
    model = parsed("(int64[5] x, float f) => (int64[5] y) { y = Identity(x) }")
    with pytest.raises(UsageError):
        value_ranges(model, declared)


def test_every_transfer_function_bears_an_operator_of_which_little_is_known() -> None:
    """Unknown shapes, missing optional inputs, and odd types: it says little, but it answers."""
    for op, function in sorted(TRANSFER.items()):
        schema = onnx.defs.get_schema(op, 23)
        for dtype in (WIDE, ir.DataType.FLOAT, ir.DataType.BOOL, ir.DataType.UINT8):
            if f"tensor({dtype.name.lower()})" not in schema.inputs[0].types:
                continue
            limits = Interval(0, 1) if dtype == ir.DataType.BOOL else Interval(0, 255)
            for count in {schema.min_input, min(schema.max_input, 4)}:
                values = [ir.Value(name=f"{op}{index}", type=ir.TensorType(dtype)) for index in range(count)]
                node = ir.node(op, values, num_outputs=schema.min_output)
                for value in node.outputs:
                    value.type = ir.TensorType(dtype)
                results = function(View(node, (limits,) * count, 18, {}))
                assert results is None or results


def test_a_node_of_a_form_that_onnx_does_not_allow_says_nothing() -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    nodes = [ir.node("BitShift", [x, x], {"direction": "LEFT"}), ir.node("Reshape", []), ir.node("Transpose", [x], {"perm": [4]})]
    for node in nodes:
        node.outputs[0].type = ir.TensorType(WIDE)
    model = ir.Model(ir.Graph([x], [node.outputs[0] for node in nodes], nodes=nodes, opset_imports={"": 18}, name="g"), ir_version=8)
    assert all(value_ranges(model)[value].lo == -(2**63) for value in model.graph.outputs)
