"""Each kind of description gives the transform it stands for, and each block, emulated, gives the model what the transform gives."""

from __future__ import annotations

import contextlib
import functools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aipp_samples import IMAGENET_MEAN, IMAGENET_STD
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.aipp.config import AippConfig, AippOp, parse_config
from jumar.aipp.derive.block import IMAGES, Derived, derive_block, make_dynamic
from jumar.aipp.derive.read import from_description, read_transform
from jumar.aipp.derive.torchvision import from_torchvision
from jumar.aipp.emulate import emulate
from jumar.aipp.images import from_yuv, lay_out, to_yuv
from jumar.aipp.matrices import find_matrix
from jumar.aipp.schema import YUV, chip
from jumar.aipp.transform import Transform, apply, crop_of, make, middle
from jumar.aipp.validate import check_config
from jumar.errors import UsageError

IMAGENET = make("RGB", IMAGENET_MEAN, IMAGENET_STD, 1 / 255)


def fake(name: str, module: str = "torchvision.transforms.transforms", **values: Any) -> Any:
    """An object with the class name and the attributes of a torchvision transform, and nothing that could be called."""
    return type(name, (), {"__module__": module, "__init__": lambda self: self.__dict__.update(values)})()


def compose(*steps: Any) -> Any:
    return fake("Compose", transforms=list(steps))


NORMALISE = fake("Normalize", mean=list(IMAGENET_MEAN), std=list(IMAGENET_STD), inplace=False)
BILINEAR = SimpleNamespace(value="bilinear")


# torchvision


def test_a_compose_of_version_1() -> None:
    transform = from_torchvision(
        compose(fake("Resize", size=256, interpolation=BILINEAR, antialias=True, max_size=None), fake("CenterCrop", size=(224, 224)), fake("ToTensor"), NORMALISE)
    )  # fmt: skip
    assert (transform.order, transform.size, transform.source) == ("RGB", (224, 224), None)
    assert transform.subtract == pytest.approx([123.675, 116.28, 103.53]) and transform.factor == pytest.approx(
        [1 / (255 * std) for std in IMAGENET_STD]
    )
    assert [str(step) for step in transform.host] == [
        "resize the short side to 256 (bilinear, antialiased)",
        "crop 224 x 224 (height x width) from the middle",
    ]


def test_a_compose_of_version_2_with_a_crop_for_the_device() -> None:
    dtype = fake("ToDtype", dtype="torch.float32", scale=True)
    transform = from_torchvision(compose(fake("ToImage"), fake("Resize", size=[256, 256]), fake("CenterCrop", size=224), dtype, NORMALISE))
    assert (transform.size, transform.source, crop_of(transform)) == ((224, 224), (256, 256), ((16, 16), (224, 224)))
    assert len(transform.host) == 1
    op = derive_block(transform).op
    assert (op["crop"], op["load_start_pos_h"], op["crop_size_w"], op["src_image_size_w"]) == (True, 16, 224, 256)


class _Preset:
    """Stands for a preset of weights; calling it would be running a stranger's code."""

    def __init__(self, *, crop_size: int, resize_size: int = 256, mean: Any = IMAGENET_MEAN, std: Any = IMAGENET_STD) -> None:
        raise AssertionError("it was called")


def test_weights_are_read_and_not_called() -> None:
    _Preset.__name__ = "ImageClassification"
    weights = SimpleNamespace(transforms=functools.partial(_Preset, crop_size=224, resize_size=232))
    transform = from_torchvision(weights)
    assert (
        transform.size == (224, 224) and "232" in str(transform.host[0]) and transform.subtract == pytest.approx([123.675, 116.28, 103.53])
    )
    preset = fake("SemanticSegmentation", resize_size=[520], mean=[0.5], std=[0.5], interpolation=BILINEAR, antialias=True)
    assert from_torchvision(preset).subtract == (127.5, 127.5, 127.5)
    detection = fake("ObjectDetection")
    assert from_torchvision(detection).factor == (1 / 255,) * 3 and "normalise inside" in str(from_torchvision(detection).notes[0])


