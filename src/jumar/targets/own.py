"""Answers that come from the user's declarations."""

from __future__ import annotations

from ..text import say
from .declared import DeclaredKernel, declarations
from .kernels import CASTABLE
from .limits import NodeFacts
from .model import Status, Support, Target
from .parser import operator_key, registration
from .tables import opset_text


def own_support(domain: str, op: str, opset: int, target: Target) -> Support | None:
    """The answer of a declared kernel; None where nothing is declared for the target, and other facts are to be asked."""
    key = operator_key(domain, op)
    declared = _declared(key, target)
    if not declared:
        return None
    kernel = _at(declared, opset)
    if kernel is not None:
        status = Status.SUPPORTED if kernel.engine == "aicore" else Status.AICPU_ONLY
        return Support(status, kernel.engine, (kernel.evidence,), opset_text(kernel.opsets), confidence=kernel.confidence)
    if registration(key, target.cann) is not None:
        return None
    opsets: frozenset[int] = frozenset().union(*(item.opsets for item in declared))
    evidence = tuple(dict.fromkeys(item.evidence for item in declared))
    return Support(Status.NO_PARSER_AT_OPSET, "none", evidence, opset_text(opsets), confidence=declared[0].confidence)


def own_answers(node: NodeFacts, opset: int, target: Target) -> tuple[Support, ...] | None:
    """All answers on a node whose operator is declared: the dtypes of its inputs are judged, limits of other facts do not apply."""
    base = own_support(node.domain, node.op, opset, target)
    if base is None:
        return None
    kernel = _at(_declared(operator_key(node.domain, node.op), target), opset)
    wrong = [] if kernel is None else _dtype_answers(node, kernel, base)
    return (*wrong, base) if base.status is not Status.SUPPORTED else tuple(wrong) or (base,)


def _declared(key: str, target: Target) -> list[DeclaredKernel]:
    found = declarations().kernels.get(key, ())
    return [item for item in found if item.at(target.cann) and (item.socs is None or target.soc.name in item.socs)]


def _at(declared: list[DeclaredKernel], opset: int) -> DeclaredKernel | None:
    return next((item for item in declared if opset in item.opsets), None)


def _dtype_answers(node: NodeFacts, kernel: DeclaredKernel, base: Support) -> list[Support]:
    answers = []
    for index, item in enumerate(node.inputs if kernel.dtypes else ()):
        taken = kernel.dtypes[min(index, len(kernel.dtypes) - 1)]
        if not item.present or item.is_constant or item.dtype is None or not taken:
            continue
        dtype = "float32" if item.dtype == "FLOAT" else item.dtype.lower()
        if not CASTABLE.get(dtype, {dtype}) & taken:
            reason = say(
                "input {index} is {dtype}, which the declared kernel does not take; taken are {taken}",
                "第 {index} 个输入为 {dtype}，声明的算子不支持；支持的类型为 {taken}",
                index=index,
                dtype=dtype,
                taken=", ".join(sorted(taken)),
            )
            answers.append(Support(Status.DTYPE_NOT_TAKEN, "none", base.evidence, base.opsets, reason, base.confidence))
    return answers
