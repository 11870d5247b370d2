"""The emulator against the scalar arithmetic in fractions, exhaustively where there are few values, and at random over all settings."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from aipp_samples import IMAGENET_MEAN, IMAGENET_STD
from hypothesis import given, settings
from hypothesis import strategies as st
from scalar_aipp import half, normalised, scalar_aipp

from jumar.aipp.arithmetic import channel_table
from jumar.aipp.config import AippOp
from jumar.aipp.emulate import emulate, input_bytes
from jumar.aipp.matrices import ColourMatrix, decoding, encoding
from jumar.aipp.schema import EIGHT_BIT, VarType
from jumar.errors import UsageError

VARS: tuple[VarType, ...] = ("float16", "float32")


def op_of(**values: Any) -> AippOp:
    return AippOp({"aipp_mode": "static", "input_format": "RGB888_U8", **values})


IMAGENET = {f"min_chn_{index}": 255 * mean for index, mean in enumerate(IMAGENET_MEAN)} | {
    f"var_reci_chn_{index}": 1 / (255 * std) for index, std in enumerate(IMAGENET_STD)
}


# mean, min, var_reci: all 256 values


@pytest.mark.parametrize("var", VARS)
@pytest.mark.parametrize(
    "values",
    [
        IMAGENET,
        {"mean_chn_0": 104, "mean_chn_1": 117, "mean_chn_2": 123},
        {"mean_chn_0": 255, "min_chn_1": 255.0, "var_reci_chn_2": -1 / 255},
    ],
)
def test_every_value_of_a_channel(values: dict[str, Any], var: VarType) -> None:
    op = op_of(**values)
    for channel in range(3):
        expected = [normalised(op.given, value, channel, var) for value in range(256)]
        assert np.array_equal(channel_table(op, channel, var), np.array(expected, np.float16))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 255), st.floats(0, 255, width=16) | st.floats(0, 255), st.floats(-65504, 65504) | st.floats(2**-14, 2.0), st.sampled_from(VARS)
)  # fmt: skip
def test_every_value_under_any_coefficients(mean: int, low: float, factor: float, var: VarType) -> None:
    """Exact: one rounding of the true product, also where it lies beside a tie that float64 cannot tell."""
    op = op_of(mean_chn_0=mean, min_chn_0=low, var_reci_chn_0=factor)
    expected = np.array([normalised(op.given, value, 0, var) for value in range(256)], np.float16)
    assert np.array_equal(channel_table(op, 0, var).view(np.uint16) & 0x7FFF, expected.view(np.uint16) & 0x7FFF)
    assert np.array_equal(channel_table(op, 0, var), expected)


def test_a_product_beside_a_tie_is_rounded_once() -> None:
    """The true product is a hair above a tie of float16; float64 rounds it onto the tie, and rounding again would go down to even."""
    low, factor = 2.0**-24, float(np.float32(1 + 2**-11 + 2**-22))
    true = (Fraction(1) - Fraction(low)) * Fraction(factor)
    assert np.float16(float(true)) == half(true), "this one is told apart by float64"
    for value in range(1, 256):
        op = op_of(min_chn_0=low, var_reci_chn_0=factor)
        assert channel_table(op, 0, "float32")[value] == half((value - Fraction(low)) * Fraction(factor))


@pytest.mark.parametrize("var", VARS)
def test_float64_gives_the_same_over_all_values(var: VarType) -> None:
    """The model of the documentation in float64, which shares nothing with the exact one: bit-equal on ImageNet's numbers."""
    op, keep = op_of(**IMAGENET), np.float16 if var == "float16" else np.float32
    for channel in range(3):
        low, factor = np.float64(np.float16(op[f"min_chn_{channel}"])), np.float64(keep(op[f"var_reci_chn_{channel}"]))
        expected = ((np.arange(256.0) - low) * factor).astype(np.float16)
        assert np.array_equal(channel_table(op, channel, var).view(np.uint16), expected.view(np.uint16))


# All settings