def test_sequences_gray_and_padding() -> None:
    sequential = fake(
        "Sequential", _modules={"0": fake("Grayscale", num_output_channels=1), "1": fake("ConvertImageDtype", dtype="torch.float32")}
    )
    transform = from_torchvision([sequential, fake("Normalize", mean=[0.5], std=[0.25])])
    assert (transform.order, transform.subtract) == ("GRAY", (127.5,))
    padded = from_torchvision(
        [fake("Resize", size=(8, 8)), fake("ToTensor"), fake("Pad", padding=(1, 2, 3, 4), fill=0.5, padding_mode="constant")]
    )
    assert (padded.size, padded.source, padded.padding, padded.padding_value) == ((14, 12), (8, 8), (2, 4, 1, 3), 0.5)
    block = derive_block(padded)
    assert (block.op["top_padding_size"], block.op["right_padding_size"], block.op["src_image_size_h"]) == (2, 3, 8)
    uneven = from_torchvision([fake("Resize", size=(8, 8)), fake("Pad", padding=2, fill=0), fake("ToTensor"), NORMALISE])
    assert uneven.padding == (0, 0, 0, 0) and "pad by 2, 2, 2, 2" in str(uneven.host[1]), "AIPP has one value for all channels"
    wide = from_torchvision([fake("Resize", size=(8, 8)), fake("Pad", padding=40), fake("ToTensor")])
    assert wide.size == (88, 88) and "pad by 40" in str(wide.host[1])


def test_what_is_done_after_cropping_moves_the_crop_to_the_host() -> None:
    transform = from_torchvision(
        [fake("Resize", size=(64, 64)), fake("CenterCrop", size=48), fake("Resize", size=(32, 32)), fake("ToTensor")]
    )
    assert (
        transform.size == (32, 32)
        and transform.source is None
        and [str(step)[:6] for step in transform.host] == ["resize", "crop 4", "resize"]
    )


REFUSED = [
    ([fake("RandomHorizontalFlip", p=0.5)], "belongs to training"),
    ([fake("Lambda", lambd=print)], "a function of one's own"),
    ([lambda image: image], "a function of one's own"),
    ([fake("Sharpen")], "what `Sharpen` does is not known"),
    ([fake("Pad", padding=2, padding_mode="reflect")], "repeats pixels"),
    ([fake("Grayscale", num_output_channels=3)], "three equal channels"),
    ([fake("ToTensor"), fake("Normalize", mean=[0.5, 0.5], std=[1, 1])], "2 channels are normalised"),
    ([fake("ToTensor"), fake("Normalize", mean=[0.5], std=[0.0])], "do not fit"),
    ([fake("Normalize", mean="x", std=[1])], "mean of Normalize is x"),
    ([fake("Resize", size=(0, 3))], "size of Resize"),
    ([fake("ToDtype", dtype={"image": "float"}, scale=True)], "by the type of its input"),
    ([NORMALISE, fake("Grayscale", num_output_channels=1)], "after the channels were normalised"),
    (_Preset, "is a class, not an object"),
    (functools.reduce(lambda inner, _: [inner], range(20), []), "nested too deeply"),
]


