"""Running a batch against its samples one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ...errors import EvaluationError, UsageError
from ...text import Text, say
from ..evaluate import Evaluator
from ..shapes import known_shape

Array = npt.NDArray[Any]
TOLERANCE = 1e-4
"""Allowed difference, of the largest value of an output."""
_SAMPLES, _SIZE = 3, 8


class Differs(Exception):  # noqa: N818 - turned into a UsageError with the place
    """The two models do not agree at an output, or the changed one cannot be run."""

    def __init__(self, place: str, reason: Text) -> None:
        self.place, self.reason = place, reason
        super().__init__(str(reason))


def prove_batch(
    original: ir.Model,
    result: ir.Model,
    chosen: Sequence[str],
    old: int | None,
    size: int | str,
    evaluator: Evaluator,
    feeds: Mapping[str, npt.ArrayLike],
    sizes: Mapping[str, int],
) -> list[int | None]:
    """Compare the changed model on one batch with the original on its samples.

    Returns:
        For each output the dimension that holds the batch; None where none was seen to.

    Raises:
        Differs: an output differs, has another shape than its samples put together, or the changed model cannot be run.
        EvaluationError: the original cannot be run.
    """
    count, step = size if isinstance(size, int) else _SAMPLES, old or 1
    # Whole batches of the original: where the last has more samples than needed, the others are real ones too, or mixing would not show.
    every = _batch(original, chosen, count, -(-count // step) * step, feeds, sizes)
    batch = {name: array[:count] if name in chosen else array for name, array in every.items()}
    with evaluator.session(original) as session:
        parts = [
            session.run({name: array[start : start + step] if name in chosen else array for name, array in every.items()})
            for start in range(0, count, step)
        ]
    try:
        found = evaluator.run(result, batch)
    except EvaluationError as error:
        raise Differs(", ".join(chosen), error.found) from None
    axes: list[int | None] = []
    for value in original.graph.outputs:
        name = value.name or ""
        for number, part in enumerate(parts):
            reason = _difference(found[name], part[name], count, step, number * step)
            if reason is not None:
                said = say(
                    "a batch gives something else than its samples ({reason})", "整批结果与逐个样本不一致（{reason}）", reason=reason
                )
                raise Differs(name, said)
        pairs = zip(np.shape(found[name]), np.shape(parts[0][name]), strict=True) if isinstance(found[name], np.ndarray) else ()
        seen = [axis for axis, (one, two) in enumerate(pairs) if one != two and one == count]
        axes.append(seen[0] if seen else None)
    return axes


def _batch(
    model: ir.Model, chosen: Sequence[str], count: int, whole: int, feeds: Mapping[str, npt.ArrayLike], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """Arrays for all inputs, those with a batch of ``whole`` samples. ``feeds`` must hold ``count`` of them; they are used again if short."""
    random = np.random.default_rng(0)
    batch: dict[str, Array] = {}
    for value in model.graph.inputs:
        name = value.name or ""
        if name in feeds:
            given = np.asarray(feeds[name])
            batch[name] = given
            if name in chosen and len(given) < count:
                raise UsageError(
                    say("feeds of `{name}` hold {found} samples", "`{name}` 的数据只有 {found} 个样本", name=name, found=len(given)),
                    say("expected {count}", "应为 {count} 个", count=count),
                    say("give more samples", "请提供更多样本"),
                )
            if name in chosen:
                batch[name] = given[np.arange(whole) % len(given)]
        elif not value.is_initializer():
            shape = [dim if isinstance(dim, int) else sizes.get(dim or "", _SIZE) for dim in known_shape(value) or ()]
            if name in chosen:
                shape[0] = whole
            batch[name] = _random(random, shape, np.dtype(value.dtype.numpy() if value.dtype is not None else np.float32))
    return batch


def _random(random: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "biu":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "OUS":
        return np.full(shape, "", object)
    return random.standard_normal(shape).astype(dtype)


def _difference(found: Any, expected: Any, count: int, step: int, start: int) -> Text | None:
    """What differs between the samples ``start`` to ``start + step`` of a batch and the same alone."""
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray) or found.ndim != expected.ndim:
        return say("another kind", "类型不同")
    axes = [axis for axis, (one, two) in enumerate(zip(found.shape, expected.shape, strict=True)) if one != two]
    if len(axes) > 1 or any(found.shape[axis] * step != expected.shape[axis] * count for axis in axes):
        shapes = f"{list(found.shape)} ({count}), {list(expected.shape)} ({step})"
        return say("shapes {shapes}", "形状 {shapes}", shapes=shapes)
    for axis in axes:  # the samples of this chunk; a dimension may hold several entries of each
        each = found.shape[axis] // count
        rows = min(step, count - start) * each
        found = found.take(range(start * each, start * each + rows), axis)
        expected = expected.take(range(rows), axis)
    if found.dtype.kind not in "fcV":
        return None if np.array_equal(found, expected) else say("other values", "数值不同")
    one, two = (item.astype(np.complex128 if item.dtype.kind == "c" else np.float64) for item in (found, expected))
    largest = float(np.abs(two[np.isfinite(two)]).max(initial=0.0))
    if np.allclose(one, two, rtol=0, atol=TOLERANCE * largest + 1e-12, equal_nan=True):
        return None
    with np.errstate(invalid="ignore"):
        apart = float(np.nanmax(np.abs(one - two)))
    return say(
        "difference {apart}, largest value {largest}", "差值 {apart}，最大值 {largest}", apart=f"{apart:.3g}", largest=f"{largest:.3g}"
    )
