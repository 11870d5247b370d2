"""The table of codes: complete, in two languages, compiled from the facts; and what is said of codes that are not in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.logs.codes import all_codes, family_of, find_code, signal_code, status_code
from jumar.logs.report import RULES
from jumar.logs.words import KINDS
from jumar.rules import find_rule
from jumar.targets.tables import table

ROOT = Path(__file__).resolve().parents[2]
CHINESE = re.compile("[\u4e00-\u9fff]")
# Names and commands.
SAME_IN_CHINESE = {"ACL", "aclnn", "Runtime", "profiling", "h,w;h,w", "source set_env.sh", "0 Caffe，1 MindSpore，3 TensorFlow，5 ONNX"}


@pytest.fixture(scope="module")
def facts(shared: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((shared / "facts" / "toolchain" / "error_codes.json").read_text(encoding="utf-8"))
    return data


def test_every_code_of_the_facts_is_known(facts: dict[str, Any]) -> None:
    assert len(facts["string_codes"]) == 605
    assert len(facts["numeric_codes"]) == 277
    for row in facts["string_codes"]:
        code = find_code(row["code"])
        assert code is not None and code.known, row["code"]
        assert (code.name, code.args) == (row["title"], tuple(dict.fromkeys(row["args"])))
        assert ("9.2" in code.states) is bool(row["in_9_2"])
        assert code.specific is (row["text_specificity"] == "own, specific")
    for row in facts["numeric_codes"]:
        for word in (str(row["code"]), hex(row["code"]), row["name"], row["name"].lower()):
            code = find_code(word)
            assert code is not None and code.known, word
            assert (code.code, code.name, code.cause.en) == (str(row["code"]), row["name"], row["meaning"])


def test_both_numberings_lead_to_each_other(facts: dict[str, Any]) -> None:
    for old, new in facts["renumbering"]["map"].items():
        first, second = find_code(old), find_code(new)
        assert first is not None and second is not None
        assert (first.also, second.also) == (new, old)
        assert first.kind == second.kind, old


def test_every_text_is_in_both_languages_and_every_kind_has_a_finding() -> None:
    assert {*RULES} == {*KINDS}
    for kind in KINDS:
        assert find_rule(RULES[kind])
    codes = list(all_codes())
    assert len(codes) == 605 + 277
    for code in codes:
        assert code.kind in (*KINDS, "warning"), code.code
        for text in (code.cause, code.remedy, code.family):
            assert text.en and not CHINESE.search(text.en), code.code
            assert CHINESE.search(text.zh) or text.zh in SAME_IN_CHINESE, (code.code, text.zh)


def test_the_findings_that_tell_the_same_exist() -> None:
    named = {check for code in all_codes() for check in code.checks}
    assert named >= {"OP101", "OP110", "GR502"}
    for check in named:
        find_rule(check)


def test_compiling_the_codes_again_gives_the_same_bytes(shared: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "compile_codes.py"), str(shared / "facts"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    made = (tmp_path / "codes.json").read_bytes()
    assert made == (ROOT / "src" / "jumar" / "data" / "codes.json").read_bytes(), "run tools/compile_codes.py"


@pytest.mark.parametrize(
    ("word", "kind", "known", "family"),
    [
        ("E10999", "unknown", False, "options of ATC and GE"),
        ("EE9999", "inner", False, "an inner error of one module"),
        ("EX1234", "unknown", False, "no module of this name is known"),
        ("W99999", "warning", False, "a warning"),
        ("145999", "unknown", False, "GE executor: caller or environment"),
        ("599999", "unknown", False, "internal"),
        ("1343225857", "inner", True, "a status inside GE"),
        ("4294967295", "inner", True, "any module"),
        ("139", "silent", True, "end of a process: status 139"),
        ("-9", "silent", True, "end of a process: status 137"),
        ("sigsegv", "silent", True, "end of a process: status 139"),
    ],
)
def test_what_is_not_in_the_table_is_told_by_its_number(word: str, kind: str, known: bool, family: str) -> None:
    code = find_code(word)
    assert code is not None
    assert (code.kind, code.known) == (kind, known)
    assert code.family.render().startswith(family)
    assert CHINESE.search(code.cause.render("zh"))


@pytest.mark.parametrize(
    "word", ["", "E1", "E123456", "12", "0x", "0xFFFFFFFFFF", "600000", "ACL_ERROR_NOTHING", "SIGX", "model.onnx", "１３９", "1343225857x"]
)
def test_what_is_no_code_is_none(word: str) -> None:
    assert find_code(word) is None


@given(st.text(max_size=12) | st.from_regex(r"[EW][0-9A-Z]{5}", fullmatch=True) | st.integers(-(2**33), 2**33).map(str))
def test_any_word_is_answered_or_none(word: str) -> None:
    code = find_code(word)
    assert code is None or (code.cause.render("zh") and code.remedy.render("en") and code.family.render("zh"))


def test_a_signal_by_name_and_by_status() -> None:
    assert signal_code("SIGKILL") == status_code(137) == status_code(-9)
    assert status_code(1) is status_code(255) is signal_code("SIGNOTHING") is None


def test_families_are_told_apart() -> None:
    """A planted swap of two rows would be noticed."""
    assert str(family_of("E16005")) == "ONNX parser" != str(family_of("E11009"))
    rows = table("codes.json")["families"]
    first = next(row for row in rows if re.fullmatch(row[0], "E16005"))
    assert first[1] == "ONNX parser"
