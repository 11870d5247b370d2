"""``jumar compile`` against a stand-in that enforces ATC's grammar, however it ends."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumar import Case, UsageError, compile
from jumar.atc import run_atc, toolchain

PROGRAM = Path(__file__).parent / "standin.py"


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Put the stand-in on PATH; returns its place."""
    monkeypatch.setattr(toolchain, "_DEFAULT_HOME", str(tmp_path / "nowhere"))

    def install(how: str = "success", name: str = "atc") -> Path:
        folder = tmp_path / "tools"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f'#!/bin/bash\nexec "{sys.executable}" "{PROGRAM}" "$@"\n')
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setenv("STANDIN_ATC", how)
        return folder / name

    return install


@pytest.fixture
def image(save_text: Callable[..., Path]) -> Path:
    return save_text("agraph (float[n,3,h,w] x) => (float[n,3,h,w] y) { [relu] y = Relu(x) }", "image.onnx")


def codes(case: Case) -> list[str]:
    return [item.code for item in case.record.findings]


def manifest_of(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def test_gears_and_files_pass_its_grammar(image: Path, tmp_path: Path, standin: Callable[..., Path]) -> None:
    from jumar.atc.configs import Configs

    standin()
    configs = Configs(["relu"], {"black": ["SoftmaxV2"]}, ["ConvConcatFusionPass"], {"OpType::Relu": "high_precision"})
    case = compile(
        image,
        output=tmp_path / "out",
        soc="Ascend310P3",
        gears="H,W in {64x64,128x96}; batch 1",
        precision_mode="mixed_float16",
        configs=configs,
        options={"output_type": "FP16", "log": "info"},
    )
    assert codes(case) == []
    command = case.record.steps[0].options["command"]
    for word in ("--dynamic_image_size=64,64;128,96", "--input_shape=x:1,3,-1,-1", "--input_format=NCHW", "--keep_dtype=keep_dtype.cfg"):
        assert word in command
    manifest = manifest_of(tmp_path / "out")
    assert [item["path"] for item in manifest["files"] if item["kind"] == "config"] == [
        "keep_dtype.cfg",
        "mixlist.json",
        "fusion_switch.cfg",
        "op_precision.ini",
    ]
    build = manifest["builds"][0]
    assert (build["om"], build["gears"]["kind"], build["gears"]["axes"]) == ("image.om", "image", [["x", 2], ["x", 3]])
    assert build["gears"]["shapes"] == [{"x": [1, 3, 64, 64]}, {"x": [1, 3, 128, 96]}]


def test_split_makes_an_om_for_each_gear(image: Path, tmp_path: Path, standin: Callable[..., Path]) -> None:
    standin()
    case = compile(image, output=tmp_path / "out", soc="Ascend310P3", gears=["batch 1,4", "h 8; w 8"], split=True)
    assert codes(case) == []
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"image_bs1.om", "image_bs4.om", "atc_image_bs1.log", "atc_image_bs4.log"} <= names
    builds = manifest_of(tmp_path / "out")["builds"]
    assert [item["flags"]["input_shape"] for item in builds] == ["x:1,3,8,8", "x:4,3,8,8"]
    script = (tmp_path / "out" / "compile.sh").read_text()
    assert script.count("\natc ") == 2


def test_the_standin_refuses_what_atc_refuses(image: Path, tmp_path: Path, standin: Callable[..., Path]) -> None:
    """Planted: a ragged call that no gear of ours would make."""
    program = standin()
    words = [f"--model={image}", "--framework=5", f"--output={tmp_path}/o", "--soc_version=Ascend310P3", "--input_format=ND"]
    run = run_atc([str(program), *words, "--input_shape=x:1,3,-1,-1", "--dynamic_dims=1,2;3"], tmp_path / "o.om", tmp_path / "log")
    assert run.status == 255
    assert set(run.codes) & {"E10003", "E10037"}


