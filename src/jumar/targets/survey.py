"""Everything known of one operator, and of one CANN state, for reading rather than for a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..text import Text
from .declared import declarations
from .judge import support
from .kernels import KernelTable, tables_for, takes_dtype
from .model import Confidence, Engine, Status, Support, Target
from .parser import known_operators, operator_key, registration
from .query import cann_states, find_target, socs
from .tables import cann_state, opset_text, table

ParserBasis = Literal["exact", "partial", "between"]
KernelBasis = Literal["exact", "near", "between", "older", "none"]


@dataclass(frozen=True)
class StateBasis:
    """What the answers for one CANN state rest on.

    Attributes:
        parser: its own sources, a part of them completed by its neighbours, or its neighbours alone.
        kernels: its own tables, those of a state of the same time, of both neighbours, of an earlier state only, or none.
    """

    cann: str
    parser: ParserBasis
    kernels: KernelBasis
    opset_min: int
    opset_max: int
    confidence: Confidence
    source: str


def state_basis(cann: str) -> StateBasis:
    state = cann_state(cann)
    parser, kernels = state["parser"], state["kernels"]
    read: ParserBasis = "between" if "at" not in parser else "partial" if "older" in parser else "exact"
    tables: KernelBasis = "none"
    names: tuple[tuple[str, KernelBasis], ...] = (("before", "older"), ("older", "between"), ("near", "near"), ("at", "exact"))
    for key, word in names:
        tables = word if key in kernels else tables
    return StateBasis(cann, read, tables, state["opset_min"], state["opset_max"], state["confidence"], state["source"])


@dataclass(frozen=True)
class Answer:
    """One answer on an operator and the opsets it holds for. ``table`` is False where no kernel table speaks for the target."""

    opsets: frozenset[int]
    status: Status
    engine: Engine
    confidence: Confidence
    reason: Text | None
    table: bool


def answers(domain: str, op: str, target: Target) -> tuple[Answer, ...]:
    """The answers over the opsets the target parses, one for each stretch of opsets with the same answer; none where nothing is parsed.

    Domains beside the standard one count their versions themselves: there it is the registered opsets that are asked for.
    """
    found: dict[tuple[Status, Engine, Confidence, str], tuple[set[int], Support]] = {}
    for opset in _versions(operator_key(domain, op), target) if domain else range(target.opset_min, target.opset_max + 1):
        answer = support(domain, op, opset, target)
        if answer.status not in (Status.NO_PARSER, Status.NO_PARSER_AT_OPSET):
            found.setdefault((answer.status, answer.engine, answer.confidence, str(answer.reason)), (set(), answer))[0].add(opset)
    covered = tables_for(target.cann, target.soc)[1] != "none"
    return tuple(
        Answer(frozenset(opsets), answer.status, answer.engine, answer.confidence, answer.reason, covered)
        for opsets, answer in found.values()
    )


def _versions(key: str, target: Target) -> list[int]:
    known = registration(key, target.cann)
    declared = (item.opsets for item in declarations().kernels.get(key, ()))
    return sorted((frozenset() if known is None else known.anywhere).union(*declared))


def soc_groups(key: str | None = None) -> tuple[tuple[str, ...], ...]:
    """SoCs that share all their kernel tables (packaged or imported) and the user's kernels of an operator, in the order of their names."""
    groups: dict[tuple[object, ...], list[str]] = {}
    declared = [item.socs for item in declarations().kernels.get(key, ())] if key else []
    for name in socs():
        target = find_target(name)
        tables = tuple((item.cann, item.soc, item.source) for cann in cann_states() for item in tables_for(cann, target.soc)[0])
        own = tuple(names is None or name in names for names in declared)
        groups.setdefault((*tables, *own, target.soc.aicpu_package), []).append(name)
    return tuple(tuple(group) for group in groups.values())


@dataclass(frozen=True)
class InputTypes:
    """The types one input of a kernel takes. ``at_most``: they are chosen when the operator is compiled, from these."""

    name: str
    types: tuple[str, ...]
    at_most: bool
    optional: bool


