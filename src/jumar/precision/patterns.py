"""The computations that lose precision in 16 bits, and what helps with each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from ..graph import constant_of
from ..text import Text, say
from .rounding import STORAGES, Storage

if TYPE_CHECKING:
    from .table import Row

_FAR = 12


@dataclass(frozen=True)
class Pattern:
    """A kind of loss: a word for it, what happens, and the remedy."""

    key: str
    what: Text
    remedy: Text


_LAYER_NORM = Pattern(
    "layer-norm",
    say("the squares of a normalisation written out leave float16", "展开的归一化中，平方超出 float16 的范围"),
    say(
        "keep its Pow, ReduceMean, Add, Sqrt and Div in float32, or export LayerNormalization as one operator (opset 17)",
        "将其 Pow、ReduceMean、Add、Sqrt、Div 保持 float32，或导出为单个 LayerNormalization（opset 17）",
    ),
)
_L2_NORM = Pattern(
    "l2-norm",
    say("squares of small values vanish, and the sum is divided by zero or by too little", "小数值的平方下溢为零，随后被除以零或过小的数"),
    say(
        "divide by the largest magnitude first (the result is the same), or keep the norm in float32",
        "先除以最大绝对值（结果不变），或将该范数保持 float32",
    ),
)
_SCORES = Pattern(
    "attention-scores",
    say("attention scores leave float16 before they are scaled", "注意力分数在缩放之前超出 float16 的范围"),
    say(
        "scale the query before the product (the result is the same), or keep the product in float32",
        "在相乘前缩放 query（结果不变），或将该矩阵乘保持 float32",
    ),
)
_MASK = Pattern(
    "softmax-mask",
    say("a mask of large negative numbers becomes infinite", "掩码中的大负数变为无穷"),
    say("use a mask within -65504, such as -10000 (DT303)", "请使用不低于 -65504 的掩码，例如 -10000（DT303）"),
)
_SUMS = Pattern(
    "cumulative-sum",
    say("a running sum stops growing once an addend is below half a unit", "累加和在加数小于半个单位后不再增长"),
    say("keep it in float32", "请保持 float32"),
)
_EXP = Pattern(
    "exp-log",
    say("an exponential or logarithm leaves float16", "指数或对数超出 float16 的范围"),
    say("subtract the maximum first, or keep it in float32", "先减去最大值，或保持 float32"),
)
_CANCEL = Pattern(
    "cancellation",
    say("large values that nearly cancel leave mostly rounding", "几乎相消的大数之差主要是舍入误差"),
    say("keep it and what makes its inputs in float32", "将其与产生其输入的节点保持 float32"),
)


def _coordinates(row: Row, step: float) -> Pattern:
    return Pattern(
        "large-values",
        say(
            "values near {size:.4g} are stored in steps of {step:g}, more than they differ",
            "{size:.4g} 附近的数值以 {step:g} 为步长存储，大于它们之间的差异",
            size=max(abs(row.low), abs(row.high)),
            step=step,
        ),
        say("subtract the offset first, or keep it in float32 with its readers", "先减去偏移量，或将其与读取它的节点一并保持 float32"),
    )


def pattern_of(node: ir.Node, row: Row, rows: Mapping[str, Row], storage: Storage = STORAGES["float16"]) -> Pattern:
    """What kind of loss this is, by the node, its range and what stands around it."""
    errors = row.entire
    largest = max(abs(row.low), abs(row.high))
    over = errors is not None and errors.overflow > 0
    if node.op_type == "CumSum":
        return _SUMS
    if _is_square(node) or node.op_type in ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL2", "Sqrt"):
        if over or largest > storage.largest:
            return _LAYER_NORM if _reaches(node, "Sqrt") else _overflow(largest, storage)
        if errors is not None and (errors.underflow > 0 or errors.subnormal > 0) and _reaches(node, "Div", "Sqrt", "Max", "Clip"):
            return _L2_NORM
    if node.op_type in ("MatMul", "Gemm", "Einsum") and over and _reaches(node, "Softmax"):
        return _SCORES
    if over and _reaches(node, "Softmax") and any(_lowest(value) < -storage.largest for value in node.inputs):
        return _MASK
    if node.op_type in ("Exp", "Log", "Softplus", "ReduceLogSumExp"):
        return _EXP
    if over:
        return _overflow(largest, storage) if largest > storage.largest else _infected(node)
    if node.op_type in ("Sub", "Add") and largest and _inputs_largest(node, rows) > 16 * largest:
        return _CANCEL
    step = storage.subnormal if largest < storage.normal else _step(largest, storage)
    if row.low * row.high > 0 and row.high - row.low < 64 * step:
        return _coordinates(row, step)
    if errors is not None and errors.underflow > 0.01:
        return _underflow(row)
    return Pattern(
        "rounding",
        say("its results need more digits than the type has", "其结果需要的有效位多于该类型"),
        say("keep it in float32", "请保持 float32"),
    )


def _step(size: float, storage: Storage) -> float:
    """The distance of float16 values at a magnitude."""
    exponent = 0
    while 2.0 ** (exponent + 1) <= size:
        exponent += 1
    while 2.0**exponent > size:
        exponent -= 1
    return float(max(2.0 ** (exponent - storage.bits + 1), storage.subnormal))


def _overflow(largest: float, storage: Storage) -> Pattern:
    return Pattern(
        "overflow",
        say(
            "values up to {size:.4g} become infinite ({type} ends at {end:.5g})",
            "高达 {size:.4g} 的数值变为无穷（{type} 上限为 {end:.5g}）",
            size=largest,
            type=storage.name,
            end=storage.largest,
        ),
        say("scale its input, or keep it in float32", "缩放其输入，或保持 float32"),
    )


def _infected(node: ir.Node) -> Pattern:
    """The right values fit: something the node reads or computes inside did not."""
    if node.op_type in ("Div", "Reciprocal"):
        return Pattern(
            "zero-division",
            say("it divides by what became zero", "除数已变为零"),
            say("keep it in float32 with what makes the divisor", "将其与产生除数的节点一并保持 float32"),
        )
    return Pattern(
        "overflow",
        say("what it reads or adds up becomes infinite, though its result would fit", "其结果可以表示，但读入或累加的值变为无穷"),
        say("scale its input, or keep it in float32 with what makes its inputs", "缩放其输入，或将其与产生输入的节点一并保持 float32"),
    )


def _underflow(row: Row) -> Pattern:
    return Pattern(
        "underflow",
        say("values down to {size:.3g} become zero", "低至 {size:.3g} 的数值变为零", size=row.least),
        say("scale its input, or keep it in float32", "缩放其输入，或保持 float32"),
    )


def _is_square(node: ir.Node) -> bool:
    if node.op_type == "Mul":
        return len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]
    if node.op_type != "Pow":
        return False
    power = constant_of(node.inputs[1])
    return power is not None and power.size == 1 and float(power.reshape(-1)[0]) == 2.0


def _lowest(value: ir.Value | None) -> float:
    array = constant_of(value)
    return float(array.min()) if array is not None and array.dtype.kind == "f" and array.size else 0.0


def _inputs_largest(node: ir.Node, rows: Mapping[str, Row]) -> float:
    found = [rows[value.name] for value in node.inputs if value is not None and value.name is not None and value.name in rows]
    return max((max(abs(row.low), abs(row.high)) for row in found), default=0.0)


def _reaches(node: ir.Node, *ops: str) -> bool:
    """Whether one of the operators follows within a few nodes."""
    waiting, seen = [(node, 0)], {node}
    while waiting:
        current, depth = waiting.pop()
        for output in current.outputs:
            for user, _ in output.uses():
                if user.op_type in ops:
                    return True
                if depth < _FAR and user not in seen and len(seen) < 64:
                    seen.add(user)
                    waiting.append((user, depth + 1))
    return False