@pytest.mark.parametrize(
    ("how", "options", "problem", "root"),
    [
        ("no-parser", {}, "it ended with status 1: E19010: No parser is registered for Op", "FindMax"),
        ("segmentation-fault", {}, "it died of SIGSEGV", "SIGSEGV"),
        ("killed", {}, "it was killed by SIGKILL, usually for want of memory", "SIGKILL"),
        ("hang", {"timeout": 1.5}, "it ran longer than 1.5 s and was stopped", None),
        ("memory", {"memory_limit": 250 << 20}, "more than the 0.2 GB allowed, and was stopped", None),
        ("nothing", {}, "it reported success but `relu.om` is not there", None),
    ],
)
def test_each_failure_is_told_and_diagnosed(
    how: str, options: dict[str, Any], problem: str, root: str | None, relu: Path, tmp_path: Path, standin: Callable[..., Path]
) -> None:
    standin(how)
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3", **options)
    first, *others = case.record.findings
    assert first.code == "CP701"
    assert problem in str(first.message)
    assert not (tmp_path / "out" / "relu.om").exists()
    if root is not None:
        assert root in " ".join(f"{item.message} {item.why} {item.node}" for item in others)


def test_the_verbose_log_is_kept(relu: Path, tmp_path: Path, standin: Callable[..., Path]) -> None:
    standin()
    case = compile(relu, output=tmp_path / "out", soc="Ascend310P3", verbose_log=True)
    logs = [item.path for item in case.record.artifacts if item.path.startswith("atc-log/debug/plog/plog-")]
    assert len(logs) == 1
    assert "level 0" in (tmp_path / "out" / logs[0]).read_text()
    assert "export ASCEND_GLOBAL_LOG_LEVEL=0" in (tmp_path / "out" / "compile.sh").read_text()


def test_memory_and_time_are_shown_while_it_runs(relu: Path, tmp_path: Path, standin: Callable[..., Path]) -> None:
    standin()
    shown: list[str] = []
    compile(relu, output=tmp_path / "out", soc="Ascend310P3", progress=lambda what, _fraction: shown.append(str(what)))
    assert any(text.startswith("atc: 0 s, ") for text in shown)


def test_aoe_runs_first_and_its_failure_is_no_obstacle(relu: Path, tmp_path: Path, standin: Callable[..., Path]) -> None:
    standin()
    case = compile(relu, output=tmp_path / "a", soc="Ascend310P3", tune="operator")
    assert codes(case) == []
    assert any(str(note).startswith("nothing was tuned: no aoe in PATH") for note in case.record.notes)
    aoe = tmp_path / "tools" / "aoe"
    aoe.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" > "{tmp_path}/seen"; exit 3\n')
    aoe.chmod(0o755)
    case = compile(relu, output=tmp_path / "b", soc="Ascend310P3", tune="operator", precision_mode="origin")
    assert codes(case) == ["CP704"]
    assert case.record.verdict == "warnings"
    seen = (tmp_path / "seen").read_text().splitlines()
    assert {"--job_type=2", "--precision_mode=must_keep_origin_dtype", f"--model={relu}"} <= set(seen)
    assert not [word for word in seen if "soc_version" in word or "precision_mode_v2" in word]
    assert (tmp_path / "b" / "relu.om").is_file()


def test_a_tool_outside_of_path_gets_the_environment_of_its_script(relu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "cann"
    (home / "bin").mkdir(parents=True)
    (home / "set_env.sh").write_text("export MARK_OF_CANN='a b'\n")
    (home / "bin" / "atc").write_text('#!/bin/bash\necho "mark: $MARK_OF_CANN"; exit 1\n')
    (home / "bin" / "atc").chmod(0o755)
    monkeypatch.setattr(toolchain, "_DEFAULT_HOME", str(home))
    compile(relu, output=tmp_path / "out", soc="Ascend310P3")
    assert (tmp_path / "out" / "atc.log").read_text() == "mark: a b\n"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"options": {"soc_version": "x"}}, "is written by Jumar"),
        ({"options": {"precision": "fp16"}}, "ATC has no flag --precision; expected perhaps --precision_mode_v2"),
        ({"options": {"op_select_implmode": "high_preformance"}}, "high_preformance"),
        ({"options": {"auto_tune_mode": "RL"}}, "auto_tune_mode"),
        ({"input_format": "NHWC"}, r"ATC: E10001"),
        ({"aipp": "none.cfg"}, "is not there"),
        ({"split": True}, "there are no gears"),
        ({"gears": "batch 1,4", "gears_from": "a.csv"}, "to be chosen too"),
    ],
)
def test_what_atc_would_refuse_is_refused_before_anything_is_written(
    options: dict[str, Any], match: str, relu: Path, tmp_path: Path, standin: Callable[..., Path]
) -> None:
    standin()
    with pytest.raises(UsageError, match=match):
        compile(relu, output=tmp_path / "out", soc="Ascend310P3", **options)
    assert not (tmp_path / "out").exists()
