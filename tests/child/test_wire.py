"""Arrays come out of the pipe as they went in."""

from __future__ import annotations

import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jumar.child import wire

DTYPES = [np.dtype(name) for name in ("bool", "int8", "uint8", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64")]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
ARRAYS = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES))
TEXTS = hnp.arrays(object, SHAPES, elements=st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
VALUES = st.recursive(st.one_of(st.none(), ARRAYS, TEXTS), lambda inner: st.lists(inner, max_size=3), max_leaves=6)


def through(value: Any) -> Any:
    """Pack, encode, decode and unpack."""
    header, payload = wire.pack_array(value)
    stream = io.BytesIO(b"".join(wire.encode({"array": header}, [payload])))
    decoded, payloads = wire.decode(stream.read)
    assert stream.read() == b""
    return wire.unpack_array(decoded["array"], payloads[0])


def same(found: Any, expected: Any) -> bool:
    if expected is None or isinstance(expected, list):
        return type(found) is type(expected) and (expected is None or (len(found) == len(expected) and all(map(same, found, expected))))
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    # Bytes, so that NaN payloads and signed zeros count.
    return bool(np.array_equal(found, expected)) if expected.dtype == object else found.tobytes() == expected.tobytes()


@given(value=VALUES)
def test_any_value_survives(value: Any) -> None:
    assert same(through(value), value)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_types_numpy_lacks_survive(name: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.float32).astype(getattr(ml_dtypes, name))
    assert same(through(array), array)
    assert wire.dtype_of(name) == array.dtype


def test_an_array_that_is_not_contiguous_survives() -> None:
    array = np.arange(12).reshape(3, 4).T[::2]
    assert same(through(array), array)


def test_fixed_width_and_byte_strings_arrive_as_objects() -> None:
    assert through(np.array(["a", "bcd"])).tolist() == ["a", "bcd"]


@given(
    headers=st.lists(st.dictionaries(st.text(max_size=5), st.integers()), max_size=3), payloads=st.lists(st.binary(max_size=9), max_size=3)
)
def test_messages_follow_each_other(headers: list[dict[str, int]], payloads: list[bytes]) -> None:
    stream = io.BytesIO(b"".join(part for header in headers for part in wire.encode(header, payloads)))
    for header in headers:
        found, data = wire.decode(stream.read)
        assert data == payloads
        assert found == {**header, "payloads": [len(payload) for payload in payloads]}
