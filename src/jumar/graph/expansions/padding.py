"""Pad with its axes written out, cut where it is negative, and every mode as a selection of places."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import section
from ..opset.step import Array, Step
from .base import expands
from .common import normal_axis, take


def _pads(step: Step) -> list[tuple[int, int]]:
    """Before and after, for every axis.

    Raises:
        Unconvertible: they are computed, or the rank is not known.
    """
    rank = step.rank()
    if step.version < 11:
        given: Array | None = np.asarray(step.given("pads"))
    else:
        given = step.constant(1, "pads")
    if given is None:
        step.refuse(say("pads are missing", "缺少 pads"))
    axes = step.constant(3, "axes") if step.version >= 18 else None
    places = list(range(rank)) if axes is None else [normal_axis(step, int(axis), rank) for axis in axes]
    pairs = [(0, 0)] * rank
    for place, before, after in zip(places, given[: len(places)].tolist(), given[len(places) :].tolist(), strict=True):
        pairs[place] = (int(before), int(after))
    return pairs


@expands("Pad")
def plain(step: Step) -> None:
    """Pads for all axes; what is negative becomes a Slice."""
    pairs, mode = _pads(step), step.given("mode")
    has_axes = step.version >= 18 and step.input(3) is not None
    if min(map(min, pairs), default=0) >= 0 and not has_axes:
        step.refuse(say("its pads are those of all axes and not negative", "其 pads 已覆盖所有维且不为负"))
    data = _cut(step, pairs)
    pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    step.finish(_padded(step, data, pairs, mode) if any(map(any, pairs)) else data)


def _cut(step: Step, pairs: list[tuple[int, int]]) -> ir.Value:
    """The operand without what negative pads cut off, which comes before anything is added.

    Raises:
        Unconvertible: they cut off more than there is.
    """
    data = step.needed(0)
    for place, (before, after) in enumerate(pairs):
        if before >= 0 and after >= 0:
            continue
        low, high = max(-before, 0), step.dim(place) - max(-after, 0)
        if low > high:
            step.refuse(say("more is cut off than there is", "裁去的长度超过该维大小"))
        data = section(step, data, place, low, high)
    return data


def _padded(step: Step, data: ir.Value, pairs: list[tuple[int, int]], mode: str) -> ir.Value:
    amounts = [*(pair[0] for pair in pairs), *(pair[1] for pair in pairs)]
    if step.version < 11:
        value = step.attr("value", 0.0)
        return step.op("Pad", data, pads=amounts, mode=mode, value=value)
    fill = step.input(2) if len(step.node.inputs) > 2 else None
    return step.op("Pad", data, step.ints(amounts, "pads"), *([] if fill is None else [fill]), mode=mode)


@expands("Pad")
def selected(step: Step) -> None:
    """Reflected, repeated and wrapped elements as constant places of each axis; constant ones as blocks to concatenate."""
    pairs, mode = _pads(step), step.given("mode")
    shape = [size + min(before, 0) + min(after, 0) for size, (before, after) in zip(step.static(), pairs, strict=True)]
    result = _cut(step, pairs)
    for place, (before, after) in enumerate(pairs):
        before, after = max(before, 0), max(after, 0)
        if not before and not after:
            continue
        if mode == "constant":
            result = _blocks(step, result, shape, place, before, after)
        else:
            result = take(step, result, place, _places(step, shape[place], before, after, mode))
        shape[place] += before + after
    step.finish(result)


def _blocks(step: Step, data: ir.Value, shape: list[int], axis: int, before: int, after: int) -> ir.Value:
    parts: list[ir.Value] = []
    for amount in (before, None, after):
        if amount is None:
            parts.append(data)
        elif amount > 0:
            parts.append(_block(step, [amount if place == axis else extent for place, extent in enumerate(shape)]))
    return step.op("Concat", *parts, axis=axis)


def _block(step: Step, shape: list[int]) -> ir.Value:
    dtype = step.dtype().numpy()
    if step.version < 11:
        return step.const(np.full(shape, step.attr("value", 0.0), dtype), name="fill")
    fill = step.input(2)
    if fill is None:
        return step.const(np.zeros(shape, dtype), name="fill")
    known = step.value_of(fill)
    if known is not None:
        return step.const(np.full(shape, known.reshape(()), dtype), name="fill")
    return step.op("Expand", fill, step.ints(shape, "shape"))


def _places(step: Step, size: int, before: int, after: int, mode: str) -> Array:
    """Which element of the axis stands at each place of the padded one."""
    wanted = np.arange(-before, size + after)
    if mode == "edge":
        return np.clip(wanted, 0, size - 1)
    if mode == "wrap":
        return wanted % size
    if mode != "reflect" or size < 2:
        step.refuse(say("mode {mode} of an axis of {size}", "大小为 {size} 的维的 {mode} 模式", mode=mode, size=size))
    period = 2 * (size - 1)
    folded = np.abs(wanted) % period
    return np.where(folded >= size, period - folded, folded)
