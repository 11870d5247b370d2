"""Sequences and optionals whose content is known: their elements are read directly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from control_cases import OPSETS, X, assert_same, model_of, ops_of, simplified
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator
from jumar.graph.simplify import simplify_graph

U = np.arange(12, dtype=np.float32).reshape(2, 6)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("place", "op"), [(0, "Exp"), (1, "Neg"), (-1, "Neg"), (-2, "Exp")])
def test_an_element_of_a_sequence(opset: int, place: int, op: str, evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[3] x) => (float[3] y) <int64 place = {{{place}}}> {{
            a = Exp(x) b = Neg(x) s = SequenceConstruct(a, b) y = SequenceAt(s, place)
        }}""",
        opset,
    )
    assert ops_of(simplified(model, evaluator, {"x": X})[0]) == [op]


def test_a_place_outside_or_unknown_stays(evaluator: Evaluator) -> None:
    text = (
        "agraph (float[3] x, int64 n) => (float[3] y) <int64 two = {2}> { a = Exp(x) s = SequenceConstruct(a, x) y = SequenceAt(s, PLACE) }"
    )
    simplified(model_of(text.replace("PLACE", "n")), evaluator, {"x": X, "n": np.array(-1)})
    assert "SequenceAt" in ops_of(simplified(model_of(text.replace("PLACE", "two")), evaluator)[0])
    other = (
        text.replace("PLACE", "n").replace("SequenceConstruct(a, x)", "SequenceConstruct(a, z)").replace("x, int64", "x, float[2] z, int64")
    )
    assert "SequenceAt" in ops_of(simplified(model_of(other.replace("float[3] y", "float[m] y")), evaluator)[0])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("kind", ["float", "int64", "bool"])
def test_an_element_chosen_at_run_time(opset: int, kind: str, evaluator: Evaluator) -> None:
    """Elements of one shape are stacked, and the place picks a slice; every place, from both ends."""
    model = model_of(
        f"""agraph (float[2,3] x, int64 n) => ({kind}[2,3] y) {{
            p = Exp(x) q = Neg(x) a = Cast<to = TYPE>(p) b = Cast<to = TYPE>(q) c = Cast<to = TYPE>(x)
            s = SequenceConstruct(a, b, c) y = SequenceAt(s, n)
        }}""".replace("TYPE", {"float": "1", "int64": "7", "bool": "9"}[kind]),
        opset,
    )
    x = np.array([[1.5, -2, 0], [3, 0.25, -1]], np.float32)
    after, _ = simplified(model, evaluator, *({"x": x, "n": np.array(place)} for place in range(-3, 3)))
    assert not any("Sequence" in op for op in ops_of(after))


@pytest.mark.parametrize("opset", [17, 18, 21])
def test_what_is_done_with_every_element(opset: int, evaluator: Evaluator) -> None:
    """SequenceMap over two sequences and a tensor, with two results and a weight in its body."""
    model = model_of(
        """agraph (float[2,6] x, float[2] t) => (float[2,6] y, float[2,6] z) <int64 two = {2}> {
            s = SplitToSequence<axis = 1>(x, two)
            r = SplitToSequence<axis = 1>(x, two)
            m, k = SequenceMap(s, r, t) <body = b (float[2,2] a, float[2,2] c, float[2] d) => (float[2,2] e, float[2,2] f)
                <float[2] w = {2, 3}> {
                g = Mul(a, w)
                e = Add(g, d)
                f = Sub(c, d)
            }>
            y = ConcatFromSequence<axis = 1>(m)
            z = ConcatFromSequence<axis = 1>(k)
        }""",
        opset,
    )
    after, _ = simplified(model, evaluator, {"x": U, "t": np.array([0.5, -3], np.float32)})
    assert not any("Sequence" in op for op in ops_of(after))
    assert ops_of(after).count("Mul") == 3


@pytest.mark.parametrize("opset", OPSETS[1:])
def test_a_sequence_through_an_if(opset: int, evaluator: Evaluator) -> None:
    """Both branches give two tensors: what chooses between sequences chooses between tensors."""
    model = model_of(
        """agraph (float[3] x, bool c) => (float[3] y, float[3] u) <int64 zero = {0}, int64 one = {1}> {
            s, u = If (c) <
                then_branch = t () => (seq(float[3]) p, float[3] v) { a = Exp(x) p = SequenceConstruct(a, x) v = Neg(x) },
                else_branch = e () => (seq(float[3]) q, float[3] w) { b = Neg(x) q = SequenceConstruct(b, b) w = Abs(x) }
            >
            f = SequenceAt(s, zero) g = SequenceAt(s, one) y = Sub(f, g)
        }""",
        opset,
    )
    after, _ = simplified(model, evaluator, *({"x": X, "c": np.array(c)} for c in (True, False)))
    assert not any("Sequence" in op for op in ops_of(after))


