"""compile: command, script, manifest, and the .om where an ATC (here: a fake one) is installed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

from jumar import Case, UsageError, compile
from jumar.graph.digest import file_sha256

Fake = Callable[..., Path]


def manifest_of(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for item in manifest["files"]:
        assert file_sha256(folder / item["path"]) == item["sha256"]
    return manifest


def codes(case: Case) -> list[tuple[str, str]]:
    return [(item.code, item.severity) for item in case.record.findings]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_without_atc_everything_but_the_om_is_written(relu: Path, tmp_path: Path) -> None:
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3")
    assert codes(case) == [("CP702", "info"), ("NM403", "info")], "without ATC's judgement the findings of check stand in"
    assert str(case.record.findings[0].message).startswith("no .om was made: no atc in PATH, ")
    assert names(tmp_path / "out") == ["compile.sh", "manifest.json"]
    manifest = manifest_of(tmp_path / "out")
    assert (manifest["atc"], manifest["source"]) == (None, None)
    assert manifest["model"]["path"] == str(relu)
    assert manifest["model"]["sha256"] == file_sha256(relu)
    assert case.record.steps[0].options == {"command": manifest["command"], "atc": None}
    assert manifest["command"][:2] == ["atc", f"--model={relu}"]


def test_success_gives_the_om(relu: Path, tmp_path: Path, fake_atc: Fake) -> None:
    program = fake_atc()
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3")
    assert (codes(case), case.record.verdict) == ([], "ready")
    assert names(tmp_path / "out") == ["atc.log", "compile.sh", "manifest.json", "relu.om"]
    assert (tmp_path / "out" / "relu.om").read_bytes() == b"om"
    assert (tmp_path / "out" / "atc.log").read_text() == "ATC run success\n"
    manifest = manifest_of(tmp_path / "out")
    assert [item["path"] for item in manifest["files"]] == ["compile.sh", "atc.log", "relu.om"]
    assert (manifest["atc"]["program"], manifest["atc"]["status"]) == (str(program), 0)
    assert [(item.path, item.kind) for item in case.record.artifacts] == [
        ("compile.sh", "script"),
        ("atc.log", "log"),
        ("relu.om", "om"),
        ("manifest.json", "manifest"),
    ]


@pytest.mark.parametrize("home", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
def test_atc_is_found_below_its_home(home: str, relu: Path, tmp_path: Path, fake_atc: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_atc(folder=tmp_path / "cann" / "bin")
    monkeypatch.setenv(home, str(tmp_path / "cann"))
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3")
    assert codes(case) == []
    assert manifest_of(tmp_path / "out")["atc"]["program"] == str(program)


@pytest.mark.parametrize(
    ("body", "timeout", "problem", "found"),
    [
        ("echo E10001: bad; exit 1", 30, "it ended with status 1: E10001: bad", ["E10001"]),
        ("kill -KILL $$", 30, "it was killed by SIGKILL, usually for want of memory", []),
        ("kill -SEGV $$", 30, "it died of SIGSEGV", []),
        ("sleep 60", 0.3, "it ran longer than 0.3 s and was stopped", []),
        ("echo done", 30, "it reported success but `relu.om` is not there", []),
        ("MAKES_OM; kill -KILL $$", 30, "it was killed by SIGKILL, usually for want of memory", []),
    ],
)
def test_every_failure_blocks_keeps_the_log_and_makes_no_om(
    body: str, timeout: float, problem: str, found: list[str], relu: Path, tmp_path: Path, fake_atc: Fake
) -> None:
    fake_atc(body)
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3", timeout=timeout)
    assert (codes(case)[0], case.record.verdict) == (("CP701", "error"), "blocked")
    assert {code[:2] for code, _ in codes(case)[1:]} <= {"LG"}, "what the log says follows"
    assert str(case.record.findings[0].message) == f"atc made no .om: {problem}"
    assert names(tmp_path / "out") == ["atc.log", "compile.sh", "manifest.json"]
    assert manifest_of(tmp_path / "out")["atc"]["codes"] == found
    assert [item.path for item in case.record.artifacts] == ["compile.sh", "atc.log", "manifest.json"]


def test_an_om_of_an_earlier_run_is_not_taken_for_the_result(relu: Path, tmp_path: Path, fake_atc: Fake) -> None:
    fake_atc()
    compile(relu, output=tmp_path / "out", soc="Ascend310P3")
    fake_atc("echo done")
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3")
    assert codes(case) == [("CP701", "error")]
    assert "om" not in {item["kind"] for item in manifest_of(tmp_path / "out")["files"]}


def test_a_dry_run_does_not_run_atc(relu: Path, tmp_path: Path, fake_atc: Fake) -> None:
    fake_atc(f'touch "{tmp_path}/ran"')
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3", dry_run=True)
    assert str(case.record.findings[0].message) == "no .om was made: --dry-run was given"
    assert not (tmp_path / "ran").exists()


def test_shapes_and_precision_reach_the_command(save_text: Callable[..., Path], tmp_path: Path) -> None:
    path = save_text("agraph (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    case = compile(path, output=tmp_path / "out", soc="Ascend310P3", shapes={"x": (4, 3)}, precision_mode="origin")
    command = case.record.steps[0].options["command"]
    assert "--input_shape=x:4,3" in command
    assert "--precision_mode_v2=origin" in command


def test_nothing_is_written_for_an_open_shape(save_text: Callable[..., Path], tmp_path: Path) -> None:
    path = save_text("agraph (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    with pytest.raises(UsageError, match=r"^input `x` has no fixed shape; "):
        compile(path, output=tmp_path / "out", soc="Ascend310P3")
    assert not (tmp_path / "out").exists()


def test_the_script_compiles_the_model_it_was_made_for_and_no_other(save_text: Callable[..., Path], tmp_path: Path, fake_atc: Fake) -> None:
    folder = tmp_path / "a b" / "it's"
    folder.mkdir(parents=True)
    path = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", "a b/it's/my model.onnx")
    compile(path, output=folder / "out dir", soc="Ascend310P3")
    script = folder / "out dir" / "compile.sh"
    assert subprocess.run(["bash", "-n", str(script)], capture_output=True, check=True).stderr == b""
    assert os.access(script, os.X_OK)
    fake_atc()
    run = subprocess.run([str(script)], cwd=tmp_path, capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"ATC run success\n", b"")
    om = folder / "out dir" / "my model.om"
    assert om.read_bytes() == b"om"
    om.unlink()
    path.write_bytes(path.read_bytes() + b"\x00")
    run = subprocess.run([str(script)], cwd=tmp_path, capture_output=True, check=False)
    assert run.returncode == 1
    assert not om.exists()


def test_paths_with_spaces_reach_atc_whole(save_text: Callable[..., Path], tmp_path: Path, fake_atc: Fake) -> None:
    (tmp_path / "a b").mkdir()
    path = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", "a b/my model.onnx")
    fake_atc(f'printf "%s\\n" "$1" > "{tmp_path}/first"; MAKES_OM')
    case = compile(path, output=tmp_path / "o ut", soc="Ascend310P3")
    assert codes(case) == []
    assert (tmp_path / "first").read_text() == f"--model={path}\n"
    assert (tmp_path / "o ut" / "my model.om").read_bytes() == b"om"


def test_the_script_checks_the_external_weights_too(tmp_path: Path) -> None:
    model = ir.from_onnx_text(
        '<ir_version: 8, opset_import: ["" : 13]> agraph (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { [n] y = Add(x, w) }'
    )
    path = tmp_path / "big.onnx"
    ir.save(model, path, external_data="big.bin", size_threshold_bytes=0)
    compile(path, output=tmp_path / "o", soc="Ascend310P3", dry_run=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "atc").write_text("#!/bin/sh\nexit 0\n")
    (tools / "atc").chmod(0o755)
    command = ["bash", str(tmp_path / "o" / "compile.sh")]
    environment = {"PATH": f"{tools}:/usr/bin:/bin"}
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
    weights = tmp_path / "big.bin"
    weights.write_bytes(b"\x01" + weights.read_bytes()[1:])
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode != 0
