"""torchvision's and timm's own objects: what is read off them is what they compute. Run by --all where they are installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from jumar.aipp.derive.block import derive_block
from jumar.aipp.derive.torchvision import from_torchvision
from jumar.aipp.emulate import emulate
from jumar.aipp.transform import apply, crop_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def pixels(height: int, width: int) -> Any:
    from PIL import Image

    return Image.fromarray(np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8))


def forms() -> dict[str, Any]:
    import torch
    from torchvision import transforms as v1
    from torchvision.transforms import v2

    return {
        "v1": v1.Compose([v1.Resize((40, 36)), v1.CenterCrop((33, 30)), v1.ToTensor(), v1.Normalize(MEAN, STD)]),
        "v2": v2.Compose(
            [v2.Resize((40, 36)), v2.CenterCrop(30), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        ),
        "gray": v1.Compose([v1.Resize((20, 20)), v1.Grayscale(), v1.ToTensor(), v1.Normalize([0.5], [0.25])]),
        "padded": v1.Compose([v1.Resize((20, 24)), v1.ToTensor(), v1.Normalize(MEAN, STD), v1.Pad((1, 2, 3, 4), fill=0.5)]),
    }


@pytest.mark.parametrize("name", ["v1", "v2", "gray", "padded"])
def test_the_derived_block_gives_what_the_transform_computes(name: str) -> None:
    """Within 0.002 (float16) for colours; gray by 256ths is up to two levels off Pillow's."""
    original = forms()[name]
    derived = from_torchvision(original)
    image = pixels(50, 60)
    wanted = original(image).numpy().astype(np.float64)
    resized = np.asarray(original.transforms[0](image))  # the host's part
    exact = apply(derived, resized)
    assert exact.shape == wanted.shape
    levels = 2.0 * max(derived.factor) if name == "gray" else 0.0
    assert np.abs(exact - wanted).max() < 1e-5 + levels / 2
    made = emulate(derive_block(derived).op, resized)[0, : derived.channels].astype(np.float64)
    assert np.abs(made - wanted).max() < 0.0021 + levels


def test_weights_are_read_as_they_are() -> None:
    from torchvision import models

    for weights in (
        models.ResNet50_Weights.IMAGENET1K_V2,
        models.ViT_B_16_Weights.DEFAULT,
        models.segmentation.DeepLabV3_ResNet50_Weights.DEFAULT,
    ):
        preset = weights.transforms()
        for item in (weights, preset):
            derived = from_torchvision(item)
            assert derived.subtract == pytest.approx([255 * value for value in preset.mean])
            assert derived.factor == pytest.approx([1 / (255 * value) for value in preset.std])
            assert str(preset.resize_size[0]) in str(derived.host[0])
    assert from_torchvision(models.detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT).factor == (1 / 255,) * 3


@pytest.mark.parametrize("size", [(40, 30), (41, 37), (33, 30), (256, 235)])
def test_the_middle_is_torchvisions(size: tuple[int, int]) -> None:
    from torchvision import transforms

    image = pixels(*size)
    derived = from_torchvision(transforms.Compose([transforms.Resize(size), transforms.CenterCrop(30), transforms.ToTensor()]))
    place = crop_of(derived)
    assert place is not None
    (top, left), _ = place
    assert np.array_equal(np.asarray(transforms.CenterCrop(30)(image)), np.asarray(image)[top : top + 30, left : left + 30])


def test_timm() -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    from jumar.aipp.derive.read import from_description

    for mode in ("center", "squash"):
        config = {"input_size": (3, 96, 96), "mean": MEAN, "std": STD, "crop_pct": 0.875, "interpolation": "bicubic", "crop_mode": mode}
        described, read = from_description(config), from_torchvision(timm.data.create_transform(**config))
        assert described.subtract == pytest.approx(read.subtract) and described.size == read.size and crop_of(described) == crop_of(read)
