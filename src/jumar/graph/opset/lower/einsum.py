"""Einsum before it existed: MatMul where it is one, else a product over all labels that is summed up."""

from __future__ import annotations

import onnx_ir as ir

from ....text import say
from ..step import Step, lowers
from .common import reduce, squeeze, unsqueeze


@lowers(12, "Einsum")
def _einsum(step: Step) -> bool:
    """Operands are laid out along all labels, multiplied, and summed over those that the result does not have."""
    equation = str(step.attr("equation")).replace(" ", "")
    ranks = [step.rank(index) for index in range(len(step.node.inputs))]
    terms, result = _labels(step, equation, ranks)
    extra = sorted({label for term in terms for label in term if label not in result})
    space = [*result, *extra]
    operands = []
    for index, term in enumerate(terms):
        data = _diagonal(step, step.needed(index), term)
        single = [label for place, label in enumerate(term) if label not in term[:place]]
        order = sorted(range(len(single)), key=lambda place: space.index(single[place]))
        if order != list(range(len(single))):
            data = step.op("Transpose", data, perm=order)
        operands.append((data, [single[place] for place in order]))
    matrix = _as_matmul(step, operands, result, extra)
    if matrix is not None:
        step.finish(matrix)
        return True
    spread = [unsqueeze(step, data, [place for place, label in enumerate(space) if label not in term]) for data, term in operands]
    product = spread[0]
    for other in spread[1:]:
        product = step.op("Mul", product, other)
    if extra:
        product = reduce(step, "ReduceSum", product, list(range(len(result), len(space))), 0)
    step.finish(product if product.producer() in step.made else step.op("Identity", product))
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
        return terms, read(right, None)
    every = [label for term in terms for label in term]
    named = sorted({label for label in every if every.count(label) == 1 and not label.startswith("#")})
    return terms, [*[f"#{number:02d}" for number in range(hidden)], *named]


def _diagonal(step: Step, data: ir.Value, term: list[str]) -> ir.Value:
    """A label written twice in one operand: only where both places are equal counts."""
    labels = list(term)
    for label in dict.fromkeys(term):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            size = data.shape[first] if data.shape is not None else None
            if not isinstance(size, int) or data.shape is None or data.shape[second] != size:
                step.refuse(say("the size of a repeated label is not known", "重复标号的大小未知"))
            rank = len(labels)
            order = [first, second, *[place for place in range(rank) if place not in (first, second)]]
            rows = [
                step.op(
                    "Gather", step.op("Gather", step.op("Transpose", data, perm=order), step.ints([row]), axis=0), step.ints([row]), axis=1
                )
                for row in range(size)
            ]
            joined = squeeze(step, step.op("Concat", *rows, axis=0), [1])
            # The diagonal stands first now and belongs at the label's first place.
            back = list(range(1, rank - 1))
            back.insert(first, 0)
            data = step.op("Transpose", joined, perm=back)
            labels.pop(second)
    return data


def _as_matmul(step: Step, operands: list[tuple[ir.Value, list[str]]], result: list[str], extra: list[str]) -> ir.Value | None:
    """Two operands with one summed label, one of their own each, and the rest in common: that is MatMul."""
    if len(operands) != 2 or len(extra) != 1:
        return None
    (left, first), (right, second) = operands
    if extra[0] not in first or extra[0] not in second:
        return None
    own = [[label for label in term if label not in other] for term, other in ((first, second), (second, first))]
    common = [label for label in result if label in first and label in second]
    sizes = [data.shape[term.index(extra[0])] if data.shape is not None else None for data, term in operands]
    if sizes[0] != sizes[1] and 1 in sizes:  # one element goes with each
        return None
    if len(own[0]) != 1 or len(own[1]) != 1 or any(label.startswith("#") for label in (*own[0], *own[1])):
        return None
    left = _ordered(step, left, first, [*common, own[0][0], extra[0]])
    right = _ordered(step, right, second, [*common, extra[0], own[1][0]])
    made = [*common, own[0][0], own[1][0]]
    return _ordered(step, step.op("MatMul", left, right), made, result)


def _ordered(step: Step, data: ir.Value, given: list[str], wanted: list[str]) -> ir.Value:
    if given == wanted:
        return data
    return step.op("Transpose", data, perm=[given.index(label) for label in wanted])
