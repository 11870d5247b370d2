"""Steps down of signal operators: Fourier transforms become products with constant matrices."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import known_shape
from ..step import Step, lowers
from .common import keep_inputs, unsqueeze


@lowers(20, "DFT")
def _dft_axis(step: Step) -> bool:
    axis = step.constant(2, "axis")
    rank = len(known_shape(step.input(0)) or ())
    wanted = -2 if axis is None else int(axis.reshape(-1)[0])
    if wanted < 0:
        wanted += rank if rank else step.rank()
    step.node.attributes["axis"] = ir.AttrInt64("axis", wanted)
    keep_inputs(step, 2)
    return True


MATRIX_LIMIT = 1 << 22
"""Elements a Fourier matrix may have."""


@lowers(17, "DFT")
def _dft(step: Step) -> bool:
    fourier(step, int(step.attr("axis", 1)))
    return True


def fourier(step: Step, axis: int) -> None:
    """A DFT of known length as products with constant matrices."""
    rank = step.rank()
    inverse, onesided = bool(step.attr("inverse", 0)), bool(step.attr("onesided", 0))
    axis %= rank
    given = step.constant(1, "dft_length")
    size = step.dim(axis)
    default = 2 * (size - 1) if inverse and onesided else size
    length = default if given is None else int(given.reshape(-1)[0])
    parts = step.dim(rank - 1)
    if axis == rank - 1:
        step.refuse(say("it transforms the axis of real and imaginary parts", "它变换的是实部与虚部所在的轴"))
    step.finish(transform(step, step.needed(0), axis, parts, length, (inverse, onesided)))


def transform(step: Step, data: ir.Value, axis: int, parts: int, length: int, kind: tuple[bool, bool]) -> ir.Value:
    """The Fourier transform of an axis; real and imaginary parts stand in the last one.

    Args:
        kind: inverse, one-sided.
    """
    inverse, onesided = kind
    rank = len(data.shape or ())
    size = data.shape[axis] if data.shape is not None else None
    if not isinstance(size, int) or length < 1 or length * max(size, length) > MATRIX_LIMIT:
        step.refuse(say("its length is not known, or too large for a matrix", "其长度未知，或过大而无法用矩阵表示"))
    kept = min(size, length // 2 + 1 if inverse and onesided else length)
    places = length if inverse or not onesided else length // 2 + 1
    angle = (1 if inverse else -1) * 2 * np.pi * np.outer(np.arange(places), np.arange(kept)) / length
    factor = np.full(kept, 1 / length if inverse else 1.0)
    if inverse and onesided:  # the other half is the mirrored conjugate
        factor *= np.where((np.arange(kept) == 0) | (2 * np.arange(kept) == length), 1, 2)
    dtype = data.dtype.numpy() if data.dtype is not None else np.float32
    cosine, sine = (step.const(wave(angle) * factor, dtype, name) for wave, name in ((np.cos, "cosine"), (np.sin, "sine")))
    # [..., axis, rest, 1]: the axis is brought before the last but one of each part.
    order = [place for place in range(rank - 1) if place != axis]
    cut = data if kept == size else step.op("Slice", data, step.ints([0]), step.ints([kept]), step.ints([axis]))
    real, imaginary = (_part(step, cut, index, rank, [*order, axis]) if index < parts else None for index in (0, 1))

    def times(value: ir.Value | None, matrix: ir.Value) -> ir.Value | None:
        return None if value is None else step.op("MatMul", matrix, value)

    def both(first: ir.Value | None, op: str, second: ir.Value | None) -> ir.Value | None:
        if first is None or second is None:
            return first if second is None else second if op == "Add" else step.op("Neg", second)
        return step.op(op, first, second)

    results = [both(times(real, cosine), "Sub", times(imaginary, sine))]
    if not (inverse and onesided):
        results.append(both(times(real, sine), "Add", times(imaginary, cosine)))
    joined = [value for value in results if value is not None]
    whole = step.op("Concat", *joined, axis=-1) if len(joined) > 1 else joined[0]
    back = [*order, axis]
    return step.op("Transpose", whole, perm=[*[back.index(place) for place in range(rank - 1)], rank - 1])


def _part(step: Step, data: ir.Value, index: int, rank: int, order: list[int]) -> ir.Value:
    """The real or the imaginary part as [..., axis, 1]."""
    part = step.op("Gather", data, step.ints([index], "part"), axis=rank - 1)
    return step.op("Transpose", part, perm=[*order, rank - 1])


def frames_of(step: Step) -> tuple[int, int, int]:
    """Of a STFT: how far apart its frames begin, their length, and how many there are.

    Raises:
        Unconvertible: that is not known.
    """
    hop, window, given = step.constant(1, "frame_step"), step.input(2), step.value_of(step.input(3))
    if hop is None:
        step.refuse(say("its frame_step is missing", "缺少 frame_step"))
    wanted = 0 if given is None else int(given.reshape(-1)[0])
    length = wanted if window is None else step.dim(0, 2)
    if length < 1 or (given is not None and wanted != length):
        step.refuse(say("its frame_length is not known, or is not that of the window", "frame_length 未知或与窗口不一致"))
    stride = int(hop.reshape(-1)[0])
    if stride < 1 or step.dim(1) < length:
        step.refuse(say("its signal is shorter than a frame", "信号短于一帧"))
    return stride, length, 1 + (step.dim(1) - length) // stride


@lowers(17, "STFT")
def _stft(step: Step) -> bool:
    """Frames are gathered, weighed with the window, and transformed."""
    shape, window = step.static(), step.input(2)
    stride, length, count = frames_of(step)
    places = np.arange(length)[None] + stride * np.arange(count)[:, None]
    frames = step.op("Gather", step.needed(0), step.ints(places.tolist(), "frames"), axis=1)
    if len(shape) == 2:
        frames = unsqueeze(step, frames, [3])
    if window is not None:
        frames = step.op("Mul", frames, unsqueeze(step, window, [1]))
    parts = shape[2] if len(shape) == 3 else 1
    step.finish(transform(step, frames, 2, parts, length, (False, bool(step.attr("onesided", 1)))))
    return True


@lowers(17, "MelWeightMatrix")
def _mel_weights(step: Step) -> bool:
    """A constant of constants, by the definition of the standard."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    values = [step.constant(index, name) for index, name in enumerate(names)]
    bins, length, rate, low, high = (float(value.reshape(-1)[0]) if value is not None else 0.0 for value in values)
    count = int(bins)
    edges = [2595 * np.log1p(edge / 700) / np.log(10) for edge in (low, high)]
    places = edges[0] + np.arange(count + 2) * (edges[1] - edges[0]) / (count + 2)
    centres = (((length + 1) * 700 * np.expm1(places / 2595 * np.log(10))) // rate).astype(int)
    weights = np.zeros((int(length) // 2 + 1, count))
    for index in range(count):
        left, centre, right = centres[index : index + 3]
        if left == centre:
            weights[centre, index] = 1
        for place in range(left, centre + 1 if left != centre else centre):
            weights[place, index] = (place - left) / (centre - left)
        for place in range(centre, right):
            weights[place, index] = (right - place) / (right - centre)
    dtype = ir.DataType(step.attr("output_datatype", 1))
    step.finish(step.const(weights, dtype.numpy(), "weights"))
    return True
