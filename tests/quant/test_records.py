"""AMCT's record files: what is written is read back to the bit, and what is none is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.errors import UsageError
from jumar.quant.records import LayerRecord, read_records, write_records

positive = st.floats(2.0**-90, 2.0**90, width=32)
layers = st.builds(
    lambda scale, offset, scales: LayerRecord(scale, offset, tuple(scales), (0,) * len(scales)),
    positive,
    st.integers(-128, 127),
    st.lists(positive, min_size=1, max_size=5),
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=12).filter(lambda name: name.isprintable()), layers, max_size=4))
def test_written_and_read(records: dict[str, LayerRecord]) -> None:
    back = read_records(write_records(records))
    assert back == records
    for name, item in records.items():
        assert np.array_equal(np.float32(back[name].scale_w), np.float32(item.scale_w))


def test_as_amct_writes_it() -> None:
    text = """
    # a comment
    record {
      key: "conv1"
      value: {
        scale_d: 0.0798481479
        offset_d: 1
        scale_w: 0.00297622895  scale_w: 0.5
        offset_w: 0  offset_w: 0
        shift_bit: 1
        skip_fusion: true
        dst_type: "INT8"
        act_type: 'INT8'
      }
    }
    prune_record { producer { name: "x" } }
    record { key: "fc" value { scale_d: 1 scale_w: 2; offset_w: 0, } }
    """
    found = read_records(text)
    assert found["conv1"] == LayerRecord(float(np.float32(0.0798481479)), 1, (float(np.float32(0.00297622895)), 0.5), (0, 0))
    assert found["fc"] == LayerRecord(1.0, 0, (2.0,), (0,))


BAD = {
    "record {": "ends within a block",
    "record { key: }": "a value is missing",
    'record { key: "a" value { scale_d: x scale_w: 1 } }': "scale_d of `a` is no number",
    'record { key: "a" value { scale_d: nan scale_w: 1 } }': "scale_d of `a` is no number",
    'record { key: "a" value { scale_d: 1 } }': "lacks a positive scale",
    'record { key: "a" value { scale_d: -1 scale_w: 1 } }': "lacks a positive scale",
    'record { key: "a" value { scale_d: 1 scale_w: 1 offset_w: 3 } }': "offset of weights",
    'record { key: "a" value { scale_d: 1 offset_d: 200 scale_w: 1 } }': "no int8",
    'record { key: "a" value { scale_d: 1 offset_d: 1.5 scale_w: 1 } }': "no int8",
    'record { key: "a" value { scale_d: 1 scale_w: 1 wts_type: "INT4" } }': "of type INT4",
    "record { " * 30: "nested too deeply",
    "%$": "unexpected",
    "} }": "unexpected",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=BAD[text]):
        read_records(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='record{}:"key valuscw_1.0#\n;,', max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_records(text)
    except UsageError as error:
        assert "record" in str(error)