@pytest.mark.parametrize(("item", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_transforms_that_are_refused(item: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_torchvision(item)


def test_classes_of_other_modules_are_named() -> None:
    transform = from_torchvision([fake("ToTensor", module="mine.aug")])
    assert "`ToTensor` of mine.aug is taken for torchvision's" in str(transform.notes[0])
    assert "nothing scales the pixels" in str(from_torchvision([fake("Resize", size=8)]).notes[0])
    assert "0..255" in str(from_torchvision([NORMALISE]).notes[0])


# Files of other projects


DESCRIPTIONS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("ours", {"normalize": "torchvision", "order": "RGB", "scale": "x/255", "mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD)}, ("RGB", 123.675, 1 / 58.395, None, 0)),
    ("caffe", {"order": "BGR", "scale": "none", "mean": [104, 117, 123], "std": [1, 1, 1]}, ("BGR", 104, 1, None, 0)),
    ("opencv rule", {"order": "BGR", "normalize": "opencv", "scale": 1 / 255, "mean": 104, "size": 300}, ("BGR", 104, 1 / 255, (300, 300), 0)),
    ("timm", {"input_size": (3, 224, 224), "interpolation": "bicubic", "mean": IMAGENET_MEAN, "std": IMAGENET_STD, "crop_pct": 0.875, "crop_mode": "center"}, ("RGB", 123.675, 1 / 58.395, (224, 224), 2)),
    ("timm config.json", {"architecture": "x", "pretrained_cfg": {"input_size": [3, 96, 128], "mean": [0.5] * 3, "std": [0.5] * 3, "crop_pct": 1.0, "crop_mode": "squash"}}, ("RGB", 127.5, 1 / 127.5, (96, 128), 1)),
    ("ViT", {"do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "image_processor_type": "ViTImageProcessor", "resample": 2, "rescale_factor": 0.00392156862745098, "size": {"height": 224, "width": 224}}, ("RGB", 127.5, 1 / 127.5, (224, 224), 1)),
    ("CLIP", {"crop_size": {"height": 224, "width": 224}, "do_center_crop": True, "do_convert_rgb": True, "do_normalize": True, "do_resize": True, "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": {"shortest_edge": 224}}, ("RGB", 122.7709383, 1 / (255 * 0.26862954), (224, 224), 2)),
    ("ConvNeXt", {"crop_pct": 0.875, "do_normalize": True, "do_resize": True, "image_mean": list(IMAGENET_MEAN), "image_std": list(IMAGENET_STD), "resample": 3, "size": {"shortest_edge": 224}}, ("RGB", 123.675, 1 / 58.395, (224, 224), 2)),
    ("MobileViT", {"do_center_crop": True, "crop_size": 256, "do_flip_channel_order": True, "do_rescale": True, "do_resize": True, "size": {"shortest_edge": 288}}, ("BGR", 0, 1 / 255, (256, 256), 2)),
    ("blobFromImage", {"scalefactor": 1 / 127.5, "size": [300, 200], "mean": 127.5, "swapRB": True}, ("RGB", 127.5, 1 / 127.5, (200, 300), 1)),
    ("YOLO", {"imgsz": 640}, ("RGB", 0, 1 / 255, (640, 640), 1)),
    ("YOLO classify", {"imgsz": [224, 224], "task": "classify"}, ("RGB", 0, 1 / 255, (224, 224), 2)),
    ("PP-OCR det", {"transform_ops": [{"DecodeImage": {"img_mode": "BGR"}}, {"DetResizeForTest": None}, {"NormalizeImage": {"scale": "1./255.", "mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD), "order": "hwc"}}, {"ToCHWImage": None}, {"KeepKeys": {"keep_keys": ["image"]}}]}, ("BGR", 123.675, 1 / 58.395, None, 1)),
    ("PP-OCRv4 rec", {"PreProcess": {"transform_ops": [{"DecodeImage": {"img_mode": "BGR", "channel_first": False}}, {"MultiLabelEncode": {}}, {"RecResizeImg": {"image_shape": [3, 48, 320]}}, {"KeepKeys": {}}]}}, ("BGR", 127.5, 1 / 127.5, (48, 320), 1)),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in DESCRIPTIONS], ids=[row[0] for row in DESCRIPTIONS])
def test_descriptions(data: Any, expected: tuple[Any, ...], tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(data))
    transform = read_transform(path)
    order, subtract, factor, size, steps = expected
    assert (transform.order, transform.size, len(transform.host)) == (order, size, steps)
    assert transform.subtract[0] == pytest.approx(subtract) and transform.factor[0] == pytest.approx(factor)
    for step in transform.host:
        assert step.render("zh")
    derive_block(transform, "bgr")


def test_channels_that_are_exchanged_after_normalising() -> None:
    data = {
        "do_flip_channel_order": True,
        "do_normalize": True,
        "do_rescale": True,
        "image_mean": list(IMAGENET_MEAN),
        "image_std": list(IMAGENET_STD),
    }
    transform = from_description(data)
    assert transform.order == "BGR" and transform.subtract == pytest.approx([103.53, 116.28, 123.675])


BAD = [
    ({"order": "RGB", "means": [1]}, "`means` is no key"),
    ({"order": "GBR"}, "`GBR` is no order"),
    ({"mean": [1, 2]}, "do not normalise 3 channels"),
    ({"std": 0}, "do not normalise"),
    ({"scale": "x/0"}, "scale is `x/0`"),
    ({"mean": [0.485, 0.456, 0.406]}, "on the scale 0..1, and no scale is stated"),
    ({"std": 0.5}, "on the scale 0..1, and no scale is stated"),
    ({"scale": 0}, "do not normalise"),
    ({"normalize": "caffe"}, "normalize is `caffe`"),
    ({"normalize": "none", "mean": 3}, "normalize is none, and mean"),
    ({"size": [1, 2, 3]}, "size is"),
    ({"crop": [-1, 2]}, "crop is"),
    ({"padding": [1, 2]}, "padding is"),
    ({"host": "x"}, "host is no list"),
    ({"input_size": [2, 3, 4]}, "input_size is"),
    ({"input_size": [3, 8, 8], "crop_pct": 2}, "crop_pct is 2"),
    ({"do_magic": True}, "what `do_magic` does"),
    ([{"Blur": {}}], "what `Blur` does"),
    ([{"NormalizeImage": {"scale": "a/b"}}], "scale is `a/b`"),
    ([3], "`3` is no operation"),
    ("x", "the description is a str"),
    ({"mean": [float("nan")]}, "do not normalise"),
]


@pytest.mark.parametrize(("data", "message"), BAD, ids=[message for _, message in BAD])
def test_descriptions_that_are_refused(data: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        from_description(data)


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, "\xff"])
def test_files_that_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match="cannot be read"):
        read_transform(tmp_path / "p.json")
    with pytest.raises(UsageError, match="cannot be read"):
        read_transform(tmp_path / "absent.json")


@settings(max_examples=30, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.integers(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["order", "mean", "std", "scale", "size", "input_size", "imgsz", "do_resize", "do_normalize", "image_mean", "swapRB", "transform_ops", "PreProcess", "pretrained_cfg", "crop_pct", "NormalizeImage"]), inner, max_size=5), max_leaves=12))  # fmt: skip
def test_no_description_crashes(data: Any) -> None:
    with contextlib.suppress(UsageError):
        derive_block(from_description(data))


# Blocks


def delivered(block: Derived, pixels: Any, matrix: str = "601") -> tuple[Any, Any]:
    """What the emulated block and the transform in float64 make of the same pixels; for YUV of what the bytes decode to."""
    standard = find_matrix(matrix)
    made = emulate(block.op, lay_out(pixels, block.image, standard), network=pixels.shape[:2])[0].astype(np.float64)
    if block.op.format in YUV:
        pixels = from_yuv(np.rint(to_yuv(pixels, standard)), standard)
    return made[: block.transform.channels], apply(block.transform, pixels)


COLOURS = [name for name in IMAGES if name != "gray"]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(COLOURS), st.sampled_from(["RGB", "BGR"]), st.lists(st.floats(0, 1), min_size=3, max_size=3), st.lists(st.floats(0.1, 1), min_size=3, max_size=3),
    st.sampled_from(["601", "601-full", "709", "2020-full"]), st.sampled_from(["split", "min"]),
)  # fmt: skip
def test_a_block_gives_what_the_transform_gives(
    image: str, order: str, mean: list[float], std: list[float], matrix: str, spelling: Any
) -> None:
    """RGB within float16 of the numbers; YUV also within what 256ths cut off (2.5 levels). Colour is the same over blocks of two by two."""
    block = derive_block(make(order, tuple(mean), tuple(std), 1 / 255, size=(8, 8)), image, matrix=find_matrix(matrix), spelling=spelling)
    pixels = np.random.default_rng(3).integers(0, 256, (4, 4, 3), dtype=np.uint8).repeat(2, 0).repeat(2, 1)
    made, exact = delivered(block, pixels, matrix)
    levels = 2.5 if block.op.format in YUV else 0.0
    for channel in range(3):
        factor, top = block.transform.factor[channel], np.abs(exact[channel]).max()
        assert np.abs(made[channel] - exact[channel]).max() <= factor * (0.13 + levels) + 3 * 2.0**-11 * top + levels * factor * 0.01
    assert check_config(AippConfig((block.op,)), None, {0: (8, 8)}) == []


def test_gray_from_gray_and_from_colour() -> None:
    transform = make("GRAY", (0.5,), (0.5,), 1 / 255, size=(8, 8))
    pixels = np.random.default_rng(5).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    for image in ("gray", "rgb", "bgr"):
        made, exact = delivered(derive_block(transform, image), pixels)
        assert np.abs(made - exact).max() <= 2.5 / 127.5, image


def test_the_three_spellings_of_imagenet() -> None:
    """Whole parts in mean_chn, all in min_chn, and rounded means: the first two differ by the float16 of min_chn, the third by a fraction."""
    split, all_in_min = (derive_block(IMAGENET, spelling=spelling) for spelling in ("split", "min"))  # type: ignore[arg-type]
    assert [split.op[f"mean_chn_{index}"] for index in range(3)] == [123, 116, 103]
    assert [split.op[f"min_chn_{index}"] for index in range(3)] == [0.675, 0.28, 0.53]
    assert [all_in_min.op[f"min_chn_{index}"] for index in range(3)] == [123.675, 116.28, 103.53] and all_in_min.op["mean_chn_0"] == 0
    values = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)
    tensors = [emulate(block.op, values, network=(16, 16)).astype(np.float64) for block in (split, all_in_min)]
    apart = np.abs(tensors[0] - tensors[1]).max(axis=(0, 2, 3))
    factor = np.array(split.transform.factor)
    assert (apart <= factor * 2.0**-5 + 2.0**-9).all() and apart.max() > 0, (
        "half a step of float16 at 64..128, and the rounding of the result"
    )
    whole = derive_block(make("RGB", (124, 116, 104), tuple(255 * std for std in IMAGENET_STD)), spelling="mean")
    rounded = emulate(whole.op, values, network=(16, 16)).astype(np.float64)
    gap = np.abs(rounded - tensors[0]).max(axis=(0, 2, 3))
    assert gap == pytest.approx(factor * [0.325, 0.28, 0.47], abs=2.0**-9), "0.0056, 0.0049, 0.0082: a third to a half of a grey level"
    with pytest.raises(UsageError, match="no whole number"):
        derive_block(IMAGENET, spelling="mean")


def test_errors_of_a_block_are_those_of_all_values() -> None:
    """Stated in the documentation: 0.0016 at most for ImageNet on float16 chips."""
    assert max(derive_block(IMAGENET).errors) < 0.0017
    known = chip("Ascend310B")
    assert max(derive_block(IMAGENET, chip=known).errors) < max(derive_block(IMAGENET).errors), "var_reci in float32 is closer"


def test_crops() -> None:
    assert middle((257, 256), (224, 224)) == (16, 16) and middle((235, 235), (224, 224)) == (6, 6), "ties go to even, as round() does"
    square = make("RGB", (0.0,), (1.0,), size=(224, 224), source=(256, 256))
    assert derive_block(square, "nv12").op["load_start_pos_h"] == 16
    odd = make("RGB", (0.0,), (1.0,), size=(224, 224), source=(254, 254))
    assert derive_block(odd, "rgb").op["load_start_pos_h"] == 15
    left = derive_block(odd, "nv12")
    assert "crop" not in left.op and left.op["src_image_size_h"] == 224 and "even places only" in str(left.host[0])
    assert derive_block(odd, "nv12", chip=chip("Ascend310B")).op["load_start_pos_h"] == 15
    pixels = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    made, exact = delivered(derive_block(make("BGR", (0.0,), (1.0,), size=(8, 4), source=(12, 10))), pixels)
    assert np.array_equal(made, exact) and np.array_equal(exact[0], pixels[2:10, 3:7, 2])


NOT_POSSIBLE = [
    (make("RGB", (-0.5,), (0.5,), 1 / 255), "rgb", "leave the offset in the network"),
    (make("RGB", (3.0,), (1.0,), 1 / 255), "rgb", "leave the offset in the network"),
    (make("RGB", (0.0,), (1e-6,)), "rgb", "leave the factor in the network"),
    (IMAGENET, "gray", "no colour from gray"),
    (IMAGENET, "rgb565", "is no kind of image"),
    (make("GRAY", (0.0,), (1.0,)), "nv12", "Y plane as a gray image"),
    (make("RGB", (0.0,), (1.0,), size=(15, 16)), "nv12", "even sizes of YUV"),
    (make("RGB", (0.0,), (1.0,), size=(5000, 16)), "rgb", "at most 4096"),
    (make("RGB", (0.0,), (1.0,), size=(16, 16), source=(8, 8)), "rgb", "does not lie in 8 x 8"),
    (make("RGB", (0.0,), (1.0,), size=(99, 99), padding=(33, 0, 0, 0)), "rgb", "at most 32 pixels"),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "image", "message"), NOT_POSSIBLE, ids=[message for *_, message in NOT_POSSIBLE])
def test_what_aipp_cannot_do(transform: Transform, image: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        derive_block(transform, image)
    with pytest.raises(UsageError, match="Ascend310P does not take YUYV_U8"):
        derive_block(IMAGENET, "yuyv", chip=chip("Ascend310P"))


def test_dynamic_blocks() -> None:
    block = derive_block(make("RGB", (0.0,), (1.0,), size=(8, 8)), "nv12")
    assert make_dynamic(block, 4).given == {"aipp_mode": "dynamic", "related_input_rank": 0, "max_src_image_size": 384}
    assert make_dynamic(block, 1, (16, 16))["max_src_image_size"] == 384
    with pytest.raises(UsageError, match="size of the largest image"):
        make_dynamic(derive_block(IMAGENET), 1)


# The real files: derived again from what they say


def test_the_real_files_are_derived_again(real_configs: list[dict[str, Any]]) -> None:
    """From mean, std, size, crop and order of colours to the same block, up to where the mean is written."""
    same, other = 0, []
    for row in real_configs:
        op = parse_config(row["text"])[0].ops[0]
        again = _again(op)
        if again is not None and _meaning(again.op) == _meaning(op):
            same += 1
        else:
            other.append(row["source"].split("/")[-2])
    # A crop without a source size is no file that ATC takes; the other 42 come out.
    assert (same, other) == (42, ["Wide_ResNet50_2_for_Pytorch"])


def _again(op: AippOp) -> Derived | None:
    size, source = (int(op["src_image_size_h"]), int(op["src_image_size_w"])), None
    if op["crop"]:
        size, source = (int(op["crop_size_h"]), int(op["crop_size_w"])), size
    if source is not None and 0 in source:
        return None
    subtract = [op[f"mean_chn_{index}"] + op[f"min_chn_{index}"] for index in range(3)]
    factor = [op[f"var_reci_chn_{index}"] for index in range(3)]
    transform = make("RGB", tuple(subtract), tuple(1 / value for value in factor), size=size if all(size) else None, source=source)
    image = "rgb" if op.format == "RGB888_U8" else "nv21" if op["rbuv_swap_switch"] else "nv12"
    return derive_block(transform, image, matrix=("601", "full"))


def _meaning(op: AippOp) -> dict[str, Any]:
    """What counts of a block: no fields without effect, the mean as one number."""
    names = ["input_format", "src_image_size_w", "src_image_size_h", "csc_switch", "rbuv_swap_switch", "crop"]
    if op["crop"]:
        names += ["load_start_pos_w", "load_start_pos_h", "crop_size_w", "crop_size_h"]
    if op["csc_switch"]:
        names += [*(f"matrix_r{place // 3}c{place % 3}" for place in range(9)), *(f"input_bias_{index}" for index in range(3))]
    values = {name: op[name] for name in names}
    for index in range(3):
        values[f"mean {index}"] = round(op[f"mean_chn_{index}"] + op[f"min_chn_{index}"], 6)
        values[f"var {index}"] = float(f"{op[f'var_reci_chn_{index}']:.8g}")
    return values
