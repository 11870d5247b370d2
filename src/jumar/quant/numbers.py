"""The arithmetic of int8 as the deploy form has it: scales and offsets, weights, biases, and the 64 bits of AscendDequant.

Sources: AMCT's open exporter and the ONNX plug-ins of ops-nn for the layout, the prototype of AscendQuant for its formula. Its rounding mode
"Round" is taken as round half to even (the vector unit's rint); confidence medium: the prototype names the mode and no tie, and no device was
asked. Computed in float32; kernels that compute in float16 may differ by one step next to a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

INT8_LOW, INT8_HIGH = -128, 127
WEIGHT_LIMIT = 127
"""Weights are symmetric: -128 is not used."""
BIAS_LIMIT = 1 << 30
"""Half of what int32 holds is left for the sum of products."""


@dataclass(frozen=True)
class Scale:
    """What one step of an int8 tensor is worth, and the integer that stands for zero.

    ``scale`` is a float32 whose reciprocal is one as well, since AscendQuant multiplies by it.
    """

    scale: float
    offset: int = 0

    @property
    def reciprocal(self) -> np.float32:
        """The attribute ``scale`` of AscendQuant."""
        return np.float32(1.0) / np.float32(self.scale)

    @property
    def low(self) -> float:
        """The least number that is not clipped."""
        return (INT8_LOW - self.offset) * self.scale

    @property
    def high(self) -> float:
        return (INT8_HIGH - self.offset) * self.scale


def _finite(scale: float) -> float:
    """A usable float32: neither it nor its reciprocal vanishes or overflows."""
    return float(np.float32(min(max(scale, 1e-30), 1e30)))


def symmetric(low: float, high: float) -> Scale:
    """Zero is zero, and the larger magnitude is 127."""
    return Scale(_finite(max(-low, high, 0.0) / INT8_HIGH))


def asymmetric(low: float, high: float) -> Scale:
    """All 256 steps from ``low`` to ``high``; zero is always among them, since padding is zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = _finite((high - low) / (INT8_HIGH - INT8_LOW))
    return Scale(scale, int(np.clip(np.rint(INT8_LOW - low / scale), INT8_LOW, INT8_HIGH)))


def quantised(x: Any, scale: Scale) -> np.ndarray:
    """What AscendQuant makes: round half to even of ``x * (1 / scale) + offset``, clipped to int8."""
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.rint(np.asarray(x, np.float32) * scale.reciprocal + np.float32(scale.offset))
        return np.asarray(np.nan_to_num(np.clip(moved, INT8_LOW, INT8_HIGH)), np.int8)


def restored(q: Any, scale: Scale) -> np.ndarray:
    """The numbers that integers stand for."""
    return np.asarray((np.asarray(q, np.float32) - np.float32(scale.offset)) * np.float32(scale.scale))


@dataclass(frozen=True)
class Weight:
    """An int8 weight with its scales: one for each channel of ``axis``, or one for all."""

    data: np.ndarray
    scales: np.ndarray
    axis: int | None

    def wide(self) -> np.ndarray:
        """The float32 weight it stands for."""
        return np.asarray(self.data.astype(np.float32) * along(self.scales, self.axis, self.data.ndim))


def along(values: np.ndarray, axis: int | None, rank: int) -> np.ndarray:
    """Values of channels, shaped for broadcasting."""
    if axis is None:
        return values.reshape(())
    return values.reshape([-1 if place == axis else 1 for place in range(rank)])


def quantise_weight(weight: np.ndarray, axis: int | None, least: np.ndarray | None = None, search: bool = False) -> Weight:
    """Round a weight to int8.

    Args:
        axis: of the output channels, each of which gets a scale; None: one scale for all.
        least: scales are not below these (see :func:`least_scales`).
        search: try smaller ranges too, and take what makes the smallest squared error; else the largest magnitude is 127.
    """
    rows = weight.reshape(1, -1) if axis is None else np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    rows = rows.astype(np.float64)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    full = np.where(largest > 0, largest / WEIGHT_LIMIT, 1.0)
    scales = np.maximum(full, 1e-30 if least is None else least)
    if search:
        best = _error(rows, scales)
        for fraction in np.linspace(0.98, 0.5, 25):
            tried = np.maximum(full * fraction, 1e-30 if least is None else least)
            error = _error(rows, tried)
            scales, best = np.where(error < best, tried, scales), np.minimum(error, best)
    return rounded_weight(weight, axis, np.asarray(scales, np.float32))


def rounded_weight(weight: np.ndarray, axis: int | None, scales: np.ndarray) -> Weight:
    """A weight in steps of given float32 scales."""
    divided = weight.astype(np.float32) / along(scales, axis, weight.ndim)
    return Weight(np.clip(np.rint(divided), -WEIGHT_LIMIT, WEIGHT_LIMIT).astype(np.int8), scales, axis)


def _error(rows: np.ndarray, scales: np.ndarray) -> np.ndarray:
    wide = scales[:, None]
    return np.asarray(np.square(np.clip(np.rint(rows / wide), -WEIGHT_LIMIT, WEIGHT_LIMIT) * wide - rows).sum(axis=1))


def least_scales(bias: np.ndarray | None, activation: Scale, channels: int) -> np.ndarray:
    """The scales of weights below which a bias would not fit into its half of int32 (channels whose weights are nearly zero)."""
    if bias is None:
        return np.full(channels, 1e-30)
    return np.maximum(np.abs(bias.reshape(-1).astype(np.float64)) / (activation.scale * BIAS_LIMIT), 1e-30)


def product_scales(weight: Weight, activation: Scale) -> np.ndarray:
    """What one step of the int32 sum is worth, as AscendDequant has it: float32."""
    return np.asarray(weight.scales.astype(np.float32) * np.float32(activation.scale), np.float32)


def quantise_bias(bias: np.ndarray, weight: Weight, activation: Scale) -> np.ndarray:
    """The bias in steps of the int32 sum. The offset of the input is not in it: ATC's QuantBiasOptimization adds that.

    Raises:
        OverflowError: it does not fit.
    """
    steps = np.rint(bias.astype(np.float64) / product_scales(weight, activation).astype(np.float64))
    if not np.isfinite(steps).all() or np.abs(steps).max(initial=0) > 2 * BIAS_LIMIT - 1:
        raise OverflowError("the bias does not fit into int32")
    return np.asarray(steps, np.int32)


def pack_scales(scales: np.ndarray) -> np.ndarray:
    """The uint64 parameter of AscendDequant: the bits of a float32 below, the weight's offset (0) in bits 32 to 39, nothing above."""
    return np.asarray(scales, np.float32).reshape(-1).view(np.uint32).astype(np.uint64)


def unpack_scales(packed: np.ndarray) -> np.ndarray:
    """The float32 in each lower half.

    Raises:
        ValueError: something else is set: an offset of the weights, or a bit that is not documented.
    """
    if (packed >> np.uint64(32)).any():
        raise ValueError("bits above the scale are set")
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
