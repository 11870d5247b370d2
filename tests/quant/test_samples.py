"""Samples from archives, folders, images and generators, read one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar.aipp.transform import make
from jumar.errors import UsageError
from jumar.graph import tensor_info
from jumar.quant.samples import open_samples, prepared, resized

ONE = '<ir_version: 8, opset_import: ["" : 13]> agraph (float[N,3,4,6] x) => (float[N,3,4,6] y) { y = Relu(x) }'
TWO = '<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x, int64[2] k) => (float[2,3] y) { y = Relu(x) }'


def model(text: str = ONE) -> ir.Model:
    return ir.from_onnx_text(text)


@pytest.mark.parametrize("name", ["plain.npz", "packed.npz", "lone.npy"])
def test_rows_of_a_file(name: str, tmp_path: Path, random: np.random.Generator) -> None:
    x = random.standard_normal((7, 3, 4, 6)).astype(np.float32)
    path = tmp_path / name
    if name == "lone.npy":
        np.save(path, x)
    else:
        (np.savez if name == "plain.npz" else np.savez_compressed)(path, x=x)
    with open_samples(path, model()) as samples:
        assert len(samples) == 7
        assert all(np.array_equal(samples.feeds(number)["x"], x[number : number + 1]) for number in (6, 0, 3))
        assert not np.array_equal(samples.feeds(1)["x"], x[:1])
        assert samples.name(3) == f"{name}[3]"


def test_batches_and_several_inputs(tmp_path: Path) -> None:
    x, k = np.arange(24, dtype=np.float32).reshape(8, 3), np.arange(8)
    np.savez(tmp_path / "a.npz", x=x, k=k)
    with open_samples(tmp_path / "a.npz", model(TWO)) as samples:
        assert len(samples) == 4
        assert samples.feeds(2)["k"].tolist() == [4, 5] and np.array_equal(samples.feeds(2)["x"], x[4:6])
    np.savez(tmp_path / "b.npz", x=x.reshape(4, 2, 3), k=k.reshape(4, 2))
    with open_samples(tmp_path / "b.npz", model(TWO)) as samples:
        assert len(samples) == 4 and samples.feeds(3)["k"].tolist() == [6, 7]


def test_a_folder_of_arrays(tmp_path: Path, random: np.random.Generator) -> None:
    arrays = [random.standard_normal((3, 4, 6)).astype(np.float32) for _ in range(3)]
    np.save(tmp_path / "1.npy", arrays[0])
    np.save(tmp_path / "2.npy", arrays[1][None])
    np.savez(tmp_path / "3.npz", x=arrays[2][None])
    with open_samples(tmp_path, model()) as samples:
        assert [samples.name(number) for number in range(3)] == ["1.npy", "2.npy", "3.npz"]
        assert all(np.array_equal(samples.feeds(number)["x"][0], arrays[number]) for number in range(3))


def ppm(path: Path, pixels: np.ndarray) -> None:
    path.write_bytes(b"P6 %d %d 255\n" % pixels.shape[1::-1] + pixels.tobytes())


def test_a_folder_of_images(tmp_path: Path, random: np.random.Generator) -> None:
    pixels = random.integers(0, 256, (4, 6, 3)).astype(np.uint8)
    ppm(tmp_path / "a.ppm", pixels)
    transform = make("BGR", (0.5,), (0.25,), 1 / 255)
    with open_samples(tmp_path, model(), transform) as samples:
        right = ((pixels[..., ::-1] / 255 - 0.5) / 0.25).transpose(2, 0, 1)[None]
        assert samples.feeds(0)["x"] == pytest.approx(right, abs=1e-6)
    with pytest.raises(UsageError, match="images need a preprocessing"):
        open_samples(tmp_path, model())


def test_images_of_another_size_are_resized(random: np.random.Generator) -> None:
    fixed = tensor_info(ir.from_onnx_text(ONE.replace("N,3,4,6", "1,3,4,6")).graph.inputs[0])
    pixels = random.integers(0, 256, (9, 13, 3)).astype(np.uint8)
    assert prepared(pixels, make("RGB", (0.0,), (1.0,)), fixed).shape == (3, 4, 6)
    ramp = np.repeat(np.arange(0, 160, 10, dtype=np.uint8)[None, :, None], 4, axis=0)
    assert resized(ramp, (4, 8))[0, :, 0].tolist() == [5, 25, 45, 65, 85, 105, 125, 145]
    assert np.array_equal(resized(pixels, (9, 13)), pixels)


def test_a_generator_is_read_once(random: np.random.Generator) -> None:
    arrays = [random.standard_normal((1, 3, 4, 6)).astype(np.float32) for _ in range(4)]

    def stream() -> Iterator[Any]:
        yield {"x": arrays[0]}
        yield from arrays[1:]

    with open_samples(stream(), model()) as samples:
        assert len(samples) == 4
        assert all(np.array_equal(samples.feeds(number)["x"], arrays[number]) for number in (3, 3, 0))


BAD: dict[str, tuple[Any, str]] = {
    "missing": ("no.npz", "no such file or folder"),
    "empty folder": (".", "no .npy, .npz or image"),
    "nothing": ([], "it yields no samples"),
    "number": (5, "it yields no samples"),
    "text": (b"hello", "cannot be read"),
    "pickled": ({"x": np.array([{"a": 1}], dtype=object)}, "Object arrays"),
    "names": ({"z": np.zeros((2, 3, 4, 6), np.float32)}, "it has z; the model reads x"),
    "none": ({"x": np.zeros((0, 3, 4, 6), np.float32)}, "it has no samples"),
    "by column": ({"x": np.asfortranarray(np.zeros((2, 3, 4, 6), np.float32))}, "column by column"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_said(name: str, tmp_path: Path) -> None:
    given, message = BAD[name]
    if isinstance(given, str):
        given = tmp_path / given
    elif isinstance(given, bytes):
        (tmp_path / "a.npz").write_bytes(given)
        given = tmp_path / "a.npz"
    elif isinstance(given, dict):
        np.savez(tmp_path / "a.npz", **given)
        given = tmp_path / "a.npz"
    with pytest.raises(UsageError, match=message):
        open_samples(given, model())


def test_a_sample_that_does_not_fit_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3, 5, 6), np.float32))
    with open_samples(tmp_path / "a.npz", model()) as samples, pytest.raises(UsageError, match="feed `x`"):
        samples.feeds(0)


def test_a_truncated_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 3, 4, 6), np.float32))
    raw = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(raw[:-100])
    with pytest.raises(UsageError, match="truncated"):
        open_samples(tmp_path / "a.npy", model())