@dataclass(frozen=True)
class KernelTypes:
    """One IR operator on one engine; ``of`` is the IR operator the parser makes, from which a graph pass makes this one."""

    ir: str
    of: str
    engine: Literal["aicore", "aicpu"]
    source: str
    inputs: tuple[InputTypes, ...]


def kernel_types(key: str, opset: int, target: Target) -> tuple[KernelTypes, ...]:
    """The types that each kernel behind an operator takes, AI Core before AI CPU."""
    found = registration(key, target.cann)
    tables, _ = tables_for(target.cann, target.soc)
    if found is None or not tables:
        return ()
    rows: dict[tuple[str, str], KernelTypes] = {}
    for ir in dict.fromkeys(part for parts in found.alternatives(opset) for part in parts):
        for part in dict.fromkeys((ir, *_forms(ir))):
            for row in _kernel_types(tables[-1], part, ir):
                rows.setdefault((row.ir, row.engine), row)
    return tuple(rows.values())


def _forms(ir: str) -> tuple[str, ...]:
    """What graph passes make of an IR operator."""
    rules = table("ir.json.gz")
    constant = rules["constant_form"].get(ir)
    return (*rules["lowering"].get(ir, ()), *([constant] if constant else ()))


def _kernel_types(kernels: KernelTable, ir: str, of: str) -> Iterable[KernelTypes]:
    engines: tuple[tuple[str, Literal["aicore", "aicpu"]], ...] = (("A", "aicore"), ("C", "aicpu"), ("T", "aicpu"))
    for letter, engine in engines:
        if letter not in kernels.engines(ir):
            continue
        inputs = tuple(
            InputTypes(name, tuple(sorted(listed or takes_dtype(kernels, ir, letter, index, "")[1])), not listed, "?" in flags)
            for index, (name, listed, flags) in enumerate(kernels.inputs(ir, letter))
        )
        yield KernelTypes(ir, of, engine, kernels.source, inputs)


def registered_operators() -> frozenset[str]:
    """All operators that any state or the user's declarations register (``op`` or ``domain::op``)."""
    own = declarations()
    return frozenset((*known_operators(), *own.kernels, *own.parsers))


def is_registered(key: str, cann: str) -> bool:
    """Whether there is anything to say of an operator's engines."""
    return registration(key, cann) is not None or key in declarations().kernels


def standard_operators() -> tuple[str, ...]:
    """Operators of the ONNX standard that any state registers, sorted."""
    kinds = table("onnx_parser.json")["ops"]
    return tuple(sorted(key for key in known_operators() if "::" not in key and kinds[key]["kind"] == "onnx"))


def is_extension(key: str) -> bool:
    """Registered by CANN and no operator of the ONNX standard (also where it is registered in the standard's domain)."""
    entry = table("onnx_parser.json")["ops"].get(key)
    return entry is not None and ("::" in key or entry["kind"] != "onnx")


def split_key(key: str) -> tuple[str, str]:
    """``npu::NPUGru`` -> domain and name; the standard domain is empty."""
    domain, _, op = key.rpartition("::")
    return domain, op


def parser_source(key: str) -> str | None:
    entry = table("onnx_parser.json")["ops"].get(key)
    return None if entry is None else str(entry["source"])


def registered(key: str, cann: str) -> tuple[str, str]:
    """The opsets at which an operator is registered, and those where it is not known to be, as :func:`support` answers them.

    The opsets of the user's own kernels count where nothing else registers the operator.
    """
    found, state = registration(key, cann), cann_state(cann)
    if found is None:
        own = (item.opsets for item in declarations().kernels.get(key, ()) if item.at(cann))
        return opset_text(frozenset[int]().union(*own)), ""
    if "::" in key:
        return opset_text(found.accepted), opset_text(found.maybe)
    inside = frozenset(range(state["opset_min"], state["opset_max"] + 1))
    return opset_text(found.accepted & inside), opset_text(found.maybe | (found.accepted - inside))
