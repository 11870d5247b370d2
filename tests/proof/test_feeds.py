"""Feeds: what the user gives is checked, what is generated runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from jumar import EvaluationError, ShapeError, UsageError
from jumar.graph import Evaluator
from jumar.proof import load_feeds, make_feeds
from jumar.proof.feeds import DEFAULT_CASES, check_feeds, integer_hints

TWO = "agraph (float[N,3] x, int32[2] i) => (float[N,3] y, int32[2] j) { y = Relu(x) j = Neg(i) }"
GOOD = {"x": np.ones((4, 3), np.float32), "i": np.array([1, 2], np.int32)}


def model_of(text: str, opset: int = 16) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def refusal(action: Callable[[], object], kind: type[Exception] = UsageError) -> str:
    with pytest.raises(kind) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# From a file


def test_arrays_are_read_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "feeds.npz", **GOOD)  # type: ignore[arg-type]
    feeds = load_feeds(tmp_path / "feeds.npz", model_of(TWO))
    assert feeds.origin == "user" and len(feeds.cases) == 1
    for name, array in GOOD.items():
        np.testing.assert_array_equal(feeds.cases[0][name], array, strict=True)


def test_pickled_arrays_are_refused_and_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "executed",))

    np.savez(tmp_path / "feeds.npz", x=np.array([Evil()], dtype=object), i=GOOD["i"])
    message = refusal(lambda: load_feeds(tmp_path / "feeds.npz", model_of(TWO)))
    assert "cannot be read" in message and "numpy.savez" in message
    assert not (tmp_path / "executed").exists()


def write_nothing(path: Path) -> None:
    path.unlink(missing_ok=True)


def write_a_lone_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, GOOD["x"])


def write_half(path: Path) -> None:
    np.savez(path, **GOOD)  # type: ignore[arg-type]
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize(
    "write",
    [write_nothing, Path.mkdir, lambda path: path.write_bytes(b""), lambda path: path.write_text("x"), write_a_lone_array, write_half],
    ids=["missing", "folder", "empty", "text", "npy", "truncated"],
)
def test_another_kind_of_file_is_refused(tmp_path: Path, write: Callable[[Path], object]) -> None:
    write(tmp_path / "feeds.npz")
    assert "cannot be read" in refusal(lambda: load_feeds(tmp_path / "feeds.npz", model_of(TWO)))


def test_a_damaged_archive_is_an_error_of_ours(tmp_path: Path, random: np.random.Generator) -> None:
    np.savez_compressed(tmp_path / "good.npz", **GOOD)  # type: ignore[arg-type]
    good = (tmp_path / "good.npz").read_bytes()
    refused = 0
    for _ in range(60):
        data = bytearray(good)
        for place in random.integers(0, len(data), 3):
            data[place] = random.integers(0, 256)
        (tmp_path / "bad.npz").write_bytes(data)
        try:
            load_feeds(tmp_path / "bad.npz", model_of(TWO))
        except UsageError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 30


# Checks


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"i": None}, "lack ['i'] and have unknown nothing"),
        ({"z": GOOD["x"]}, "lack nothing and have unknown ['z']"),
        ({"x": np.ones((4, 4), np.float32)}, "`x` is float32(4, 4); expected float('N', 3)"),
        ({"x": np.ones(3, np.float32)}, "`x` is float32(3,)"),
        ({"i": np.ones((), np.int32)}, "`i` is int32()"),
        ({"x": np.ones((4, 3), complex)}, "`x` is complex128"),
        ({"i": np.array([1.0, 2.0])}, "`i` is float64"),
        ({"i": np.array(["1", "2"])}, "`i` is <U1"),
    ],
)
def test_arrays_that_do_not_fit_the_inputs_are_refused(change: dict[str, Any], says: str) -> None:
    arrays = {name: array for name, array in {**GOOD, **change}.items() if array is not None}
    assert says in refusal(lambda: check_feeds(arrays, model_of(TWO)))


@pytest.mark.parametrize("size", [1, 4, 0])
def test_open_dimensions_take_any_size(size: int) -> None:
    assert check_feeds({**GOOD, "x": np.ones((size, 3), np.float32)}, model_of(TWO))["x"].shape == (size, 3)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8, bool])
def test_integers_are_adapted_where_the_values_fit(dtype: Any) -> None:
    found = check_feeds({**GOOD, "i": np.array([0, 1], dtype)}, model_of(TWO))["i"]
    np.testing.assert_array_equal(found, np.array([0, 1], np.int32), strict=True)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_an_integer_that_does_not_fit_is_refused_and_not_wrapped(value: int) -> None:
    assert "`i` is int64" in refusal(lambda: check_feeds({**GOOD, "i": np.array([value, 0])}, model_of(TWO)))


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16), ("double", np.float64)])
def test_floats_are_adapted(name: str, dtype: Any) -> None:
    model = model_of(f"agraph ({name}[3] x) => ({name}[3] y) {{ y = Neg(x) }}")
    found = check_feeds({"x": np.array([1.5, -2, 1e30], np.float32)}, model)["x"]
    np.testing.assert_array_equal(found, np.array([1.5, -2, np.inf if name == "float16" else np.float32(1e30)]).astype(dtype), strict=True)


def test_strings_are_fed_as_objects() -> None:
    model = model_of("agraph (string[2] s) => (string[2] t) { t = Identity(s) }")
    found = check_feeds({"s": np.array(["a", "bc"])}, model)["s"]
    assert found.dtype == object and found.tolist() == ["a", "bc"]


def test_weights_listed_as_inputs_need_no_feed() -> None:
    model = model_of("agraph (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    assert list(check_feeds({"x": np.ones(2, np.float32)}, model)) == ["x"]


# Generated


def test_generated_feeds_are_seeded_and_differ(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[50] x) => (float[50] y) { y = Relu(x) }")
    first, again = make_feeds(model, evaluator), make_feeds(model, evaluator)
    assert first.origin == "generated" and len(first.cases) == DEFAULT_CASES
    for one, other in zip(first.cases, again.cases, strict=True):
        np.testing.assert_array_equal(one["x"], other["x"], strict=True)
    assert not np.array_equal(first.cases[0]["x"], first.cases[1]["x"])
    assert first.cases[0]["x"].std() > 0.5 and first.cases[0]["x"].min() < 0 < first.cases[0]["x"].max()


def test_a_model_without_inputs_has_one_case(evaluator: Evaluator) -> None:
    model = model_of("agraph () => (float[2] y) <float[2] w = {1, 2}> { y = Neg(w) }")
    assert make_feeds(model, evaluator).cases == ({},)


@pytest.mark.parametrize("path", ["g = Identity(i)", "c = Cast<to = 7>(i) g = Unsqueeze(c, zero)", "r = Transpose(i) g = Reshape(r, flat)"])
@pytest.mark.parametrize("words", [3, 40])
def test_indices_stay_within_the_vocabulary(path: str, words: int, evaluator: Evaluator) -> None:
    text = f"""agraph (int64[64] i, float[2,{words},2] t) => (y)
    <int64[1] zero = {{0}}, int64[1] flat = {{-1}}> {{ {path} y = Gather<axis = 1>(t, g) }}"""
    model = model_of(text)
    assert integer_hints(model.graph.inputs[0]) == (set(), words, True)
    for case in make_feeds(model, evaluator).cases:
        assert case["i"].min() >= 0 and case["i"].max() < words
        assert len(np.unique(case["i"])) > 1


def test_the_smallest_of_two_vocabularies_counts() -> None:
    text = "agraph (int64[4] i, float[9] a, float[5] b) => (y, z) { y = Gather(a, i) z = Gather(b, i) }"
    assert integer_hints(model_of(text).graph.inputs[0]) == (set(), 5, True)


def test_only_the_index_of_a_gather_is_an_index() -> None:
    text = "agraph (int64[4] i, int64[2] k) => (y) { y = Gather(i, k) }"
    model = model_of(text)
    assert integer_hints(model.graph.inputs[0]) == (set(), 2, False)
    assert integer_hints(model.graph.inputs[1]) == (set(), 4, True)


def test_an_index_that_is_compared_with_a_constant_takes_both_kinds_of_value(evaluator: Evaluator) -> None:
    text = """agraph (int64[200] i, float[9] t) => (y, z) <int64 pad = {8}> { y = Gather(t, i) z = Equal(i, pad) }"""
    for case in make_feeds(model_of(text), evaluator).cases:
        assert (case["i"] == 8).sum() > 200 / 9 * 1.5 and len(np.unique(case["i"])) == 9


def test_integers_are_drawn_from_the_constants_they_are_compared_with(evaluator: Evaluator) -> None:
    text = """agraph (int32[40] i) => (bool[40] y, bool[40] z) <int32 a = {7}, int32[1] b = {-3}> {
        y = Equal(i, a)
        s = Identity(i)
        z = Equal(b, s)
    }"""
    model = model_of(text)
    assert integer_hints(model.graph.inputs[0]) == ({7, -3}, 2, False)
    for case in make_feeds(model, evaluator).cases:
        assert {*case["i"].tolist()} == {7, -3}


@pytest.mark.parametrize("constant", ["value_int = -1", "value_float = nan", "value_float = inf", 'value_string = "a"'])
def test_constants_that_the_input_cannot_hold_are_no_hint(constant: str, evaluator: Evaluator) -> None:
    kind = {"value_i": 7, "value_f": 1, "value_s": 8}[constant[:7]]
    text = f"agraph (uint8[20] i) => (bool[20] y) {{ k = Constant<{constant}>() c = Cast<to = {kind}>(i) y = Equal(c, k) }}"
    case = make_feeds(model_of(text, 19), evaluator).cases[0]
    assert {*case["i"].tolist()} <= {0, 1}


def test_open_dimensions_get_a_size_that_runs(evaluator: Evaluator) -> None:
    text = """agraph (float[B,N] x) => (float[B,N] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> { y = Mul(x, w) }"""
    case = make_feeds(model_of(text), evaluator).cases[0]
    assert case["x"].shape == (1, 8)


def test_plainer_values_are_tried_when_the_natural_ones_do_not_run(evaluator: Evaluator) -> None:
    """An axis must be 0 or 1 here, which a draw of floats (cast to integers) does not always give."""
    text = "agraph (float[6] x) => (y) <float[2] t = {5, 6}> { i = Cast<to = 7>(x) a = Abs(i) b = Add(a, a) y = Gather(t, b) }"
    case = make_feeds(model_of(text), evaluator).cases[0]
    assert set(case["x"].tolist()) <= {0.0, 1.0} or np.abs(case["x"]).max() < 1


def test_a_model_that_runs_on_nothing_gives_its_first_reason(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2] x) => (y) <int64[1] i = {9}> { y = Gather(x, i) }")
    assert "could not be executed" in refusal(lambda: make_feeds(model, evaluator), EvaluationError)


def test_an_input_of_absurd_size_is_refused_before_it_is_drawn(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[100000,100000] x) => (float[100000,100000] y) { y = Relu(x) }")
    assert "more than 4 GB" in refusal(lambda: make_feeds(model, evaluator), ShapeError)


def test_an_input_that_is_no_tensor_cannot_be_fed(evaluator: Evaluator) -> None:
    model = model_of("agraph (seq(float[2]) x) => (int64 y) { y = SequenceLength(x) }")
    assert "of kind `sequence` cannot be fed" in refusal(lambda: make_feeds(model, evaluator))


def test_strings_and_booleans_are_generated(evaluator: Evaluator) -> None:
    model = model_of("agraph (string[2] s, bool[30] b) => (string[2] t, bool[30] c) { t = Identity(s) c = Not(b) }")
    case = make_feeds(model, evaluator).cases[0]
    assert case["s"].dtype == object and case["b"].dtype == bool and 0 < case["b"].sum() < 30
