"""Questions about targets: exact names, ceilings, and an answer with its source for every operator."""

from __future__ import annotations

import pytest

from jumar import TargetError
from jumar.targets import Status, Target, cann_states, default_cann, find_target, profiles, soc_info, socs, support
from jumar.targets.parser import parser_status
from jumar.targets.tables import cann_order, opset_numbers, opset_text

CAR, EDGE, CARD = "BS9SX1AA", "Ascend310B1", "Ascend310P3"


def refusal(*arguments: str | None, **options: object) -> str:
    with pytest.raises(TargetError) as caught:
        find_target(*arguments, **options)  # type: ignore[arg-type]
    for lang in ("en", "zh"):
        assert "\n" not in caught.value.render(lang)
    return str(caught.value)


# Targets


def test_an_exact_name_is_a_target() -> None:
    target = find_target(CARD)
    assert (target.soc.name, target.soc.short, target.cann, target.opset_min, target.opset_max) == (CARD, "Ascend310P", "8.1.RC1", 8, 18)
    assert target.to_dict() == {"soc": CARD, "cann": "8.1.RC1", "opset_max": 18}
    assert target.label == f"{CARD}, CANN 8.1.RC1"


@pytest.mark.parametrize("family", ["Ascend310P", "ascend310p", "ASCEND310P"])
def test_a_family_is_refused_with_its_members(family: str) -> None:
    message = refusal(family)
    assert "is a family" in message and "Ascend310P1, Ascend310P3" in message and "--soc" in message
    assert "Ascend310B1" not in message


def test_every_family_is_refused_with_members_that_are_targets() -> None:
    shorts = {soc_info(name).short for name in socs()} - {*socs()}
    assert len(shorts) > 5
    for short in shorts:
        members = refusal(short).split("expected one of: ")[1].split(";")[0].split(", ")
        assert all(soc_info(member).short == short for member in members)


@pytest.mark.parametrize("name", ["Ascend310p3", "Ascend310P33", "nonsense", "", " Ascend310P3", "../../etc/passwd"])
def test_an_unknown_name_is_refused_with_a_near_one(name: str) -> None:
    message = refusal(name)
    assert f"`{name}` is not a soc_version" in message and "such as" in message and "jumar targets list" in message
    if name.startswith("Ascend310"):
        assert CARD in message


def test_a_name_of_newer_sources_says_that_nothing_is_known() -> None:
    assert "not public" in refusal("Ascend950DT_9591")


def test_no_name_is_refused() -> None:
    assert "no target was named" in refusal()


def test_a_profile_names_soc_and_ceiling_and_says_how_sure_it_is() -> None:
    target = find_target(profile="mdc510pro")
    assert (target.soc.name, target.opset_max, target.profile) == (CAR, 11, "mdc510pro")
    assert target.profile_note is not None and str(target.profile_note).startswith("confidence low")
    assert target.to_dict()["profile_note"] == str(target.profile_note)
    assert find_target(CAR, profile="mdc510pro") == target


def test_every_profile_is_a_target() -> None:
    assert profiles()
    for name in profiles():
        assert find_target(profile=name).profile == name


def test_a_profile_and_another_soc_are_refused() -> None:
    assert f"mdc510pro is {CAR}" in refusal(CARD, profile="mdc510pro")
    assert "expected one of: mdc510pro" in refusal(profile="mdc")


@pytest.mark.parametrize("ceiling", [8, 11, 18])
def test_a_ceiling_may_be_lowered(ceiling: int) -> None:
    assert find_target(CARD, opset_max=ceiling).opset_max == ceiling
    assert find_target(profile="mdc510pro", opset_max=ceiling).opset_max == ceiling


@pytest.mark.parametrize("ceiling", [-1, 0, 7, 19])
@pytest.mark.parametrize("profile", [None, "mdc510pro"])
def test_a_ceiling_that_cann_does_not_parse_is_refused(ceiling: int, profile: str | None) -> None:
    assert "expected 8 to 18" in refusal(CAR, profile=profile, opset_max=ceiling)


def test_the_default_is_the_newest_state_with_public_kernel_tables() -> None:
    assert default_cann() == "8.1.RC1"
    assert list(cann_states()) == cann_order()
    for state in cann_states():
        target = find_target(CARD, cann=state)
        assert (target.cann, target.opset_min <= target.opset_max <= 18) == (state, True)
    assert find_target(CARD, cann=default_cann()) == find_target(CARD)


def test_an_unknown_cann_is_refused() -> None:
    message = refusal(CARD, cann="3.1.4")
    assert "no operator tables for CANN 3.1.4" in message and "8.1.RC1" in message


def test_ranges_of_opsets_are_read_and_written() -> None:
    assert opset_numbers("8-10,12") == {8, 9, 10, 12} and opset_numbers("") == set()
    assert opset_text({12, 8, 10, 9}) == "8-10,12" and opset_text(set()) == ""


# Answers

