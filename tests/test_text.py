"""Every sentence exists in both languages, with the same parameters."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import jumar
from jumar.text import Text, default_lang, say, visible

SOURCE = Path(jumar.__file__).parent
# Names of tools, which are the same in every language.
NAMES = {"atc"}


def said() -> Iterator[tuple[str, ast.Call]]:
    """Every ``say(...)`` call of the source, with its place."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # A rule's documentation is written in both languages where the rule is; the tests of the rules read it.
            documentation = isinstance(node, ast.Call) and [ast.unparse(item)[-10:] for item in node.args] == [".doc('en')", ".doc('zh')"]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say" and not documentation:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


CALLS = list(said())


def literals(call: ast.Call) -> list[str]:
    return [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def fields(template: str) -> set[str]:
    return {name.partition(".")[0].partition("[")[0] for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def prose(template: str) -> str:
    return "".join(text for text, _, _, _ in string.Formatter().parse(template))


def test_the_source_is_read() -> None:
    assert len(CALLS) > 150
    assert {place.partition("/")[0] for place, _ in CALLS} >= {"graph", "proof", "targets", "rules", "verbs"}


def test_both_templates_are_literals() -> None:
    assert [place for place, call in CALLS if len(call.args) != 2 or len(literals(call)) != 2] == []


def test_both_templates_use_the_parameters_that_are_passed() -> None:
    wrong = []
    for place, call in CALLS:
        english, chinese = map(fields, literals(call))
        given = {keyword.arg for keyword in call.keywords}
        # Parameters passed on as ``**names`` are not known here.
        if english != chinese or (None not in given and english != given):
            wrong.append((place, english, chinese, given))
    assert wrong == []


def test_the_chinese_is_chinese() -> None:
    """Equal to the English only where nothing but parameters and signs is said."""
    for place, call in CALLS:
        english, chinese = map(prose, literals(call))
        if any(letter.isalpha() for letter in english) and english not in NAMES:
            assert english != chinese, place
            assert any("\u4e00" <= letter <= "\u9fff" for letter in chinese), place
            assert not any("\u4e00" <= letter <= "\u9fff" for letter in english), place


def test_no_sentence_holds_a_line_break() -> None:
    assert [place for place, call in CALLS if any("\n" in text for text in literals(call))] == []


def test_a_text_renders_in_both_languages() -> None:
    text = say("{count} of {place}", "{place}中的{count}", count=3, place=say("the model", "模型"))
    assert text.render() == str(text) == "3 of the model"
    assert text.render("zh") == "模型中的3"


def test_braces_of_a_value_are_no_template() -> None:
    assert str(say("`{name}`", "`{name}`", name="{count}")) == "`{count}`"
    assert Text("{as it is}", "{照原样}").render() == "{as it is}"


def test_a_text_survives_a_record() -> None:
    text = say("{count} nodes", "{count} 个节点", count=3)
    again = Text.from_dict(text.to_dict())
    assert [again.render(lang) for lang in ("en", "zh")] == ["3 nodes", "3 个节点"]  # type: ignore[arg-type]
    assert again.to_dict() == text.to_dict()


@pytest.mark.parametrize(
    ("environment", "lang"),
    [
        ({"LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "", "LANG": "ZH_cn"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_language_is_that_of_the_locale(environment: dict[str, str], lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_lang() == lang


@pytest.mark.parametrize(("found", "lang"), [("zh_CN", "zh"), ("Chinese (Simplified)_China", "zh"), ("en_US", "en"), (None, "en")])
def test_without_a_locale_in_the_environment_python_is_asked(found: str | None, lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("locale.getlocale", lambda: (found, "UTF-8"))
    assert default_lang() == lang


def test_control_characters_are_written_out() -> None:
    assert visible("a\x1b[31m\r\nb\x7f\x9b") == "a\\x1b[31m\\x0d\\x0ab\\x7f\\x9b"
    assert visible("模型 a/b:0") == "模型 a/b:0"
