"""The pages of what `export` covers list the corpus as it is, and their sums are those of their rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MISSING = {"en": "not exported", "zh": "未导出"}
TARGETS = 2


def rows(lang: str) -> dict[str, list[str]]:
    text = (ROOT / "docs" / lang / "export-coverage.md").read_text(encoding="utf-8")
    return {match[1]: [cell.strip() for cell in match[2].split("|")] for match in re.finditer(r"^\| `(\w+)` \|(.*)\|$", text, re.MULTILINE)}


def corpus(kind: str) -> set[str]:
    source = (ROOT / "tests" / "exporting" / f"{kind.lower()}s.py").read_text(encoding="utf-8")
    return set(re.findall(rf'^    {kind}\(\s*"(\w+)"', source, re.MULTILINE))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_lists_the_corpus(lang: str) -> None:
    operators, architectures = corpus("Operator"), corpus("Architecture")
    assert len(operators) == 88 and len(architectures) == 28
    assert set(rows(lang)) == operators | architectures


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_sums_are_those_of_the_rows(lang: str) -> None:
    text = (ROOT / "docs" / lang / "export-coverage.md").read_text(encoding="utf-8")
    stated = [
        tuple(map(int, re.findall(r"\d+", re.sub(r"mdc510pro|Ascend310P3", "", line))[:2]))
        for line in text.splitlines()
        if re.match(r"- (\d+ of|面向)", line)
    ]
    found = []
    for kind in ("Operator", "Architecture"):
        names = corpus(kind)
        for column in range(TARGETS):
            good = sum(cells[column] != MISSING[lang] for name, cells in rows(lang).items() if name in names)
            found.append({good, len(names)})
    assert [set(pair) for pair in stated] == found


def test_the_two_languages_say_the_same() -> None:
    english, chinese = rows("en"), rows("zh")
    assert {name: cells[:TARGETS] == [MISSING["en"]] * TARGETS for name, cells in english.items()} == {
        name: cells[:TARGETS] == [MISSING["zh"]] * TARGETS for name, cells in chinese.items()
    }
