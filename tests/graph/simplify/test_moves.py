"""Nodes that move elements merge exactly; what would change a value stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, copy_model
from jumar.graph.simplify import KINDS, Journal, applicable, moves, simplify_graph

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5) - 50.5


def simplified(text: str, opset: int, evaluator: Evaluator, feeds: dict[str, Any]) -> list[str]:
    """Operators left after simplification; the result is checked, equal (no tolerance), and has nothing left to do."""
    before = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    after = copy_model(before)
    simplify_graph(after, evaluator)
    onnx.checker.check_model(ir.to_proto(after), full_check=True)
    expected, found = evaluator.run(before, feeds), evaluator.run(after, feeds)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    assert not applicable(after, frozenset(KINDS))
    return [node.op_type for node in after.graph]


# Name -> graph, opset, operators left.
CASES: dict[str, tuple[str, int, list[str]]] = {
    "transposes compose": (
        "agraph (float[2,3,4,5] x) => (float[3,5,2,4] y) { a = Transpose<perm=[1,0,2,3]>(x) y = Transpose<perm=[0,3,1,2]>(a) }",
        11,
        ["Transpose"],
    ),
    "transposes that undo each other": (
        "agraph (float[2,3,4,5] x) => (float[2,3,4,5] y) { a = Transpose<perm=[2,0,3,1]>(x) b = Transpose<perm=[1,3,0,2]>(a) y = Neg(b) }",
        11,
        ["Neg"],
    ),
    "a transpose that is read elsewhere stays": (
        """agraph (float[2,3,4,5] x) => (float[3,5,2,4] y, float[3,2,4,5] z)
        { z = Transpose<perm=[1,0,2,3]>(x) y = Transpose<perm=[0,3,1,2]>(z) }""",
        11,
        ["Transpose", "Transpose"],
    ),
    "reshapes": (
        """agraph (float[2,3,4,5] x) => (float[10,12] y) <int64[2] a = {6, -1}, int64[2] b = {10, 12}>
        { r = Reshape(x, a) s = Reshape(r, b) y = Abs(s) }""",
        13,
        ["Reshape", "Abs"],
    ),
    "a target that copies a size of an unknown shape": (
        """agraph (float[N,M,4,5] x, int64[2] a) => (float[K,2,L] y) <int64[3] b = {0, 2, -1}> { r = Reshape(x, a) y = Reshape(r, b) }""",
        13,
        ["Reshape", "Reshape"],
    ),
    "a transpose of sizes of 1 between reshapes": (
        """agraph (float[2,3,4,5] x) => (float[6,20] y) <int64[3] a = {6, 1, 20}, int64[2] b = {6, 20}>
        { r = Reshape(x, a) t = Transpose<perm=[1,0,2]>(r) s = Reshape(t, b) y = Abs(s) }""",
        13,
        ["Reshape", "Abs"],
    ),
    "a transpose of larger sizes between reshapes": (
        """agraph (float[2,3,4,5] x) => (float[6,20] y) <int64[3] a = {6, 2, 10}, int64[2] b = {6, 20}>
        { r = Reshape(x, a) t = Transpose<perm=[1,0,2]>(r) s = Reshape(t, b) y = Abs(s) }""",
        13,
        ["Reshape", "Transpose", "Reshape", "Abs"],
    ),
    "squeeze and unsqueeze of an open shape": (
        """agraph (float[N,M,4,5] x) => (float[N,M,4,5] y) <int64[2] a = {1, -1}>
        { u = Unsqueeze(x, a) s = Squeeze(u, a) y = Abs(s) }""",
        13,
        ["Abs"],
    ),
    "a computed target with one open size": (
        """agraph (float[N,3,4,5] x) => (float[N,60] y) <int64[1] first = {0}, int64[1] rest = {60}>
        { s = Shape(x) n = Gather(s, first) t = Concat<axis=0>(n, rest) y = Reshape(x, t) }""",
        13,
        ["Reshape"],
    ),
    "concats keep their order": (
        """agraph (float[2,3,4,5] x) => (float[2,12,4,5] y)
        { n = Neg(x) e = Abs(x) inner = Concat<axis=1>(x, n) y = Concat<axis=-3>(e, inner, n) }""",
        13,
        ["Neg", "Abs", "Concat"],
    ),
    "concats of other axes": (
        "agraph (float[2,3,4,5] x) => (float[4,6,4,5] y) { n = Neg(x) a = Concat<axis=1>(x, n) y = Concat<axis=0>(a, a) }",
        13,
        ["Neg", "Concat", "Concat"],
    ),
    "a split that is joined again": (
        "agraph (float[2,4] x) => (float[2,4] y) { a, b = Split<axis=1>(x) c = Concat<axis=-1>(a, b) y = Neg(c) }",
        13,
        ["Neg"],
    ),
    "a split that is joined in another order": (
        "agraph (float[2,4] x) => (float[2,4] y) { a, b = Split<axis=1>(x) c = Concat<axis=-1>(b, a) y = Neg(c) }",
        13,
        ["Split", "Concat", "Neg"],
    ),
    "casts that keep the values": (
        "agraph (int8[2,4] x) => (float[2,4] y) { a = Cast<to=6>(x) b = Cast<to=7>(a) y = Cast<to=1>(b) }",
        13,
        ["Cast"],
    ),
    "casts that truncate": (
        "agraph (float[2,3,4,5] x) => (float[2,3,4,5] y) { a = Cast<to=6>(x) y = Cast<to=1>(a) }",
        13,
        ["Cast", "Cast"],
    ),
    "casts that round": (
        "agraph (float[2,3,4,5] x) => (float[2,3,4,5] y) { a = Cast<to=10>(x) y = Cast<to=1>(a) }",
        13,
        ["Cast", "Cast"],
    ),
    "a cast to bool between": (
        "agraph (float[2,3,4,5] x) => (float[2,3,4,5] y) { a = Cast<to=9>(x) y = Cast<to=1>(a) }",
        13,
        ["Cast", "Cast"],
    ),
    "slices of several axes without steps": (
        """agraph (float[2,3,4,5] x) => (float[1,3,2,2] y)
        <int64[2] s1 = {0, 1}, int64[2] e1 = {1, 3}, int64[2] a1 = {0, 2}, int64[1] s2 = {-2}, int64[1] e2 = {9223372036854775807}, int64[1] a2 = {3}>
        { a = Slice(x, s1, e1, a1) y = Slice(a, s2, e2, a2) }""",
        13,
        ["Slice"],
    ),
    "slices of one axis, backwards": (
        """agraph (float[2,3,4,5] x) => (float[2,3,4,2] y)
        <int64[1] s1 = {4}, int64[1] e1 = {-9223372036854775808}, int64[1] ax = {3}, int64[1] st1 = {-1}, int64[1] s2 = {1}, int64[1] e2 = {4}, int64[1] st2 = {2}>
        { a = Slice(x, s1, e1, ax, st1) y = Slice(a, s2, e2, ax, st2) }""",
        13,
        ["Slice"],
    ),
    "a slice that is an output too": (
        """agraph (float[2,3,4,5] x) => (float[2,2,4,5] a, float[2,1,4,5] y)
        <int64[1] s1 = {0}, int64[1] e1 = {2}, int64[1] ax = {1}, int64[1] s2 = {1}, int64[1] e2 = {2}>
        { a = Slice(x, s1, e1, ax) y = Slice(a, s2, e2, ax) }""",
        13,
        ["Slice", "Slice"],
    ),
    "a slice that only slices read": (
        """agraph (float[2,3,4,5] x) => (float[2,2,4,5] y)
        <int64[1] s1 = {1}, int64[1] e1 = {3}, int64[1] ax = {1}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] bx = {2}>
        { a = Slice(x, s1, e1, ax) b = Slice(a, zero, two, bx) c = Slice(a, two, four, bx) y = Concat<axis=2>(c, b) }""",
        13,
        ["Slice", "Slice", "Concat"],
    ),
    "an expand before a broadcast": (
        """agraph (float[2,3,4,5] x, float[5] z) => (float[2,3,4,5] y) <int64[4] s = {2, 3, 4, 5}> { e = Expand(z, s) y = Mul(x, e) }""",
        13,
        ["Mul"],
    ),
    "an expand that gives the shape": (
        """agraph (float[2,1,4,5] x, float[5] z) => (float[2,3,4,5] y) <int64[4] s = {2, 3, 4, 5}> { e = Expand(z, s) y = Mul(x, e) }""",
        13,
        ["Expand", "Mul"],
    ),
    "a body of a loop": (
        """agraph (int64 trips, float[2,3,4,5] x) => (float[2,3,4,5] y) {
            yes = Constant<value = bool {1}>()
            y = Loop(trips, yes, x) <body = body (int64 i, bool go, float[2,3,4,5] h) => (bool on, float[2,3,4,5] o) {
                on = Identity(go) a = Transpose<perm=[2,0,3,1]>(h) b = Transpose<perm=[1,3,0,2]>(a) o = Neg(b) }>
        }""",
        13,
        ["Loop"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_merges_exactly(name: str, evaluator: Evaluator) -> None:
    text, opset, left = CASES[name]
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    feeds: dict[str, Any] = {}
    for value in model.graph.inputs:
        if value.name == "a":
            feeds["a"] = np.array([6, -1])
        elif value.name == "trips":
            feeds["trips"] = np.array(3)
        elif value.name == "x":
            known = [size for size in value.shape or () if isinstance(size, int)]
            array = X if len(value.shape or ()) == 4 else X.reshape(-1)[:8].reshape(2, 4)
            feeds["x"] = (array[:, :1] if known[:2] == [2, 1] else array).astype(value.dtype.numpy() if value.dtype else np.float32)
        else:
            feeds[value.name or ""] = np.arange(5, dtype=np.float32)
    assert simplified(text, opset, evaluator, feeds) == left


@st.composite
def chains(draw: st.DrawFn) -> str:
    """A chain of moving operators on a small tensor, with sizes of 1 and odd bounds among them."""
    shape = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    lines, weights, name, current = [], [], "x", list(shape)
    for index in range(draw(st.integers(2, 6))):
        kind = draw(st.sampled_from(["transpose", "reshape", "slice", "unsqueeze", "squeeze", "concat", "expand"]))
        new = f"t{index}"
        if kind == "transpose":
            perm = draw(st.permutations(range(len(current))))
            lines.append(f"{new} = Transpose<perm={list(perm)}>({name})")
            current = [current[axis] for axis in perm]
        elif kind == "reshape":
            total = int(np.prod(current))
            first = draw(st.sampled_from([size for size in range(1, total + 1) if total % size == 0]))
            weights.append(f"int64[2] s{index} = {{{first}, {draw(st.sampled_from([-1, total // first]))}}}")
            lines.append(f"{new} = Reshape({name}, s{index})")
            current = [first, total // first]
        elif kind == "slice":
            axis = draw(st.integers(0, len(current) - 1))
            start, end = draw(st.integers(-5, 5)), draw(st.sampled_from([-9223372036854775808, -4, -1, 0, 1, 3, 9223372036854775807]))
            step = draw(st.sampled_from([1, 2, -1, -2]))
            length = len(range(current[axis])[slice(start, end, step)])
            if not length:
                continue
            weights += [f"int64[1] {key}{index} = {{{value}}}" for key, value in (("b", start), ("e", end), ("a", axis), ("p", step))]
            lines.append(f"{new} = Slice({name}, b{index}, e{index}, a{index}, p{index})")
            current[axis] = length
        elif kind == "unsqueeze":
            axis = draw(st.integers(0, len(current)))
            weights.append(f"int64[1] u{index} = {{{axis}}}")
            lines.append(f"{new} = Unsqueeze({name}, u{index})")
            current.insert(axis, 1)
        elif kind == "squeeze":
            if 1 not in current:
                continue
            axis = current.index(1)
            weights.append(f"int64[1] u{index} = {{{axis - len(current)}}}")
            lines.append(f"{new} = Squeeze({name}, u{index})")
            del current[axis]
        elif kind == "concat":
            axis = draw(st.integers(0, len(current) - 1)) if current else 0
            if not current or current[axis] > 8:
                continue
            lines.append(f"n{index} = Neg({name})")
            lines.append(f"{new} = Concat<axis={axis}>(n{index}, {name})")
            current[axis] *= 2
        else:
            weights.append(f"int64[{len(current)}] x{index} = {{{', '.join(map(str, current))}}}")
            lines.append(f"{new} = Expand({name}, x{index})")
        if not current:
            break
        name = new
    lines.append(f"y = Abs({name})")
    head = f"<{', '.join(weights)}>" if weights else ""
    return f"agraph (float[{','.join(map(str, shape))}] x) => (float[{','.join(map(str, current))}] y) {head} {{ {' '.join(lines)} }}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chains())
def test_random_chains_stay_equal(evaluator: Evaluator, text: str) -> None:
    shape = [int(size) for size in text.split("float[")[1].split("]")[0].split(",")]
    simplified(text, 13, evaluator, {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1})


def test_a_wrong_composition_is_caught(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_bounds", lambda items: (items.start, items.stop + 1, items.step))
    text, opset, _ = CASES["slices of one axis, backwards"]
    with pytest.raises((AssertionError, onnx.shape_inference.InferenceError)):
        simplified(text, opset, evaluator, {"x": X})


def test_a_budget_makes_the_first_changes_only(evaluator: Evaluator) -> None:
    text, opset, _ = CASES["transposes that undo each other"]
    text = text.replace("y = Neg(b)", "c = Identity(b) d = Identity(c) y = Neg(d)")
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    journals = []
    for budget in (None, 0, 1, 2):
        copy = copy_model(model)
        journals.append(simplify_graph(copy, evaluator, journal=Journal(budget)).rewrites)
    everything = journals[0]
    assert len(everything) == 3
    assert [journals[1], journals[2], journals[3]] == [[], everything[:1], everything[:2]]
    copy = copy_model(model)
    refused = Journal(refused=frozenset({(everything[0].kind, everything[0].place)}))
    assert everything[0] not in simplify_graph(copy, evaluator, journal=refused).rewrites