@st.composite
def blocks(draw: st.DrawFn) -> tuple[dict[str, Any], tuple[int, int], bytes]:
    name = draw(st.sampled_from(EIGHT_BIT))
    even_w, even_h = (2, 2) if name == "YUV420SP_U8" else (2, 1) if name in ("YUYV_U8", "YUV422SP_U8") else (1, 1)
    height = draw(st.integers(1, 40)) * even_h
    width = draw(st.integers(1, 3)) * even_w
    values: dict[str, Any] = {"aipp_mode": "static", "input_format": name}
    sized = draw(st.booleans())
    if sized:
        values |= {"src_image_size_h": height, "src_image_size_w": width}
    network = (height, width)
    if sized and draw(st.booleans()):
        top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
        values |= {"crop": True, "load_start_pos_h": top, "load_start_pos_w": left}
        values |= {"crop_size_h": draw(st.integers(1, height - top)), "crop_size_w": draw(st.integers(1, width - left))}
    if sized and draw(st.booleans()):
        values |= {f"{side}_padding_size": draw(st.integers(0, 2)) for side in ("top", "bottom", "left", "right")}
        values |= {"padding": True, "padding_value": draw(st.floats(-65504, 65504, width=16))}
    for switch in ("csc_switch", "rbuv_swap_switch", "ax_swap_switch"):
        values[switch] = draw(st.booleans()) and not (switch == "csc_switch" and name == "YUV400_U8")
    if draw(st.booleans()):
        values |= {f"matrix_r{place // 3}c{place % 3}": draw(st.integers(-32677, 32676)) for place in range(draw(st.integers(0, 9)))}
        values |= {f"{side}_bias_{index}": draw(st.integers(0, 255)) for side in ("input", "output") for index in range(3)}
    for channel in range(4):
        values[f"mean_chn_{channel}"] = draw(st.integers(0, 255))
        values[f"min_chn_{channel}"] = draw(st.floats(0, 255))
        values[f"var_reci_chn_{channel}"] = draw(st.floats(-300, 300) | st.just(1 / 58.395))
    count = input_bytes(AippOp(values), network)
    assert count is not None
    seed = draw(st.integers(0, 2**32 - 1))
    return values, network, np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8).tobytes()


@settings(max_examples=40, deadline=None)
@given(blocks(), st.sampled_from(VARS))
def test_any_block_equals_the_scalar_arithmetic(case: tuple[dict[str, Any], tuple[int, int], bytes], var: VarType) -> None:
    values, network, data = case
    made = emulate(AippOp(values), data, var=var, network=network)
    expected = np.array(scalar_aipp(values, data, var, network), np.float16)
    assert made.shape == (1, *expected.shape)
    assert np.array_equal(made[0], expected)


def test_a_planted_error_would_be_noticed() -> None:
    values = op_of(src_image_size_h=2, src_image_size_w=2, **IMAGENET).given
    data = bytes(range(12))
    right = np.array(scalar_aipp(values, data, "float16", (2, 2)), np.float16)
    for wrong in ({"rbuv_swap_switch": True}, {"min_chn_1": 116.34}, {"var_reci_chn_0": 0.01714}, {"mean_chn_2": 1}):
        assert not np.array_equal(emulate(AippOp({**values, **wrong}), data)[0], right), wrong


# Colour matrices


