"""What a log is read to say: the root line, the operator, the code; what is a consequence and what is harmless."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_lines import EXAMPLES

from jumar.logs.patterns import PATTERNS
from jumar.logs.report import RULES, failure_findings, groups_of, log_findings
from jumar.logs.scan import read_text
from jumar.targets import find_target

NO_PARSER = "E19010: No parser is registered for Op [/a/FindMax, optype [ai.onnx::11::FindMax]]."
KINDS = {pattern.name: pattern.kind for pattern in PATTERNS}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_pattern_speaks_for_its_examples(name: str) -> None:
    for line in EXAMPLES[name]:
        log = read_text(line)
        assert log.root is not None, line
        assert (log.root.pattern, log.root.kind) == (name, KINDS[name]), line
        (finding,) = [item.finding for item in log_findings(log)]
        assert finding.code == RULES[KINDS[name]]
        assert finding.evidence[0].startswith("log:1: ")
        for lang in ("en", "zh"):
            for text in (finding.message, finding.why, finding.remedy):
                assert text.render(lang) and "{" not in text.render(lang)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "node", "op", "opset"),
    [
        (NO_PARSER, "/a/FindMax", "FindMax", 11),
        ("E13010: No parser is registered for Op [/a, optype [com.x::1::Magic]].", "/a", "com.x::Magic", 1),
        (EXAMPLES["no-engine"][0], "/head/Act", "HardSwish", None),
        (EXAMPLES["compile-failed"][0], "Select121", "Select", None),
        (EXAMPLES["compile-failed"][1], "Slice", "Slice", None),
        (EXAMPLES["compile-failed"][2], "Select121", "Select", None),
        (EXAMPLES["shape-inference-failed"][0], "head_nms", "NonMaxSuppressionV7", None),
        (EXAMPLES["kernel-failed"][0], None, "realdiv", None),
        (EXAMPLES["kernel-failed"][1], "/head/Div", None, None),
        (
            "E40021: Failed to compile Op [-1_0_/m/Slice_ascend_mbatch_batch_5]. (optype: [StridedSliceD])",
            "/m/Slice",
            "StridedSliceD",
            None,
        ),
        ("E10501: IR for Op [/a/Foo, optype [Foo]], is not registered.", "/a/Foo", "Foo", None),
    ],
)
def test_the_operator_is_found(line: str, node: str | None, op: str | None, opset: int | None) -> None:
    root = read_text(line).root
    assert root is not None
    assert (root.node, root.op, root.opset) == (node, op, opset)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[ERROR] Execute model(detector.om) error:507011", "507011"),
        ("acl.mdl.load_from_file failed, ret=545001", "545001"),
        ("aclrtSynchronizeStream(stream) failed: 507015 (/tmp/main.cpp:108)", "507015"),
        ("RuntimeError: x, error code is 107002", "107002"),
        ("[ERROR] ErrorNo: 507011(model execute failed)", "507011"),
        ("Call rtModelCheckCompatibility fail, ret: 0x7BC80[FUNC:Check]", "507008"),
        ("执行失败，返回码为 145013", "145013"),
        ("acl init failed: ACL_ERROR_REPEAT_INITIALIZE", "100002"),
        ("EL0004: [PID: 25] 2025-10-22-08:22:02.334.100 Memory_Allocation_Failure(EL0004): Failed to allocate memory.", "EL0004"),
        ("RuntimeError: [EB0500] bad primitive", "EB0500"),
    ],
)
def test_the_code_is_found(line: str, code: str) -> None:
    root = read_text(line).root
    assert root is not None and root.code is not None
    assert root.code.code == code
    assert log_findings(read_text(line))


@pytest.mark.parametrize(
    "line",
    [
        "[INFO] GE(1,atc.bin):2025 [a.cc:1]2 F: error code 507011 is not raised",
        "[DEBUG] E19010: nothing",
        "[WARNING] FE(1,atc.bin): Optype [X] of Ops kernel [AIcoreEngine] is unsupported. Reason: dtype",
        "W11001: Op [a] does not hit the high-priority operator information library",
        "loaded 507011 images from set E10001",
        "0 failed, 12 passed",
        "tests finished without errors, fail: 0",
        "exit code 0",
        "serial E19010X and 1507011",
        "| 0     310P3               | OK            | NA          50                0    / 0             |",
    ],
)
def test_what_is_no_failure(line: str) -> None:
    assert log_findings(read_text(line)) == []


def test_an_inner_error_is_never_the_root_where_a_line_says_more() -> None:
    text = f"EZ9999: Inner Error!\n        TraceBack (most recent call last):\n[ERROR] build graph failed, ret:1343225857\n{NO_PARSER}\n"
    root = read_text(text).root
    assert root is not None and root.line == 4
    only = read_text("EZ9999: Inner Error!\n        node conv1 has no shape[FUNC:A][FILE:b.cc][LINE:1]\n")
    assert only.root is not None and only.root.line == 2
    (finding,) = [item.finding for item in log_findings(only)]
    assert finding.code == "LG813"
    assert "EZ9999" in finding.why.render()


def test_a_call_that_passes_on_a_code_of_the_device_is_a_consequence() -> None:
    text = "EL0003: The argument is invalid. wait event failed, runtime result = 507011\nrt ret = 507015\n"
    (item,) = log_findings(read_text(text))
    assert item.finding.code == "LG807"
    assert [code.code for code in item.group.codes] == ["507015", "EL0003", "507011"]


def test_a_crash_after_a_named_cause_is_a_consequence_and_alone_it_is_the_cause() -> None:
    crash = "Segmentation fault (core dumped)"
    assert [item.finding.code for item in log_findings(read_text(f"{NO_PARSER}\n{crash}\n"))] == ["LG801"]
    assert [item.finding.code for item in log_findings(read_text(f"ATC start working now\n{crash}\n"))] == ["LG812"]
    oom = "Out of memory: Killed process 47 (atc.bin)"
    assert [item.finding.code for item in log_findings(read_text(f"Killed\n{oom}\n"))] == ["LG809"]


def test_operators_of_one_type_are_one_finding_and_the_support_list_tells_two_remedies() -> None:
    text = f"""{NO_PARSER}
        TraceBack (most recent call last):
        No parser is registered for Op [/b/FindMax, optype [ai.onnx::11::FindMax]].
        No parser is registered for Op [/stem/Conv, optype [ai.onnx::22::Conv]].
