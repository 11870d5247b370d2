"""Read the shapes that occur, with their counts, from a .npz, .csv or .json file."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..errors import UsageError
from ..text import Text, say
from .gear_plan import Histogram
from .gear_words import Dims
from .gears import LARGEST

MOST_ROWS = 1_000_000
_MOST_BYTES = 256 << 20
Row = tuple[tuple[str, tuple[int, ...]], ...]


def read_histogram(path: str | Path, inputs: Mapping[str, Dims]) -> Histogram:
    """The shapes of a file; equal rows are added up.

    ``.npz``: for each input an integer array of one row per request (the shape), and optionally ``count`` of the same length. ``.json``: a
    list of ``{"shape": {"x": [1, 3, 224, 224]}, "count": 5}``; a model with one input may give the bare shape. ``.csv``: a heading with one
    column per varying dimension (its symbol in the model, or ``x[2]``) and optionally ``count``.

    Args:
        inputs: shapes as the model declares them; what a file leaves out is taken from there where it is fixed.

    Raises:
        UsageError: the file cannot be read or holds something else.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _MOST_BYTES:
            _bad(file, say("it is larger than 256 MB", "文件大于 256 MB"))
        raw = file.read_bytes()
    except (OSError, ValueError) as error:
        _bad(file, say("{error}", "{error}", error=getattr(error, "strerror", None) or str(error)))
    try:
        rows = {".npz": _npz, ".csv": _csv, ".json": _json}.get(file.suffix.lower(), _unknown)(raw, inputs)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        zipfile.BadZipFile,
        RecursionError,
        csv.Error,
        EOFError,
    ) as error:
        _bad(file, say("{error}", "{error}", error=str(error)[:200]))
    total: Counter[Row] = Counter()
    for shapes, count in rows:
        if not 1 <= count <= LARGEST or any(not 1 <= size <= LARGEST for _, shape in shapes for size in shape):
            _bad(file, say("a size or count below 1, or too large", "存在小于 1 或过大的大小或次数"))
        total[shapes] += count
    if not total:
        _bad(file, say("it holds no shapes", "其中没有形状"))
    return Histogram(tuple(dict(shapes) for shapes in total), tuple(total.values()))


def _unknown(_raw: bytes, _inputs: Mapping[str, Dims]) -> list[tuple[Row, int]]:
    raise ValueError("not .npz, .csv or .json")


def _bad(path: Path, reason: Text) -> NoReturn:
    raise UsageError(
        say("`{path}` is no histogram of shapes: {reason}", "`{path}` 不是形状直方图：{reason}", path=path, reason=reason),
        say("expected a .npz, .csv or .json file of shapes with counts", "应为含形状与次数的 .npz、.csv 或 .json 文件"),
        say("the page about compile shows the forms", "格式见 compile 文档"),
    )


def _row(shapes: Mapping[str, Sequence[Any]], inputs: Mapping[str, Dims]) -> Row:
    unknown = sorted(set(shapes) - set(inputs))
    if unknown:
        raise ValueError(f"the model has no input {unknown[0]!r}")
    found = []
    for name, dims in inputs.items():
        shape = shapes.get(name)
        if shape is None:
            if not all(isinstance(dim, int) for dim in dims):
                raise ValueError(f"no shape for input {name!r}")
            continue
        if any(isinstance(size, bool) or int(size) != size for size in shape):
            raise ValueError("sizes must be integers")
        found.append((name, tuple(int(size) for size in shape)))
    return tuple(found)


def _npz(raw: bytes, inputs: Mapping[str, Dims]) -> list[tuple[Row, int]]:
    with np.load(io.BytesIO(raw), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    counts = arrays.pop("count", None) if "count" not in inputs else None
    if not arrays or any(array.ndim != 2 or array.dtype.kind not in "iu" for array in arrays.values()):
        raise ValueError("expected integer arrays of one shape per row")
    lengths = {len(array) for array in arrays.values()} | ({len(counts)} if counts is not None and counts.ndim == 1 else set())
    if len(lengths) != 1 or max(lengths) > MOST_ROWS or (counts is not None and (counts.ndim != 1 or counts.dtype.kind not in "iu")):
        raise ValueError("the arrays have different lengths, or too many rows")
    return [
        (_row({name: array[index].tolist() for name, array in arrays.items()}, inputs), 1 if counts is None else int(counts[index]))
        for index in range(lengths.pop())
    ]


def _json(raw: bytes, inputs: Mapping[str, Dims]) -> list[tuple[Row, int]]:
    data = json.loads(raw.decode("utf-8"))
    if not isinstance(data, list) or len(data) > MOST_ROWS:
        raise ValueError("expected a list")
    rows = []
    for item in data:
        shape, count = (item["shape"], item.get("count", 1)) if isinstance(item, dict) else (item, 1)
        if isinstance(count, bool) or not isinstance(count, int):
            raise ValueError("a count must be an integer")
        if isinstance(shape, list) and len(inputs) == 1:
            shape = {next(iter(inputs)): shape}
        rows.append((_row(dict(shape), inputs), count))
    return rows


def _csv(raw: bytes, inputs: Mapping[str, Dims]) -> list[tuple[Row, int]]:
    places: dict[str, list[tuple[str, int]]] = {}
    for name, dims in inputs.items():
        for axis, dim in enumerate(dims):
            places.setdefault(f"{name}[{axis}]", []).append((name, axis))
            if isinstance(dim, str):
                places.setdefault(dim, []).append((name, axis))
    reader = csv.DictReader(io.StringIO(raw.decode("utf-8-sig")), skipinitialspace=True)
    headings = [heading.strip() for heading in reader.fieldnames or ()]
    unknown = [heading for heading in headings if heading not in places and heading != "count"]
    if unknown or not headings:
        raise ValueError(f"unknown column {unknown[0] if unknown else ''!r}; known are {', '.join([*places, 'count'])}")
    rows = []
    for number, line in enumerate(reader):
        if number >= MOST_ROWS:
            raise ValueError("too many rows")
        values = {key.strip(): int(value) for key, value in line.items()}
        sizes = {place: value for key, value in values.items() for place in places.get(key, ())}
        shapes = {name: [sizes.get((name, axis), dim) for axis, dim in enumerate(dims)] for name, dims in inputs.items()}
        if any(not isinstance(size, int) for shape in shapes.values() for size in shape):
            raise ValueError("a varying dimension has no column")
        rows.append((_row({name: [int(str(size)) for size in shape] for name, shape in shapes.items()}, inputs), values.get("count", 1)))
    return rows
