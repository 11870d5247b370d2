"""The lint on the real commands of public models: all are read, and each error it reports stands in the table of docs/*/lint.md."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jumar.atc.lint import FoundCall, lint_text
from jumar.atc.options import symbolic

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (\S+:\d+) \| (AT\d{3}) \| (\S+) \| ([E\d, -]+) \| [^|]+ \|$", re.MULTILINE)


@cache
def rows(shared: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((shared / "facts" / "peers" / "atc_commands.json").read_text(encoding="utf-8"))["rows"]
    return found


@cache
def linted(shared: Path) -> list[FoundCall]:
    calls = []
    for row in rows(shared):
        (call,) = lint_text(row["command"], kind="shell").calls
        calls.append(call)
    return calls


def place(row: dict[str, Any]) -> str:
    return f"{row['file'].removeprefix('ACL_PyTorch/')}:{row['line']}"


def test_all_commands_are_read(shared: Path) -> None:
    assert len(linted(shared)) == 529


def plain(value: str) -> str:
    """Variables written in one way, and without the blanks of placeholders."""
    return re.sub(r"\$(\w+)", r"${\1}", value).replace(" ", "").replace("_", "").lower()


def test_the_flags_are_those_collected(shared: Path) -> None:
    """Read by another program, which gave up at quotes and blanks in a few dozen commands; where both read a flag, they agree."""
    differing = []
    for row, call in zip(rows(shared), linted(shared), strict=True):
        for name, value in row["flags"].items():
            mine = call.options.get(name)
            if plain(mine) != plain(value):
                differing.append((place(row), name, mine, value))
    assert len(differing) < 40, differing
    for where, name, mine, value in differing:
        # The other reader stopped at a blank, a quote, a redirection, or took the first of two values.
        cut = plain(mine).startswith(plain(value).rstrip("$>").strip("'\"")) or ">" in value or value == "" or mine == "" or name == "log"
        assert cut or symbolic(mine) or "'" in mine, (where, name, mine, value)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_error_is_argued(lang: str, shared: Path) -> None:
    found = [
        (place(row), problem.code, problem.flag or "-", ", ".join(problem.atc) or "-")
        for row, call in zip(rows(shared), linted(shared), strict=True)
        for problem in call.problems
        if problem.severity == "error"
    ]
    table = ROW.findall((ROOT / "docs" / lang / "lint.md").read_text(encoding="utf-8"))
    assert sorted(table) == sorted(found)
    assert len(found) == 37 and len({where for where, *_ in found}) == 35


def test_a_row_of_another_code_would_be_noticed() -> None:
    line = "| a/b.sh:3 | AT902 | log | E10010 | it says ERROR |"
    assert ROW.findall(line) == [("a/b.sh:3", "AT902", "log", "E10010")]
    assert ROW.findall(line.replace("AT902", "AT")) == []
