"""Operators that work on each element, or on each sample, for themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ...text import say
from .base import Count, Emptiness, Look, Mask, Packed, Result, Sizes, dim_of, masks, rank_of, refuse

UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp"),
    *("Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu"),
    *("Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh"),
    "ThresholdedRelu",
)
BROADCAST = (
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "PRelu", "Sub", "Sum", "Where", "Xor"),
)


def attributes_of(look: Look, without: str = "") -> dict[str, Any]:
    return {name: attribute for name, attribute in look.node.attributes.items() if name != without}


def again(look: Look, inputs: Sequence[ir.Value | None]) -> ir.Value:
    """The node once more with other inputs; its first output."""
    return look.step.op(look.node.op_type, *inputs, **attributes_of(look))


def one_mask(items: Sequence[Packed]) -> Mask | None:
    """The mask of all packed operands.

    Raises:
        Unmaskable: they have different ones.
    """
    masked = {item.mask for item in items if item.mask is not None}
    if len(masked) > 1:
        refuse(say("its operands are chosen by different masks", "其操作数由不同的掩码选取"))
    return masked.pop() if masked else None


@masks(*UNARY)
def unary(look: Look) -> list[Result]:
    item, empty = look.packed(0), look.rep(0)
    if isinstance(empty, Emptiness) and look.node.op_type == "Not":
        return [Emptiness(empty.mask, not empty.true_when_empty)]
    if item is None:
        return [again(look, [look.plain(index) for index in range(len(look.node.inputs))])]
    others = [None if value is None else look.plain(index) for index, value in enumerate(look.node.inputs) if index]
    return [Packed(again(look, [look.values(item), *others]), item.axis, item.mask)]


@masks("Identity", "Cast")
def cast(look: Look) -> list[Result]:
    item, integers, empty = look.packed(0), look.sizes(0), look.rep(0)
    wanted = ir.DataType(int(look.step.given("to"))) if look.node.op_type == "Cast" else None
    if isinstance(empty, Emptiness):
        return [empty if wanted in (None, ir.DataType.BOOL) else again(look, [look.plain(0)])]
    if integers is not None:
        kept = wanted in (None, ir.DataType.INT64, ir.DataType.INT32)
        return [Sizes(integers.entries, integers.scalar, wanted or integers.dtype) if kept else again(look, [look.plain(0)])]
    assert item is not None
    if wanted in (None, ir.DataType.INT64, ir.DataType.INT32):
        dense = item.dense if wanted is None else look.step.cast(item.dense, wanted)
        return [Packed(dense, item.axis, item.mask, item.points)]
    return [Packed(again(look, [look.values(item)]), item.axis, item.mask)]


@masks("Dropout")
def dropout(look: Look) -> list[Result]:
    """As in inference; the rule on random operators speaks for the rest."""
    item = look.packed(0)
    if item is None or (look.step.version >= 12 and look.step.input(2) is not None):
        refuse(say("Dropout in training mode", "训练模式的 Dropout"))
    return [item]


@masks(*BROADCAST)
def broadcast(look: Look) -> list[Result]:
    integers = _of_sizes(look)
    if integers is not None:
        return [integers]
    items = {index: item for index in range(len(look.node.inputs)) if (item := look.packed(index)) is not None}
    mask = one_mask(list(items.values()))
    values = [look.values(items[index]) if index in items else look.plain(index) for index in range(len(look.node.inputs))]
    if mask is None:
        return [again(look, values)]
    ends = {rank_of(values[index]) - item.axis for index, item in items.items() if item.axis is not None}
    if len(ends) != 1:
        refuse(say("its operands have their data-dependent size in different dimensions", "其操作数的数据相关尺寸位于不同的维度"))
    end = ends.pop()
    for index, value in enumerate(values):
        if (index not in items or items[index].axis is None) and rank_of(value) >= end and dim_of(value, -end) != 1:
            refuse(say("input {index} has its own size there", "输入 {index} 在该维有自己的尺寸", index=index))
    return [Packed(again(look, values), max(rank_of(value) for value in values) - end, mask)]


def _of_sizes(look: Look) -> Result | None:
    """Arithmetic on shapes. None where it is left to ordinary nodes."""
    found = [look.sizes(index) for index in range(len(look.node.inputs))]
    flags = look.constant(0) if look.node.op_type == "Where" else None
    if flags is not None and found[1] is not None and found[2] is not None:
        return _chosen(np.asarray(flags), found[1], found[2])
    sizes = [item for item in found if item is not None]
    if len(sizes) != len(found) or len(sizes) != 2:
        return None
    one, other = sizes
    count = max(len(one.entries), len(other.entries))
    if any(len(item.entries) not in (1, count) for item in sizes):
        return None
    pairs = list(zip(_wide(one, count), _wide(other, count), strict=True))
    if (
        look.node.op_type in ("Equal", "Greater")
        and count == 1
        and other.entries[0] == 0
        and isinstance(one.entries[0], Count)
        and one.scalar
    ):
        return Emptiness(one.entries[0].mask, look.node.op_type == "Equal") if one.entries[0].most != 0 else None
    if look.node.op_type == "Equal":
        answers = [_equal(*pair) for pair in pairs]
        shape = [] if one.scalar and other.scalar else [count]
        return None if None in answers else look.step.const(np.array(answers).reshape(shape), np.bool_, "equal")
    results = [_arithmetic(look.node.op_type, *pair) for pair in pairs]
    entries = [item for item in results if item is not None]
    return Sizes(tuple(entries), one.scalar and other.scalar, one.dtype) if len(entries) == count else None


def _wide(item: Sizes, count: int) -> tuple[int | Count, ...]:
    return item.entries if len(item.entries) == count else item.entries * count


def _chosen(flags: np.ndarray, one: Sizes, other: Sizes) -> Sizes | None:
    count = max(flags.size, len(one.entries), len(other.entries))
    if flags.ndim > 1 or any(size not in (1, count) for size in (flags.size, len(one.entries), len(other.entries))):
        return None
    flat = np.broadcast_to(flags.reshape(-1), (count,))
    entries = [a if flag else b for flag, a, b in zip(flat, _wide(one, count), _wide(other, count), strict=True)]
    return Sizes(tuple(entries), one.scalar and other.scalar and flags.ndim == 0, one.dtype)


def _equal(one: int | Count, other: int | Count) -> bool | None:
    """Whether two sizes are equal, where that is known: a count is not negative."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    if one == other:
        return True
    number = one if isinstance(one, int) else other if isinstance(other, int) else None
    return False if number is not None and number < 0 else None


