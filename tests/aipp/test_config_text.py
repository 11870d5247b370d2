"""AIPP files are read as ATC reads them, written so that they read the same, and refused at the line that is wrong."""

from __future__ import annotations

import math

import pytest
from aipp_samples import GOOD, any_config, changed
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.aipp.config import AippConfig, parse_config, read_config, write_config
from jumar.errors import UsageError


@settings(max_examples=40, deadline=None)
@given(any_config())
def test_what_is_written_is_read_back(config: AippConfig) -> None:
    again, found = parse_config(write_config(config, ("a comment: { [",)))
    assert found == [] and again == config


@given(st.text(alphabet='{}[]<>:,;"\\#aipp_op mean_chn_0: 1.5e\n：', max_size=80))
def test_no_text_crashes_the_reader(text: str) -> None:
    parse_config(text)


def test_the_forms_of_protobuf_text() -> None:
    text = """
    # comment
    aipp_op < aipp_mode : static, input_format: 3; related_input_rank: 0x1  # behind a value
      crop: t padding: 0 csc_switch: False src_image_size_w: 010 min_chn_0: 1.5f min_chn_1: .5 min_chn_2: -1e2 var_reci_chn_0: [0.5]
      related_input_name: "da" 'ta' load_start_pos_w: - 3 >
    aipp_op: { aipp_mode: dynamic max_src_image_size: 752640 }
    multi_shape_op { mode: 1 batch_list: 1 batch_list: 2 }
    """
    config, found = parse_config(text)
    assert found == []
    first, second = config.ops
    expected = {"aipp_mode": "static", "input_format": "RGB888_U8", "related_input_rank": 1, "crop": True, "padding": False}
    expected |= {"csc_switch": False, "src_image_size_w": 8, "min_chn_0": 1.5, "min_chn_1": 0.5, "min_chn_2": -100.0, "var_reci_chn_0": 0.5}
    assert first.given == {**expected, "related_input_name": "data", "load_start_pos_w": -3}
    assert second.given == {"aipp_mode": "dynamic", "max_src_image_size": 752640}
    assert config.gears == ({"mode": ("1",), "batch_list": ("1", "2")},)
    assert parse_config(write_config(config))[0] == config


def test_defaults_are_in_force_where_the_file_is_silent() -> None:
    op = read_config("aipp_op { aipp_mode: static input_format: YUV420SP_U8 csc_switch: true matrix_r0c0: 256 }").ops[0]
    assert [op[f"matrix_r0c{column}"] for column in range(3)] == [256, 516, 0]
    assert (op["var_reci_chn_0"], op["mean_chn_0"], op["input_bias_0"], op["crop"]) == (1.0, 0, 16, False)
    rgb = read_config("aipp_op { aipp_mode: static input_format: RGB888_U8 csc_switch: true }").ops[0]
    assert rgb["matrix_r0c0"] == 66


BAD = [
    (changed("mean_chn_0: 123.675"), "`mean_chn_0` is `123.675`", "put a mean with a fraction into `min_chn_0: 123.675`"),
    (
        changed("mean_chn_0: 0.675", "min_chn_0: 123"),
        "`mean_chn_0` is `0.675` and `min_chn_0` is `123`",
        "write mean_chn_0: 123 and min_chn_0: 0.675",
    ),
    (changed("min_chn_0：123.675"), "`：` cannot be read", "plain ASCII marks"),
    (changed("min_chnl_0: 1"), "`min_chnl_0` is no field of AIPP", "write `min_chn_0`"),
    (changed("rotation_angle: 0"), "`rotation_angle` is no field of AIPP", "documents reserve it"),
    (changed("input_format: RGB888"), "`input_format` is `RGB888`", "write RGB888_U8"),
    (changed("crop: on"), "`crop` is `on`", "write true or false"),
    (changed("min_chn_0: 1 min_chn_0: 2"), "`min_chn_0` is given twice", "keep one"),
    (changed("var_reci_chn_0: [1, 2]"), "`var_reci_chn_0` is given twice", "keep one"),
    (changed("related_input_rank: -1"), "`related_input_rank` is `-1`", "from 0 to 4294967295"),
    (changed("src_image_size_w: 8.0"), "`src_image_size_w` is `8.0`", "a whole number"),
    (changed("crop_size_h:"), "`crop_size_h:` cannot be read", "crop_size_h: value"),
    (GOOD.rstrip().removesuffix("}"), "the file ends inside a block", "close the block"),
    ("aipp_mode: static\n", "`aipp_mode` stands outside of a block", "inside `aipp_op`"),
    ("aipp { aipp_mode: static }", "`aipp` is no block of an AIPP file", "inside `aipp_op`"),
    ("", "there is no block `aipp_op`", "write a block"),
    ("aipp_op { aipp_mode: static crop { } }", "`crop` is no block", "write `crop: value`"),
]


@pytest.mark.parametrize(("text", "message", "remedy"), BAD, ids=[message for _, message, _ in BAD])
def test_what_atc_refuses_is_named(text: str, message: str, remedy: str) -> None:
    _, found = parse_config(text)
    assert (str(found[0][1].message), found[0][1].code, found[0][1].severity) == (message, "AI101", "error")
    assert remedy in str(found[0][1].remedy) and found[0][1].remedy.render("zh")
    with pytest.raises(UsageError, match=r"name\.cfg:"):
        read_config(text, "name.cfg")


def test_the_line_is_that_of_the_mistake() -> None:
    _, found = parse_config("aipp_op {\n  aipp_mode: static\n  input_format: RGB888_U8\n  mean_chn_1: 0.5\n}\n")
    assert [line for line, _ in found] == [4]
    assert math.isnan(read_config("aipp_op { min_chn_0: nan }").ops[0]["min_chn_0"])


def test_what_is_too_large_or_too_deep_ends_at_once() -> None:
    assert "larger than 1 MB" in str(parse_config("#" * (1 << 20) + "##")[1][0][1].message)
    assert parse_config("a {" * 10_000)[1] and parse_config("a: [" * 10_000)[1]
    assert parse_config(f"aipp_op {{ mean_chn_0: {'9' * 5000} min_chn_0: {'9' * 5000} }}")[1]
