"""Every fact a page about a claim states is what the tables say, computed here from the questions of ``jumar.targets``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import onnx
import pytest

from jumar.targets import Status, cann_states, soc_info, socs
from jumar.targets.claims import Claim, all_claims, find_claim
from jumar.targets.kernels import KernelTable, tables_for, takes_dtype
from jumar.targets.limits import limits_of
from jumar.targets.parser import known_operators, parser_status, registration
from jumar.targets.tables import cann_state, opset_text
from jumar.verbs.targets_show import find_operator

# What place_all calls an engine -> the class a claim speaks of, spelled out here.
CLASSES = {
    "aicore": "supported",
    "aicore_via_pass": "supported",
    "aicore_if_const": "needs-constant",
    "local": "no-kernel-needed",
    "aicpu": "aicpu-only",
    "aicpu_tf": "aicpu-only",
    "none": "no-kernel",
}
Fact = Mapping[str, Any]


def kernel_tables(cann: str) -> dict[str, KernelTable]:
    """The packaged table of each kind of SoC at a state that has tables of its own."""
    found = {}
    for name in socs():
        tables, how = tables_for(cann, soc_info(name))
        if how == "at":
            found[tables[0].soc] = tables[0]
    return found


def check_opsets(fact: Fact) -> None:
    found = registration(fact["operator"], fact["cann"])
    assert ("" if found is None else opset_text(found.accepted)) == fact["opsets"]


def check_engines(fact: Fact) -> None:
    found = registration(fact["operator"], fact["cann"])
    assert found is not None
    places: dict[str, set[str]] = {}
    tables = kernel_tables(fact["cann"])
    for name, kernels in tables.items():
        classes = {CLASSES[kernels.place_all(fact["operator"], parts)] for parts in found.alternatives(fact["opset"])}
        assert len(classes) == 1, (name, classes)
        places.setdefault(classes.pop(), set()).add(name)
    for word, names in fact["engines"].items():
        assert places.get(word, set()) == (set(tables) if names == "all" else set(names)), word


def check_kernel(fact: Fact) -> None:
    letter = {"aicore": "A", "aicpu": "C"}[fact["engine"]]
    tables = kernel_tables(fact["cann"])
    having = {name for name, kernels in tables.items() if letter in kernels.engines(fact["kernel"])}
    if "on" in fact:
        assert having == (set(tables) if fact["on"] == "all" else set(fact["on"]))
    if "off" in fact:
        assert set(tables) - having == set(fact["off"])
    for name in set(tables) if fact.get("tables") == "all" else fact.get("tables", ()):
        types = takes_dtype(tables[name], fact["kernel"], letter, fact["input"], "")[1]
        listed = tables[name].inputs(fact["kernel"], letter)[fact["input"]][1]
        assert name in having
        assert "types" not in fact or types == set(fact["types"])
        assert types >= set(fact.get("contains", ()))
        assert not types & set(fact.get("lacks", ()))
        assert bool(fact.get("at_most")) is not bool(listed) or "at_most" not in fact


def check_limit(fact: Fact) -> None:
    """One of the limits at the state (by default 8.1.RC1) speaks of the attribute or input with this effect; effect None: none does."""
    cann = fact.get("cann", "8.1.RC1")
    words = [f'"attr": "{fact["attribute"]}"' if "attribute" in fact else f'"input": {fact["input"]}']
    found = {
        limit.effect for limit in limits_of(fact["limit"]) if cann in limit.states and words[0] in str(dict(limit.when)).replace("'", '"')
    }
    assert (not found) if fact["effect"] is None else fact["effect"] in found, found


def check_int64(fact: Fact) -> None:
    tables = kernel_tables(fact["cann"])
    for name, count in fact["int64_first_inputs"].items():
        found = [ir for ir in tables[name].ops if (inputs := tables[name].inputs(ir, "A")) and "int64" in inputs[0][1]]
        assert len(found) == count, name


def standard(opset: int) -> set[str]:
    """The operators of the standard domain at an opset that are not deprecated."""
    names = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""}
    found = {name: onnx.defs.get_schema(name, opset) for name in names if onnx.defs.has(name) and _exists(name, opset)}
    return {name for name, schema in found.items() if not schema.deprecated}


def _exists(name: str, opset: int) -> bool:
    try:
        onnx.defs.get_schema(name, opset)
    except onnx.defs.SchemaError:
        return False
    return True


def check_standard(fact: Fact) -> None:
    names = standard(fact["standard_at"])
    taken = {name for name in names if parser_status(name, fact["standard_at"], fact["cann"]) is Status.SUPPORTED}
    assert (len(taken), len(names)) == (fact["registered"], fact["of"])


def check_above(fact: Fact) -> None:
    taken = {name for name in standard(fact["standard_above"]) - {"Constant"} if 19 in _accepted(name, fact["cann"])}
    assert len(taken) <= fact["at_most"], taken


def _accepted(name: str, cann: str) -> frozenset[int]:
    found = registration(name, cann)
    return frozenset() if found is None else found.accepted


def check_range(fact: Fact) -> None:
    state = cann_state(fact["range"])
    assert f"{state['opset_min']}-{state['opset_max']}" == fact["opsets"]
    assert state["confidence"] == "documented"


def check_everywhere(fact: Fact) -> None:
    for cann in cann_states():
        assert {*fact["taken_everywhere"]} <= _accepted("Conv", cann)


def check_unregistered(fact: Fact) -> None:
    assert fact["unregistered"] not in {key.rpartition("::")[2] for key in known_operators()}


def check_not_standard(fact: Fact) -> None:
    assert fact["not_standard"] not in {schema.name for schema in onnx.defs.get_all_schemas_with_history()}


CHECKS: dict[str, Callable[[Fact], None]] = {
    "engines": check_engines,
    "opsets": check_opsets,
    "kernel": check_kernel,
    "limit": check_limit,
    "int64_first_inputs": check_int64,
    "standard_at": check_standard,
    "standard_above": check_above,
    "range": check_range,
    "taken_everywhere": check_everywhere,
    "unregistered": check_unregistered,
    "not_standard": check_not_standard,
}
FACTS = [(claim.code, fact) for claim in all_claims() for fact in claim.facts]


def check(fact: Fact) -> None:
    word = "range" if "range" in fact else next(word for word in CHECKS if word in fact)
    CHECKS[word](fact)


@pytest.mark.parametrize(("code", "fact"), FACTS, ids=[f"{code}-{index}" for index, (code, _) in enumerate(FACTS)])
def test_a_stated_fact_is_what_the_tables_say(code: str, fact: Fact) -> None:
    check(fact)


WRONG: list[Fact] = [
    {"operator": "NonZero", "cann": "8.1.RC1", "opsets": "8-18"},
    {"operator": "GRU", "cann": "8.1.RC1", "opset": 11, "engines": {"no-kernel": ["ascend035"]}},
    {"kernel": "TopKV2", "cann": "8.1.RC1", "engine": "aicore", "on": "all"},
    {"kernel": "GatherNd", "cann": "8.1.RC1", "engine": "aicore", "input": 0, "tables": ["ascend310p"], "types": ["bool"]},
    {"kernel": "Range", "cann": "8.1.RC1", "engine": "aicore", "input": 0, "tables": ["bs9sx1a"], "contains": ["int64"]},
    {"kernel": "Cast", "cann": "8.1.RC1", "engine": "aicore", "input": 0, "tables": ["bs9sx1a"], "at_most": True},
    {"limit": "GRU", "attribute": "hidden_size", "effect": "ignored"},
    {"int64_first_inputs": {"bs9sx1a": 41}, "cann": "8.1.RC1"},
    {"standard_at": 11, "cann": "9.2.0-beta.2", "registered": 120, "of": 154},
    {"standard_above": 18, "cann": "9.2.0-beta.2", "at_most": -1},
    {"range": "7.0.0", "opsets": "9-13"},
    {"taken_everywhere": [18]},
    {"unregistered": "GRU"},
    {"not_standard": "GRU"},
]


@pytest.mark.parametrize("fact", WRONG, ids=range(len(WRONG)))
def test_a_wrong_fact_would_be_noticed(fact: Fact) -> None:
    with pytest.raises(AssertionError):
        check(fact)


def test_there_are_eighteen_claims_with_facts_of_known_kinds() -> None:
    codes = [claim.code for claim in all_claims()]
    assert codes == [f"CL{number:03d}" for number in range(1, 19)]
    assert len({claim.name for claim in all_claims()}) == 18
    assert all(claim.facts for claim in all_claims())
    assert {word for word in CHECKS if any(word in fact for _, fact in FACTS)} == {*CHECKS}


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.code)
def test_a_page_is_in_our_words_in_both_languages(claim: Claim) -> None:
    for text in (claim.verdict, claim.says, claim.true, claim.evidence):
        assert text.en and re.search("[\u4e00-\u9fff]", text.zh) and not re.search("[\u4e00-\u9fff]", text.en)
        for rendered in (text.en, text.zh):
            assert not re.search(r"\bseed|\barticle \d|facts/|\{", rendered)
    assert "widely read guide" in claim.says.en.lower() and "广为流传的教程" in claim.says.zh
    assert claim.show and all(find_operator(op) == op for op in claim.show)


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.code)
def test_numbers_of_a_page_are_the_same_in_both_languages(claim: Claim) -> None:
    """Words with digits (names of chips, types, opsets); the numbers of months, which English writes as names, are left out."""
    found = [set(re.findall(r"(?a)\w*\d\w+", text)) - {"10", "11", "12"} for text in (claim.true.en, claim.true.zh)]
    assert found[0] == found[1]


def test_a_claim_is_found_by_code_whatever_the_case() -> None:
    claim = find_claim("cl013")
    assert claim is not None and claim.name == "hardsigmoid"
    assert find_claim("CL019") is None
