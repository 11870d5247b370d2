"""Images on their way to the device: laid out as cameras give them, and read from files without believing what these say."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.aipp.derive.block import IMAGES
from jumar.aipp.frames import frame_bytes
from jumar.aipp.images import from_yuv, lay_out, read_image, to_yuv
from jumar.aipp.matrices import Range, Standard
from jumar.errors import ToolError, UsageError

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
STANDARDS: tuple[tuple[Standard, Range], ...] = (("601", "narrow"), ("601", "full"), ("709", "narrow"), ("2020", "full"))


@pytest.mark.parametrize("image", IMAGES)
def test_sizes_are_those_of_the_format(image: str) -> None:
    assert lay_out(PIXELS, image).size == frame_bytes(IMAGES[image].format, 4, 6)


def test_orders_in_memory() -> None:
    first = PIXELS[0, 0].tolist()
    assert lay_out(PIXELS, "rgb")[:3].tolist() == first and lay_out(PIXELS, "bgr")[:3].tolist() == first[::-1]
    assert lay_out(PIXELS, "xrgb")[:4].tolist() == [255, *first] and lay_out(PIXELS, "bgrx")[:4].tolist() == [*first[::-1], 255]
    nv12, nv21 = lay_out(PIXELS, "nv12"), lay_out(PIXELS, "nv21")
    assert np.array_equal(nv12[:24], nv21[:24]) and np.array_equal(nv12[24:].reshape(-1, 2), nv21[24:].reshape(-1, 2)[:, ::-1])
    yuyv = lay_out(PIXELS, "yuyv")
    assert np.array_equal(yuyv[::2], nv12[:24])


@pytest.mark.parametrize("matrix", STANDARDS)
def test_yuv_and_back(matrix: tuple[Standard, Range]) -> None:
    """Exact to 1e-9 in floats; white, black and gray have the values that the standards give them."""
    assert np.abs(from_yuv(to_yuv(PIXELS, matrix), matrix) - PIXELS).max() < 1e-9
    low, high = (16, 235) if matrix[1] == "narrow" else (0, 255)
    assert np.allclose(to_yuv(np.array([[0, 0, 0], [255, 255, 255]], np.uint8), matrix), [[low, 128, 128], [high, 128, 128]])


@pytest.mark.parametrize(
    ("shape", "image"), [((3, 6, 3), "nv12"), ((4, 5, 3), "yuyv"), ((4, 6), "rgb"), ((4, 6, 4), "bgr"), ((4, 6, 3), "cmyk")]
)
def test_what_cannot_be_laid_out(shape: tuple[int, ...], image: str) -> None:
    with pytest.raises(UsageError, match="do not become"):
        lay_out(np.zeros(shape, np.uint8), image)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([".npy", ".npz", ".ppm", ".pgm", ".png", ".raw"]),
    st.binary(max_size=64) | st.binary(max_size=30).map(lambda data: b"P6 2 1 255 " + data),
)
def test_no_file_crashes_the_reader(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"image{suffix}"
    path.write_bytes(data)
    with contextlib.suppress(UsageError, ToolError):
        pixels, picture = read_image(path)
        assert pixels.dtype == np.uint8 and (not picture or pixels.ndim in (2, 3))


def test_archives_and_pickles(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, a=PIXELS, b=PIXELS)
    (tmp_path / "two.npz").write_bytes(buffer.getvalue())
    with pytest.raises(UsageError, match="2 arrays"):
        read_image(tmp_path / "two.npz")
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError, match="cannot be read"):
        read_image(tmp_path / "object.npy")
    np.savez(tmp_path / "one.npz", a=PIXELS)
    assert np.array_equal(read_image(tmp_path / "one.npz")[0], PIXELS)
    with pytest.raises(UsageError, match="No such file"):
        read_image(tmp_path / "absent.png")
