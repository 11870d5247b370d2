"""An error is one line in either language: found, expected, what to do next."""

from __future__ import annotations

import jumar
from jumar import JumarError
from jumar.text import say

TEXTS = (say("found {x}", "发现 {x}", x="a\n  b"), say("expected y", "应为 y"), say("do z", "请做 z"))


def test_an_error_is_one_line_of_three_texts() -> None:
    error = JumarError(*TEXTS)
    assert str(error) == error.render() == "found a b; expected y; do z"
    assert error.render("zh") == "发现 a b；应为 y；请做 z"


def test_what_is_not_said_leaves_no_separator() -> None:
    assert str(JumarError(TEXTS[0])) == "found a b"
    assert str(JumarError(TEXTS[0], remedy=TEXTS[2])) == "found a b; do z"


def test_the_kinds_are_those_of_the_documented_tree() -> None:
    parents = {
        "UsageError": jumar.JumarError,
        "TargetError": jumar.UsageError,
        "ShapeError": jumar.UsageError,
        "ModelError": jumar.JumarError,
        "ExternalDataError": jumar.ModelError,
        "OutputError": jumar.JumarError,
        "EvaluationError": jumar.JumarError,
        "ToolError": jumar.JumarError,
    }
    for name, parent in parents.items():
        assert getattr(jumar, name).__bases__ == (parent,)
    assert {name for name in jumar.__all__ if name.endswith("Error")} == {*parents, "JumarError"}
