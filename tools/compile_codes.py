#!/usr/bin/env python3
"""Compile the table of error codes into ``src/jumar/data/codes.json``.

usage: python tools/compile_codes.py [FACTS_DIR] [DATA_DIR]

The facts give codes, titles, arguments, causes and remedies in English; ``code_texts.json`` beside this file holds the Chinese, the
remedies of numeric codes, and what kind of trouble each code is. Same input, same bytes. A sentence without Chinese ends the run.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))  # a checkout need not be installed

from jumar.targets.encode import dump

ROOT = Path(__file__).resolve().parent.parent
UNSAID = "See title and arguments."


def first(rules: list[list[str]], word: str) -> str:
    """The answer of the first rule whose pattern is the whole word."""
    return next(answer for pattern, answer in rules if re.fullmatch(pattern, word))


def both(sentence: str, row: dict[str, Any], texts: dict[str, list[str]]) -> list[str]:
    """A sentence in English and Chinese; one that refers to title and arguments names them."""
    if sentence != UNSAID:
        return [text.rstrip(".。") for text in texts[sentence]]
    title = row["title"].replace("_", " ").lower()
    names = ", ".join(dict.fromkeys(row["args"]))
    if title:
        return [f"{title}; the arguments of the message say where: {names}", f"{title}；具体见报错参数：{names}"]
    return [f"the arguments of the message say what is wrong: {names}", f"具体问题见报错参数：{names}"]


def compile_string(row: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    titled = next((kind for pattern, kind in words["titles"] if re.fullmatch(pattern, row["title"])), None)
    kind = first(words["kinds"], row["code"])
    states = [name for name, there in (("8.1.RC1", row["in_8_1_RC1"]), ("9.2", row["in_9_2"])) if there]
    entry: dict[str, Any] = {
        "title": row["title"],
        "args": list(dict.fromkeys(row["args"])),
        "cause": both(row["cause"], row, words["texts"]),
        "remedy": ["read the arguments of the message", "阅读报错信息中的参数"]
        if row["remedy"] == UNSAID
        else both(row["remedy"], row, words["texts"]),
        "kind": titled if titled and kind == "operator" else kind,
        "in": states,
        "specific": row["text_specificity"] == "own, specific",
        "source": row["source"],
    }
    other = row.get("renumbered_to") or row.get("was")
    if other:
        entry["also"] = other
    if row["code"] in words["checks"]:
        entry["checks"] = words["checks"][row["code"]]
    return entry


def compile_numeric(row: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    entry = {
        "name": row["name"],
        "layer": row["layer"],
        "meaning": [row["meaning"], words["numeric"][row["meaning"]]],
        "kind": first(words["numeric_kinds"], str(row["code"])),
        "since": row["since"],
        "specific": row["meaning_specificity"] == "specific",
        "source": row["source"],
    }
    remedy = words["numeric_remedies"].get(str(row["code"]))
    return entry if remedy is None else {**entry, "remedy": [text.rstrip(".。") for text in remedy]}


def main(argv: list[str]) -> int:
    facts = Path(argv[0]) if argv else ROOT.parent / "shared" / "facts"
    data = Path(argv[1]) if len(argv) > 1 else ROOT / "src" / "jumar" / "data"
    table = json.loads((facts / "toolchain" / "error_codes.json").read_text(encoding="utf-8"))
    words = json.loads((Path(__file__).parent / "code_texts.json").read_text(encoding="utf-8"))
    compiled = {
        "meta": {
            "what": "error codes of CANN: texts and numbers, what they mean and what to do; causes are Jumar's own words",
            "source": "registries of CANN 8.1.RC1 and 9.2: " + table["versions"],
            "confidence": "observed",
        },
        "families": words["families"],
        "string": {row["code"]: compile_string(row, words) for row in table["string_codes"]},
        "numeric": {str(row["code"]): compile_numeric(row, words) for row in table["numeric_codes"]},
    }
    text = dump(compiled).replace("},", "},\n") + "\n"  # one code a line: a changed one is a one-line diff
    (data / "codes.json").write_text(text, encoding="utf-8")
    print(f"{len(compiled['string'])} and {len(compiled['numeric'])} codes, {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
