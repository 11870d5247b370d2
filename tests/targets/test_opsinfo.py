"""Files of an installed CANN: a table or a refusal, never anything else."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.targets.encode import encode_kernels, pack
from jumar.targets.opsinfo import BadInfoError, read_ops_info

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda items: st.lists(items, max_size=3) | st.dictionaries(st.text(max_size=8), items, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(["float16,float", "DT_FLOAT", "int32", "", ",,", " float ", "\ud800", "a b", "dynamic", "required", "true"]) | JSON
ENTRY = st.dictionaries(st.sampled_from(["name", "dtype", "type", "paramType", "valueDepend", "flag"]), WORDS, max_size=5) | JSON
OPERATOR = (
    st.dictionaries(
        st.sampled_from(
            ["input0", "input1", "input10", "dynamic_input1", "output0", "dynamicShapeSupport", "dynamicFormat", "needCheckSupport"]
        ),
        ENTRY,
        max_size=5,
    )
    | JSON
)
FILE = st.dictionaries(st.sampled_from(["Add", "Relu", "A B", "", "\ud800"]), OPERATOR, max_size=4) | JSON


@settings(max_examples=300, deadline=None)
@given(data=FILE, kind=st.sampled_from(["AICore", "DSA", "AICPU", "AICPU_TF"]))
def test_any_json_is_a_table_or_refused(data: object, kind: str) -> None:
    read(json.dumps(data).encode(), kind)


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=60), kind=st.sampled_from(["AICore", "AICPU"]))
def test_any_bytes_are_a_table_or_refused(raw: bytes, kind: str) -> None:
    read(raw, kind)


def read(raw: bytes, kind: str) -> None:
    try:
        kernels = read_ops_info(raw, kind)  # type: ignore[arg-type]
    except BadInfoError as error:
        assert "\n" not in ascii(str(error))
        str(error).encode()
        return
    dtypes, ops = encode_kernels({name: {kind: kernel} for name, kernel in kernels.items()})
    assert set(ops) == set(kernels)
    table = {"source": "x", "dtypes": dtypes, "ops": ops}
    assert json.loads(gzip.decompress(pack(table))) == table


def test_nesting_without_end_is_refused() -> None:
    for raw in (b"[" * 200_000, b'{"Add": ' * 100_000, b'{"Add": {"input0": {"dtype": ' + b"[" * 900 + b"]" * 900 + b"}}}"):
        with pytest.raises(BadInfoError):
            read_ops_info(raw, "AICore")


def test_dtypes_without_end_are_refused() -> None:
    words = ",".join(f"type{index}" for index in range(200))
    with pytest.raises(BadInfoError, match="200 different dtypes"):
        read_ops_info(json.dumps({"Add": {"input0": {"name": "x", "dtype": words}}}).encode(), "AICore")


def test_inputs_stand_in_the_order_of_their_numbers() -> None:
    info = {"Op": {f"input{index}": {"name": f"x{index}", "dtype": "float"} for index in (10, 2, 0, 1)}}
    (kernel_of,) = read_ops_info(json.dumps(info).encode(), "AICore").values()
    assert [item["name"] for item in kernel_of["inputs"]] == ["x0", "x1", "x2", "x10"]
    mixed = {"Op": {"dynamic_input1": {"name": "rest", "type": "DT_BF16"}, "input0": {"name": "first", "type": "DT_DOUBLE,DT_BOOL"}}}
    (kernel_of,) = read_ops_info(json.dumps(mixed).encode(), "AICPU").values()
    assert [(item["name"], item["dtypes"]) for item in kernel_of["inputs"]] == [("first", ["double", "bool"]), ("rest", ["bfloat16"])]
