"""Einsum, running totals, reductions, bits, choices, narrow integers, losses, activations and attention with random forms.

Every expansion gives what ONNX Runtime (or numpy, for what it does not run) gives, or refuses. Floats are held to 2e-5 of the largest
element, half precision to 2^-8; integers and booleans are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from single_nodes import differences, expanded, single, unequal

from jumar.errors import EvaluationError
from jumar.graph import Evaluator
from jumar.graph.expansions import expansions_of, load_expansions

quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
LABELS = "abcdef"


def floats(draw: Any, shape: Any, dtype: Any = np.float32) -> Any:
    random = np.random.default_rng(draw(st.integers(0, 999)))
    return (random.standard_normal(shape) * 2).astype(dtype)


def integers(draw: Any, shape: Any, dtype: Any, low: int | None = None, high: int | None = None) -> Any:
    """Of the whole type unless told, with its ends among them."""
    random, limits = np.random.default_rng(draw(st.integers(0, 999))), np.iinfo(dtype)
    low, high = limits.min if low is None else low, limits.max if high is None else high
    array = random.integers(low, high, shape, dtype=dtype, endpoint=True)
    array.reshape(-1)[:2] = [low, high][: min(array.size, 2)]
    return array


def runs(proto: onnx.ModelProto, feed: Any, evaluator: Evaluator) -> bool:
    """Whether the installed ONNX Runtime has a kernel for the node as it is."""
    try:
        evaluator.run(ir.from_proto(proto), feed)
    except EvaluationError:
        return False
    return True


def made(op: str, proto: onnx.ModelProto) -> list[ir.Model]:
    load_expansions()
    return [model for expansion in expansions_of(op) if (model := expanded(proto, expansion)) is not None]


@quick
@given(data=st.data())
def test_einsum_of_any_equation(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    sizes = {label: draw(st.integers(1, 3)) for label in LABELS}
    terms = ["".join(draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=4))) for _ in range(draw(st.integers(1, 3)))]
    used = sorted(set("".join(terms)))
    result = "".join(draw(st.permutations(used))[: draw(st.integers(0, len(used)))])
    feed = {f"x{number}": floats(draw, [sizes[label] for label in term]) for number, term in enumerate(terms)}
    equation = f"{','.join(terms)}->{result}" if draw(st.booleans()) else ",".join(terms)
    proto = single("Einsum", draw(st.sampled_from([12, 13])), list(feed), feed, {}, equation=equation)
    expected = np.asarray(np.einsum(equation, *[array.astype(np.float64) for array in feed.values()]))
    models = made("Einsum", proto)
    assert models, equation
    for model in models:
        found = next(iter(evaluator.run(model, feed).values()))
        assert not unequal(found, expected.astype(np.float32)), equation
        assert len(model.graph) <= 30, "nodes must not grow with sizes"


@pytest.mark.parametrize(
    ("equation", "shapes", "operators"),
    [
        ("bhwc,hkc->bhwk", [(25, 14, 14, 64), (14, 14, 64)], {"MatMul", "Transpose", "Reshape", "Unsqueeze"}),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)], {"MatMul"}),
        ("iij->ij", [(50, 50, 2)], {"Transpose", "Reshape", "Gather"}),
    ],
)
def test_einsum_makes_no_product_of_all_labels(equation: str, shapes: Any, operators: set[str]) -> None:
    feed = {f"x{number}": np.zeros(shape, np.float32) for number, shape in enumerate(shapes)}
    model = made("Einsum", single("Einsum", 13, list(feed), feed, {}, equation=equation))[0]
    assert {node.op_type for node in model.graph} <= operators


@quick
@given(data=st.data(), op=st.sampled_from(["CumSum", "CumProd"]))
def test_running_totals(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw = data.draw
    assume(op == "CumSum" or onnx.defs.onnx_opset_version() >= 26)
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    axis, exclusive, reverse = draw(st.integers(-len(shape), len(shape) - 1)), draw(st.booleans()), draw(st.booleans())
    dtype = draw(st.sampled_from([np.float32, np.int32, np.int64]))
    feed = {"x": floats(draw, shape) if dtype == np.float32 else integers(draw, shape, dtype, -3, 3)}
    proto = single(
        op, 26 if op == "CumProd" else 14, ["x", "a"], feed, {"a": np.array(axis, np.int64)}, exclusive=exclusive, reverse=reverse
    )
    place = axis % len(shape)
    turned = np.flip(feed["x"], place) if reverse else feed["x"]
    total = (np.cumsum if op == "CumSum" else np.cumprod)(turned, place, dtype=np.float64 if dtype == np.float32 else dtype)
    if exclusive:
        first = np.full([1 if number == place else size for number, size in enumerate(shape)], 0 if op == "CumSum" else 1)
        total = np.concatenate([first, np.take(total, range(shape[place] - 1), place)], place)
    expected = (np.flip(total, place) if reverse else total).astype(dtype)
    models = made(op, proto)
    assert models
    for model in models:
        model.opset_imports[""] = min(model.opset_imports[""], 18)
        assert not unequal(next(iter(evaluator.run(model, feed).values())), expected)


def test_running_total_grows_with_the_logarithm() -> None:
    feed = {"x": np.zeros((1, 1000), np.int64)}
    model = made("CumSum", single("CumSum", 14, ["x", "a"], feed, {"a": np.array(1, np.int32)}))[0]
    assert sum(node.op_type == "Add" for node in model.graph) == 10


REDUCTIONS = ["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"]  # fmt: skip


@settings(quick, max_examples=60)
@given(data=st.data(), op=st.sampled_from(REDUCTIONS))
def test_reductions(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    whole = op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp") or draw(st.booleans())
    dtype = np.float32 if whole else draw(st.sampled_from([np.int32, np.int64]))
    feed = {"x": np.abs(floats(draw, shape)) + np.float32(0.1) if whole else integers(draw, shape, dtype, -6, 6)}
    axes = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=3))
    # Whether a reduction without axes still squares or takes magnitudes differs between versions of ONNX Runtime.
    plain = op in REDUCTIONS[:4] or bool(axes)
    attributes = {"keepdims": draw(st.integers(0, 1)), "noop_with_empty_axes": draw(st.integers(0, 1)) if plain else 0}
    opset = draw(st.sampled_from([9, 11, 13, 18]))
    if opset == 18 or (op == "ReduceSum" and opset == 13):
        proto = single(op, opset, ["x", "a"], feed, {"a": np.array(axes, np.int64)}, **attributes)
    else:
        del attributes["noop_with_empty_axes"]
        attributes |= {"axes": axes} if axes else {}
        proto = single(op, opset, ["x"], feed, {}, **attributes)
    assume(runs(proto, feed, evaluator))
    wrong, count = differences(proto, [feed], evaluator)
    assert not wrong
    assert count or (whole and op in REDUCTIONS[:5])


@quick
@given(data=st.data(), op=st.sampled_from(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"]))
def test_bits(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw, dtype = data.draw, data.draw(st.sampled_from([np.uint8, np.int8, np.uint16, np.int16, np.int32]))
    feed = {"a": integers(draw, (3, 4), dtype)}
    other = integers(draw, draw(st.sampled_from([(3, 4), (4,), ()])), dtype)
    if op == "BitwiseNot":
        expected, proto = ~feed["a"], single(op, 18, ["a"], feed, {})
    else:
        constant = draw(st.booleans())
        feed |= {} if constant else {"b": other}
        proto = single(op, 18, ["a", "b"], feed, {"b": other} if constant else {})
        expected = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[op](feed["a"], other)
    models = made(op, proto)
    assert models
    for model in models:
        assert not unequal(next(iter(evaluator.run(model, feed).values())), expected)


@quick
@given(data=st.data(), direction=st.sampled_from(["LEFT", "RIGHT"]))
def test_shifts(data: st.DataObject, direction: str, evaluator: Evaluator) -> None:
    draw, dtype = data.draw, data.draw(st.sampled_from([np.uint8, np.int8, np.uint16, np.int16, np.int32]))
    width, signed = np.dtype(dtype).itemsize * 8, np.iinfo(dtype).min < 0
    assume(not signed or onnx.defs.onnx_opset_version() >= 28)
    feed = {"a": integers(draw, (4, 5), dtype)}
    amount = integers(draw, draw(st.sampled_from([(4, 5), (5,), ()])), dtype, -2 if signed else 0, width + 2)
    constant = draw(st.booleans())
    feed |= {} if constant else {"b": amount}
    proto = single("BitShift", 28 if signed else 11, ["a", "b"], feed, {"b": amount} if constant else {}, direction=direction)

    def shifted(number: int, places: int) -> int:
        if not 0 <= places < width:
            return -1 if number < 0 and direction == "RIGHT" else 0
        bits = (number >> places if direction == "RIGHT" else number << places) % (1 << width)
        return bits - (1 << width) if signed and bits >> (width - 1) else bits

    expected = np.vectorize(shifted, otypes=[np.int64])(feed["a"].astype(object), amount.astype(object)).astype(dtype)
    for model in made("BitShift", proto):
        model.opset_imports[""] = min(model.opset_imports[""], 18)
        assert not unequal(next(iter(evaluator.run(model, feed).values())), expected)


@quick
@given(data=st.data(), op=st.sampled_from(["Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs"]))
def test_narrow_arithmetic_wraps_around(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw, dtype = data.draw, data.draw(st.sampled_from([np.uint8, np.int8, np.uint16, np.int16]))
    assume(op != "Neg" or np.iinfo(dtype).min < 0)
    feed = {"a": integers(draw, (3, 5), dtype)}
    if op not in ("Neg", "Abs"):
        other = integers(draw, (3, 5), dtype)
        feed["b"] = np.where(other == 0, np.asarray(1, dtype), other) if op in ("Div", "Mod") else other
    wide = [array.astype(np.int64) for array in feed.values()]
    with np.errstate(all="ignore"):
        expected = {
            "Add": lambda: wide[0] + wide[1],
            "Sub": lambda: wide[0] - wide[1],
            "Mul": lambda: wide[0] * wide[1],
            "Div": lambda: np.trunc(wide[0] / wide[1]).astype(np.int64),
            "Mod": lambda: np.mod(wide[0], wide[1]),
            "Neg": lambda: -wide[0],
            "Abs": lambda: np.abs(wide[0]),
        }[op]().astype(dtype)
    for model in made(op, single(op, 14, list(feed), feed, {})):
        assert not unequal(next(iter(evaluator.run(model, feed).values())), expected)


@quick
@given(data=st.data(), op=st.sampled_from(["Where", "Max", "Min", "Equal", "Greater", "LessOrEqual", "Xor"]))
def test_choices(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw = data.draw
    dtype = draw(st.sampled_from([np.bool_, np.int8, np.uint8, np.int64]))
    assume(not (dtype == np.bool_ and op in ("Max", "Min", "Greater", "LessOrEqual")) and (dtype == np.bool_ or op != "Xor"))
    shapes = draw(st.permutations([(2, 3), (3,), (2, 1)]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    feed = {"c": random.random(shapes[2]) < 0.5} if op == "Where" else {}
    for name, shape in zip("xy", shapes, strict=False):
        feed[name] = random.random(shape) < 0.5 if dtype == np.bool_ else integers(draw, shape, dtype)
    proto = single(op, 16, list(feed), feed, {})
    assume(runs(proto, feed, evaluator))
    wrong, _ = differences(proto, [feed], evaluator)
    assert not wrong


@quick
@given(data=st.data(), op=st.sampled_from(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]))
def test_losses(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw = data.draw
    rest, classes = draw(st.lists(st.integers(1, 3), max_size=2)), draw(st.integers(2, 4))
    shape, targets = [3, classes, *rest], [3, *rest]
    feed = {"x": floats(draw, shape), "t": integers(draw, targets, np.int64, 0, classes - 1)}
    order = ["x", "t"]
    if draw(st.booleans()):
        feed["w"], order = np.abs(floats(draw, [classes])) + np.float32(0.1), ["x", "t", "w"]
    attributes: dict[str, Any] = {"reduction": draw(st.sampled_from(["none", "mean", "sum"]))}
    if draw(st.booleans()):
        attributes["ignore_index"] = draw(st.integers(0, classes - 1))
        assume((feed["t"] != attributes["ignore_index"]).any())  # the mean of nothing
    wrong, count = differences(single(op, 13, order, feed, {}, **attributes), [feed], evaluator)
    assert not wrong
    assert count


ACTIVATIONS = [
    ("Elu", {"alpha": 0.7}, 6), ("Selu", {"alpha": 1.2, "gamma": 2.0}, 6), ("Celu", {"alpha": 2.5}, 12), ("HardSigmoid", {"alpha": 0.1, "beta": 0.3}, 6),
    ("HardSigmoid", {}, 6), ("ThresholdedRelu", {"alpha": 0.5}, 10), ("Shrink", {"lambd": 1.5, "bias": 0.3}, 9), ("LeakyRelu", {"alpha": 0.3}, 6),
    ("Softplus", {}, 1), ("Softsign", {}, 1), ("Mish", {}, 18), ("Swish", {"alpha": 1.5}, 24), ("HardSwish", {}, 14), ("Gelu", {}, 20),
    ("Gelu", {"approximate": "tanh"}, 20),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attributes", "since"), ACTIVATIONS)
@pytest.mark.parametrize("opset", [9, 11, 18, 23])
def test_activations(op: str, attributes: dict[str, Any], since: int, opset: int, evaluator: Evaluator) -> None:
    knees = [0.0, -0.0, 0.3, 0.5, -0.5, 1.5, -1.5, 3.0, -3.0, 60.0, -60.0, 80.0, -80.0]
    feed = {"x": np.concatenate([np.random.default_rng(0).standard_normal(51) * 4, knees]).astype(np.float32).reshape(4, 16)}
    proto = single(op, max(opset, since), ["x"], feed, {}, **attributes)
    if not runs(proto, feed, evaluator):
        pytest.skip("the installed ONNX Runtime has no kernel of it")
    wrong, count = differences(proto, [feed], evaluator)
    assert not wrong
    assert count


@pytest.mark.parametrize("op", ["Softplus", "Mish", "Selu", "Celu", "Elu"])
def test_no_exponential_overflows_in_half_precision(op: str) -> None:
    """Every tensor on the way is finite in float16 for numbers up to 60000: what an exponential gets is never above 0."""
    feed = {"x": np.array([-60000, -60, -1, 0, 1, 60, 60000], np.float16)}
    model = made(op, single(op, 18, ["x"], feed, {}))[0]
    for node in model.graph:
        if node.op_type == "Exp":
            maker = node.inputs[0].producer()
            assert maker is not None and maker.op_type in ("Where", "Neg")


def attended(feed: dict[str, Any], mask: Any, scale: float, cap: float) -> Any:
    """Attention in float64, with zeros where nothing is attended."""
    query, key, value = (feed[name].astype(np.float64) for name in "qkv")
    repeat = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, repeat, 1), np.repeat(value, repeat, 1)
    scores = query @ key.swapaxes(-1, -2) * scale
    scores = cap * np.tanh(scores / cap) if cap else scores
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - np.where(mask.any(-1, keepdims=True), scores.max(-1, keepdims=True), 0))
    total = weights.sum(-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1), 0) @ value


@quick
@given(data=st.data())
def test_attention_with_masks(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    groups, repeat, rows, columns, width = (draw(st.integers(1, 3)) for _ in range(5))
    feed = {
        "q": floats(draw, (2, groups * repeat, rows, width)),
        "k": floats(draw, (2, groups, columns, width)),
        "v": floats(draw, (2, groups, columns, 2)),
    }
    attributes: dict[str, Any] = {"is_causal": draw(st.integers(0, 1)), "scale": 0.7}
    cap = draw(st.sampled_from([0.0, 1.5]))
    attributes |= {"softcap": cap} if cap else {}
    mask = np.ones((rows, columns), bool)
    order = ["q", "k", "v"]
    if draw(st.booleans()):  # rows without any key are among them
        feed["m"] = np.random.default_rng(draw(st.integers(0, 99))).random((rows, columns)) < 0.5
        mask, order = mask & feed["m"], [*order, "m"]
    if attributes["is_causal"]:
        mask &= np.arange(columns)[None, :] <= np.arange(rows)[:, None]
    expected = attended(feed, mask, 0.7, cap).astype(np.float32)
    load_expansions()
    model = expanded(single("Attention", 23, order, feed, {}, **attributes), expansions_of("Attention")[0])
    if model is None:  # an ONNX that has these in their first form
        assert (repeat > 1 or cap) and onnx.defs.onnx_opset_version() < 25
        return
    constants = [value.const_value.numpy() for value in model.graph.initializers.values() if value.const_value is not None]
    assert all(np.isfinite(array).all() and np.abs(array).max() <= 65504 for array in constants if array.dtype.kind == "f")
    assert not unequal(next(iter(evaluator.run(model, feed).values())), expected)


def test_a_wrong_expansion_would_be_noticed(evaluator: Evaluator) -> None:
    feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3) + 1, "z": np.ones((3, 2), np.float32)}
    model = made("Einsum", single("Einsum", 13, ["x", "z"], feed, {}, equation="ij,jk->ik"))[0]
    found = next(iter(evaluator.run(model, feed).values()))
    right = feed["x"] @ feed["z"]
    assert not unequal(found, right)
    assert unequal(found * np.float32(1.0001), right)
    assert unequal(np.array([1, 2]), np.array([1, 3]))
