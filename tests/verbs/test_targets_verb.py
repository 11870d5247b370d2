"""targets: what is known, readable and as data."""

from __future__ import annotations

import json

import pytest

from jumar import TargetError
from jumar.targets import cann_states, profiles, socs
from jumar.verbs.targets import list_targets, show_target


def test_list_has_every_soc_and_profile_once() -> None:
    record = list_targets()
    assert [row["soc"] for row in record.data["socs"]] == list(socs())
    assert record.data["profiles"] == profiles()
    assert record.data["cann"] == list(cann_states())
    assert [note.render("en").split()[0] for note in record.notes] == [*socs(), *profiles()]
    assert json.loads(json.dumps(record.to_dict())) == record.to_dict()


def test_a_soc_without_table_says_that_verdicts_are_unknown() -> None:
    record = list_targets()
    without = {row["soc"] for row in record.data["socs"] if not row["operator_table"]}
    said = {note.render("en").split()[0] for note in record.notes if "no public operator table" in note.render("en")}
    assert said == without


@pytest.mark.parametrize("name", socs())
def test_every_soc_can_be_shown(name: str) -> None:
    record = show_target(name)
    assert record.data["soc"] == name
    assert record.data["source"]
    assert f"soc: {name}" in [note.render("zh") for note in record.notes]
    json.dumps(record.to_dict(), allow_nan=False)


def test_a_profile_shows_its_soc_and_its_confidence() -> None:
    data = show_target("mdc510pro").data
    assert (data["profile"], data["soc"], data["opset_max"], data["confidence"]) == ("mdc510pro", "BS9SX1AA", 11, "low")


def test_an_operator_is_answered_for_every_soc_with_a_table() -> None:
    with_table = [row["soc"] for row in list_targets().data["socs"] if row["operator_table"]]
    data = show_target("HardSwish").data
    assert data["operator"] == "HardSwish"
    assert [row["soc"] for row in data["targets"]] == with_table
    status = {row["soc"]: row["status"] for row in data["targets"]}
    assert (status["Ascend310P3"], status["BS9SX1AA"]) == ("supported", "no-kernel")
    assert [row["soc"] for row in show_target("HardSwish", soc="Ascend310P3").data["targets"]] == ["Ascend310P3"]


def test_a_family_is_answered_with_its_members() -> None:
    with pytest.raises(
        TargetError, match=r"^`ascend310p` is a family .*; expected one of: Ascend310P1, Ascend310P3, Ascend310P5, Ascend310P7; "
    ):
        show_target("ascend310p")


def test_an_unknown_name_is_told_what_else_would_do() -> None:
    with pytest.raises(TargetError, match=r"^`HardSwich` is not a soc_version; .*; name a SoC, a profile or an ONNX operator "):
        show_target("HardSwich")