@pytest.mark.parametrize("opset", OPSETS[1:])
def test_a_list_that_a_loop_fills(opset: int, evaluator: Evaluator) -> None:
    """What scripted code writes as append: the loop carries the sequence, and is unrolled with it."""
    model = model_of(
        """agraph (float[3] x) => (float[4,3] y) <int64 four = {4}, bool yes = {1}> {
            empty = SequenceEmpty<dtype = 1>()
            last, list = Loop (four, yes, x, empty) <body = b (int64 i, bool on, float[3] a, seq(float[3]) l)
                => (bool go, float[3] d, seq(float[3]) k) { go = Identity(on) d = Sin(a) k = SequenceInsert(l, d) }>
            y = ConcatFromSequence<axis = 0, new_axis = 1>(list)
        }""",
        opset,
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert not {"Loop", "SequenceInsert", "ConcatFromSequence", "SequenceEmpty"} & {*ops_of(after)}


def test_a_slice_of_the_wrong_element_is_noticed(evaluator: Evaluator) -> None:
    """Planted error: the element beside the one asked for."""
    text = "agraph (float[3] x, int64 n) => (float[3] y) { a = Exp(x) s = SequenceConstruct(FIRST) y = SequenceAt(s, n) }"
    right, wrong = (model_of(text.replace("FIRST", items)) for items in ("a, x", "x, a"))
    simplify_graph(wrong, evaluator)
    with pytest.raises(AssertionError):
        assert_same(right, wrong, evaluator, {"x": X, "n": np.array(1)})


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(st.tuples(st.booleans(), st.integers(-3, 3), st.booleans()), max_size=6),
    opset=st.sampled_from(OPSETS),
    axis=st.sampled_from([0, -1]),
)
def test_insertions_and_removals(moves: list[tuple[bool, int, bool]], opset: int, axis: int, evaluator: Evaluator) -> None:
    """Elements differ, so that one in the wrong place shows."""
    lines, weights, length = ["s0 = SequenceConstruct(x)"], [], 1
    for index, (inserts, place, default) in enumerate(moves):
        bound = length if inserts else length - 1
        place = max(-length, min(place, bound))
        weights += [f"int64 p{index} = {{{place}}}", f"float w{index} = {{{index + 1}}}"]
        if inserts:
            lines.append(f"a{index} = Add(x, w{index}) s{index + 1} = SequenceInsert(s{index}, a{index}{'' if default else f', p{index}'})")
            length += 1
        elif length > 1:
            lines.append(f"s{index + 1} = SequenceErase(s{index}{'' if default else f', p{index}'})")
            length -= 1
        else:
            lines.append(f"a{index} = Add(x, w{index}) s{index + 1} = SequenceInsert(s{index}, a{index})")
            length += 1
    last = f"s{len(moves)}"
    model = model_of(
        f"""agraph (float[3] x) => (float[N] y, float[A,B] z, int64 k) <{", ".join([*weights, "float unread = {0}"])}> {{
            {" ".join(lines)}
            y = ConcatFromSequence<axis = {axis}>({last})
            z = ConcatFromSequence<axis = {axis}, new_axis = 1>({last})
            k = SequenceLength({last})
        }}""",
        opset,
    )
    after, _ = simplified(model, evaluator, {"x": X})
    assert not [op for op in ops_of(after) if "Sequence" in op]


