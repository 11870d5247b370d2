"""jumar.lint: files, folders and commands; what stands in the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import jumar
from jumar.case import Record

GOOD = "atc --model=m.onnx --framework=5 --output=m --soc_version=Ascend310P3"


def codes(record: Record) -> list[str]:
    return [finding.code for finding in record.findings]


def test_a_command() -> None:
    record = jumar.lint(f"{GOOD} --log=ERROR")
    assert record.verb == "lint" and record.verdict == "blocked"
    (finding,) = record.findings
    assert (finding.code, finding.name, finding.node) == ("AT902", "bad-flag-value", "command:1")
    assert str(finding.message) == "command:1: --log: `ERROR` is not a value it takes"
    assert "ATC E10010" in finding.evidence and "(ATC: E10010)" in str(finding.why)
    assert finding.message.render("zh") == "command:1：--log：不接受取值 `ERROR`"
    assert record.data["files"] == [{"path": "command", "kind": "shell", "calls": 1}]
    assert record.data["calls"][0]["flags"]["log"] == "ERROR"


def test_a_good_command_is_ready() -> None:
    record = jumar.lint(GOOD)
    assert record.verdict == "ready" and not record.findings
    assert str(record.notes[0]) == "calls of atc: 1; files: 1"
    assert Record.from_dict(record.to_dict(lang=None)).to_dict() == record.to_dict()


def test_what_is_not_judged_is_said() -> None:
    record = jumar.lint(f"{GOOD} --input_shape=x:${{bs}},3 --log=$1")
    assert str(record.notes[1]) == "not judged, known only when the command runs: ${bs}, ${1}"


def test_files_and_what_they_name(tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text(
        f"#!/bin/sh\n{GOOD} --keep_dtype=keep.cfg --precision_mode_v2=mixed_float16 \\\n --modify_mixlist=mix.json\n"
    )
    (tmp_path / "keep.cfg").write_text("conv_1\nconv_2 conv_3\n")
    (tmp_path / "mix.json").write_text('{"blacklist": {"to-add": ["Add"]}}')
    record = jumar.lint(tmp_path / "build.sh")
    assert sorted((finding.code, finding.node) for finding in record.findings) == [
        ("AT912", f"{tmp_path / 'keep.cfg'}:2"),
        ("AT912", f"{tmp_path / 'mix.json'}:1"),
    ]
    assert {item["kind"] for item in record.data["files"]} == {"shell", "keep-dtype", "mixlist"}


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep" / "a.sh").write_text(f"{GOOD} --mode=9\n")
    (tmp_path / ".git" / "b.sh").write_text(f"{GOOD} --mode=9\n")
    (tmp_path / "Makefile").write_text(f"x:\n\t{GOOD} --precision=fp16\n")
    (tmp_path / "precision.ini").write_text("[ByOpType]\nGelu=high_preformance\n")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "binary.sh").write_bytes(b"atc\0")
    record = jumar.lint(tmp_path)
    assert sorted(codes(record)) == ["AT901", "AT902", "AT912"]
    assert len(record.data["files"]) == 3


def test_aipp_files_are_judged_alone_and_beside_their_call(tmp_path: Path, save_text: Callable[..., Path]) -> None:
    (tmp_path / "aipp.cfg").write_text("aipp_op { nonsense: 1 }\n")
    assert codes(jumar.lint(tmp_path / "aipp.cfg")) == ["AI101", "AI102"]
    block = "aipp_op {{ aipp_mode: static input_format: {format} related_input_rank: {rank} }}"
    save_text("agraph (float[1,3,8,8] x, float[1,3] i) => (float[1,3,8,8] y, float[1,3] z) { y = Relu(x) z = Relu(i) }", "m.onnx")
    call = "atc --model=m.onnx --framework=5 --output=m --soc_version=Ascend310P3 --insert_op_conf=aipp.cfg"
    (tmp_path / "a.sh").write_text(call + " --input_fp16_nodes=x\n")
    (tmp_path / "aipp.cfg").write_text(block.format(format="RGB888_U8", rank=1))
    record = jumar.lint(tmp_path / "a.sh")
    assert codes(record) == ["AI104", "AI104"] and any("E10034" in str(finding.why) for finding in record.findings)
    (tmp_path / "a.sh").write_text(call + "\n")
    (tmp_path / "aipp.cfg").write_text(block.format(format="RGB888_U8", rank=0))
    assert jumar.lint(tmp_path / "a.sh").findings == ()
    (tmp_path / "aipp.cfg").write_text(block.format(format="YUYV_U8", rank=0))
    assert codes(jumar.lint(tmp_path / "a.sh")) == ["AI103"], "the chip is that of the call"
    (tmp_path / "a.sh").write_text(call.replace("m.onnx", "other.onnx").replace("Ascend310P3", "Ascend999") + "\n")
    assert codes(jumar.lint(tmp_path / "a.sh")) == ["AT905"]


def test_the_model_is_compared(save_text: Callable[..., Path]) -> None:
    path = save_text("agraph (float[n,3] x) => (float[n,3] y) { y = Relu(x) }", "m.onnx")
    assert codes(jumar.lint(f"{GOOD} --input_shape=z:1,3", model=path)) == ["AT908", "AT908"]
    assert codes(jumar.lint(f"{GOOD} --input_shape=x:1,3", model=path)) == []
    # A call about another model is not compared with this one.
    assert codes(jumar.lint(f"{GOOD.replace('m.onnx', 'other.onnx')} --input_shape=z:1,3", model=path)) == []


def test_the_target() -> None:
    open_chip = GOOD.replace("Ascend310P3", "$SOC")
    assert codes(jumar.lint(f"{open_chip} --input_shape=x:-1,3")) == []
    assert codes(jumar.lint(f"{open_chip} --input_shape=x:-1,3", soc="Ascend310")) == ["AT909"]
    assert codes(jumar.lint(GOOD, soc="Ascend310")) == ["AT909"]
    record = jumar.lint(GOOD, target="mdc510pro")
    assert record.target is not None and codes(record) == ["AT909"]
    assert codes(jumar.lint(f"{GOOD} --raw_ge_options=a.json")) == []
    assert codes(jumar.lint(f"{GOOD} --raw_ge_options=a.json", cann="8.1.RC1")) == ["AT909"]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(jumar.UsageError, match=r"there is nothing of ATC's in `command`"):
        jumar.lint("hello\nworld\n")
    (tmp_path / "a.sh").write_text("echo hello\n")
    with pytest.raises(jumar.UsageError, match=r"there is nothing of ATC's in `.*a\.sh`"):
        jumar.lint(tmp_path / "a.sh")
    with pytest.raises(jumar.UsageError, match="is no text"):
        (tmp_path / "b.sh").write_bytes(b"\0\0")
        jumar.lint(tmp_path / "b.sh")
    with pytest.raises(jumar.UsageError, match="is larger than 4 MB"):
        (tmp_path / "c.sh").write_bytes(b"a" * ((4 << 20) + 1))
        jumar.lint(tmp_path / "c.sh")
    with pytest.raises(jumar.UsageError, match="cannot be read"):
        jumar.lint(tmp_path / "nowhere.sh")
    with pytest.raises(jumar.UsageError, match="cannot be read"):
        jumar.lint("x\0y")
    with pytest.raises(jumar.TargetError):
        jumar.lint(GOOD, soc="Ascend999")
    with pytest.raises(jumar.TargetError):
        jumar.lint(GOOD, cann="1.0")
    # A file without calls beside one with calls is said, and does not stop the rest.
    (tmp_path / "d.sh").write_text(GOOD)
    record = jumar.lint([tmp_path / "a.sh", tmp_path / "d.sh"])
    assert "nothing of ATC's in" in str(record.notes[-1])
