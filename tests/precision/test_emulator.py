"""The emulator against slow references: numpy's own 16-bit arithmetic node by node, and a closed form for each rule of a unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, infer_shapes
from jumar.precision import STORAGES, Storage, emulate, find_mode, rounded

HALF = STORAGES["float16"]
SLOW_OK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator() as running:
        yield running


def parsed(body: str, inputs: str, outputs: str, opset: int = 13) -> ir.Model:
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\nmade ({inputs}) => ({outputs}) {body}')
    for index, node in enumerate(ir.traversal.RecursiveGraphIterator(model.graph)):
        node.name = f"{node.op_type}_{index}"
    infer_shapes(model)
    return model


def run(evaluator: Evaluator, model: ir.Model, mode: str = "fp16", keep: tuple[str, ...] = (), **feeds: Any) -> dict[str, Any]:
    return evaluator.run(emulate(model, find_mode(mode), keep), feeds)


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Equal in every bit but the sign of zero and the payload of NaN."""
    return found.shape == expected.shape and np.array_equal(found, expected, equal_nan=True)


def units_apart(found: np.ndarray, expected: np.ndarray, storage: Storage) -> float:
    """The largest distance in units of the last place of the expected value."""
    step = np.maximum(2.0 ** (np.floor(np.log2(np.maximum(np.abs(expected), storage.normal))) - storage.bits + 1), storage.subnormal)
    return float((np.abs(found.astype(np.float64) - expected) / step).max())


ELEMENTWISE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
}


