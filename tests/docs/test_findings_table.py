"""The tables of docs/*/findings.md agree with the registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumar.reports.words import SEVERITIES
from jumar.rules import all_rules
from jumar.text import Lang

ROOT = Path(__file__).resolve().parents[2]
SAFETY = {"en": {"safe": "safe", "unsafe": "unsafe", "advice": "advice"}, "zh": {"safe": "安全", "unsafe": "不安全", "advice": "仅建议"}}
ROW = re.compile(r"^\| ([A-Z]{2,3}\d{3}) \| `([a-z0-9-]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def table(text: str) -> dict[str, tuple[str, str, str]]:
    """Code -> (name, severity, safety) of every row; a code listed twice is an error."""
    rows = ROW.findall(text)
    assert len({row[0] for row in rows}) == len(rows), "a code has two rows"
    return {code: (name, severity.strip(), safety.strip()) for code, name, severity, safety, _ in rows}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_table_agrees_with_the_registry(lang: Lang) -> None:
    page = (ROOT / "docs" / lang / "findings.md").read_text(encoding="utf-8")
    expected = {rule.code: (rule.name, SEVERITIES[rule.severity].render(lang), SAFETY[lang][rule.safety]) for rule in all_rules()}
    assert table(page) == expected


def test_a_row_with_another_severity_would_be_noticed() -> None:
    right = table("| OP101 | `no-parser` | error | advice | text |")
    assert right != table("| OP101 | `no-parser` | warning | advice | text |")
    with pytest.raises(AssertionError, match="two rows"):
        table("| OP101 | `no-parser` | error | advice | text |\n" * 2)
