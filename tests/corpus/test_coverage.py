"""The standard's node tests through ``fix``: none ends wrong, and as many end ready as the documentation says.

A twentieth of them by default, all of them in the slow sweep.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import pytest
from node_cases import coverage

from jumar.graph import Evaluator

# What a test of the standard may become; anything else is an error of ours.
HONEST = {"ready", "fixed", "warnings", "blocked"}


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    found: dict[str, Any] = coverage().numeric_cases()
    return found


def sample(names: list[str], share: int) -> list[str]:
    return [name for name in names if zlib.crc32(name.encode()) % share == 0]


@pytest.mark.parametrize("target", ["Ascend310P3", "mdc510pro"])
def test_a_sample_is_never_wrong(cases: dict[str, Any], target: str, evaluator: Evaluator) -> None:
    module = coverage()
    where = module.targets()[target]
    names = sample(sorted(cases), 20)
    assert len(names) > 50
    found = [module.attempt(cases[name], target, where, "told", evaluator) for name in names]
    assert {item.name: (item.what, item.reasons) for item in found if item.what not in HONEST} == {}
    counts = Counter(item.what for item in found)
    assert counts["ready"] + counts["fixed"] > 0.8 * len(found)


def test_a_wrong_result_would_be_noticed(cases: dict[str, Any], evaluator: Evaluator) -> None:
    module = coverage()
    case = cases["test_relu"]
    expected = [[outputs[0] * 1.01 + 0.01] for _, outputs in case.data]
    spoilt = module.Case(
        case.name, case.proto, [(inputs, wrong) for (inputs, _), wrong in zip(case.data, expected, strict=True)], case.rtol, case.atol
    )
    where = module.targets()["Ascend310P3"]
    assert module.examine(case, "Ascend310P3", where, "told", evaluator).what in ("ready", "fixed")
    assert module.examine(spoilt, "Ascend310P3", where, "told", evaluator).what == "wrong"


@pytest.mark.slow
@pytest.mark.parametrize(("target", "share"), [("Ascend310P3", 0.90), ("mdc510pro", 0.85)])
def test_all_of_them(target: str, share: float) -> None:
    found = coverage().sweep(chosen=[target], forms=["told"])
    assert {item.name: (item.what, item.reasons) for item in found if item.what not in HONEST} == {}
    assert sum(item.what in ("ready", "fixed") for item in found) >= share * len(found)
    # What is not ready says so with a code.
    assert all(item.codes for item in found if item.what in ("warnings", "blocked"))
