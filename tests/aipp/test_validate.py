"""Each rule of ATC, of the operator compiler and of the chips, broken once; and the real files, none of which is blamed wrongly."""

from __future__ import annotations

from typing import Any

import pytest
from aipp_samples import GOOD, any_config, changed
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.aipp.lint import lint_aipp
from jumar.aipp.schema import chip
from jumar.aipp.validate import check_config
from jumar.case import TensorInfo
from jumar.targets import soc_info, socs

IMAGE = (TensorInfo("images", "float", (1, 3, 8, 8)),)
YUV = ("input_format: YUV420SP_U8",)
CROP = ("crop: true", "crop_size_w: 8", "crop_size_h: 8", "src_image_size_w: 16", "src_image_size_h: 16")
PAD = ("padding: true", "left_padding_size: 2", "src_image_size_w: 6")


def messages(text: str, soc: str | None = "Ascend310P", **more: Any) -> list[str]:
    return [f"{problem.code} {problem.severity} {problem.message}" for _, problem in lint_aipp(text, short=soc, **more)[1]]


def test_good_files_are_not_blamed() -> None:
    assert messages(GOOD, inputs=IMAGE) == []
    assert messages(changed(*CROP, "load_start_pos_w: 7"), inputs=IMAGE) == [], "RGB is cropped anywhere"
    assert messages(changed(*PAD), inputs=IMAGE) == []
    assert messages(changed("crop: true", without=("src_image_size_w",)) + "", "Ascend310P") != []
    assert messages("aipp_op { aipp_mode: dynamic max_src_image_size: 192 }", inputs=IMAGE) == []


RULES = [
    (changed(without=("aipp_mode",)), "AI102 error aipp_mode is not given"),
    (changed(without=("input_format",)), "AI102 error input_format is not given"),
    ("aipp_op { aipp_mode: dynamic }", "AI102 error max_src_image_size is not given"),
    (changed("src_image_size_w: 1"), "AI102 error src_image_size_w is 1"),
    (changed("src_image_size_h: 5000"), "AI102 error src_image_size_h is 5000"),
    (changed("src_image_size_h: -2"), "AI102 error src_image_size_h is negative"),
    (changed("crop: true", without=("src_image_size_w",)), "AI102 error src_image_size_w is not given, and crop is on"),
    (changed(*YUV, "src_image_size_w: 9"), "AI102 error src_image_size_w is odd"),
    (changed(*CROP, "load_start_pos_w: 9"), "AI102 error the crop reaches to 17 of 16 pixels (w)"),
    (changed(*YUV, *CROP, "load_start_pos_h: 3"), "AI102 error load_start_pos_h is odd"),
    (changed(*YUV, *CROP, "crop_size_h: 7"), "AI102 warning crop_size_h is odd"),
    (changed(*CROP, *PAD, without=("crop_size_w",)), "AI102 error crop_size_w is not given"),
    (changed("padding: true", "top_padding_size: 33"), "AI102 error top_padding_size is 33"),
    (changed(*PAD, "src_image_size_w: 1080"), "AI103 error after padding the image is 1082 wide"),
    (changed("resize: true", "resize_output_w: 32", "resize_output_h: 32"), "AI103 error resize is on"),
    (changed("input_format: YUV400_U8", "csc_switch: true"), "AI102 error csc_switch is on for YUV400_U8"),
    (changed("input_format: RAW10", "padding: true"), "AI102 error RAW10 has colour conversion, padding or resize"),
    (changed("input_format: YUYV_U8"), "AI103 error Ascend310P does not take YUYV_U8"),
    (changed("mean_chn_0: 256"), "AI102 error mean_chn_0 is 256"),
    (changed("min_chn_0: -127.5"), "AI102 error min_chn_0 is -127.5"),
    (changed("var_reci_chn_0: 70000"), "AI102 error var_reci_chn_0 is 70000.0"),
    (changed("var_reci_chn_0: inf"), "AI102 error var_reci_chn_0 is inf"),
    (changed("csc_switch: true", "matrix_r0c0: 40000"), "AI102 error matrix_r0c0 is 40000"),
    (changed('related_input_name: "data"'), "AI102 error related_input_name addresses an input by its name"),
    (GOOD + GOOD, "AI102 error two blocks are for input 0"),
    (changed("load_start_pos_w: 2"), "AI105 warning load_start_pos_w have no effect: crop is off"),
    (changed("max_src_image_size: 9"), "AI105 warning static mode does not read max_src_image_size"),
    ("aipp_op { aipp_mode: dynamic max_src_image_size: 9 crop: true }", "AI105 warning dynamic mode does not read crop"),
    (changed("ax_swap_switch: true"), "AI105 warning ax_swap_switch have no effect for RGB888_U8"),
    (changed("single_line_mode: true"), "AI105 warning single_line_mode has no effect"),
    (changed(*YUV, "csc_switch: true"), "AI107 warning csc_switch is on without a matrix"),
    (changed("csc_switch: true", "matrix_r0c0: 5"), "AI107 warning the colour matrix is none of the known ones"),
    (changed(*(f"min_chn_{i}: 0.485" for i in range(3)), *(f"var_reci_chn_{i}: 4.4" for i in range(3))), "AI106 error min_chn_0 is 0.485: it looks like a mean on the scale 0..1"),
    (changed(*(f"var_reci_chn_{i}: 58.395" for i in range(3))), "AI106 error var_reci_chn is 58.395: it looks like a standard deviation"),
    (changed("mean_chn_0: 124", "mean_chn_1: 116", "mean_chn_2: 104"), "AI106 error mean_chn and min_chn both hold the mean"),
    (changed(without=("var_reci_chn_2",)), "AI106 warning var_reci_chn is not given for channel 2"),
    (changed("var_reci_chn_0: 900"), "AI106 error channel 0 leaves float16 for some pixels"),
    (changed("min_chn_0: 103.53", "min_chn_2: 123.675"), "AI106 info the means are those of ImageNet in the order B, G, R, and nothing swaps"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), RULES, ids=[expected for _, expected in RULES])
