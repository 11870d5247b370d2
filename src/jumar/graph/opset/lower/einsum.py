"""Einsum before it existed: operands are contracted two at a time, each time as one MatMul of batches of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import known_shape
from ..step import Step, lowers
from .common import reduce, squeeze, unsqueeze

_BATCH_AXES = 2
"""Axes in front of the two of a matrix; more are joined to one, because targets limit the rank of MatMul."""


@dataclass(frozen=True)
class _Operand:
    """A tensor and the label of each of its axes."""

    data: ir.Value
    labels: tuple[str, ...]


@lowers(12, "Einsum")
def _einsum(step: Step) -> bool:
    """Diagonals are selected, labels of one operand alone summed, and pairs of operands multiplied, the smallest product first."""
    equation = str(step.attr("equation")).replace(" ", "")
    ranks = [step.rank(index) for index in range(len(step.node.inputs))]
    terms, result = _labels(step, equation, ranks)
    operands = [_diagonal(step, step.needed(index), term) for index, term in enumerate(terms)]
    operands = _without_ones(step, operands)
    operands = [_summed(step, item, operands, result) for item in operands]
    while len(operands) > 1:
        one, other = _next_pair(operands, result)
        rest = [item for item in operands if item is not one and item is not other]
        kept = {label for item in rest for label in item.labels} | set(result)
        operands = [*rest, _contracted(step, one, other, kept)]
    last = operands[0]
    if sorted(last.labels) != sorted(result):
        step.refuse(say("a label of its result is in no operand", "结果中的标号不在任何操作数中"))
    final = _ordered(step, last, result)
    step.finish(final if final.producer() in step.made else step.op("Identity", final))
    return True


def _labels(step: Step, equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; those behind an ellipsis are numbered from the end."""
    left, arrow, right = equation.partition("->")
    written = left.split(",")
    if len(written) != len(ranks):
        step.refuse(say("its equation names another number of operands", "方程中的操作数个数不符"))
    hidden = max([rank - len(text.replace("...", "")) for text, rank in zip(written, ranks, strict=True) if "..." in text], default=0)

    def read(text: str, rank: int | None) -> list[str]:
        before, dots, after = text.partition("...")
        count = 0 if not dots else hidden if rank is None else rank - len(before) - len(after)
        return [*before, *[f"#{number:02d}" for number in range(hidden - count, hidden)], *after]

    terms = [read(text, rank) for text, rank in zip(written, ranks, strict=True)]
    if any(len(term) != rank for term, rank in zip(terms, ranks, strict=True)):
        step.refuse(say("its equation does not fit the ranks", "方程与各操作数的秩不符"))
    if arrow:
        result = read(right, None)
        if len(set(result)) != len(result):
            step.refuse(say("its result names a label twice", "结果中有重复的标号"))
        return terms, result
    every = [label for term in terms for label in term]
    named = sorted({label for label in every if every.count(label) == 1 and not label.startswith("#")})
    return terms, [*[f"#{number:02d}" for number in range(hidden)], *named]


def _sizes(item: _Operand) -> dict[str, int | None]:
    shape = known_shape(item.data) or (None,) * len(item.labels)
    return {label: size if isinstance(size, int) else None for label, size in zip(item.labels, shape, strict=True)}


def _diagonal(step: Step, data: ir.Value, term: list[str]) -> _Operand:
    """A label written twice in one operand: only where both places are equal counts. Both axes are joined, and every n+1st place taken."""
    labels = list(term)
    for label in dict.fromkeys(term):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            shape = known_shape(data) or (None,) * len(labels)
            size = shape[first]
            if not isinstance(size, int) or shape[second] != size:
                step.refuse(say("the size of a repeated label is not known", "重复标号的大小未知"))
            rest = [place for place in range(len(labels)) if place not in (first, second)]
            moved = _transposed(step, data, [*rest, first, second])
            joined = step.op("Reshape", moved, step.ints([*([0] * len(rest)), size * size], "shape"))  # 0: as it was
            data = step.op("Gather", joined, step.ints(np.arange(size) * (size + 1), "diagonal"), axis=len(rest))
            labels = [*[labels[place] for place in rest], label]
    return _Operand(data, tuple(labels))


def _without_ones(step: Step, operands: list[_Operand]) -> list[_Operand]:
    """An axis of one element goes with each of the elements that another operand has for its label: here it is left out."""
    wide = {label for item in operands for label, size in _sizes(item).items() if size != 1}
    found = []
    for item in operands:
        places = [place for place, (label, size) in enumerate(_sizes(item).items()) if size == 1 and label in wide]
        kept = tuple(label for place, label in enumerate(item.labels) if place not in places)
        found.append(_Operand(squeeze(step, item.data, places), kept))
    return found


