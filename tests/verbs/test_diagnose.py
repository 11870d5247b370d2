"""``jumar.diagnose``: records of codes and logs, the model's own findings beside them, and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jumar import JumarError, Record, diagnose
from jumar.logs.report import failure_findings

NO_ENGINE = "EZ3003: [PID: 42] No supported Ops kernel and engine are found for [act], optype [HardSwish].\n"
DOMAINS = "E16005: The model has [2] [--domain_version] fields, but only one is allowed.\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def make(text: str, name: str = "atc.log") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return make


def program(*words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from jumar.cli.main import main; main()", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def test_a_code_alone() -> None:
    record = diagnose("e19010")
    assert (record.verb, record.findings, record.verdict) == ("diagnose", (), "ready")
    assert [item["code"] for item in record.data["codes"]] == ["E19010", "E13010"]
    assert record.data["codes"][0]["cause"]["zh"] == "该算子类型没有解析插件"
    assert Record.from_dict(record.to_dict(lang=None)).data == record.data


def test_a_code_alone_imports_nothing_heavy() -> None:
    code = (
        "import sys, jumar; jumar.diagnose('507011'); print([name for name in ('onnx', 'onnx_ir', 'onnxruntime') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_file_of_that_name_comes_first(write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(NO_ENGINE, "E19010")
    assert [finding.code for finding in diagnose("E19010").findings] == ["LG801"]


def test_the_record_of_a_log(write: Callable[..., Path]) -> None:
    record = diagnose(write(f"ATC start working now\n{NO_ENGINE}"), soc="BS9SX1AA")
    assert record.verdict == "blocked"
    assert record.data["root"] == {
        "file": "atc.log",
        "line": 2,
        "text": NO_ENGINE.strip(),
        "code": "EZ3003",
        "node": "act",
        "op": "HardSwish",
        "pid": "42",
    }
    assert len(record.data["triage"]) == 5
    assert [step["en"].split(":")[0].split(",")[0] for step in record.data["triage"]][:4] == [
        "1 log",
        "2 operator",
        "3 support list",
        "4 constraint or alternative",
    ]
    assert "no HardSwish" in record.data["triage"][2]["en"]
    json.dumps(record.to_dict("zh"))


def test_the_rule_that_rewrites_it_is_named(write: Callable[..., Path], save_text: Callable[..., Path]) -> None:
    model = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = HardSwish(x) }", opset=14)
    record = diagnose(write(NO_ENGINE), model=model, target="mdc510pro")
    first, own = record.findings
    assert (first.code, first.fix, own.code, own.fix) == ("LG801", "safe", "OP202", "safe")
    assert "--select OP202" in first.remedy.render()
    assert record.model is not None and record.model.opset == 14
    other = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", "relu.onnx")
    (alone,) = diagnose(write(NO_ENGINE), model=other, target="mdc510pro").findings
    assert (alone.code, alone.fix) == ("LG801", "none")


def test_a_rule_that_would_not_be_enough_is_not_named(write: Callable[..., Path], save_text: Callable[..., Path]) -> None:
    """Unused domains can be dropped; one that is used cannot."""
    header = '<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1, "ai.onnx.ml" : 2]>'
    unused = save_text(f"{header} agraph (float[2,3] x) => (float[2,3] y) {{ y = Relu(x) }}", "unused.onnx")
    used = save_text(f"{header} agraph (float[2,3] x) => (float[2,3] y) {{ y = com.microsoft.Inverse(x) }}", "used.onnx")
    first, *_ = diagnose(write(DOMAINS), model=unused, soc="Ascend310P3").findings
    assert "--select GR502" in first.remedy.render()
    first, *own = diagnose(write(DOMAINS), model=used, soc="Ascend310P3").findings
    assert (first.code, first.fix) == ("LG803", "none")
    assert ("OP101", "com.microsoft::Inverse") in {(item.code, item.op) for item in own}


def test_a_crash_is_brought_together_with_the_model(write: Callable[..., Path], save_text: Callable[..., Path]) -> None:
    model = save_text(
        """agraph (float[1,6,4] boxes, float[1,1,6] scores) => (int64[n,3] y)
        <int64 most = {3}, float iou = {0.5}> { y = NonMaxSuppression(boxes, scores, most, iou) }""",
        opset=13,
    )
    record = diagnose(write("ATC start working now\n"), model=model, soc="Ascend310P3", status=139)
    assert next(item.code for item in record.findings) == "LG812"
    assert "OP201" in [item.code for item in record.findings]


def test_the_target_of_the_command_in_the_log(write: Callable[..., Path]) -> None:
    record = diagnose(write(f"+ atc --model=a.onnx --framework=5 --soc_version=BS9SX1AA --output=a\n{NO_ENGINE}"))
    assert record.target is not None and record.target["soc"] == "BS9SX1AA"
    record = diagnose(write(f"+ atc --model=a.onnx --framework=5 --soc_version=Ascend310P --output=a\n{NO_ENGINE}"))
    assert record.target is None
    assert any("family of SoCs" in note.render() for note in record.notes)


def test_a_folder_of_logs(write: Callable[..., Path], tmp_path: Path) -> None:
    write("[ERROR] GE(1,atc.bin):2025-01-01-10:00:00.000.002 x failed\n", "debug/plog/plog-1.log")
    write(f"[ERROR] GE(1,atc.bin):2025-01-01-10:00:00.000.001 {NO_ENGINE}", "debug/plog/plog-2.log")
    (tmp_path / "debug" / "weights.onnx").write_bytes(b"E10001: no log")
    (tmp_path / "debug" / "dump.log").write_bytes(bytes(4000))
    record = diagnose(tmp_path)
    assert record.data["root"]["file"] == "debug/plog/plog-2.log"
    assert {item["file"] for item in record.data["read"]} == {"debug/plog/plog-1.log", "debug/plog/plog-2.log"}
    assert any("1 files hold no text" in note.render() for note in record.notes)


def test_no_failure(write: Callable[..., Path]) -> None:
    record = diagnose(write("ATC start working now\nATC run success\n"))
    assert (record.findings, record.verdict, record.data["root"]) == ((), "ready", None)
    assert record.notes[0].render().startswith("ATC reports success")


def test_what_cannot_be_done(write: Callable[..., Path]) -> None:
    empty, full = write("", "empty.log"), write("x", "full.log")
    for source, options in (("no.log", {}), ("x\0y", {}), ("a" * 5000, {}), (empty, {}), (full, {"status": 999})):
        with pytest.raises(JumarError):
            diagnose(source, **options)  # type: ignore[arg-type]


def test_statuses_of_the_program(write: Callable[..., Path]) -> None:
    failed = write(NO_ENGINE)
    assert program("diagnose", "E19010").returncode == 0
    ended = program("diagnose", failed, "--lang", "zh")
    assert ended.returncode == 1
    assert "LG801 错误" in ended.stdout
    assert program("diagnose", write("all is well\n", "ok.log")).returncode == 0
    assert program("diagnose", "nothing.log").returncode == 2
    ended = program("diagnose", "-", "--format", "json", stdin=NO_ENGINE)
    assert (ended.returncode, json.loads(ended.stdout)["data"]["root"]["file"]) == (1, "stdin")


def test_the_compiler_s_failure_is_explained() -> None:
    (finding,) = failure_findings(f"ATC run failed\n{DOMAINS}", 255)
    assert (finding.code, finding.severity) == ("LG803", "error")
    assert failure_findings("", -11)[0].code == "LG812"
