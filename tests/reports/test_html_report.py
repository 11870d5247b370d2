"""The page is one file that asks nobody for anything, and shows text as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jumar import check
from jumar.case import Record
from jumar.reports import html_report
from jumar.text import LANGS, Lang

ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "span", "b", "code", "br", "table", "tr", "th", "td", "pre"}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("lang", LANGS)
def test_nothing_hostile_becomes_markup(hostile: Record, evil: str, lang: Lang) -> None:
    page = html_report(hostile, lang)
    reader = read(page)
    assert set(reader.tags) <= ALLOWED
    assert {name for name, _ in reader.attributes} <= {"lang", "charset", "name", "content", "class"}
    assert "<script" not in page.lower()
    visible = reader.text.replace("\n", "\r")
    # path, dtype, target (2), names and dtypes of ends (3), 2 findings grouped into 1 and 1 resolved with 5 texts each, proof, output, interface (4), files (2), note
    assert visible.count(evil) >= 24


@pytest.mark.parametrize("lang", LANGS)
def test_the_page_is_self_contained(hostile: Record, lang: Lang) -> None:
    page = html_report(hostile, lang)
    assert not re.search(r"https?://|//[a-z]|src=|href=|@import|url\(", page)


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "en",
            [
                "Migration report",
                "blocked: what is listed as an error stands in the way",
                "What stands",
                "What was found and repaired",
                "rolled back",
            ],
        ),
        ("zh", ["迁移报告", "受阻：所列错误妨碍迁移", "现存问题", "已发现并修复的问题", "已回滚"]),
    ],
)
def test_the_page_is_in_one_language(hostile: Record, lang: Lang, words: list[str]) -> None:
    page = html_report(hostile, lang)
    assert [word for word in words if word not in page] == []
    assert page.startswith(f'<!DOCTYPE html>\n<html lang="{"zh-CN" if lang == "zh" else "en"}">')
    assert ("中" in page) == (lang == "zh")


def test_the_numbers_are_there(hostile: Record) -> None:
    page = html_report(hostile)
    assert "max_abs 1e-07, max_rel 2e-07 &lt;= 1e-06 (3 cases)" in page
    assert "<td>0.125</td><td>0.125</td><td>0.125000000</td>" in page
    assert "<tr><th>aicore</th><th>aicpu</th><th>host</th><th>none</th><th>unknown</th><th>local</th></tr>" in page
    assert "<tr><td>2</td><td>0</td><td>0</td><td>0</td><td>1</td><td>0</td></tr>" in page
    assert f"<code>{'3' * 64}</code>" in page
    assert "&times;2" in page


def test_an_empty_record_is_a_page() -> None:
    reader = read(html_report(Record()))
    assert reader.text.split() == [
        "Migration",
        "report",
        "Migration",
        "report",
        *["ready:", "nothing", "known", "stands", "in", "the", "way", "of", "ATC"],
    ]


def test_a_real_record_is_a_page(relu: Path) -> None:
    page = html_report(check(relu, soc="Ascend310P3").record)
    read(page)
    assert not re.search(r"https?://", page)