def exhaustive(matrix: ColourMatrix, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers in 64 bits, for all triples at once: [rows, 3] -> [rows, 3]."""
    table = np.array(matrix.elements, np.int64).reshape(3, 3)
    bias = np.array(matrix.bias, np.int64)
    if matrix.decode:
        return np.clip(((values - bias) @ table.T) >> 8, 0, 255)
    return np.clip(((values @ table.T) >> 8) + bias, 0, 255)


def check_triples(matrix: ColourMatrix, first: range) -> None:
    grid = np.stack(np.meshgrid(np.arange(256), np.arange(256), indexing="ij"), axis=-1).reshape(-1, 2)
    for value in first:
        triples = np.concatenate([np.full((65536, 1), value), grid], axis=1).astype(np.uint8)
        if matrix.decode:  # A and the three components, of which AYUV444 holds one a pixel
            op = op_of(
                input_format="AYUV444_U8",
                ax_swap_switch=True,
                csc_switch=True,
                src_image_size_w=256,
                src_image_size_h=256,
                **matrix.fields(),
            )
            data = np.concatenate([np.zeros((65536, 1), np.uint8), triples], axis=1)
        else:
            op, data = op_of(csc_switch=True, src_image_size_w=256, src_image_size_h=256, **matrix.fields()), triples
        made = emulate(op, data, dtype="uint8", layout="NHWC").reshape(-1, 3)
        assert np.array_equal(made, exhaustive(matrix, triples.astype(np.int64)))


KINDS = [decoding("601", "narrow", "BGR"), decoding("709", "full"), encoding("601", "narrow")]


@pytest.mark.parametrize("matrix", KINDS, ids=lambda matrix: matrix.name)
def test_colour_triples(matrix: ColourMatrix) -> None:
    check_triples(matrix, range(0, 256, 51))


@pytest.mark.slow
@pytest.mark.parametrize("matrix", KINDS, ids=lambda matrix: matrix.name)
def test_all_colour_triples(matrix: ColourMatrix) -> None:
    """All 2^24 of them."""
    check_triples(matrix, range(256))


# Images and refusals


def test_frames_layouts_and_types() -> None:
    op = op_of(src_image_size_h=2, src_image_size_w=3, var_reci_chn_0=0.5, mean_chn_1=7)
    images = np.arange(36, dtype=np.uint8).reshape(2, 2, 3, 3)
    made = emulate(op, images)
    assert made.dtype == np.float16 and made.shape == (2, 3, 2, 3)
    assert np.array_equal(emulate(op, images, layout="NHWC"), made.transpose(0, 2, 3, 1))
    assert np.array_equal(emulate(op, images.tobytes()), made)
    assert np.array_equal(emulate(op, images, dtype="uint8"), images.transpose(0, 3, 1, 2)), "uint8 to uint8 passes through"
    four = op_of(input_format="XRGB8888_U8", ax_swap_switch=True)
    rgb = emulate(four, np.arange(24, dtype=np.uint8).reshape(2, 3, 4), network=(2, 3), channels=3)
    assert rgb[0, :, 0, 0].tolist() == [1, 2, 3]


REFUSED = [
    (op_of(input_format="RAW10", src_image_size_h=2, src_image_size_w=2), b"1234", "the rounding of the other formats is not public"),
    (AippOp({"aipp_mode": "dynamic", "max_src_image_size": 9}), b"1234", "expected static mode"),
    (op_of(src_image_size_h=2, src_image_size_w=2, resize=True), bytes(12), "the block resizes"),
    (op_of(), bytes(12), "leaves the size of the image open"),
    (op_of(src_image_size_h=2, src_image_size_w=2), bytes(13), "the image has 13 elements of uint8"),
    (op_of(src_image_size_h=2, src_image_size_w=2), np.zeros((2, 2, 3), np.float32), "12 elements of float32"),
    (op_of(src_image_size_h=2, src_image_size_w=2), b"", "0 elements"),
    (
        op_of(src_image_size_h=2, src_image_size_w=2, crop=True, load_start_pos_w=1, crop_size_w=2, crop_size_h=1),
        bytes(12),
        "do not fit together",
    ),
    (op_of(src_image_size_h=3, src_image_size_w=2, input_format="YUV420SP_U8"), bytes(9), "do not fit together"),
    (op_of(src_image_size_h=2, src_image_size_w=2, padding=True, left_padding_size=-1), bytes(12), "do not fit together"),
]


@pytest.mark.parametrize(("op", "data", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_what_is_refused(op: AippOp, data: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        emulate(op, data)


def test_more_channels_than_there_are() -> None:
    with pytest.raises(UsageError, match="YUV400_U8 gives 1 channels; expected 3"):
        emulate(op_of(input_format="YUV400_U8"), bytes(4), network=(2, 2), channels=3)


def test_the_bytes_that_the_compiled_model_takes() -> None:
    assert input_bytes(op_of(input_format="YUV420SP_U8", src_image_size_h=4, src_image_size_w=4)) == 24
    assert input_bytes(op_of(), (4, 5)) == 60 and input_bytes(op_of()) is None