def test_each_rule_broken(text: str, expected: str) -> None:
    if "both hold" in expected:
        expected = expected.replace("error", "warning")
    found = lint_aipp(text, short="Ascend310P")[1]
    assert expected in [f"{problem.code} {problem.severity} {problem.message}" for _, problem in found]
    for _, problem in found:
        assert problem.why.render("zh") and problem.remedy.render("zh") and problem.message.render("zh")


MODEL = [
    (changed("related_input_rank: 1"), IMAGE, "AI104 error related_input_rank is 1, and the model has 1 inputs"),
    (changed("related_input_rank: 1"), (*IMAGE, TensorInfo("im_info", "int32", (1, 3))), "AI104 error related_input_rank 1 is `im_info` [1,3] int32, not an image"),
    (GOOD, (TensorInfo("x", "float", (1, 1, 8, 8)),), "AI104 error RGB888_U8 gives 3 channels, `x` takes 1"),
    (GOOD, (TensorInfo("x", "float", (1, 8, 8, 3)),), "AI104 error RGB888_U8 gives 3 channels, `x` takes 8"),
    (changed("input_format: XRGB8888_U8"), IMAGE, "AI104 warning XRGB8888_U8 gives 4 channels, `images` takes 3"),
    (GOOD, (TensorInfo("x", "int64", (1, 3, 8, 8)),), "AI104 error input 0, `x`, is int64"),
    (GOOD, (TensorInfo("x", "uint8", (1, 3, 8, 8)),), "AI104 warning `x` is uint8: mean, min and var_reci have no effect"),
    (GOOD, (TensorInfo("x", "float", (1, 3, 16, 8)),), "AI102 error AIPP gives 8 x 8 (width x height), the model takes 8 x 16"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "inputs", "expected"), MODEL, ids=[expected for *_, expected in MODEL])
def test_against_the_model(text: str, inputs: tuple[TensorInfo, ...], expected: str) -> None:
    assert expected in messages(text, inputs=inputs)
    assert messages(GOOD, inputs=(TensorInfo("x", "float", ("n", 3, 8, 8)),)) == []
    assert messages(GOOD, inputs=(TensorInfo("x", "float", (1, 8, 8, 3)),), layout="NHWC") == []


