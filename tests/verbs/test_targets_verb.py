"""targets: what is known, readable and as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumar import Record, TargetError, diff_targets
from jumar.cli.main import run
from jumar.targets import Status, cann_states, default_cann, find_target, profiles, soc_info, socs, support
from jumar.targets.declared import forget
from jumar.targets.limits import limits_of
from jumar.targets.survey import answers, is_extension, soc_groups, standard_operators, state_basis
from jumar.targets.tables import opset_numbers
from jumar.verbs.targets import list_targets, show_target
from jumar.verbs.targets_show import find_operator, near_operators


def lines(record: Record, lang: str = "en") -> list[str]:
    return [note.render("zh" if lang == "zh" else "en") for note in record.notes]


def is_json(record: Record) -> bool:
    return bool(json.loads(json.dumps(record.to_dict(), allow_nan=False)) == record.to_dict())


# list


def test_list_has_every_soc_profile_and_state_once() -> None:
    record = list_targets()
    assert [row["soc"] for row in record.data["socs"]] == list(socs())
    assert record.data["profiles"] == profiles()
    assert record.data["cann"] == [row["cann"] for row in record.data["cann_states"]] == list(cann_states())
    words = [line.split() for line in lines(record)]
    assert [word[1] if word[0] == "CANN" else word[0] for word in words] == [*socs(), *profiles(), *cann_states()]
    assert is_json(record)


def test_a_soc_without_table_says_that_verdicts_are_unknown() -> None:
    record = list_targets()
    without = {row["soc"] for row in record.data["socs"] if not row["operator_table"]}
    said = {line.split()[0] for line in lines(record) if "no public operator table" in line}
    assert said == without


BASES = {
    "canndev-2021-06": ("exact", "none"),
    "5.0.4": ("between", "none"),
    "6.0.1": ("between", "near"),
    "canndev-2022-06": ("exact", "exact"),
    "7.0.0": ("between", "between"),
    "8.1.RC1": ("between", "exact"),
    "8.5.0": ("partial", "older"),
    "9.2.0-beta.2": ("exact", "older"),
}


@pytest.mark.parametrize("cann", BASES)
def test_a_state_says_what_it_rests_on(cann: str) -> None:
    row = next(row for row in list_targets().data["cann_states"] if row["cann"] == cann)
    assert (row["parser"], row["kernels"]) == BASES[cann]
    assert row["default"] is (cann == default_cann())
    assert row["source"] and row["opset_min"] < row["opset_max"]


# show SOC


@pytest.mark.parametrize("name", socs())
def test_every_soc_can_be_shown(name: str) -> None:
    record = show_target(name)
    assert record.data["soc"] == name
    assert record.data["source"]
    for lang in ("en", "zh"):
        shown = lines(record, lang)
        assert f"soc: {name}" in shown
        assert not any("None" in line or "[{" in line for line in shown)
    assert is_json(record)


def test_a_number_nobody_published_is_said_to_be_so() -> None:
    record = show_target("Ascend910B")
    assert record.data["memory_bytes"] is None
    assert "memory_bytes: not public" in lines(record)
    assert "memory_bytes: 未公开" in lines(record, "zh")
    assert any(line.startswith("caution: ") and "not Atlas A2" in line for line in lines(record))


def test_a_profile_shows_its_soc_and_its_confidence() -> None:
    data = show_target("mdc510pro").data
    assert (data["profile"], data["soc"], data["opset_max"], data["confidence"]) == ("mdc510pro", "BS9SX1AA", 11, "low")


# show OP


def test_an_operator_is_answered_for_every_soc() -> None:
    data = show_target("HardSwish").data
    assert (data["operator"], data["extension"], data["cann"]) == ("HardSwish", False, default_cann())
    assert [row["soc"] for row in data["targets"]] == list(socs())
    status = {row["soc"]: row["status"] for row in data["targets"]}
    assert (status["Ascend310P3"], status["BS9SX1AA"], status["Ascend910_95"]) == ("supported", "no-kernel", "unknown")
    assert [row["soc"] for row in show_target("HardSwish", soc="Ascend310P3").data["targets"]] == ["Ascend310P3"]


@pytest.mark.parametrize("op", ["NonZero", "Resize", "GRU", "LayerNormalization", "Trilu"])
def test_the_table_of_engines_says_what_support_says(op: str) -> None:
    """For every kernel table, CANN state and opset, in data as in one call each."""
    data = show_target(op).data
    assert [row["cann"] for row in data["parser"]] == list(cann_states())
    groups = {tuple(row["socs"]) for row in data["engines"]}
    assert sorted(name for group in groups for name in group) == list(socs())
    assert len(data["engines"]) == len(groups) * len(cann_states())
    for row in data["engines"]:
        target = find_target(row["socs"][-1], cann=row["cann"])
        told = {opset: item["status"] for item in row["answers"] for opset in opset_numbers(item["opsets"])}
        for opset in range(target.opset_min, target.opset_max + 1):
            status = support("", op, opset, target).status
            assert told.get(opset, "no-parser-at-opset") == status.value, (row["socs"], row["cann"], opset)


def test_the_opsets_of_a_state_are_those_that_are_answered() -> None:
    rows = {row["cann"]: row for row in show_target("HardSigmoid").data["parser"]}
    assert (rows["6.0.1"]["opsets"], rows["8.1.RC1"]["opsets"]) == ("9-13", "8-18")
    assert opset_numbers(rows["6.0.1"]["maybe"]) >= {14, 15}  # known of 2022-06, beyond what the documents of 6.0.1 name
    assert show_target("LayerNormalization", cann="8.1.RC1").data["parser"][0]["opsets"] == ""


def test_the_terminal_shows_a_table_with_socs_of_a_kind_together() -> None:
    shown = lines(show_target("NonZero"))
    assert shown[0] == "NonZero"
    (default,) = [line.split() for line in shown if "(default)" in line]
    assert default[:5] == ["8.1.RC1", "(default)", "opset", "9-18", "between:"]
    assert "  AI Core          AI Core      Ascend310P1, Ascend310P3, Ascend310P5, Ascend310P7" in shown
    assert "  no table         unknown [1]  BS9SX1AA, BS9SX1AB, BS9SX1AC" in shown
    assert sum(line.startswith("  [1] it runs on the AI CPU only") for line in shown) == 1
    assert "  NonZero  AI Core  x  bool, float16, float32, int8, uint8" in shown
    chinese = lines(show_target("NonZero"), "zh")
    assert len(chinese) == len(shown) and any("未知 [1]" in line for line in chinese)


def test_one_soc_is_shown_by_cann_state() -> None:
    record = show_target("NonZero", soc="Ascend310P3")
    assert "Parser, and engine on Ascend310P3" in lines(record)
    (line,) = [line for line in lines(record) if line.startswith("  7.0.0 ")]
    assert "AI Core (inferred)" in line and "between: CANN 7.0.0 ATC guide" in line
    assert {tuple(row["socs"]) for row in record.data["engines"]} == {("Ascend310P3",)}


def test_one_state_is_shown_alone() -> None:
    record = show_target("CumSum", cann="canndev-2022-06")
    assert [row["cann"] for row in record.data["parser"]] == ["canndev-2022-06"]
    assert {row["cann"] for row in record.data["engines"]} == {"canndev-2022-06"} == {record.data["dtypes"]["cann"]}
    assert any("AI Core if constant" in line for line in lines(record))


def test_types_are_those_of_the_named_soc() -> None:
    def types(soc: str | None) -> dict[tuple[str, str], list[str]]:
        data = show_target("NonMaxSuppression", soc=soc).data["dtypes"]
        assert data["soc"] == (soc or "Ascend310P3")
        return {(row["ir"], row["engine"]): row["inputs"][0]["types"] for row in data["kernels"] if row["inputs"]}

    assert types(None)["NonMaxSuppressionV7", "aicore"] == ["float16", "float32"]
    assert types("Ascend310")["NonMaxSuppressionV7", "aicore"] == ["float16"]


def test_types_chosen_at_compile_time_are_an_upper_bound() -> None:
    record = show_target("GRU", soc="BS9SX1AA")
    (row,) = record.data["dtypes"]["kernels"]
    assert (row["of"], row["ir"], row["inputs"][0]["types"], row["inputs"][0]["at_most"]) == (
        "CommonGRU",
        "DynamicGRUV2",
        ["float16"],
        True,
    )
    assert any("CommonGRU > DynamicGRUV2" in line and "at most float16" in line for line in lines(record))


def test_all_limits_are_data_and_those_that_apply_are_shown() -> None:
    record = show_target("ScatterND")
    rows = record.data["limits"]
    assert len(rows) == len(limits_of("ScatterND"))
    refused = next(row for row in rows if row["text"]["en"] == "reduction=mul is refused")
    assert (refused["effect"], refused["applies"], refused["confidence"]) == ("reject", False, "observed")
    assert "8.1.RC1" not in refused["cann"] and "9.2.0-beta.2" in refused["cann"]
    shown = "\n".join(lines(record))
    assert "reduction is not read before 9.2" in shown and "reduction=mul is refused" not in shown
    assert "被忽略，结果不同" in "\n".join(lines(record, "zh"))
    assert "reduction=mul is refused" in "\n".join(lines(show_target("ScatterND", cann="9.2.0-beta.2")))


def test_sources_are_named() -> None:
    sources = show_target("NonZero", soc="Ascend310B1").data["sources"]
    assert any("non_zero_onnx_plugin" in source for source in sources)
    assert any("ascend310b" in source for source in sources)


def test_an_operator_without_any_parser_says_so() -> None:
    record = show_target("Loop")
    assert "Parser: registered in none of these CANN versions" in lines(record)
    assert {row["status"] for row in record.data["targets"]} == {"no-parser"}
    assert all(not row["answers"] for row in record.data["engines"])


@pytest.mark.parametrize(
    ("word", "key"),
    [("nonzero", "NonZero"), ("ai.onnx::NonZero", "NonZero"), ("NPU::npugru", "npu::NPUGru"), ("sparsetodense", "SparseToDense")],
)
def test_an_operator_is_found_whatever_the_case(word: str, key: str) -> None:
    data = show_target(word).data
    assert (find_operator(word), data["operator"]) == (key, key)
    assert data["extension"] is is_extension(key) is (key != "NonZero")


def test_an_extension_says_that_it_is_none_of_the_standard() -> None:
    assert lines(show_target("npu::NPUGru"))[0] == "npu::NPUGru: an operator of CANN, not of the ONNX standard"
    assert show_target("npu::NPUGru").data["limits"] == []


@pytest.mark.parametrize("op", sorted(standard_operators())[::12])
def test_every_operator_can_be_shown(op: str) -> None:
    record = show_target(op, cann=default_cann())
    assert is_json(record)
    assert all(line and "\n" not in line for lang in ("en", "zh") for line in lines(record, lang))


def test_socs_are_together_when_their_tables_are_the_same() -> None:
    for group in soc_groups():
        assert len({(soc_info(name).kernels, soc_info(name).aicpu_package) for name in group}) == 1
        for op in ("Conv", "NonZero"):
            kinds = {tuple((item.opsets, item.status, item.engine) for item in answers("", op, find_target(name))) for name in group}
            assert len(kinds) == 1
    assert {state_basis(name).kernels for name in cann_states()} == {"exact", "near", "between", "older", "none"}


def test_a_kernel_of_the_users_own_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_TARGETS", str(tmp_path))
    (tmp_path / "mine.toml").write_text(
        '[[kernel]]\ndomain = "mine"\nop = "Special"\nopsets = "1"\nsocs = ["Ascend310P3"]\nengine = "aicore"\n', encoding="utf-8"
    )
    forget()
    try:
        record = show_target("mine::special")
        assert record.data["operator"] == "mine::Special"
        rows = {tuple(row["socs"]): row["answers"] for row in record.data["engines"] if row["cann"] == "8.1.RC1"}
        assert [(item["opsets"], item["status"]) for item in rows["Ascend310P3",]] == [("1", "supported")]
        assert rows["Ascend310P1", "Ascend310P5", "Ascend310P7"] == []
        shown = lines(show_target("mine::special", soc="Ascend310P3", cann="8.1.RC1"))
        assert any("opset 1  AI Core" in line for line in shown)
    finally:
        forget()


# Names that are nothing


def test_a_family_is_answered_with_its_members() -> None:
    with pytest.raises(
        TargetError, match=r"^`ascend310p` is a family .*; expected one of: Ascend310P1, Ascend310P3, Ascend310P5, Ascend310P7; "
    ):
        show_target("ascend310p")


@pytest.mark.parametrize(
    ("name", "near"), [("HardSwich", "HardSwish"), ("softmx", "Softmax"), ("mine::NonZero", "NonZero"), ("NPUgruu", "NPUGru, npu::NPUGru")]
)
def test_a_near_miss_is_told_the_operator(name: str, near: str) -> None:
    with pytest.raises(TargetError, match=rf"^`{name}` is neither a SoC, a profile nor an operator; expected perhaps {near}"):
        show_target(name)
    assert near_operators(name)


@pytest.mark.parametrize("name", ["Ascend310P33", "ascend310p3", "nonsense-and-more", "", "../../etc/passwd", "IPV350"])
def test_another_name_is_told_what_there_is(name: str) -> None:
    with pytest.raises(TargetError, match=r"name a SoC, a profile or an ONNX operator \(`jumar targets list`\)$"):
        show_target(name)


def test_an_unknown_soc_or_cann_of_an_operator_is_refused() -> None:
    with pytest.raises(TargetError, match="is not a soc_version"):
        show_target("NonZero", soc="nonsense")
    with pytest.raises(TargetError, match="1971"):
        show_target("NonZero", cann="1971")


# diff


def changes(record: Record) -> dict[tuple[str, str], list[str]]:
    return {(row["from"], row["to"]): row["operators"] for row in record.data["changes"]}


def test_two_socs_differ_where_their_answers_do() -> None:
    record = diff_targets("Ascend310P3", "Ascend310B1")
    one, two = find_target("Ascend310P3"), find_target("Ascend310B1")
    found: dict[tuple[str, str], list[str]] = {}
    for op in standard_operators():
        pair = support("", op, 18, one).status, support("", op, 18, two).status
        if pair[0] is not pair[1]:
            found.setdefault((pair[0].value, pair[1].value), []).append(op)
    assert changes(record) == found
    assert "NonZero" in found["supported", "aicpu-only"] and "ScatterElements" in found["aicpu-only", "supported"]
    assert record.data["opset"] == 18
    assert record.data["same"] + sum(map(len, found.values())) == len(standard_operators())
    assert is_json(record)


def test_losses_come_first_and_are_counted() -> None:
    shown = lines(diff_targets("Ascend310P3", "BS9SX1AA"))
    assert shown[0].startswith("Ascend310P3, CANN 8.1.RC1 -> BS9SX1AA, CANN 8.1.RC1, at opset 18: ")
    heads = [line.partition(" (")[0] for line in shown if " -> " in line][1:]
    assert heads[0].startswith("AI Core -> ") and "AI Core -> no kernel" in heads


def test_types_of_the_first_input_are_compared() -> None:
    rows = {row["operator"]: row for row in diff_targets("Ascend310P3", "Ascend910B3").data["dtypes"]}
    assert "bfloat16" in rows["ScatterND"]["only_second"]
    assert not set(rows) & {"GRU", "Not"}  # the same on both


def test_two_states_of_one_soc() -> None:
    record = diff_targets("Ascend310P3@canndev-2022-06", "Ascend310P3")
    assert (record.data["first"]["cann"], record.data["second"]["cann"], record.data["opset"]) == ("canndev-2022-06", "8.1.RC1", 15)
    assert "CumSum" in changes(record)["needs-constant", "supported"]


def test_a_profile_brings_its_ceiling() -> None:
    record = diff_targets("mdc510pro", "Ascend310P3")
    assert record.data["opset"] == 11 and record.data["first"]["profile"] == "mdc510pro"


def test_a_target_does_not_differ_from_itself() -> None:
    data = diff_targets("Ascend310B1", "Ascend310B4").data
    assert (data["changes"], data["dtypes"]) == ([], [])


def test_differences_are_the_same_from_both_sides() -> None:
    there, back = diff_targets("Ascend310", "Ascend910B3"), diff_targets("Ascend910B3", "Ascend310")
    assert changes(there) == {(after, before): ops for (before, after), ops in changes(back).items()}


@pytest.mark.parametrize("name", ["Ascend310P", "Ascend310P3@1971", "@8.1.RC1", ""])
def test_a_wrong_side_is_refused(name: str) -> None:
    with pytest.raises(TargetError):
        diff_targets("Ascend310P3", name)


# On the command line


def test_the_command_line_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    def call(*words: str) -> dict[str, Any]:
        assert run(["targets", *words, "--format", "json"]) == 0
        data: dict[str, Any] = json.loads(capsys.readouterr().out)
        return data

    assert call("show", "nonzero", "--soc", "BS9SX1AA", "--cann", "8.1.RC1")["data"]["dtypes"]["soc"] == "BS9SX1AA"
    assert call("diff", "Ascend310P3", "Ascend310B1")["data"]["opset"] == 18
    assert run(["targets", "diff", "Ascend310P3", "nonsense"]) == 2
    assert run(["targets", "show", "NonZero", "--lang", "zh"]) == 0
    assert "解析器：注册的 opset" in capsys.readouterr().out


def test_every_status_has_words() -> None:
    from jumar.verbs.targets_words import STATUSES

    assert set(STATUSES) >= {
        Status.SUPPORTED,
        Status.UNKNOWN,
        Status.NO_KERNEL,
        Status.AICPU_ONLY,
        Status.NEEDS_CONSTANT,
        Status.NO_KERNEL_NEEDED,
    }