@pytest.mark.parametrize(("mode", "dtype"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@SLOW_OK
@given(
    operators=st.lists(st.sampled_from(sorted(ELEMENTWISE)), min_size=1, max_size=6), seed=st.integers(0, 2**31), scale=st.integers(-6, 5)
)
def test_chains_of_arithmetic_equal_numpy_in_every_bit(
    evaluator: Evaluator, mode: str, dtype: Any, operators: list[str], seed: int, scale: int
) -> None:
    """numpy computes each operation in float32 and rounds once, as the vector unit does; so does the emulation."""
    lines, last = [], "x"
    for index, op in enumerate(operators):
        lines.append(f"t{index} = {op}({last}, y)")
        last = f"t{index}"
    model = parsed("{" + "\n".join([*lines, f"z = Identity({last})"]) + "}", "float[64] x, float[64] y", "float[64] z")
    random = np.random.default_rng(seed)
    x, y = (random.standard_normal(64).astype(np.float32) * np.float32(10.0) ** scale for _ in range(2))
    with np.errstate(all="ignore"):
        value, other = x.astype(dtype), y.astype(dtype)
        for op in operators:
            value = ELEMENTWISE[op](value, other)
        expected = value.astype(np.float32)
    assert same(run(evaluator, model, mode, x=x, y=y)["z"], expected)


def test_a_missing_rounding_is_caught(evaluator: Evaluator) -> None:
    """The same comparison fails for a model in which one node is not rounded."""
    model = parsed("{ t = Mul(x, x)\n z = Sub(t, y) }", "float[64] x, float[64] y", "float[64] z")
    random = np.random.default_rng(1)
    x, y = (random.standard_normal(64).astype(np.float32) for _ in range(2))
    half = x.astype(np.float16)
    expected = (half * half - y.astype(np.float16)).astype(np.float32)
    assert same(run(evaluator, model, x=x, y=y)["z"], expected)
    assert not same(run(evaluator, model, keep=("Mul_0",), x=x, y=y)["z"], expected)


@SLOW_OK
@given(seed=st.integers(0, 2**31), rows=st.integers(1, 5), inner=st.integers(1, 300))
def test_matrix_products_take_16_bits_and_add_in_float32(evaluator: Evaluator, seed: int, rows: int, inner: int) -> None:
    model = parsed("{ z = MatMul(x, y) }", f"float[{rows},{inner}] x, float[{inner},3] y", f"float[{rows},3] z")
    random = np.random.default_rng(seed)
    x, y = random.random((rows, inner), np.float32), random.random((inner, 3), np.float32)
    exact = rounded(x, HALF).astype(np.float64) @ rounded(y, HALF).astype(np.float64)
    assert units_apart(run(evaluator, model, x=x, y=y)["z"], exact, HALF) <= 0.5 + 2.0**-6  # half a unit, and the order of float32 sums


@SLOW_OK
@given(seed=st.integers(0, 2**31), size=st.integers(1, 3000))
def test_reductions_add_in_float32_and_round_once(evaluator: Evaluator, seed: int, size: int) -> None:
    """A sum in float16 would stop at 2048; the kernels widen first."""
    model = parsed(
        "{ s = ReduceSum(x, axes)\n m = ReduceMean<axes = [1]>(x) }",
        f"float[2,{size}] x, int64[1] axes",
        "float[2,1] s, float[2,1] m",
    )
    x = np.random.default_rng(seed).random((2, size), np.float32)
    exact = rounded(x, HALF).astype(np.float64).sum(axis=1, keepdims=True)
    found = run(evaluator, model, x=x, axes=np.array([1]))
    assert units_apart(found["s"], exact, HALF) <= 0.5 + 2.0**-6
    assert units_apart(found["m"], exact / size, HALF) <= 0.5 + 2.0**-6


@pytest.mark.parametrize("mode", ["fp16", "bf16"])
@SLOW_OK
@given(
    seed=st.integers(0, 2**31),
    axis=st.integers(-2, 1),
    reverse=st.integers(0, 1),
    exclusive=st.integers(0, 1),
    size=st.integers(1, 40),
)
def test_cumulative_sums_round_after_every_addition(
    evaluator: Evaluator, mode: str, seed: int, axis: int, reverse: int, exclusive: int, size: int
) -> None:
    storage = find_mode(mode).storage
    model = parsed(
        f"{{ z = CumSum<exclusive = {exclusive}, reverse = {reverse}>(x, axis) }}",
        f"float[{size},3] x",
        f"float[{size},3] z",
    )
    model.graph.register_initializer(ir.Value(name="axis", const_value=ir.tensor(np.array(axis), name="axis")))
    value = model.graph.initializers["axis"]
    model.graph.node(0).replace_input_with(1, value)
    infer_shapes(model)
    x = np.random.default_rng(seed).standard_normal((size, 3)).astype(np.float32) * 100
    data = np.moveaxis(rounded(x, storage), axis, 0)
    data = data[::-1] if reverse else data
    total, rows = np.zeros_like(data[0]), []
    for row in data:
        before, total = total, rounded(total + row, storage)
        rows.append(before if exclusive else total)
    expected = np.stack(rows)
    expected = np.moveaxis(expected[::-1] if reverse else expected, 0, axis)
    assert same(run(evaluator, model, mode, x=x)["z"], expected)


def test_a_long_cumulative_sum_stops_growing(evaluator: Evaluator) -> None:
    model = parsed("{ axis = Constant<value = int64 {0}>()\n z = CumSum(x, axis) }", "float[3000] x", "float[3000] z")
    found = run(evaluator, model, x=np.ones(3000, np.float32))["z"]
    assert found[-1] == 2048.0, "2048 + 1 is not representable in float16"


def test_overflow_and_underflow(evaluator: Evaluator) -> None:
    model = parsed("{ s = Mul(x, x)\n m = ReduceMean<axes = [0]>(s)\n r = Sqrt(m)\n z = Div(x, r) }", "float[4] x", "float[4] z")
    large = run(evaluator, model, x=np.full(4, 300.0, np.float32))["z"]
    assert np.array_equal(large, np.zeros(4)), "300 squared is infinite, and what is divided by it is zero, not NaN"
    small = run(evaluator, model, x=np.full(4, 1e-4, np.float32))["z"]
    assert np.isinf(small).all()


def test_bodies_are_rounded(evaluator: Evaluator) -> None:
    """A Loop whose body adds a little to a carried sum: in float16 the sum stays."""
    body = """{
        trips = Constant<value = int64 {50}>()
        z = Loop(trips, cond, x) <body = adding (int64 i, bool c, float[2] before) => (bool more, float[2] after) {
            more = Identity(c)
            after = Add(before, step)
        }>
    }"""
    model = parsed(body, "float[2] x, float[2] step, bool cond", "float[2] z")
    found = run(evaluator, model, x=np.full(2, 2048, np.float32), step=np.ones(2, np.float32), cond=np.array(True))
    assert np.array_equal(found["z"], [2048, 2048])
    branches = """{
        z = If(cond) <then_branch = yes () => (float[2] a) { a = Mul(x, x) }, else_branch = no () => (float[2] b) { b = Add(x, x) }>
    }"""
    model = parsed(branches, "float[2] x, bool cond", "float[2] z")
    x = np.array([1.2345678, 300.0], np.float32)
    half = x.astype(np.float16)
    with np.errstate(over="ignore"):
        assert same(run(evaluator, model, x=x, cond=np.array(True))["z"], (half * half).astype(np.float32))
        assert same(run(evaluator, model, x=x, cond=np.array(False))["z"], (half + half).astype(np.float32))


def test_names_and_interface_stay(evaluator: Evaluator) -> None:
    model = parsed("{ t = Mul(x, x)\n z = Sub(t, x) }", "float[4] x", "float[4] z, float[4] t")
    copy = emulate(model, find_mode("fp16"))
    assert [value.name for value in copy.graph.outputs] == ["z", "t"]
    assert [value.name for value in model.graph.outputs] == ["z", "t"], "the model given is not edited"
    assert all(not node.metadata_props for node in model.graph)
    x = np.full(4, 1.0001, np.float32)
    assert same(run(evaluator, model, x=x)["t"], (x.astype(np.float16) ** 2).astype(np.float32))


MODES = {
    "fp16": {"MatMul_0", "Add_1", "Pow_2"},
    "origin": set(),
    "must_keep_origin_dtype": set(),
    "allow_fp32_to_fp16": {"MatMul_0"},
    "cube_fp16in_fp32out": {"MatMul_0"},
    "mixed_float16": {"MatMul_0", "Add_1"},
}


@pytest.mark.parametrize("mode", sorted(MODES))
def test_what_each_mode_narrows(evaluator: Evaluator, mode: str) -> None:
    """Pow is on the black list; Add, on none, does what the product before it does."""
    from jumar.precision import make_plan

    model = parsed(
        "{ p = MatMul(x, w)\n a = Add(p, p)\n z = Pow(a, two) }", "float[2,2] x, float[2,2] w, float two", "float[2,2] z, float[2,2] p"
    )
    assert {node.name for node in make_plan(model, find_mode(mode)).narrowed()} == MODES[mode]
    x = np.full((2, 2), 1.0001, np.float32)
    product = run(evaluator, model, mode, x=x, w=x, two=np.float32(2))["p"][0, 0]
    wide = (np.float32(1.0001) * np.float32(1.0001)) * 2
    expected = {"cube_fp16in_fp32out": 2.0, "origin": wide, "must_keep_origin_dtype": wide}.get(mode, 2.0)
    assert abs(product - expected) < 1e-6


def test_statistics_and_scales_stay_wide(evaluator: Evaluator) -> None:
    text = "{ z = BatchNormalization<epsilon = 0.0>(x, s, b, m, v) }"
    ports = "float[1,1,1,1] x, float[1] s, float[1] b, float[1] m, float[1] v"
    model = parsed(text, ports, "float[1,1,1,1] z")
    one = np.ones(1, np.float32)
    found = run(
        evaluator, model, x=np.full((1, 1, 1, 1), 2.0, np.float32), s=one, b=one * 0, m=one * np.float32(1.9999), v=one * np.float32(1e-10)
    )
    assert abs(found["z"].item() - 10.0) < 0.05, "in float16 the mean would be 2 and the variance 0"


def test_what_is_not_modelled_is_listed() -> None:
    from jumar.precision import make_plan

    model = parsed(
        "{ y, h = GRU<hidden_size = 2>(x, w, r) }", "float[3,1,2] x, float[1,6,2] w, float[1,6,2] r", "float[3,1,1,2] y, float[1,1,2] h"
    )
    (gap,) = make_plan(model, find_mode("fp16")).gaps
    assert str(gap).startswith("GRU: ")
    assert make_plan(model, find_mode("origin")).gaps == ()