CASES = [
    # operator, opset, SoC, status, engine
    ("Conv", 11, CAR, Status.SUPPORTED, "aicore"),
    ("Conv", 11, CARD, Status.SUPPORTED, "aicore"),
    ("Conv", 18, CARD, Status.SUPPORTED, "aicore"),
    ("Conv", 19, CARD, Status.NO_PARSER_AT_OPSET, "none"),
    ("Conv", 7, CARD, Status.NO_PARSER_AT_OPSET, "none"),
    ("HardSwish", 14, CAR, Status.NO_KERNEL, "none"),
    ("HardSwish", 14, CARD, Status.SUPPORTED, "aicore"),
    ("NonMaxSuppression", 11, CAR, Status.NO_KERNEL, "none"),
    ("NonMaxSuppression", 11, CARD, Status.SUPPORTED, "aicore"),
    ("NonZero", 11, EDGE, Status.AICPU_ONLY, "aicpu"),
    ("NonZero", 11, CARD, Status.SUPPORTED, "aicore"),
    ("NonZero", 11, CAR, Status.UNKNOWN, "unknown"),  # the board image decides whether the AI CPU package is there
    ("QuantizeLinear", 13, CARD, Status.NO_PARSER, "none"),
    ("LayerNormalization", 17, CARD, Status.UNKNOWN, "unknown"),
    ("SequenceAt", 13, CARD, Status.UNKNOWN, "unknown"),
    ("Reshape", 13, CAR, Status.NO_KERNEL_NEEDED, "local"),
    ("Identity", 13, CAR, Status.NO_KERNEL_NEEDED, "local"),
    ("Constant", 13, CAR, Status.NO_KERNEL_NEEDED, "local"),
    ("NoSuchOperator", 13, CAR, Status.NO_PARSER, "none"),
]


@pytest.mark.parametrize(("op", "opset", "soc", "status", "engine"), CASES)
def test_known_answers(op: str, opset: int, soc: str, status: Status, engine: str) -> None:
    for domain in ("", "ai.onnx"):
        answer = support(domain, op, opset, find_target(soc))
        assert (answer.status, answer.engine) == (status, engine)
        assert answer.evidence and all(answer.evidence)


def test_an_answer_at_another_opset_names_the_registered_ones() -> None:
    assert support("", "Conv", 19, find_target(CARD)).opsets == "8-18"


@pytest.mark.parametrize(("op", "opset", "says"), [("NonZero", 11, "AI CPU"), ("LayerNormalization", 17, "only on one side")])
def test_what_is_unknown_says_what_is_not_known(op: str, opset: int, says: str) -> None:
    reason = support("", op, opset, find_target(CAR if op == "NonZero" else CARD)).reason
    assert reason is not None and says in reason.render("en") and reason.render("zh") != reason.render("en")


def test_operators_of_other_domains_are_not_the_standard_ones() -> None:
    assert support("mine", "Conv", 11, find_target(CARD)).status is Status.NO_PARSER


def test_unknown_is_never_supported() -> None:
    """A SoC without a public kernel table has no supported operator that needs a kernel."""
    blind = [name for name in socs() if soc_info(name).kernels is None]
    for name in blind:
        answer = support("", "Conv", 11, find_target(name))
        assert answer.status is Status.UNKNOWN and answer.reason is not None
    dim = Target(soc_info(CARD).__class__(**{**vars(soc_info(CARD)), "kernels": None}), default_cann(), 8, 18)
    assert support("", "Conv", 11, dim).status is Status.UNKNOWN


def test_a_parser_known_on_one_side_only_is_unknown() -> None:
    assert parser_status("LayerNormalization", 17, default_cann()) is Status.UNKNOWN
    assert len(support("", "LayerNormalization", 17, find_target(CARD)).evidence) > 2


STATES = [
    # CANN state, operator, opset, status, confidence
    ("8.1.RC1", "Conv", 11, Status.SUPPORTED, "documented"),
    ("canndev-2022-06", "Conv", 11, Status.SUPPORTED, "observed"),
    ("canndev-2022-06", "Conv", 16, Status.NO_PARSER_AT_OPSET, "observed"),
    ("7.0.0", "Conv", 11, Status.SUPPORTED, "inferred"),  # AI Core in 2022-06 and in 8.1
    ("6.0.1", "Conv", 11, Status.SUPPORTED, "inferred"),  # the table of 2022-06 is near
    ("9.2.0-beta.2", "Conv", 11, Status.UNKNOWN, "observed"),  # kernels of a later state are not public
    ("5.0.4", "Conv", 11, Status.UNKNOWN, "observed"),  # nor those of an earlier one
    ("8.5.0", "QuantizeLinear", 13, Status.NO_PARSER, "observed"),
]


@pytest.mark.parametrize(("cann", "op", "opset", "status", "confidence"), STATES)
def test_a_state_answers_by_its_own_tables_or_those_around_it(cann: str, op: str, opset: int, status: Status, confidence: str) -> None:
    answer = support("", op, opset, find_target(CARD, cann=cann))
    assert answer.status is status and answer.evidence
    if status is not Status.UNKNOWN:
        assert answer.confidence == confidence
    else:
        assert answer.reason is not None and answer.reason.render("zh") != answer.reason.render("en")