def _arithmetic(op_type: str, one: int | Count, other: int | Count) -> int | Count | None:
    if isinstance(one, int) and isinstance(other, int):
        plain = {"Add": one + other, "Sub": one - other, "Mul": one * other, "Min": min(one, other), "Max": max(one, other)}
        return plain.get(op_type)
    count, number = (one, other) if isinstance(one, Count) else (other, one)
    assert isinstance(count, Count)
    if op_type == "Min" and isinstance(number, int) and number >= 0:
        return least(count, number)
    if op_type == "Mul" and isinstance(number, int) and number >= 1 and count.most is None:
        return Count(count.mask, count.factor * number)
    if number == 0 and (op_type == "Add" or (op_type == "Sub" and one is count)):
        return count
    return None


def least(count: Count, number: int) -> Count:
    return Count(count.mask, count.factor, number if count.most is None else min(count.most, number))


@masks("ReduceProd")
def product(look: Look) -> list[Result]:
    """How many elements a tensor has. Everything else is a reduction like others."""
    found = look.sizes(0)
    if found is not None and not found.scalar:
        counts = [item for item in found.entries if isinstance(item, Count)]
        factor = math.prod(item for item in found.entries if isinstance(item, int))
        if len(counts) == 1 and counts[0].most is None and factor >= 1:
            entry = Count(counts[0].mask, counts[0].factor * factor)
            return [Sizes((entry,), not look.step.given("keepdims"), found.dtype)]
    from .reducing import reduction

    return reduction(look)


@masks("ReduceMin")
def reduce_min(look: Look) -> list[Result]:
    """The usual K: the least of a constant and a count. Everything else is a reduction like others."""
    found = look.sizes(0)
    if found is not None and not found.scalar:
        counts = {item for item in found.entries if isinstance(item, Count)}
        numbers = [item for item in found.entries if isinstance(item, int)]
        if len(counts) == 1 and all(number >= 0 for number in numbers):
            count = counts.pop()
            entry = least(count, min(numbers)) if numbers else count
            return [Sizes((entry,), not look.step.given("keepdims"), found.dtype)]
    from .reducing import reduction

    return reduction(look)


@masks("Conv", "ConvTranspose", "AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization", "LRN",
       "InstanceNormalization", "GroupNormalization", "DepthToSpace", "SpaceToDepth")  # fmt: skip
def samples(look: Look) -> list[Result]:
    """Each sample of the batch for itself."""
    item = look.packed(0)
    if item is None or item.axis != 0:
        refuse(say("its data-dependent size is not that of the batch", "数据相关的尺寸不是批次维"))
    others = [None if value is None else look.plain(index) for index, value in enumerate(look.node.inputs) if index]
    if any(value.uses() or value.is_graph_output() for value in look.node.outputs[1:]):
        refuse(say("its further outputs are read", "其他输出被使用"))
    if look.step.attr("training_mode", 0):
        refuse(say("it takes the statistics of the batch", "它使用批次统计量"))
    return [Packed(again(look, [look.values(item), *others]), 0, item.mask)]


@masks("LayerNormalization", "RMSNormalization", "LpNormalization", "Hardmax")
def rows(look: Look) -> list[Result]:
    """Over dimensions that are all there."""
    item = look.packed(0)
    if item is None or item.axis is None:
        refuse(say("its scale has a data-dependent shape", "其缩放的形状依赖数据"))
    axis = look.axis(rank_of(item.dense))
    single = look.node.op_type in ("LpNormalization", "Hardmax")
    if item.axis == axis or (item.axis > axis and not (single and look.step.version >= 13)):
        refuse(say("it works along the data-dependent size", "它沿数据相关的尺寸计算"))
    others = [None if value is None else look.plain(index) for index, value in enumerate(look.node.inputs) if index]
    return [Packed(again(look, [look.values(item), *others]), item.axis, item.mask)]
