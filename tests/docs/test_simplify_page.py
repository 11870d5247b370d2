"""The tables of docs/*/simplify.md name all kinds, and the marks that the benchmark writes between are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumar.graph.simplify import KINDS

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `([a-z-]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
EXACT = {"en": {"exact": True, "rounds differently": False}, "zh": {"逐元素相等": True, "舍入不同": False}}
MARKS = re.compile(r'BEGIN, END = "([^"]+)", "([^"]+)"')


def kinds_in(text: str, lang: str) -> dict[str, bool]:
    """Kind -> whether it is said to be exact."""
    rows = ROW.findall(text)
    assert len({row[0] for row in rows}) == len(rows), "a kind has two rows"
    return {kind: EXACT[lang][exact] for kind, _, exact in rows}


def page(lang: str) -> str:
    return (ROOT / "docs" / lang / "simplify.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_agrees_with_what_is_registered(lang: str) -> None:
    assert kinds_in(page(lang), lang) == KINDS


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_benchmark_finds_its_place(lang: str) -> None:
    found = MARKS.search((ROOT / "benchmarks" / "simplify.py").read_text(encoding="utf-8"))
    assert found is not None
    begin, end = found.groups()
    assert page(lang).count(begin) == page(lang).count(end) == 1
    assert page(lang).index(begin) < page(lang).index(end)


def test_a_wrong_row_would_be_noticed() -> None:
    assert kinds_in("| `no-op` | x | exact |", "en") != kinds_in("| `no-op` | x | rounds differently |", "en")
    with pytest.raises(AssertionError, match="two rows"):
        kinds_in("| `no-op` | x | exact |\n" * 2, "en")
