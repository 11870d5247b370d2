"""Samples to calibrate on, read one by one: memory does not grow with their number."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import onnx_ir as ir

from ..aipp.images import PICTURES, read_image
from ..aipp.transform import Transform, apply
from ..case import TensorInfo
from ..errors import JumarError, UsageError
from ..graph.load import model_info
from ..proof.feeds import check_feeds
from ..text import Text, say

Feeds = dict[str, Any]
_MOST = 1_000_000


class Samples:
    """A numbered set of inputs. Close it to remove what was unpacked.

    Attributes:
        origin: where they come from, for the record.
    """

    def __init__(
        self, model: ir.Model, count: int, read: Callable[[int], Mapping[str, Any]], name: Callable[[int], str], origin: str
    ) -> None:
        self.model, self._read, self._name = model, read, name
        self._count, self.origin = count, origin
        self._folders: list[tempfile.TemporaryDirectory[str]] = []
        self._owned: list[Samples] = []

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> Samples:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for folder in self._folders:
            folder.cleanup()
        self._folders.clear()
        for samples in self._owned:
            samples.close()

    def owning(self, samples: Samples) -> Samples:
        """Close another set when this is closed."""
        self._owned.append(samples)
        return self

    def keep(self, folder: tempfile.TemporaryDirectory[str]) -> Samples:
        """Remove a folder when this is closed."""
        self._folders.append(folder)
        return self

    def name(self, number: int) -> str:
        """How a message calls a sample."""
        return self._name(number)

    def feeds(self, number: int) -> Feeds:
        """The arrays of a sample, checked against the model.

        Raises:
            UsageError: they do not fit.
        """
        return check_feeds(self._read(number), self.model)


def joined(one: Samples, other: Samples) -> Samples:
    """Both sets, numbered through. Each is closed by its owner."""
    count = len(one)

    def read(number: int) -> Mapping[str, Any]:
        return one.feeds(number) if number < count else other.feeds(number - count)

    def name(number: int) -> str:
        return one.name(number) if number < count else other.name(number - count)

    return Samples(one.model, count + len(other), read, name, one.origin)


def _bad(path: object, reason: Text | str) -> UsageError:
    return UsageError(
        say("samples `{path}` cannot be read: {reason}", "无法读取样本 `{path}`：{reason}", path=str(path)[-200:], reason=reason),
        say(
            "expected an .npz with samples along the first axis, or a folder of .npy, .npz or images",
            "应为第一维是样本的 .npz，或含有 .npy、.npz、图像的文件夹",
        ),
        say("correct --calib", "请修正 --calib"),
    )


def open_samples(given: Any, model: ir.Model, transform: Transform | None = None) -> Samples:
    """Samples from a path, a generator of feeds, or anything that yields them.

    A generator is written to a temporary folder once, since samples are needed more than once.

    Args:
        given: an ``.npz`` (arrays keyed by input name) or ``.npy`` (of the only input), both with samples along the first axis; a folder of
            ``.npy``, ``.npz`` or images, a sample each; or an iterable of dictionaries (or arrays, for one input).
            :class:`Samples` are taken as they are.
        transform: makes the input of an image; images need one.

    Raises:
        UsageError: nothing there, or something that does not fit the model.
    """
    if isinstance(given, Samples):
        return given
    infos = model_info(model).inputs
    if isinstance(given, (str, Path)):
        path = Path(given)
        if path.is_dir():
            return _folder(path, model, infos, transform)
        if not path.is_file():
            raise _bad(path, say("no such file or folder", "文件或文件夹不存在"))
        return _stacked(path, model, infos)
    if not isinstance(given, Iterable):
        raise _bad(type(given).__name__, say("it yields no samples", "不能产生样本"))
    return _spooled(given, model, infos)


def _folder(path: Path, model: ir.Model, infos: tuple[TensorInfo, ...], transform: Transform | None) -> Samples:
    files = sorted(item for item in path.iterdir() if item.is_file() and not item.name.startswith("."))
    arrays = [item for item in files if item.suffix.lower() in (".npy", ".npz")]
    images = [item for item in files if item.suffix.lower() in (*PICTURES, ".ppm", ".pgm")]
    if arrays:
        return _of_files(arrays, model, infos, str(path))
    if not images:
        raise _bad(path, say("there is no .npy, .npz or image in it", "其中没有 .npy、.npz 或图像"))
    if transform is None:
        raise _bad(path, say("images need a preprocessing; give --preprocess P.json", "图像需要预处理；请给出 --preprocess P.json"))
    if len(infos) != 1:
        raise _bad(path, say("the model has {count} inputs, images are one", "模型有 {count} 个输入，而图像只是一个", count=len(infos)))
    info = infos[0]

    def read(number: int) -> Feeds:
        picture = read_image(images[number])[0]
        return {info.name: prepared(picture, transform, info)[None]}

    return Samples(model, len(images), read, lambda number: images[number].name, str(path))


def prepared(picture: Any, transform: Transform, info: TensorInfo) -> Any:
    """An image as the model's input: resized to what the transform or the model says, then transformed."""
    size = transform.source or transform.size
    if size is None and info.shape is not None and len(info.shape) == 4:
        height, width = info.shape[-2:]
        size = (height, width) if isinstance(height, int) and isinstance(width, int) else None
    if size is not None and tuple(picture.shape[:2]) != tuple(size):
        picture = resized(picture, size)
    return apply(transform, picture).astype(np.float32)


