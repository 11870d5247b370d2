"""Inputs to compare on besides the given ones: other values of the same kind, and other sizes of open dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .program import Program

Case = tuple[str, dict[str, Any]]
GIVEN = "given"


def make_cases(program: Program, ranges: Mapping[str, tuple[int, int]], seed: int = 0) -> list[Case]:
    """The given inputs and others, each with a word for what is different in it.

    ``random``: drawn between the least and the largest given value. ``mirrored``: the given values seen from the other end, so that signs and
    orders turn round. ``other``: further away. ``counted``: integers of a single value (a count, an index) one larger. ``SIZES``: another
    size of open dimensions. A stated range of an integer input is kept to; the module itself refuses what it cannot take.
    """
    random = np.random.default_rng(seed)
    given = program.given
    cases: list[Case] = [(GIVEN, dict(given))]
    for word, change in (("random", _drawn), ("mirrored", _mirrored), ("other", _moved)):
        cases.append((word, {name: _within(change(array, random), array, ranges.get(name)) for name, array in given.items()}))
    single = {name: array + 1 for name, array in given.items() if array.dtype.kind in "iu" and array.size and array.min() == array.max()}
    if single:
        raised = {name: _within(array.astype(given[name].dtype), given[name], ranges.get(name)) for name, array in single.items()}
        cases.append(("counted", {**given, **raised}))
    for shapes in program.dynamic.shapes({name: array.shape for name, array in given.items()}):
        word = ", ".join(f"{name} {list(shapes[name])}" for name in program.dynamic.axes)
        feeds = {name: _within(_resized(array, shapes[name], random), array, ranges.get(name)) for name, array in given.items()}
        cases.append((word, feeds))
    return cases


def _ends(array: Any) -> tuple[float, float]:
    finite = array[np.isfinite(array.astype(np.float64))] if array.dtype.kind in "fV" else array
    return (0.0, 1.0) if finite.size == 0 else (float(finite.min()), float(finite.max()))


def _drawn(array: Any, random: np.random.Generator) -> Any:
    return _resized(array, array.shape, random)


def _resized(array: Any, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    if array.dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    low, high = _ends(array)
    if array.dtype.kind in "iu":
        return random.integers(int(low), int(high), shape, endpoint=True).astype(array.dtype)
    if array.dtype.kind == "c":
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(array.dtype)
    if low == high:  # a single value says nothing of the range
        return np.asarray(low + random.standard_normal(shape)).astype(array.dtype)
    return np.asarray(random.uniform(low, high, shape)).astype(array.dtype)


def _mirrored(array: Any, _random: np.random.Generator) -> Any:
    if array.dtype.kind == "b":
        return ~array
    if array.dtype.kind == "c":
        return -array
    low, high = _ends(array)
    if array.dtype.kind in "iu":
        return (int(low) + int(high) - array.astype(np.int64)).astype(array.dtype)
    if low == high or low < 0 < high:
        return -array
    return (low + high - array.astype(np.float64)).astype(array.dtype)


def _moved(array: Any, random: np.random.Generator) -> Any:
    if array.dtype.kind == "b":
        return random.integers(0, 4, array.shape) == 0
    if array.dtype.kind == "c":
        return 2 * array
    low, high = _ends(array)
    if array.dtype.kind in "iu":
        return random.permutation(array.reshape(-1)).reshape(array.shape)
    factor = -3.0 if low < 0 or low == high else 0.5
    return np.asarray(factor * random.permutation(array.astype(np.float64).reshape(-1)).reshape(array.shape)).astype(array.dtype)


def _within(array: Any, given: Any, limits: tuple[int, int] | None) -> Any:
    if limits is None or given.dtype.kind not in "iu":
        return array
    return np.clip(array, *limits).astype(given.dtype)
