"""The settings of dynamic AIPP: bytes as documented, calls with their arguments in the right order."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.aipp.config import AippOp
from jumar.aipp.derive.block import derive_block
from jumar.aipp.emulate import emulate
from jumar.aipp.runtime import calls, parameter_bytes, read_parameters
from jumar.aipp.transform import make
from jumar.errors import UsageError

SIZE = {"src_image_size_w": 640, "src_image_size_h": 480}


def op_of(**values: Any) -> AippOp:
    return AippOp({"aipp_mode": "static", "input_format": "RGB888_U8", **SIZE, **values})


def test_the_bytes_stand_where_they_are_documented() -> None:
    crop = {"crop": True, "load_start_pos_w": 1, "load_start_pos_h": 2, "crop_size_w": 3, "crop_size_h": 4}
    pad = {"padding": True, "left_padding_size": 5, "right_padding_size": 6, "top_padding_size": 7, "bottom_padding_size": 8}
    numbers = {"mean_chn_0": 104, "min_chn_1": 0.5, "var_reci_chn_2": 0.25}
    op = op_of(
        input_format="YUV420SP_U8",
        csc_switch=True,
        rbuv_swap_switch=True,
        matrix_r2c2=-409,
        output_bias_0=9,
        input_bias_2=127,
        **crop,
        **pad,
        **numbers,
    )
    data = parameter_bytes([op, op])
    assert len(data) == 64 + 2 * 96
    assert tuple(data[:5]) == (1, 1, 1, 0, 2)
    assert struct.unpack_from("<ii", data, 8) == (640, 480)
    assert struct.unpack_from("<9h", data, 16) == (298, 516, 0, 298, -100, -208, 298, 0, -409)
    assert tuple(data[40:46]) == (9, 128, 128, 16, 128, 127), "output biases come first"
    for start in (64, 160):
        assert tuple(data[start : start + 4]) == (1, 0, 1, 0)
        assert struct.unpack_from("<12i", data, start + 8) == (1, 2, 3, 4, 0, 0, 0, 0, 7, 8, 5, 6), "top, bottom, left, right"
        assert struct.unpack_from("<4h", data, start + 56) == (104, 0, 0, 0)
        assert struct.unpack_from("<8e", data, start + 64) == (0, 0.5, 0, 0, 1, 1, 0.25, 1)


def test_numbers_of_formats_are_those_of_the_operator() -> None:
    kinds = {"YUV420SP_U8": 1, "XRGB8888_U8": 2, "RGB888_U8": 5, "YUV400_U8": 10}
    assert {name: parameter_bytes([op_of(input_format=name)])[0] for name in kinds} == kinds


@given(
    st.sampled_from(["YUV420SP_U8", "XRGB8888_U8", "RGB888_U8"]), st.booleans(), st.booleans(), st.lists(st.floats(0, 255, width=16), min_size=8, max_size=8), st.integers(1, 5)
)  # fmt: skip
def test_what_is_packed_is_read_back(name: str, csc: bool, swap: bool, numbers: list[float], count: int) -> None:
    values = {f"min_chn_{index}": numbers[index] for index in range(4)} | {
        f"var_reci_chn_{index}": numbers[4 + index] for index in range(4)
    }
    op = op_of(input_format=name, src_image_size_w=64, src_image_size_h=48, csc_switch=csc, rbuv_swap_switch=swap, **values)
    again = read_parameters(parameter_bytes([op] * count))
    assert len(again) == count
    image = np.random.default_rng(0).integers(0, 256, int(64 * 48 * {"YUV420SP_U8": 1.5, "RGB888_U8": 3}.get(name, 4)), dtype=np.uint8)
    assert np.array_equal(emulate(again[0], image), emulate(op, image), equal_nan=True)
    assert parameter_bytes(again) == parameter_bytes([op] * count)


def test_the_calls() -> None:
    op = derive_block(make("RGB", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 1 / 255, size=(224, 224), source=(256, 256)), "nv12").op
    made = calls(op, 2)
    assert made[0] == "aipp = acl.mdl.create_aipp(2)" and made[1] == "acl.mdl.set_aipp_input_format(aipp, 1)"
    assert made[2] == "acl.mdl.set_aipp_src_image_size(aipp, 256, 256)", "width first"
    assert made[3] == "acl.mdl.set_aipp_csc_params(aipp, 1, 298, 0, 409, 298, -100, -208, 298, 516, 0, 16, 128, 128, 16, 128, 128)"
    assert "acl.mdl.set_aipp_crop_params(aipp, 1, 16, 16, 224, 224, 1)" in made
    assert "acl.mdl.set_aipp_dtc_pixel_mean(aipp, 123, 116, 103, 0, 0)" in made and "set_input_aipp" in made[-1]
    padded = calls(op_of(padding=True, left_padding_size=1, right_padding_size=2, top_padding_size=3, bottom_padding_size=4))
    assert "acl.mdl.set_aipp_padding_params(aipp, 1, 3, 4, 1, 2, 0)" in padded


REFUSED = [
    ([op_of(input_format="YUYV_U8")], "cannot be set when the model runs"),
    ([AippOp({"input_format": "RGB888_U8"})], "the source size is missing"),
    ([op_of(resize=True)], "or resize is on"),
    ([op_of(), op_of(csc_switch=True)], "differ in format, source size or colours"),
    ([], "there are 0 images"),
    ([op_of(padding=True, padding_value=1.0)], "the padding is not zero"),
]


@pytest.mark.parametrize(("ops", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_the_runtime_refuses(ops: list[AippOp], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parameter_bytes(ops)


@pytest.mark.parametrize("data", [b"", bytes(160), bytes([1, 0, 0, 0, 2]) + bytes(155), b"\xff" * 160])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="are no settings of AIPP"):
        read_parameters(data)
