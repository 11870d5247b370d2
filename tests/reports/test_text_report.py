"""The report in a terminal: whole lines, two languages, and no control of the terminal from a model."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from jumar.case import Finding, Placement, Proof, Record, Step
from jumar.reports import text_report
from jumar.text import LANGS, Lang, say, visible


def printed(record: Record, lang: Lang = "en", verbose: int = 0, width: int = 40, *, terminal: bool = False) -> str:
    file = io.StringIO()
    text_report(record, Console(file=file, width=width, highlight=False, force_terminal=terminal), lang, verbose)
    return file.getvalue()


def finding(code: str = "OP202", severity: str = "error", op: str | None = "Foo", node: str = "n") -> Finding:
    message = say("{node} is bad", "{node} 有误", node=node)
    return Finding(code, "name", severity, message, say("why", "原因"), say("do it", "去做"), node, op, "safe", None, ("fact",))  # type: ignore[arg-type]


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_model_cannot_control_the_terminal(hostile: Record, lang: Lang, verbose: int) -> None:
    text = printed(hostile, lang, verbose)
    assert {letter for letter in text if ord(letter) < 32 or 127 <= ord(letter) < 160} == {"\n"}
    assert "\\x1b[31m" in text
    assert "[bold]m[/bold] :smile:" in text


def test_nothing_is_cut_or_wrapped_at_the_width(hostile: Record) -> None:
    assert printed(hostile, verbose=1, width=20) == printed(hostile, verbose=1, width=2000)


def test_the_whole_report_in_english() -> None:
    failed = Proof(2, 0.5, 0.25, 0.9, 1e-6, False, say("too far :smile: [b]", "太远"))
    record = Record(
        verb="fix",
        target={"soc": "S", "cann": "C", "opset_max": 1},
        findings=(finding(), finding(node="m"), finding("NM403", "info")),
        resolved=(finding("OP110"),),
        placement=Placement(aicore=2, unknown=1),
        steps=(
            Step("hardswish-no-kernel", "0", None, None, 0, {}, failed, "OP202", "rolled-back", ("n",)),
            Step("x", "0", None, None, 0, {}, Proof(2, 0.0, 0.0, 1.0, 0.0, True), "OP1", "applied", ("n", "m")),
            Step("compile", "0", None, None, 0, {"command": ["atc", "--model=a b"]}),
        ),
    )
    assert printed(record).splitlines() == [
        "blocked: what is listed as an error stands in the way",
        "What stands",
        "  OP202 error (2x) n is bad",
        "        why; do it; a proven fix exists",
        "  NM403 info n is bad",
        "What was found and repaired",
        "  OP110 n is bad",
        "What was done, with proof",
        "  OP202  hardswish-no-kernel  rolled back  1 nodes  failed: too far :smile: [b]",
        "  OP1    x                    applied      2 nodes  equal in every element (2 cases)",
        "Where the nodes run: aicore 2, unknown 1",
        "ATC command",
        "  atc '--model=a b'",
    ]


def test_columns_line_up_in_chinese() -> None:
    steps = tuple(
        Step(name, "0", None, None, 0, {}, None, "OP1", status, ("n",))  # type: ignore[arg-type]
        for name, status in (("a", "rolled-back"), ("b", "applied"))
    )
    assert printed(Record(steps=steps), "zh").splitlines()[1:] == ["  OP1  a  已回滚  1 个节点  -", "  OP1  b  已应用  1 个节点  -"]


def test_verbose_shows_each_finding_with_reason_and_evidence() -> None:
    record = Record(findings=(finding(), finding(node="m"), finding("NM403", "info")))
    assert printed(record, "zh", verbose=1).splitlines() == [
        "受阻：所列错误妨碍迁移",
        "现存问题",
        "  OP202 错误 n 有误",
        "        原因；去做；有可证明的修复",
        "        fact",
        "  OP202 错误 m 有误",
        "        原因；去做；有可证明的修复",
        "        fact",
        "  NM403 提示 n 有误",
        "        原因；去做；有可证明的修复",
        "        fact",
    ]


def test_findings_without_operator_are_not_lumped_together() -> None:
    record = Record(findings=(finding(op=None), finding(op=None, node="m")))
    assert [line for line in printed(record).splitlines() if "OP202" in line] == ["  OP202 error n is bad", "  OP202 error m is bad"]


def test_colours_come_only_with_a_terminal() -> None:
    record = Record(findings=(finding(),))
    assert "\x1b[31mOP202 error\x1b[0m n is bad" in printed(record, terminal=True)
    assert "\x1b" not in printed(record)


def test_an_explanation_keeps_its_lines() -> None:
    record = Record(verb="explain", notes=(say("What: a\n\nFix: b", "问题：甲\n\n修复：乙"),))
    assert printed(record) == "What: a\n\nFix: b\n"
    assert printed(record, "zh") == "问题：甲\n\n修复：乙\n"


def test_visible_writes_controls_out_and_leaves_the_rest() -> None:
    assert visible("a\tb 中 é 😀") == "a\tb 中 é 😀"
    assert visible("\x00\n\r\x1b\x7f\x9b") == "\\x00\\x0a\\x0d\\x1b\\x7f\\x9b"