"""
    first, second = log_findings(read_text(text))
    assert (first.finding.op, first.verdict.kind if first.verdict else "") == ("FindMax", "private")
    assert "`/a/FindMax`, `/b/FindMax`" in first.finding.why.render()
    assert (second.finding.op, second.verdict.kind if second.verdict else "") == ("Conv", "opset")
    assert "E19010" in second.finding.message.render()
    assert "export again at an opset of 8-18" in second.finding.remedy.render()


def test_the_kernel_table_is_asked_where_the_chip_is_known() -> None:
    log = read_text(EXAMPLES["no-engine"][0])
    for soc, kind in (("BS9SX1AA", "refused"), ("Ascend310P3", "taken")):
        (item,) = log_findings(log, find_target(soc))
        assert item.verdict is not None and item.verdict.kind == kind
    (item,) = log_findings(log)
    assert item.verdict is not None and item.verdict.kind == "unknown"


def test_warnings_of_an_engine_count_where_no_engine_was_found() -> None:
    refused = "[WARNING] FE(1,atc.bin): Optype [HardSwish] of Ops kernel [AIcoreEngine] is unsupported. Reason: dtype int64"
    (item,) = log_findings(read_text(f"{refused}\n{EXAMPLES['no-engine'][0]}\n"))
    assert "dtype int64" in item.finding.why.render()


def test_processes_that_write_at_once() -> None:
    """Two processes, two causes: both are found, each with its process."""
    text = (
        "[ERROR] GE(11,atc.bin):2025-01-01-10:00:00.000.001 [a.cc:1]1 F: E10001: Value [x] is invalid\n"
        "[INFO] GE(12,atc.bin):2025-01-01-10:00:00.000.002 [a.cc:1]1 F: going on\n"
        "[ERROR] GE(12,atc.bin):2025-01-01-10:00:00.000.003 [a.cc:1]1 F: Failed to get real path of /x.cfg\n"
    )
    log = read_text(text)
    assert [(item.finding.code, item.group.head.pid) for item in log_findings(log)] == [("LG804", "12"), ("LG802", "11")]


def test_the_command_in_the_log_tells_which_flag() -> None:
    command = '+ atc --model=m.onnx --framework=5 --output=m --soc_version=Ascend310P3 --input_shape="x:-1,3,-1,-1" --dynamic_dims="1,224,224;2,448"'
    bare = log_findings(read_text("E10037: profiles are inconsistent\n"))[0].finding
    told = log_findings(read_text(f"{command}\nE10037: profiles are inconsistent\n"))[0].finding
    assert "2,448" not in bare.why.render()
    assert "2,448" in told.why.render() and "2,448" in told.why.render("zh")
    assert told.remedy != bare.remedy


def test_success_makes_warnings_and_a_status_is_believed() -> None:
    text = f"{NO_PARSER}\nATC run success, welcome to the next use.\n"
    assert [item.finding.severity for item in log_findings(read_text(text))] == ["warning"]
    assert [item.finding.severity for item in log_findings(read_text(text), status=1)] == ["error"]
    assert log_findings(read_text("ATC start working now\nATC run success\n")) == []


@pytest.mark.parametrize(
    ("text", "status", "code", "words"),
    [
        ("", -11, "LG812", "SIGSEGV (status -11)"),
        ("ATC start working now\n", 139, "LG812", "SIGSEGV (status 139)"),
        ("", 137, "LG812", "SIGKILL"),
        ("compiling...\n", 1, "LG813", "status 1 and said nothing of why"),
        ("ATC start working now\n...\n", 0, "LG812", "stops without a result"),
        (NO_PARSER, 255, "LG801", "E19010"),
        (NO_PARSER, -9, "LG801", "E19010"),
    ],
)
def test_ends_without_a_word(text: str, status: int, code: str, words: str) -> None:
    findings = failure_findings(text, status)
    assert (findings[0].code, findings[0].severity) == (code, "error")
    assert words in findings[0].message.render()


LINES = [line for lines in EXAMPLES.values() for line in lines]


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([*LINES, NO_PARSER, "EZ9999: Inner Error!", "ATC run failed", "nothing", ""]), max_size=12),
    st.sampled_from([None, 0, 1, 137, -11]),
)
def test_the_root_explains_no_less_than_any_line(lines: list[str], status: int | None) -> None:
    log = read_text("\n".join(lines))
    named = log_findings(log, status=status)
    assert bool(named) or not log.clues
    if log.root is not None:
        assert log.root.tier == max(clue.tier for clue in log.clues)
        assert groups_of(log)[0].head.tier <= log.root.tier
    for item in named:
        assert item.finding.message.render("zh") and item.finding.why.render("en")


@settings(max_examples=300)
@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for item in log_findings(read_text(f"[ERROR] {text}"), status=1):
        item.finding.to_dict("zh")
