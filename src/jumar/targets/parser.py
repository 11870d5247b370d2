"""Does the ONNX parser of a CANN state know ``domain::opset::operator``?

Parser sources are public for 2021-06 to 2022-06 and from 8.5 on (8.5 to 9.1 in part). Between two known states an operator that both
register is taken as registered, up to the opset the documents of the time name; one that only one of them registers is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from .declared import declarations
from .model import Confidence, Status
from .tables import cann_state, opset_numbers, opset_text, table

STANDARD_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Registration:
    """What is known of one operator at one CANN state.

    Attributes:
        accepted: opsets at which it is registered; ``maybe``: opsets at which only one neighbour registers it; ``anywhere``: in any state.
        states: of each state consulted, the opsets of its registrations and the IR operators they make.
    """

    accepted: frozenset[int]
    maybe: frozenset[int]
    anywhere: frozenset[int]
    states: tuple[tuple[tuple[frozenset[int], tuple[str, ...]], ...], ...]
    confidence: Confidence
    evidence: tuple[str, ...]

    def alternatives(self, opset: int) -> tuple[tuple[str, ...], ...]:
        """What the plug-ins of the states consulted make of it at an opset (a state that does not know the opset: its newest form)."""
        found: dict[tuple[str, ...], None] = {}
        for registrations in self.states:
            matching = [ir for opsets, ir in registrations if opset in opsets] or [registrations[-1][1]]
            found.update(dict.fromkeys(matching))
        return tuple(found)


def operator_key(domain: str, op: str) -> str:
    return op if domain in STANDARD_DOMAINS else f"{domain}::{op}"


def known_operators() -> tuple[str, ...]:
    """All operators any state registers (``op`` or ``domain::op``)."""
    return tuple(table("onnx_parser.json")["ops"])


def registration(key: str, cann: str) -> Registration | None:
    """The registration of an operator, the user's own declarations first, or None if no known CANN state has one."""
    own = [item for item in declarations().parsers.get(key, ()) if item.at(cann)]
    if not own:
        return _registration(key, cann)
    opsets = frozenset[int]().union(*(item.opsets for item in own))
    evidence = tuple(dict.fromkeys(item.evidence for item in own))
    return Registration(opsets, frozenset(), opsets, (tuple((item.opsets, item.ir) for item in own),), own[0].confidence, evidence)


@cache
def _registration(key: str, cann: str) -> Registration | None:
    entry = table("onnx_parser.json")["ops"].get(key)
    if entry is None:
        return None
    state = cann_state(cann)
    rule = state["parser"]
    known = {name: _opsets(items) for name, items in entry["states"].items()}
    anywhere = frozenset().union(*known.values())
    source = f"parser plug-in {entry['source']}"
    exact = rule.get("at")
    # A tree that is a part of the whole proves presence; absence is judged by the states around it.
    if exact is not None and (exact in known or "older" not in rule):
        found = known.get(exact, frozenset())
        evidence = (f"{source}: opset {opset_text(found) or 'none'} at {exact}", f"{state['confidence']}: {state['source']}")
        return Registration(found, frozenset(), anywhere, _states(entry, [exact]), "observed", evidence)
    older = known.get(rule["older"], frozenset())
    newer_name = next((name for name in rule["newer"] if name in known), rule["newer"][-1])
    newer = known.get(newer_name, frozenset())
    accepted = frozenset(number for number in newer if number in older or (older and number > max(older)))
    evidence = (
        f"{source}: opset {opset_text(older) or 'none'} at {rule['older']}, {opset_text(newer) or 'none'} at {newer_name}",
        f"{state['confidence']}: {state['source']}",
    )
    names = [name for name in (rule["older"], newer_name) if name in known]
    confidence: Confidence = "inferred" if state["confidence"] == "inferred" else "documented"
    return Registration(accepted, (older | newer) - accepted, anywhere, _states(entry, names), confidence, evidence)


def parser_status(key: str, opset: int, cann: str) -> Status:
    """SUPPORTED, NO_PARSER, NO_PARSER_AT_OPSET or UNKNOWN."""
    if key == "Constant":  # bypasses the registry (becomes a Const)
        return Status.SUPPORTED
    found = registration(key, cann)
    if found is None:
        return Status.NO_PARSER
    state = cann_state(cann)
    if "::" in key:  # the documents' range is that of the standard operators
        return Status.SUPPORTED if opset in found.accepted else Status.UNKNOWN if opset in found.maybe else Status.NO_PARSER_AT_OPSET
    if opset in found.accepted and state["opset_min"] <= opset <= state["opset_max"]:
        return Status.SUPPORTED
    if opset in found.maybe or opset in found.accepted:
        return Status.UNKNOWN
    return Status.NO_PARSER_AT_OPSET


def _opsets(items: list[Any]) -> frozenset[int]:
    return frozenset(number for ranges, _ in items for number in opset_numbers(ranges))


def _states(entry: dict[str, Any], names: list[str]) -> tuple[tuple[tuple[frozenset[int], tuple[str, ...]], ...], ...]:
    return tuple(
        tuple((frozenset(opset_numbers(ranges)), tuple(ir)) for ranges, ir in entry["states"][name])
        for name in names
        if name in entry["states"]
    )
