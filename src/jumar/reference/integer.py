"""Layers on int8 with sums in int32, bit by bit; products are summed in float64, which holds every sum that int32 holds.

What is stored is ``q``; what is multiplied is ``q - offset``, so that padding is zero. That is what ATC makes of a deploy model: its pass
gives the layer the offset of the AscendQuant before it, as the value of padding, and takes ``offset * sum(weights)`` off the bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any


def as_int32(sums: Array) -> Array:
    """Sums as the Cube holds them.

    Raises:
        OverflowError: one does not fit into int32.
    """
    if sums.size and (sums.min() < -(2**31) or sums.max() >= 2**31):
        raise OverflowError("a sum of products does not fit into int32")
    return sums.astype(np.int32)


def padding(size: int, kernel: int, stride: int, dilation: int, auto: str) -> tuple[int, int]:
    """``SAME_UPPER`` and ``SAME_LOWER`` of one axis."""
    reach = (kernel - 1) * dilation + 1
    total = max((math.ceil(size / stride) - 1) * stride + reach - size, 0)
    less, more = total // 2, total - total // 2
    return (less, more) if auto == "SAME_UPPER" else (more, less)


def convolved(
    x: Array,
    weight: Array,
    *,
    offset: int = 0,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Array:
    """Conv of int8 ``x`` [N, C, ...] with int8 ``weight`` [O, C / group, ...]: sums in int32."""
    rank = x.ndim - 2
    steps, spread = list(strides or [1] * rank), list(dilations or [1] * rank)
    kernel = weight.shape[2:]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        ends = [padding(x.shape[2 + axis], kernel[axis], steps[axis], spread[axis], auto_pad) for axis in range(rank)]
    else:
        flat = list(pads or [0] * 2 * rank) if auto_pad in ("NOTSET", "") else [0] * 2 * rank
        ends = [(flat[axis], flat[axis + rank]) for axis in range(rank)]
    wide = np.pad(x.astype(np.float64) - offset, [(0, 0), (0, 0), *ends])
    sizes = [(wide.shape[2 + axis] - (kernel[axis] - 1) * spread[axis] - 1) // steps[axis] + 1 for axis in range(rank)]
    batch, channels, outputs = x.shape[0], x.shape[1], weight.shape[0]
    grouped = weight.astype(np.float64).reshape(group, outputs // group, channels // group, *kernel)
    sums = np.zeros((batch, group, outputs // group, math.prod(sizes)))
    for place in np.ndindex(*kernel):
        cut = tuple(
            slice(place[axis] * spread[axis], place[axis] * spread[axis] + (sizes[axis] - 1) * steps[axis] + 1, steps[axis])
            for axis in range(rank)
        )
        seen = wide[(slice(None), slice(None), *cut)].reshape(batch, group, channels // group, -1)
        factor = grouped[(slice(None), slice(None), slice(None), *place)]
        sums += factor[None] * seen if channels == group else np.matmul(factor[None], seen)
    return as_int32(sums.reshape(batch, outputs, *sizes))


def convolved_back(
    x: Array,
    weight: Array,
    *,
    offset: int = 0,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    group: int = 1,
) -> Array:
    """ConvTranspose of int8 ``x`` [N, C, ...] with int8 ``weight`` [C, O / group, ...]: sums in int32."""
    rank = x.ndim - 2
    steps, spread = list(strides or [1] * rank), list(dilations or [1] * rank)
    flat, more = list(pads or [0] * 2 * rank), list(output_padding or [0] * rank)
    kernel, inner = weight.shape[2:], x.shape[2:]
    full = [(inner[axis] - 1) * steps[axis] + (kernel[axis] - 1) * spread[axis] + 1 + more[axis] for axis in range(rank)]
    batch, channels, per_group = x.shape[0], x.shape[1], weight.shape[1]
    seen = (x.astype(np.float64) - offset).reshape(batch, group, channels // group, -1)
    grouped = weight.astype(np.float64).reshape(group, channels // group, per_group, *kernel)
    sums = np.zeros((batch, group * per_group, *full))
    for place in np.ndindex(*kernel):
        factor = grouped[(slice(None), slice(None), slice(None), *place)].transpose(0, 2, 1)
        part = np.matmul(factor[None], seen).reshape(batch, group * per_group, *inner)
        cut = tuple(
            slice(place[axis] * spread[axis], place[axis] * spread[axis] + (inner[axis] - 1) * steps[axis] + 1, steps[axis])
            for axis in range(rank)
        )
        sums[(slice(None), slice(None), *cut)] += part
    kept = tuple(slice(flat[axis], full[axis] - flat[axis + rank]) for axis in range(rank))
    return as_int32(sums[(slice(None), slice(None), *kept)])


def multiplied(x: Array, weight: Array, *, offset: int = 0) -> Array:
    """MatMul of int8 with a matrix of int8: sums in int32."""
    return as_int32(np.matmul(x.astype(np.float64) - offset, weight.astype(np.float64)))