def resized(picture: Any, size: tuple[int, int]) -> Any:
    """Bilinear, with pixel centres halfway (what OpenCV does)."""
    height, width = picture.shape[:2]
    rows, columns = ((np.arange(wanted) + 0.5) * had / wanted - 0.5 for wanted, had in ((size[0], height), (size[1], width)))
    rows, columns = np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    below, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down, across = (rows - top)[:, None], (columns - left)[None, :]
    if picture.ndim == 3:
        down, across = down[..., None], across[..., None]
    wide = picture.astype(np.float64)
    upper = wide[top][:, left] * (1 - across) + wide[top][:, right] * across
    lower = wide[below][:, left] * (1 - across) + wide[below][:, right] * across
    return np.rint(upper * (1 - down) + lower * down).astype(picture.dtype)


def _of_files(files: list[Path], model: ir.Model, infos: tuple[TensorInfo, ...], origin: str) -> Samples:
    def read(number: int) -> Feeds:
        path = files[number]
        try:
            found = np.load(path, allow_pickle=False)
            if isinstance(found, np.ndarray):
                if len(infos) != 1:
                    raise ValueError(f"one array for {len(infos)} inputs")
                return {infos[0].name: _with_batch(found, infos[0])}
            with found:
                return {name: found[name] for name in found.files}
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
            raise _bad(path, _first_line(error)) from error

    return Samples(model, len(files), read, lambda number: files[number].name, origin)


def _with_batch(array: Any, info: TensorInfo) -> Any:
    """A sample without the axis of the batch gets it."""
    return array[None] if info.shape is not None and array.ndim == len(info.shape) - 1 else array


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


