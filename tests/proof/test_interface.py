"""The caller keeps passing what he always passed."""

from __future__ import annotations

import json

import numpy as np
import onnx_ir as ir
import pytest

from jumar import UsageError
from jumar.proof import Interface, Port

TEXT = """<ir_version: 8, opset_import: ["" : 16]>
agraph (int64[2] "a/b", float[2] x, float[2] w) => (int64[2] "c d", float[2] y) <float[2] w = {1, 2}> { "c d" = Neg("a/b") y = Add(x, w) }"""


def original() -> Interface:
    return Interface.of(ir.from_onnx_text(TEXT))


def changed() -> Interface:
    return original().then(
        {"a/b": Port("a_b", "int64", "int64")}, {"c d": Port("c_d", "int64", "int32"), "nobody": Port("z", "float", "float")}
    )


def test_the_identity_leaves_everything() -> None:
    interface = original()
    assert [*interface.inputs] == ["a/b", "x"]  # w has a value of its own
    assert [*interface.outputs] == ["c d", "y"]
    assert interface.to_dict() == {"inputs": [], "outputs": []}
    feeds = {"a/b": np.array([1, 2]), "x": np.ones(2, np.float32)}
    found = interface.to_model(feeds)
    assert found.keys() == feeds.keys() and all(found[name] is feeds[name] for name in feeds)


def test_rewrites_follow_each_other() -> None:
    twice = changed().then({"a_b": Port("ab", "int64", "int32")}, {"c_d": Port("cd", "int32", "int32")})
    assert twice.inputs["a/b"] == Port("ab", "int64", "int32")
    # The caller's dtype stays the first one.
    assert twice.outputs["c d"] == Port("cd", "int64", "int32")
    assert twice.inputs["x"] == Port("x", "float", "float")


def test_a_change_of_a_former_name_changes_nothing() -> None:
    assert changed().then({"a/b": Port("other", "int64", "int32")}, {}) == changed()


def test_what_changed_survives_the_manifest() -> None:
    interface = changed().then({"a_b": Port("a_b", "int64", "int32")}, {})
    record = json.loads(json.dumps(interface.to_dict()))
    assert record == {
        "inputs": [{"original": "a/b", "name": "a_b", "original_dtype": "int64", "dtype": "int32"}],
        "outputs": [{"original": "c d", "name": "c_d", "original_dtype": "int64", "dtype": "int32"}],
    }
    assert original().changed(record) == interface
    assert original().changed({}) == original()


def test_arrays_are_renamed_and_cast_both_ways() -> None:
    interface = changed().then({"a_b": Port("a_b", "int64", "int32")}, {})
    x = np.ones(2, np.float32)
    inside = interface.to_model({"a/b": np.array([1, -2]), "x": x})
    np.testing.assert_array_equal(inside["a_b"], np.array([1, -2], np.int32), strict=True)
    assert inside["x"] is x
    outside = interface.to_caller({"c_d": np.array([3, -4], np.int32), "y": x, "extra": x})
    assert list(outside) == ["c d", "y"]
    np.testing.assert_array_equal(outside["c d"], np.array([3, -4]), strict=True)


def test_only_what_is_there_is_translated() -> None:
    assert changed().to_model({}) == {} and changed().to_caller({}) == {}


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_an_integer_that_does_not_fit_is_an_error_and_not_wrapped(value: int) -> None:
    interface = original().then({"a/b": Port("a/b", "int64", "int32")}, {})
    with pytest.raises(UsageError, match=f"`a/b` holds values from .*{abs(value)}|{value}"):
        interface.to_model({"a/b": np.array([value, 0])})


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31)])
def test_the_limits_themselves_fit(value: int) -> None:
    interface = original().then({"a/b": Port("a/b", "int64", "int32")}, {})
    assert interface.to_model({"a/b": np.array([value])})["a/b"].tolist() == [value]


def test_an_empty_array_fits_every_dtype() -> None:
    interface = original().then({"a/b": Port("a/b", "int64", "int32")}, {})
    assert interface.to_model({"a/b": np.zeros(0, np.int64)})["a/b"].dtype == np.int32


def test_strings_and_sequences_pass_as_they_are() -> None:
    interface = Interface({"s": Port("t", "string", "string"), "q": Port("q", "sequence", "sequence")}, {})
    text, sequence = np.array(["a"], dtype=object), [np.zeros(1)]
    found = interface.to_model({"s": text, "q": sequence})
    assert found["t"] is text and found["q"] is sequence
