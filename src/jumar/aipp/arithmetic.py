"""The arithmetic of AIPP on single values: what every pixel goes through after colour conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UsageError
from ..text import say
from .config import AippOp
from .schema import VarType

Half = np.ndarray[Any, np.dtype[np.float16]]


def coefficients(op: AippOp, channel: int, var: VarType) -> tuple[int, float, float]:
    """Mean, min and var_reci of one channel as the chip keeps them: int16, float16, and float16 or float32."""
    mean = int(op[f"mean_chn_{channel}"])
    with np.errstate(over="ignore"):
        low = float(np.float16(op[f"min_chn_{channel}"]))
        factor = np.float16(op[f"var_reci_chn_{channel}"]) if var == "float16" else np.float32(op[f"var_reci_chn_{channel}"])
    return mean, low, float(factor)


def channel_table(op: AippOp, channel: int, var: VarType = "float16") -> Half:
    """What each of the 256 values of a channel becomes: ``fp16((value - mean - min) * var_reci)``.

    The difference and the product are exact in float64 (16 and 11 significant bits at most where var_reci is float16), so there is one
    rounding. Where var_reci is float32 a product may need up to 57 bits; it is then rounded to odd before the last rounding, which gives
    the same as one rounding.

    Source: hicann/ge:docs/zh/user_guides/atc_tools/AIPP and aipp_comm.py of CANN 8.1.RC1.

    Returns:
        256 numbers; beyond 65504 they are infinite.
    """
    mean, low, factor = coefficients(op, channel, var)
    difference = np.arange(256, dtype=np.float64) - mean - low
    with np.errstate(over="ignore", invalid="ignore"):
        return _once_rounded(difference, factor)


def _once_rounded(difference: np.ndarray[Any, np.dtype[np.float64]], factor: float) -> Half:
    product = difference * factor
    # The error of the float64 product, exactly: both halves of each operand have at most 26 bits (Dekker).
    first_high, first_low = _halves(difference)
    second_high, second_low = _halves(np.full_like(difference, factor))
    error = ((first_high * second_high - product) + first_high * second_low + first_low * second_high) + first_low * second_low
    bits = product.view(np.int64)
    even = (bits & 1) == 0
    away = (error > 0) == (product > 0)  # the true value lies beyond the rounded one
    odd = np.where((error != 0) & even & np.isfinite(product), np.where(away, bits | 1, bits - 1), bits)
    return odd.view(np.float64).astype(np.float16)


def _halves(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Any, Any]:
    large = values * 134217729.0
    high = large - (large - values)
    return high, values - high


def check_eight_bit(op: AippOp) -> None:
    """What is emulated.

    Raises:
        UsageError: the format has more than 8 bits, or none is given: between its roundings nothing is documented.
    """
    from .schema import EIGHT_BIT

    if op.mode != "static" or op.format not in EIGHT_BIT:
        raise UsageError(
            say("the block is {mode} with the format {format}", "该块为 {mode}，格式为 {format}", mode=op.mode, format=op.format),
            say("expected static mode and a format of 8 bits: {known}", "应为静态模式和 8 位格式：{known}", known=", ".join(EIGHT_BIT)),
            say("the rounding of the other formats is not public, so they are not emulated", "其他格式的舍入方式没有公开，因此不作模拟"),
        )