def _summed(step: Step, item: _Operand, operands: list[_Operand], result: list[str]) -> _Operand:
    """Without the labels that no other operand and not the result has."""
    others = {label for other in operands if other is not item for label in other.labels} | set(result)
    places = [place for place, label in enumerate(item.labels) if label not in others]
    if not places:
        return item
    return _Operand(reduce(step, "ReduceSum", item.data, places, 0), tuple(label for label in item.labels if label in others))


def _next_pair(operands: list[_Operand], result: list[str]) -> tuple[_Operand, _Operand]:
    """The two whose product is smallest (sizes that are not known count as 1)."""
    best: tuple[int, _Operand, _Operand] | None = None
    for place, one in enumerate(operands):
        for other in operands[place + 1 :]:
            rest = {label for item in operands if item is not one and item is not other for label in item.labels} | set(result)
            sizes = _sizes(one) | _sizes(other)
            count = math.prod(size or 1 for label, size in sizes.items() if label in rest)
            if best is None or count < best[0]:
                best = (count, one, other)
    assert best is not None
    return best[1], best[2]


def _contracted(step: Step, one: _Operand, other: _Operand, kept: set[str]) -> _Operand:
    """The product of two operands, summed over the labels that they share and nobody else needs."""
    shared = [label for label in one.labels if label in other.labels]
    batch = [label for label in shared if label in kept]
    summed = [label for label in shared if label not in kept]
    left = [label for label in one.labels if label not in shared]
    right = [label for label in other.labels if label not in shared]
    if not summed or not (left or right):
        return _product(step, one, other, [*batch, *left, *right], summed)
    sizes = {**_sizes(other), **{label: size for label, size in _sizes(one).items() if size is not None}}
    joined = len(batch) > _BATCH_AXES and all(sizes[label] is not None for label in batch)
    groups = [batch] if joined else [[label] for label in batch]
    first = _matrices(step, one, [*groups, left, summed], sizes)
    second = _matrices(step, other, [*groups, summed, right], sizes)
    product = step.op("MatMul", first, second)
    labels = (*batch, *left, *right)
    if joined or len(left) > 1 or len(right) > 1:
        return _Operand(_reshaped(step, product, [sizes[label] for label in labels]), labels)
    empty = [len(groups) + place for place, group in enumerate((left, right)) if not group]
    return _Operand(squeeze(step, product, empty), labels)


def _product(step: Step, one: _Operand, other: _Operand, space: list[str], summed: list[str]) -> _Operand:
    """Element by element: nothing is summed, or all that is not common."""
    labels = [*space, *summed]
    spread = []
    for item in (one, other):
        ordered = _ordered(step, item, [label for label in labels if label in item.labels])
        spread.append(unsqueeze(step, ordered, [place for place, label in enumerate(labels) if label not in item.labels]))
    product = step.op("Mul", *spread)
    if summed:
        product = reduce(step, "ReduceSum", product, list(range(len(space), len(labels))), 0)
    return _Operand(product, tuple(space))


def _matrices(step: Step, item: _Operand, groups: list[list[str]], sizes: dict[str, int | None]) -> ir.Value:
    """The operand with one axis for each group of labels (an axis of one element where there is none)."""
    data = _ordered(step, item, [label for group in groups for label in group])
    if all(len(group) <= 1 for group in groups):
        return unsqueeze(step, data, [place for place, group in enumerate(groups) if not group])
    wanted = [None if any(sizes[label] is None for label in group) else math.prod(sizes[label] or 0 for label in group) for group in groups]
    return _reshaped(step, data, wanted)


def _reshaped(step: Step, data: ir.Value, wanted: Sequence[int | None]) -> ir.Value:
    """Reshaped; one size that is not known follows from the others."""
    if wanted.count(None) > 1 or (None in wanted and 0 in wanted):
        step.refuse(say("more than one of the sizes that are joined is not known", "要合并的维中有多于一个大小未知"))
    if 0 in wanted:
        step.refuse(say("a dimension that is joined is empty", "要合并的维为空"))
    return step.op("Reshape", data, step.ints([-1 if size is None else size for size in wanted], "shape"))


def _transposed(step: Step, data: ir.Value, order: list[int]) -> ir.Value:
    return data if order == sorted(order) else step.op("Transpose", data, perm=order)


def _ordered(step: Step, item: _Operand, wanted: Sequence[str]) -> ir.Value:
    return _transposed(step, item.data, [item.labels.index(label) for label in wanted])
