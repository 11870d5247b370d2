#!/usr/bin/env python3
"""Real photographs through a classifier twice: with torchvision's preprocessing, and with AIPP emulated behind the host's resizing.

usage: python benchmarks/aipp_photos.py MODEL.onnx [MODEL.onnx ...]      (needs torchvision, scikit-image and Pillow)

The photographs are those that scikit-image ships. For each model: how many of the most likely classes agree, and the largest difference of a
logit, also relative to the spread of the logits of that photograph. RGB888 is given RGB pixels, YUV420SP what a JPEG decoder would give
(BT.601, full range), so that its numbers include the loss of colour resolution.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import skimage
from PIL import Image
from torchvision import transforms

from jumar.aipp.derive.block import derive_block
from jumar.aipp.derive.torchvision import from_torchvision
from jumar.aipp.emulate import emulate
from jumar.aipp.images import lay_out

SIZE = 224
PHOTOGRAPHS = ("astronaut.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg", "ihc.png", "motorcycle_left.png", "motorcycle_right.png", "retina.jpg", "rocket.jpg", "color.png")  # fmt: skip
TRANSFORM = transforms.Compose(
    [
        transforms.Resize(256),
        transforms.CenterCrop(SIZE),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
)


def photographs() -> list[tuple[str, Image.Image]]:
    folder = Path(skimage.__file__).parent / "data"
    whole = [(name, Image.open(folder / name).convert("RGB")) for name in PHOTOGRAPHS if (folder / name).exists()]
    turned = [(f"{name} turned by {angle}", image.rotate(angle, expand=True)) for name, image in whole for angle in (90, 180)]
    return [*whole, *turned]


def main(paths: list[str]) -> None:
    described = from_torchvision(TRANSFORM)
    host = transforms.Compose(TRANSFORM.transforms[:2])
    kinds: dict[str, Any] = {"rgb": ("601", "narrow"), "nv12": ("601", "full")}
    blocks = {kind: derive_block(described, kind, matrix=matrix).op for kind, matrix in kinds.items()}
    photos = photographs()
    for path in paths:
        session = onnxruntime.InferenceSession(path)
        name = session.get_inputs()[0].name
        for kind, op in blocks.items():
            agree, worst, relative, apart = 0, 0.0, 0.0, 0.0
            for _, image in photos:
                tensor = TRANSFORM(image).numpy()[None]
                pixels = np.asarray(host(image))
                device = emulate(op, lay_out(pixels, kind, kinds[kind]), network=(SIZE, SIZE)).astype(np.float32)
                apart = max(apart, float(np.abs(device - tensor).max()))
                one, two = (session.run(None, {name: item})[0].reshape(-1) for item in (tensor, device))
                agree += int(one.argmax() == two.argmax())
                difference = float(np.abs(one - two).max())
                worst, relative = max(worst, difference), max(relative, difference / float(one.max() - one.min()))
            print(
                f"{Path(path).stem:32} {kind:5} top-1 {agree}/{len(photos)}, input {apart:.2g}, logit {worst:.2g} ({relative:.2g} of the spread)"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
