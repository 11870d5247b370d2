"""Limits of the parser, of graph passes and of kernels, judged on one node. The limits themselves are data (``limits.json``).

A condition is a JSON object; all its tests must hold. It is judged in three values: True, False, and None where a shape or a constant
that it needs is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from ..text import Text
from .tables import cann_order, opset_numbers, spoken_by, table

Truth = bool | None
Effect = Literal["reject", "ignored", "aicpu", "unproven"]


@dataclass(frozen=True)
class InputFacts:
    """What is known of one input: ``dtype`` as ONNX spells it (of the value on the device), ``shape`` with None for open dimensions, ``constant`` if it is one."""

    present: bool = True
    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    constant: Any = None
    is_constant: bool = False


@dataclass(frozen=True)
class NodeFacts:
    """One node as the facts see it."""

    domain: str
    op: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[InputFacts, ...] = ()
    used_outputs: frozenset[int] = frozenset({0})

    def input(self, index: int) -> InputFacts:
        return self.inputs[index] if index < len(self.inputs) else InputFacts(present=False)


def makes_int32(op: str, output: int) -> bool:
    """Whether CANN makes this output of a standard operator as int32 although ONNX declares it int64."""
    return output in table("ir.json.gz")["int32_outputs"].get(op, ())


@dataclass(frozen=True)
class Limit:
    """One line of ``limits.json``."""

    effect: Effect
    when: Mapping[str, Any]
    text: Text
    source: str
    confidence: Literal["documented", "observed", "inferred"]
    opsets: frozenset[int]
    states: frozenset[str]


@cache
def limits_of(op: str) -> tuple[Limit, ...]:
    """The limits of one standard operator, the ones of every operator included."""
    order = cann_order()
    found = []
    for item in table("limits.json")["limits"]:
        if item["op"] not in (op, "*"):
            continue
        check_condition(item["when"])
        first = order.index(item["since"]) if "since" in item else 0
        last = order.index(item["until"]) if "until" in item else len(order)
        found.append(
            Limit(
                item["effect"],
                item["when"],
                Text(item["en"], item["zh"]),
                item["source"],
                item["confidence"],
                frozenset(opset_numbers(item["opsets"])) if "opsets" in item else frozenset(),
                frozenset(order[first:last]),
            )
        )
    return tuple(found)


def violated(node: NodeFacts, opset: int, cann: str) -> list[tuple[Limit, Truth]]:
    """Limits that the node breaks (True) or that cannot be judged on it (None)."""
    found: list[tuple[Limit, Truth]] = []
    spoken = spoken_by(cann)
    for limit in limits_of(node.op):
        if not limit.states.isdisjoint(spoken) and (not limit.opsets or opset in limit.opsets):
            truth = holds(limit.when, node)
            if truth is not False:
                found.append((limit, truth))
    return found


# What each kind of condition may say besides its first word.
_FORMS: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "any": frozenset(),
    "attr": frozenset(
        [
            "default",
            "absent",
            "present",
            "not_last_axis",
            "is",
            "is_not",
            "in",
            "not_in",
            "under",
            "even",
            "any_over",
            "product_over",
            "odd_length",
            "length_not_in",
        ]
    ),
    "input": frozenset(
        [
            "absent",
            "present",
            "not_constant",
            "dtype_in",
            "rank_in",
            "rank_not_in",
            "rank_over",
            "constant_any_under",
            "constant_any_over",
            "constant_any_not",
            "constant_last_not",
        ]
    ),
    "output": frozenset({"used"}),
    "inputs_fewer": frozenset(),
    "any_rank_over": frozenset(),
}


def check_condition(condition: Mapping[str, Any]) -> None:
    """Refuse what :func:`holds` would not understand: a misspelt test must not pass for one that holds.

    Raises:
        ValueError: an unknown word, or nothing to test.
    """
    kind = next((word for word in _FORMS if word in condition), None)
    tests = {*condition} - {kind, "default"}
    if kind is None or tests - _FORMS[kind] or (bool(tests) is not bool(_FORMS[kind])):
        raise ValueError(f"unknown condition {dict(condition)}")
    for part in condition[kind] if kind in ("all", "any") else ():
        check_condition(part)


def holds(condition: Mapping[str, Any], node: NodeFacts) -> Truth:
    """Judge a condition; see ``limits.json`` for all forms."""
    if "all" in condition:
        return _all(holds(item, node) for item in condition["all"])
    if "any" in condition:
        truths = [holds(item, node) for item in condition["any"]]
        return True if True in truths else None if None in truths else False
    if "attr" in condition:
        return _attribute(condition, node)
    if "input" in condition:
        return _input(condition, node)
    if "output" in condition:
        return bool((condition["output"] in node.used_outputs) == condition["used"])
    if "inputs_fewer" in condition:
        return len(node.inputs) < int(condition["inputs_fewer"])
    if "any_rank_over" in condition:
        ranks = [len(item.shape) for item in node.inputs if item.shape is not None]
        return any(rank > condition["any_rank_over"] for rank in ranks)
    raise ValueError(f"unknown condition {condition}")


def _all(truths: Any) -> Truth:
    found = list(truths)
    return False if False in found else None if None in found else True


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) or isinstance(wanted, float):
        return math.isclose(float(found), float(wanted), rel_tol=1e-6)
    return bool(found == wanted)


_ATTRIBUTE_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "is": _equal,
    "is_not": lambda found, wanted: not _equal(found, wanted),
    "in": lambda found, wanted: any(_equal(found, item) for item in wanted),
    "not_in": lambda found, wanted: not any(_equal(found, item) for item in wanted),
    "under": lambda found, wanted: found < wanted,
    "even": lambda found, wanted: (found % 2 == 0) == wanted,
    "any_over": lambda found, wanted: any(item > wanted for item in found),
    "product_over": lambda found, wanted: math.prod(found) > wanted,
    "odd_length": lambda found, wanted: (len(found) % 2 == 1) == wanted,
    "length_not_in": lambda found, wanted: len(found) not in wanted,
}


def _attribute(condition: Mapping[str, Any], node: NodeFacts) -> Truth:
    name = condition["attr"]
    there = name in node.attributes
    if "absent" in condition:
        return bool(there == condition["absent"]) is False
    if "present" in condition:
        return bool(there == condition["present"])
    if not there and "default" not in condition:
        return False
    value = node.attributes.get(name, condition.get("default"))
    value = list(value) if isinstance(value, (tuple, list)) else value
    if condition.get("not_last_axis"):
        return _has_extent_behind(node.input(0).shape, value)
    try:
        return _all(test(value, condition[key]) for key, test in _ATTRIBUTE_TESTS.items() if key in condition)
    except (TypeError, ValueError):  # an attribute of another type than the standard's, in a model that no checker saw
        return None


def _has_extent_behind(shape: tuple[int | None, ...] | None, axis: Any) -> Truth:
    """Whether dimensions behind ``axis`` hold more than one element, so that it matters if they are taken together with it."""
    if shape is None or not isinstance(axis, int):
        return None
    behind = shape[axis + 1 :] if axis >= 0 else shape[len(shape) + axis + 1 :]
    return True if any(dim not in (1, None) for dim in behind) else None if None in behind else False


def _input(condition: Mapping[str, Any], node: NodeFacts) -> Truth:
    item = node.input(condition["input"])
    if "absent" in condition:
        return bool(item.present == condition["absent"]) is False
    if "present" in condition:
        return bool(item.present == condition["present"])
    if "not_constant" in condition:
        return item.present and not item.is_constant
    if not item.present:
        return False
    if "dtype_in" in condition:
        return None if item.dtype is None else item.dtype in condition["dtype_in"]
    rank_tests: dict[str, Callable[[int, Any], bool]] = {
        "rank_in": lambda rank, wanted: rank in wanted,
        "rank_not_in": lambda rank, wanted: rank not in wanted,
        "rank_over": lambda rank, wanted: rank > wanted,
    }
    for key, test in rank_tests.items():
        if key in condition:
            return None if item.shape is None else test(len(item.shape), condition[key])
    return _constant(condition, item)


def _constant(condition: Mapping[str, Any], item: InputFacts) -> Truth:
    """Tests of a constant's values. A computed value is not judged: what it will be is not a fact of the model."""
    if not item.is_constant:
        return False
    if item.constant is None:  # too large to be looked at
        return None
    array = np.asarray(item.constant)
    if array.dtype.kind not in "biuf":  # complex numbers and strings have no order
        return None
    values: Sequence[Any] = array.reshape(-1).tolist()
    tests: dict[str, Callable[[Any], bool]] = {
        "constant_any_under": lambda limit: any(value < limit for value in values),
        "constant_any_over": lambda limit: any(value > limit for value in values),
        "constant_any_not": lambda wanted: any(value != wanted for value in values),
        "constant_last_not": lambda wanted: bool(values) and values[-1] != wanted,
    }
    for key, test in tests.items():
        if key in condition:
            return test(condition[key])
    raise ValueError(f"unknown condition {condition}")
