"""explain: every code has its documentation, in both languages, under the same headings."""

from __future__ import annotations

import re

import pytest

from jumar import UsageError, explain
from jumar.rules import Rule, all_rules
from jumar.targets.claims import Claim, all_claims
from jumar.text import Lang

HEADINGS: dict[Lang, list[str]] = {
    "en": ["What:", "Why on Ascend:", "Fix:", "Fix safety:", "Evidence:"],
    "zh": ["问题：", "在昇腾上的原因：", "修复：", "修复安全性：", "依据："],
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_has_every_heading_once_in_order(rule: Rule, lang: Lang) -> None:
    text = explain(rule.code, lang=lang).data["text"]
    paragraphs = text.split("\n\n")
    assert len(paragraphs) == 5
    for paragraph, heading in zip(paragraphs, HEADINGS[lang], strict=True):
        assert paragraph.startswith(heading)
        assert len(paragraph) > len(heading) + 3, "a heading without text"
    assert bool(re.search("[\u4e00-\u9fff]", text)) == (lang == "zh")


@pytest.mark.parametrize("word", ["OP202", "op202", "hardswish-no-kernel", "HardSwish-No-Kernel"])
def test_a_code_or_a_name_will_do(word: str) -> None:
    record = explain(word, lang="en")
    assert {key: value for key, value in record.data.items() if key != "text"} == {
        "code": "OP202",
        "name": "hardswish-no-kernel",
        "severity": "error",
        "safety": "safe",
        "since": "0.1",
    }
    assert (record.verb, record.verdict) == ("explain", "ready")
    assert record.notes[0].render("en") == record.data["text"]
    assert record.notes[0].render("zh") == explain(word, lang="zh").data["text"]


def test_an_unknown_code_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        explain("XX999")
    for rule in all_rules():
        assert rule.code in str(caught.value)
    assert "CL001 to CL018 (`jumar explain claims`)" in str(caught.value)
    assert "CL001 到 CL018" in caught.value.render("zh")
    assert "CL002" not in str(caught.value)


CLAIM_HEADINGS: dict[Lang, list[str]] = {
    "en": ["What articles say: ", "What is true (", "Evidence: ", "See: "],
    "zh": ["文章的说法：", "实情（", "依据：", "查看："],
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.code)
def test_every_claim_has_a_page(claim: Claim, lang: Lang) -> None:
    record = explain(claim.code.lower(), lang=lang)
    paragraphs = record.data["text"].split("\n\n")
    assert len(paragraphs) == 4
    for paragraph, heading in zip(paragraphs, CLAIM_HEADINGS[lang], strict=True):
        assert paragraph.startswith(heading)
    assert record.data["show"] == [f"jumar targets show {op}" for op in claim.show]
    assert all(f"`{command}`" in paragraphs[-1] for command in record.data["show"])
    assert (record.data["code"], record.notes[0].render(lang)) == (claim.code, record.data["text"])
    assert bool(re.search("[\u4e00-\u9fff]", record.data["text"])) == (lang == "zh")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_claims_are_listed(lang: Lang) -> None:
    record = explain("Claims", lang=lang)
    assert [row["code"] for row in record.data["claims"]] == [claim.code for claim in all_claims()]
    assert [note.render(lang).split()[0] for note in record.notes] == [claim.code for claim in all_claims()]
    assert all(row["says"] and row["verdict"] for row in record.data["claims"])


def test_no_claim_has_the_code_of_a_rule() -> None:
    assert not {claim.code for claim in all_claims()} & {rule.code for rule in all_rules()}