class _Rows:
    """An ``.npy`` file of which one row is read at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self.shape, self.dtype = _header(file)
            self._start = file.tell()
        self._row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        if path.stat().st_size < self._start + self._row * self.shape[0]:
            raise ValueError("it is truncated")

    def read(self, first: int, count: int) -> np.ndarray:
        with self._path.open("rb") as file:
            file.seek(self._start + first * self._row)
            return np.fromfile(file, self.dtype, count * self._row // self.dtype.itemsize).reshape(count, *self.shape[1:])


def _header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    if fortran and len(shape) > 1:
        raise ValueError("it is stored column by column; save it with numpy.ascontiguousarray")
    if not shape or not shape[0]:
        raise ValueError("it has no samples")
    return tuple(shape), dtype


def _stacked(path: Path, model: ir.Model, infos: tuple[TensorInfo, ...]) -> Samples:
    folder = tempfile.TemporaryDirectory(prefix="jumar-", ignore_cleanup_errors=True)
    try:
        rows: dict[str, _Rows] = {}
        if zipfile.is_zipfile(path):
            for name, member in _unpacked(path, Path(folder.name)).items():
                rows[name] = _Rows(member)
        else:
            if len(infos) != 1:
                raise ValueError(f"one array for {len(infos)} inputs")
            rows[infos[0].name] = _Rows(path)
        return _of_rows(path, model, infos, rows).keep(folder)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, SyntaxError) as error:
        folder.cleanup()
        raise _bad(path, _first_line(error)) from error
    except JumarError:
        folder.cleanup()
        raise


def _unpacked(path: Path, folder: Path) -> dict[str, Path]:
    """The members of an archive as files, copied in pieces."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        needed, free = sum(info.file_size for info in archive.infolist()), shutil.disk_usage(folder).free
        if needed > free:
            raise ValueError(f"it unpacks to {needed} bytes, and {folder} has {free} left")
        for number, info in enumerate(archive.infolist()):
            target = folder / f"{number}.npy"
            with archive.open(info) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            found[info.filename.removesuffix(".npy")] = target
    return found


def _of_rows(path: Path, model: ir.Model, infos: tuple[TensorInfo, ...], rows: Mapping[str, _Rows]) -> Samples:
    wanted = [info.name for info in infos]
    if set(rows) != set(wanted):
        raise ValueError(f"it has {', '.join(rows)}; the model reads {', '.join(wanted)}")
    batches, counts = {}, {}
    for info in infos:
        held, shape = rows[info.name].shape, info.shape
        stacked = shape is not None and len(held) == len(shape) + 1  # samples of whole batches
        batch = shape[0] if shape and not stacked and isinstance(shape[0], int) else 1
        batches[info.name] = 0 if stacked else int(batch)
        counts[info.name] = held[0] if stacked else held[0] // int(batch)
    if len(set(counts.values())) != 1 or not 0 < next(iter(counts.values())) <= _MOST:
        raise ValueError(f"different numbers of samples: {counts}")

    def read(number: int) -> Feeds:
        found = {}
        for name, batch in batches.items():
            data = rows[name].read(number * max(batch, 1), max(batch, 1))
            found[name] = data if batch else data[0]
        return found

    return Samples(model, next(iter(counts.values())), read, lambda number: f"{path.name}[{number}]", str(path))


def _spooled(given: Iterable[Any], model: ir.Model, infos: tuple[TensorInfo, ...]) -> Samples:
    folder = tempfile.TemporaryDirectory(prefix="jumar-", ignore_cleanup_errors=True)
    count = 0
    try:
        for item in _feeds_of(given, infos):
            arrays = check_feeds(item, model)
            np.savez(Path(folder.name) / f"{count}.npz", **{f"input{index}": arrays[info.name] for index, info in enumerate(infos)})
            count += 1
        if not count:
            raise _bad("generator", say("it yields no samples", "不能产生样本"))
    except BaseException:
        folder.cleanup()
        raise

    def read(number: int) -> Feeds:
        with np.load(Path(folder.name) / f"{number}.npz", allow_pickle=False) as archive:
            return {info.name: archive[f"input{index}"] for index, info in enumerate(infos)}

    return Samples(model, count, read, lambda number: f"sample {number}", "generator").keep(folder)


def _feeds_of(given: Iterable[Any], infos: tuple[TensorInfo, ...]) -> Iterator[Mapping[str, Any]]:
    for item in given:
        yield item if isinstance(item, Mapping) else {infos[0].name: _with_batch(np.asarray(item), infos[0])}
