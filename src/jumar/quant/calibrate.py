"""Run the samples through the float model and remember histograms of what the layers read."""

from __future__ import annotations

import hashlib
import io
import json
import math
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from ..child.histogram import channel_sums, counted
from ..graph import Evaluator, capture_model, extract_model, static_shape, write_atomic
from .layers import Layer
from .observe import Histogram, from_arrays, to_arrays
from .samples import Samples

GROUP_BYTES = 128 << 20
"""Tensors held at once by the child for their histograms; what is more takes another pass over the samples."""
_SAVE_SECONDS = 15.0
_NOISE = 0.1
"""Neighbouring elements of a picture or a sound are alike; in noise they have a correlation of about zero, of at most this."""
_LONG = 16
_ROWS = 256


@dataclass
class Calibration:
    """What is known of the tensors.

    Attributes:
        histograms: by name of the tensor.
        alike: sum and number of correlations between neighbouring elements of the samples, where they have neighbours.
        done: (pass, number of samples done in it).
    """

    histograms: dict[str, Histogram] = field(default_factory=dict)
    alike: tuple[float, int] = (0.0, 0)
    done: tuple[int, int] = (0, 0)

    @property
    def is_noise(self) -> bool:
        return self.alike[1] > 0 and abs(self.alike[0] / self.alike[1]) < _NOISE

    @property
    def outliers(self) -> dict[int, list[str]]:
        """Samples that alone set the range of tensors, with those tensors."""
        found: dict[int, list[str]] = {}
        for name, item in self.histograms.items():
            if item.outlier is not None:
                found.setdefault(item.outlier, []).append(name)
        return found

    def to_bytes(self, key: str) -> bytes:
        buffer = io.BytesIO()
        told = json.dumps({"key": key, "alike": self.alike, "done": self.done})
        np.savez_compressed(buffer, told=np.array(told), **to_arrays(self.histograms))  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
    def from_file(cls, path: Path, key: str) -> Calibration | None:
        """What a run before left, if it is of the same model and samples; None else."""
        if not path.is_file() or not zipfile.is_zipfile(path):
            return None
        try:
            with np.load(path, allow_pickle=False) as archive:
                told = json.loads(str(archive["told"]))
                if told["key"] != key:
                    return None
                arrays = {name: archive[name] for name in archive.files if name != "told"}
            first, second = told["alike"]
            begun, count = told["done"]
            return cls(from_arrays(arrays), (float(first), int(second)), (int(begun), int(count)))
        except Exception:  # a file that is broken in any way is no start, and the work is done anew
            return None


def calibration_key(model_digest: str, layers: Sequence[Layer], samples: Samples, numbers: Sequence[int]) -> str:
    """Changes when the model, the tensors or the samples change. (To hash a sample takes a small part of the time to run it.)"""
    state = hashlib.sha256(model_digest.encode())
    for layer in layers:
        state.update(f"{layer.name}|{layer.data.name}|{layer.input_axis}\n".encode())
    state.update(np.asarray(numbers, np.int64).tobytes())
    for number in numbers:
        for name, array in samples.feeds(number).items():
            state.update(f"{name}{array.shape}{array.dtype}".encode())
            state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def calibrate(
    model: ir.Model,
    layers: Sequence[Layer],
    samples: Samples,
    numbers: Sequence[int],
    evaluator: Evaluator,
    *,
    key: str = "",
    state: Path | None = None,
    group_bytes: int = GROUP_BYTES,
    progress: Callable[[float], None] = lambda _fraction: None,
) -> Calibration:
    """Histograms of what the layers read, over the numbered samples.

    Args:
        state: where to keep what is known, so that a killed run goes on there; ``key`` says whether it is of this model and these samples.

    Raises:
        EvaluationError: the model does not run on a sample.
        UsageError: a sample does not fit the model.
    """
    axes: dict[str, int | None] = {layer.data.name or "": layer.input_axis for layer in layers}
    given = {value.name for value in model.graph.inputs}
    found = (Calibration.from_file(state, key) if state is not None else None) or Calibration({name: Histogram() for name in axes})
    inner = [name for name in axes if name not in given]
    groups = _groups(model, inner, group_bytes) or [[]]
    saved = time.monotonic()
    for index, group in enumerate(groups):
        if index < found.done[0]:
            continue
        start = found.done[1] if index == found.done[0] else 0
        if start >= len(numbers):
            continue
        run = _Pass(model, group, evaluator)
        with run.session as session:
            for place in range(start, len(numbers)):
                feeds = samples.feeds(numbers[place])
                if index == 0:
                    _see_inputs(found, axes, feeds, numbers[place])
                told = {name: value for name, value in feeds.items() if name in run.inputs}
                for name, (facts, counts, sums) in session.observe(told, {name: axes[name] for name in group}).items() if group else ():
                    found.histograms[name].add(numbers[place], facts, counts, sums)
                found.done = (index, place + 1)
                progress((index * len(numbers) + place + 1) / (len(groups) * len(numbers)))
                if state is not None and time.monotonic() - saved > _SAVE_SECONDS:
                    write_atomic(state, found.to_bytes(key))
                    saved = time.monotonic()
    if state is not None:
        write_atomic(state, found.to_bytes(key))
    return found


class _Pass:
    """The part of the model that makes a group of tensors, loaded."""

    def __init__(self, model: ir.Model, group: Sequence[str], evaluator: Evaluator) -> None:
        inputs = [value.name or "" for value in model.graph.inputs]
        part = extract_model(model, inputs, list(group)) if group else capture_model(model, ())
        self.inputs = frozenset(value.name for value in part.graph.inputs)
        self.session = evaluator.session(part)


def _groups(model: ir.Model, names: Sequence[str], limit: int) -> list[list[str]]:
    """Tensors in the order of execution, split where they would take more than the limit together."""
    wanted = set(names)
    groups: list[list[str]] = []
    held = 0
    for node in model.graph:
        for value in node.outputs:
            if value.name not in wanted:
                continue
            shape = static_shape(value)
            size = limit // 8 if shape is None else math.prod(shape) * 4
            if not groups or (held + size > limit and groups[-1]):
                groups.append([])
                held = 0
            groups[-1].append(value.name or "")
            held += size
    return groups


def _see_inputs(found: Calibration, axes: Mapping[str, int | None], feeds: Mapping[str, Any], number: int) -> None:
    for name, array in feeds.items():
        if array.dtype.kind != "f":
            continue
        if array.ndim >= 3 and min(array.shape[-2:]) >= _LONG:
            total, count = found.alike
            found.alike = (total + _likeness(array), count + 1)
        if name in axes:
            counts, facts = counted(array)
            axis = axes[name]
            sums = channel_sums(array, axis) if axis is not None and array.ndim > axis else np.zeros(0)
            found.histograms[name].add(number, {**facts, "size": array.size}, counts, sums)


def _likeness(array: np.ndarray) -> float:
    """Correlation of neighbours along the last axis, in some hundred rows."""
    rows = array.reshape(-1, array.shape[-1])
    rows = rows[:: max(len(rows) // _ROWS, 1)].astype(np.float64)
    one, other = rows[:, :-1].ravel(), rows[:, 1:].ravel()
    one, other = one - one.mean(), other - other.mean()
    size = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / size if size else 1.0