SPLITS: list[tuple[str, str, int]] = [
    ("", "axis = 1", 6),
    ("", "axis = -1, keepdims = 0", 6),
    ("", "axis = 0, keepdims = 0", 2),
    ("int64 parts = {4}", "axis = 1", 2),
    ("int64 parts = {9}", "axis = 1", 1),
    ("int64[3] parts = {1, 3, 2}", "axis = 1", 3),
    ("int64[1] parts = {6}", "axis = 1", 1),
]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("parts", "attributes", "count"), SPLITS)
def test_pieces_of_a_split(opset: int, parts: str, attributes: str, count: int, evaluator: Evaluator) -> None:
    rank = 1 if not parts and "keepdims = 0" in attributes else 2
    dims = ",".join("ABC"[:rank])
    model = model_of(
        f"""agraph (float[2,6] x) => (float[{dims}] y, float[{dims}] z, int64 k) <int64 first = {{0}}, int64 last = {{-1}}{", " * bool(parts)}{parts}> {{
            s = SplitToSequence<{attributes}>(x{", parts" * bool(parts)})
            y = SequenceAt(s, first)
            z = SequenceAt(s, last)
            k = SequenceLength(s)
        }}""",
        opset,
    )
    after, _ = simplified(model, evaluator, {"x": U})
    assert not [op for op in ops_of(after) if "Sequence" in op]
    assert int(evaluator.run(after, {"x": U})["k"]) == count


def test_lengths_without_the_axis_stay(evaluator: Evaluator) -> None:
    """ONNX ignores keepdims where lengths are given, ONNX Runtime does not."""
    model = model_of(
        """agraph (float[2,6] x) => (float[A,B] y) <int64 one = {1}, int64 first = {0}> {
            s = SplitToSequence<axis = 1, keepdims = 0>(x, one) y = SequenceAt(s, first)
        }"""
    )
    after = model.clone()
    simplify_graph(after, evaluator)
    assert ops_of(after) == ["SplitToSequence", "SequenceAt"]


@pytest.mark.parametrize(("attributes", "new_axis"), [("axis = 1", 0), ("axis = 1, keepdims = 0", 1), ("axis = -1, keepdims = 0", 1)])
def test_what_is_split_and_joined_again(attributes: str, new_axis: int, evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[2,N] x) => (float[2,N] y) {{
            h = Exp(x) s = SplitToSequence<{attributes}>(h) j = ConcatFromSequence<axis = 1, new_axis = {new_axis}>(s) y = Neg(j)
        }}"""
    )
    assert ops_of(simplified(model, evaluator, {"x": U})[0]) == ["Exp", "Neg"]


@pytest.mark.parametrize(("attributes", "axis", "new_axis"), [("axis = 0", 1, 0), ("axis = 1, keepdims = 0", 0, 1), ("axis = 1", 1, 1)])
def test_what_is_joined_another_way_is_not_the_source(attributes: str, axis: int, new_axis: int, evaluator: Evaluator) -> None:
    model = model_of(
        f"""agraph (float[2,6] x) => (float[{"A,B,C" if attributes == "axis = 1" and new_axis else "A,B"}] y) {{
            s = SplitToSequence<{attributes}>(x) y = ConcatFromSequence<axis = {axis}, new_axis = {new_axis}>(s)
        }}"""
    )
    simplified(model, evaluator, {"x": U})


def test_a_sequence_that_leaves_the_model_stays(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2,6] x) => (seq(float[2,1]) s) { s = SplitToSequence<axis = 1>(x) }")
    assert ops_of(simplified(model, evaluator)[0]) == ["SplitToSequence"]


@pytest.mark.parametrize(
    ("line", "ops"),
    [
        ("o = Optional(h) y = OptionalGetElement(o)", ["Exp"]),
        ("y = OptionalGetElement(h)", ["Exp"]),
        ("o = Optional(h) has = OptionalHasElement(o) f = Cast<to = 1>(has) y = Mul(h, f)", ["Exp"]),
        ("has = OptionalHasElement(h) f = Cast<to = 1>(has) y = Mul(h, f)", ["Exp"]),
    ],
)
def test_optionals(line: str, ops: list[str], evaluator: Evaluator) -> None:
    model = model_of(f"agraph (float[3] x) => (float[3] y) {{ h = Exp(x) {line} }}", 18)
    after, _ = simplified(model, evaluator, {"x": X})
    assert [op for op in ops_of(after) if op != "Mul"] == ops


def test_an_element_in_the_wrong_place_is_noticed(evaluator: Evaluator) -> None:
    """Planted error: the neighbour instead."""
    text = "agraph (float[3] x) => (float[3] y) <int64 n = {PLACE}> { h = Exp(x) s = SequenceConstruct(x, h) y = SequenceAt(s, n) }"
    model, wrong = model_of(text.replace("PLACE", "0")), model_of(text.replace("PLACE", "1"))
    simplify_graph(wrong, evaluator)
    feed: dict[str, Any] = {"x": X}
    with pytest.raises(AssertionError):
        assert_same(model, wrong, evaluator, feed)
