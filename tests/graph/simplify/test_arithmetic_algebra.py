"""Laws of arithmetic hold for every number, NaN and infinity included, and only where the shape stays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arithmetic_cases import OPSETS, build, check, far, left_alone, simplified

from jumar.graph import Evaluator

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 6.0, 7.0, 1e38, -1e38, 1e-40, np.inf, -np.inf, np.nan, 3.0], np.float32).reshape(3, 5)


def same(text: str, weights: dict[str, Any], kind: str, left: list[str], evaluator: Evaluator, opset: int = 13) -> None:
    """One change of this kind on the special numbers. Tolerance: none (0 and -0 are equal)."""
    model = build(f"agraph (float[3,5] x) => (float[3,5] y) {{ {text} }}", opset, weights)
    after, journal = simplified(model, {kind, "unused-node"})
    assert [item.kind for item in journal.rewrites if item.kind != "unused-node"] == [kind]
    assert [node.op_type for node in after.graph] == left
    assert far(evaluator.run(after, {"x": SPECIAL}), evaluator.run(model, {"x": SPECIAL})) == 0.0


ONE, ZERO = np.float32([1]), np.zeros((1, 5), np.float32)
NEUTRAL = {
    "Mul(e, c)": ONE,
    "Mul(c, e)": np.ones((3, 5), np.float32),
    "Div(e, c)": ONE,
    "Sub(e, c)": ZERO,
    "Add(e, c)": -ZERO,
    "Pow(e, c)": ONE.reshape(()),
}


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("form", NEUTRAL)
def test_neutral_elements(form: str, opset: int, evaluator: Evaluator) -> None:
    same(f"e = Neg(x) y = {form}", {"c": NEUTRAL[form]}, "neutral-element", ["Neg"], evaluator, opset)


@pytest.mark.parametrize("form", ["Add(e, c)", "Add(c, e)", "Sub(e, c)"])
def test_zero_is_added(form: str, evaluator: Evaluator) -> None:
    sign = -1 if form.startswith("Sub") else 1
    same(f"e = Neg(x) y = {form}", {"c": sign * ZERO}, "add-zero", ["Neg"], evaluator)


def test_neutral_elements_of_integers_and_of_truth(evaluator: Evaluator) -> None:
    text = "agraph (int64[3] x) => (int64[3] y) { e = Neg(x) a = Add(e, o) m = Mul(i, a) y = Div(m, i) }"
    model = build(text, 13, {"o": np.int64(0), "i": np.int64([1])})
    after, _ = simplified(model, {"neutral-element"})
    assert [node.op_type for node in after.graph] == ["Neg"]
    text = "agraph (bool[3] x) => (bool[3] y) { e = Not(x) a = And(e, t) b = Or(f, a) y = Xor(b, f) }"
    after, _ = simplified(build(text, 13, {"t": np.bool_(True), "f": np.bool_(False)}), {"neutral-element"})
    assert [node.op_type for node in after.graph] == ["Not"]


STAYS = {
    "e = Neg(x) y = Div(c, e)": ONE,
    "e = Neg(x) y = Sub(c, e)": ZERO,
    "e = Neg(x) y = Pow(c, e)": ONE,
    "e = ReduceMax<axes = [0]>(x) y = Mul(e, c)": np.ones((3, 1), np.float32),
    "e = ReduceMax<axes = [0], keepdims = 0>(x) y = Mul(e, c)": np.ones((3, 5), np.float32),
    "e = Neg(x) y = Mul(e, c)": np.float32([1, 1, 1, 1, 2]),
    "y = Mul(x, c)": ONE,
}


@pytest.mark.parametrize("text", STAYS)
def test_what_changes_values_or_shape_stays(text: str) -> None:
    """The last one would leave a graph output that is a graph input."""
    left_alone(build(f"agraph (float[3,5] x) => (float[3,5] y) {{ {text} }}", 13, {"c": STAYS[text]}), "neutral-element", "add-zero")


DONE_TWICE = {
    "e = Abs(x) b = Neg(e) y = Neg(b)": ("twice-undone", ["Abs"]),
    "b = Relu(x) y = Relu(b)": ("done-already", ["Relu"]),
    "b = Abs(x) y = Relu(b)": ("done-already", ["Abs"]),
    "b = Relu(x) y = Abs(b)": ("done-already", ["Relu"]),
    "b = Round(x) y = Floor(b)": ("done-already", ["Round"]),
    "b = Sign(x) y = Sign(b)": ("done-already", ["Sign"]),
    "b = Neg(x) y = Max(b, b)": ("same-operands", ["Neg"]),
    "b = Neg(x) y = Min(b, b, b)": ("same-operands", ["Neg"]),
}


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("text", DONE_TWICE)
def test_what_is_done_twice(text: str, opset: int, evaluator: Evaluator) -> None:
    kind, left = DONE_TWICE[text]
    same(text, {}, kind, left, evaluator, opset)


def test_a_where_that_always_takes_one_branch(evaluator: Evaluator) -> None:
    same("e = Neg(x) y = Where(c, e, z)", {"c": np.ones((3, 1), np.bool_), "z": ZERO}, "constant-where", ["Neg"], evaluator)
    same("e = Neg(x) y = Where(c, z, e)", {"c": np.bool_(False), "z": ZERO}, "constant-where", ["Neg"], evaluator)
    text = "agraph (float[3,5] x) => (float[3,5] y) { e = ReduceMax<axes = [0]>(x) y = Where(c, e, x) }"
    left_alone(build(text, 13, {"c": np.bool_(True)}), "constant-where")


def clip_of(name: str, source: str, low: float | None, high: float | None, opset: int) -> tuple[str, dict[str, Any]]:
    if opset < 11:
        given = ", ".join(f"{key} = {value!r}" for key, value in (("min", low), ("max", high)) if value is not None)
        return f"{name} = Clip{f'<{given}>' if given else ''}({source})", {}
    weights = {f"{name}_{key}": np.float32(value) for key, value in (("min", low), ("max", high)) if value is not None}
    names = [f"{name}_{key}" if f"{name}_{key}" in weights else "" for key in ("min", "max")]
    return f"{name} = Clip({source}, {', '.join(names)})".replace(", )", ")").replace(", )", ")"), weights


BOUNDS = [(None, None), (0.0, None), (None, 6.0), (0.0, 6.0), (-1.0, 1.0), (-3.0, -2.0), (2.0, 3.0), (0.5, 0.5)]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("first", ["Relu", *BOUNDS])
def test_bounds_within_bounds(first: Any, opset: int, evaluator: Evaluator) -> None:
    """All pairs, on all special numbers: one operator is left, and each number comes out the same."""
    texts, weights = [], {}
    seconds = ["Relu", *BOUNDS]
    for place, second in enumerate(seconds):
        inner, outer = f"a{place}", f"y{place}"
        for name, source, form in ((inner, "x", first), (outer, inner, second)):
            text, more = (f"{name} = Relu({source})", {}) if form == "Relu" else clip_of(name, source, *form, opset)
            texts.append(text)
            weights |= more
    results = ", ".join(f"float[3,5] y{place}" for place in range(len(seconds)))
    model = build(f"agraph (float[3,5] x) => ({results}) {{ {' '.join(texts)} }}", opset, weights)
    after, journal = simplified(model, {"clip-clip", "done-already", "unused-node"})
    assert sum(item.kind in ("clip-clip", "done-already") for item in journal.rewrites) == len(seconds)
    assert len(after.graph) == len(seconds)
    assert far(evaluator.run(after, {"x": SPECIAL}), evaluator.run(model, {"x": SPECIAL})) == 0.0


def test_bounds_that_stay() -> None:
    """The wrong way round, computed, not a number, or read in between."""
    text = "agraph (float[3,5] x) => (float[3,5] y) { a = Clip(x, lo, hi) y = Clip(a, z) }"
    left_alone(build(text, 13, {"lo": np.float32(2), "hi": np.float32(1), "z": np.float32(0)}), "clip-clip")
    left_alone(build(text, 13, {"lo": np.float32(np.nan), "hi": np.float32(1), "z": np.float32(0)}), "clip-clip")
    computed = "agraph (float[3,5] x, float lo) => (float[3,5] y) { a = Clip(x, lo) y = Clip(a, z) }"
    left_alone(build(computed, 13, {"z": np.float32(0)}), "clip-clip")
    read = "agraph (float[3,5] x) => (float[3,5] y, float[3,5] a) { a = Clip(x, lo) y = Clip(a, z) }"
    left_alone(build(read, 13, {"lo": np.float32(-1), "z": np.float32(0)}), "clip-clip")


# Tolerance: one rounding of a constant and one of the result, each 2^-24, with some to spare.
TWO_ROUNDINGS = 5e-7


@pytest.mark.parametrize("opset", OPSETS)
def test_chains_of_constants(opset: int, evaluator: Evaluator) -> None:
    text = """agraph (float[N,3,5] x) => (float[N,3,5] y) {
        a = Mul(c, x) b = Div(a, s) d = Mul(b, c) e = Add(d, c) f = Sub(e, s) y = Add(f, r)
    }"""
    weights = {"c": np.float32([[6], [7], [8.1]]), "s": np.float32(3), "r": np.float32([[[7], [5.3], [6]]])}
    check(build(text, opset, weights), evaluator, {"constant-chain": 4}, ["Mul", "Add"], TWO_ROUNDINGS)


def test_chains_of_integers_are_exact(evaluator: Evaluator) -> None:
    text = "agraph (int64[4] x) => (int64[4] y) { a = Add(x, c) b = Sub(a, d) e = Mul(b, c) y = Mul(d, e) }"
    model = build(text, 13, {"c": np.int64([3, 4, 5, 6]), "d": np.int64(2**62 + 1)})
    after, _ = simplified(model, {"constant-chain"})
    assert [node.op_type for node in after.graph] == ["Add", "Mul"]
    feeds = {"x": np.array([1, -7, 2**40, -(2**62)], np.int64)}
    np.testing.assert_array_equal(evaluator.run(after, feeds)["y"], evaluator.run(model, feeds)["y"])


CHAINS = {
    "grows": ("a = Mul(x, c) y = Mul(a, d)", np.ones((3, 1), np.float32), np.ones((1, 5), np.float32)),
    "cancels": ("a = Add(x, c) y = Sub(a, d)", np.float32(1e4), np.float32(1e4 + 1)),
    "underflows": ("a = Mul(x, c) y = Mul(a, d)", np.float32(1e-30), np.float32(1e30)),
    "by zero": ("a = Div(x, c) y = Mul(a, d)", np.float32(0), np.float32(2)),
    "the other way": ("a = Div(c, x) y = Div(d, a)", np.float32(2), np.float32(2)),
    "of two kinds": ("a = Mul(x, c) y = Add(a, d)", np.float32(2), np.float32(2)),
    "read twice": ("a = Mul(x, c) b = Mul(a, d) y = Add(a, b)", np.float32(2), np.float32(2)),
}


@pytest.mark.parametrize("form", CHAINS)
def test_chains_that_stay(form: str) -> None:
    text, first, second = CHAINS[form]
    left_alone(build(f"agraph (float[3,5] x) => (float[3,5] y) {{ {text} }}", 13, {"c": first, "d": second}), "constant-chain")


def test_integer_division_and_half_precision_stay() -> None:
    text = "agraph (int64[4] x) => (int64[4] y) { a = Div(x, c) y = Mul(a, c) }"
    left_alone(build(text, 13, {"c": np.int64(2)}), "constant-chain")
    text = "agraph (float16[4] x) => (float16[4] y) { a = Mul(x, c) y = Mul(a, c) }"
    left_alone(build(text, 13, {"c": np.float16(2)}), "constant-chain")