CHIPS = [
    ("Ascend310B", changed(*YUV, *CROP, "load_start_pos_h: 3"), None),
    ("Ascend310", changed(*YUV, *CROP, "load_start_pos_h: 3"), "AI102 error load_start_pos_h is odd"),
    (None, changed(*YUV, *CROP, "load_start_pos_h: 3"), "AI102 warning load_start_pos_h is odd"),
    ("Ascend310B", "aipp_op { aipp_mode: dynamic max_src_image_size: 9 }", "AI103 error Ascend310B has no dynamic AIPP"),
    ("Ascend910B", changed(*PAD, "src_image_size_w: 1080"), "AI103 warning after padding the image is 1082 wide"),
    ("SD3403", changed("resize: true", "resize_output_w: 32", "resize_output_h: 32", "src_image_size_w: 64", "src_image_size_h: 64"), None),
    ("SD3403", changed("resize: true", "resize_output_w: 8", "resize_output_h: 32", "src_image_size_w: 64"), "AI102 error resize_output_w is 8"),
    ("SD3403", changed("resize: true", "resize_output_w: 1600", "resize_output_h: 32", "src_image_size_w: 64"), "AI102 error 64 pixels become 1600"),
    ("SD3403", changed(), "AI103 error a row has 24 bytes"),
    (None, changed("resize: true", "resize_output_w: 32", "resize_output_h: 32"), "AI102 warning resize is on"),
]  # fmt: skip


@pytest.mark.parametrize(("soc", "text", "expected"), CHIPS)
def test_chips_differ(soc: str | None, text: str, expected: str | None) -> None:
    found = [item for item in messages(text, soc) if "AI107" not in item]
    assert expected in found if expected else not [item for item in found if "odd" in item or "resize" in item]


def test_every_chip_with_public_tables_is_known() -> None:
    unknown = {soc_info(name).short for name in socs() if chip(soc_info(name).short) is None}
    assert unknown == {"Ascend031", "Ascend035", "Ascend910_55", "Ascend910_95"}, "no public source speaks of AIPP there"


@settings(max_examples=40, deadline=None)
@given(any_config(), st.sampled_from([None, "Ascend310P", "Ascend310B", "SD3403"]))
def test_no_block_crashes_the_checks(config: Any, short: str | None) -> None:
    for _, problem in check_config(config, None if short is None else chip(short), {0: (8, 8)}):
        assert str(problem.message) and problem.message.render("zh")


# What is said of the 43 real files. Each is argued in docs/en/aipp.md.
REAL = {
    "Wide_ResNet50_2_for_Pytorch": {"AI102 error src_image_size_w is not given, and crop is on", "AI106 warning var_reci_chn is not given for channel 1, 2"},
    "EfficientNet_for_Pytorch": {"AI106 info the means are those of ImageNet in the order B, G, R, and nothing swaps"},
    "YoloF_for_Pytorch": {"AI106 info the means are those of ImageNet in the order B, G, R, and nothing swaps"},
    "Pelee_for_Pytorch": {"AI106 info the means are those of ImageNet in the order B, G, R, and nothing swaps"},
    "resnet50_mmlab_for_pytorch_for_POC": {"AI105 warning load_start_pos_h, load_start_pos_w, crop_size_h, ... have no effect: crop is off"},
    "resnet50_mmlab_for_pytorch": {"AI105 warning load_start_pos_h, load_start_pos_w, crop_size_h, ... have no effect: crop is off"},
    "MobileNetV2_for_Pytorch": {"AI105 warning load_start_pos_h, load_start_pos_w, crop_size_h, ... have no effect: crop is off"},
}  # fmt: skip


def test_the_real_files(real_configs: list[dict[str, Any]]) -> None:
    assert len(real_configs) == 43
    said = {row["source"].split("/")[-2]: set(messages(row["text"], "Ascend310P")) for row in real_configs}
    assert {name: found for name, found in said.items() if found} == REAL
