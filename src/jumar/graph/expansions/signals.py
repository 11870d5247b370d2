"""Fourier transforms as products with constant matrices, short-time ones as one convolution."""

from __future__ import annotations

import numpy as np

from ..opset.lower.signals import fourier, frames_of
from ..opset.step import Step
from .base import expands
from .common import reshape, within


@expands("DFT")
def by_matrices(step: Step) -> None:
    """Real and imaginary parts times cosines and sines. From opset 20 on the axis is an input, and its default another."""
    if step.version < 20:
        fourier(step, int(step.attr("axis", 1)))
        return
    axis = step.constant(2, "axis")
    fourier(step, -2 if axis is None else int(axis.reshape(-1)[0]))


@expands("STFT")
def by_convolution(step: Step) -> None:
    """Frames are the places of a strided kernel: cosines and sines, weighted with the window, are its weights."""
    shape = step.static()
    stride, length, count = frames_of(step)
    window = step.constant(2, "window")
    batch, parts = shape[0], shape[2] if len(shape) == 3 else 1
    bins = length // 2 + 1 if step.attr("onesided", 1) else length
    within(step, 2 * bins * parts * length)
    angle = 2 * np.pi * (np.outer(np.arange(bins), np.arange(length)) % length) / length
    weight = np.ones(length) if window is None else window.reshape(-1).astype(np.float64)
    cosine, sine = np.cos(angle) * weight, np.sin(angle) * weight
    # x times (cos - i sin), and i times that for the imaginary part.
    kernels = np.stack([np.stack([cosine, sine][:parts], axis=1), np.stack([-sine, cosine][:parts], axis=1)], axis=1)
    weights = step.const(kernels.reshape(2 * bins, parts, 1, length), step.dtype().numpy(), "waves")
    signal = reshape(step, step.needed(0), [batch, 1, shape[1], parts])
    signal = step.op("Transpose", signal, perm=[0, 3, 1, 2]) if parts > 1 else reshape(step, signal, [batch, 1, 1, shape[1]])
    kernel, strides, pads, dilations = [1, length], [1, stride], [0, 0, 0, 0], [1, 1]
    found = step.op("Conv", signal, weights, kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations, group=1)
    found = reshape(step, found, [batch, bins, 2, count])
    step.finish(step.op("Transpose", found, perm=[0, 3, 1, 2]))
