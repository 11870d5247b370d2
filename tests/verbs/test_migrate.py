"""migrate: a whole bundle or none, and a resumed run does only what changed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import Record, UsageError, migrate
from jumar.graph import Evaluator
from jumar.graph.digest import file_sha256
from jumar.reports import json_report
from jumar.verbs import bundle as bundle_module
from jumar.verbs import migrate as migrate_module

WHOLE = [".jumar", "compile.sh", "manifest.json", "model.onnx", "report.html", "report.json"]
SOC = "Ascend310P3"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_whole(bundle: Path) -> dict[str, Any]:
    """Every file the manifest and the report name is there with the digest they say."""
    manifest: dict[str, Any] = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    report = json.loads((bundle / "report.json").read_text(encoding="utf-8"))
    for item in (*manifest["files"], *report["artifacts"]):
        assert file_sha256(bundle / item["path"]) == item["sha256"]
    assert manifest["model"]["sha256"] == file_sha256(bundle / "model.onnx")
    onnx.checker.check_model(str(bundle / "model.onnx"))
    return manifest


@pytest.fixture(autouse=True)
def one_runtime(monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator) -> None:
    """Starting ONNX Runtime costs more than all else here; the tests with a process of their own start theirs."""
    monkeypatch.setattr(migrate_module, "Evaluator", lambda: nullcontext(evaluator))


class Stages:
    """Which stages really worked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[str] = []
        for name in ("fix", "verify", "compile_into"):
            monkeypatch.setattr(migrate_module, name, self._counted(name, getattr(migrate_module, name)))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **options: Any) -> Any:
            self.ran.append(name)
            return function(*words, **options)

        return call

    def take(self) -> list[str]:
        ran, self.ran = self.ran, []
        return ran


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Stages:
    return Stages(monkeypatch)


def test_a_bundle_is_whole_and_its_report_is_the_record(hardswish: Path, tmp_path: Path) -> None:
    case = migrate(hardswish, output=tmp_path / "b", target="mdc510pro", dry_run=True, lang="en")
    assert names(tmp_path / "b") == WHOLE
    assert names(tmp_path) == ["b", "hardswish.onnx"]
    manifest = assert_whole(tmp_path / "b")
    assert manifest["source"]["path"] == str(hardswish)
    assert manifest["source"]["sha256"] == file_sha256(hardswish)
    assert manifest["model"]["path"] == "model.onnx"
    report = json.loads((tmp_path / "b" / "report.json").read_text(encoding="utf-8"))
    record = json.loads(json_report(case.record, "en"))
    # report.json cannot hold its own digest; it is the only file the record does not name
    assert report == record
    assert (record["verb"], record["verdict"]) == ("migrate", "ready")
    assert [item["path"] for item in record["artifacts"]] == ["model.onnx", "compile.sh", "manifest.json", "report.html"]
    assert {step["name"] for step in record["steps"]} >= {"hardswish-no-kernel", "verify", "compile"}
    assert [item["code"] for item in record["findings"]] == ["CP702"]
    assert all(step["proof"]["passed"] for step in record["steps"] if step["proof"])


def test_the_bundle_does_not_depend_on_where_it_lies(hardswish: Path, tmp_path: Path) -> None:
    migrate(hardswish, output=tmp_path / "b", target="mdc510pro", dry_run=True)
    (tmp_path / "b").rename(tmp_path / "moved here")
    assert_whole(tmp_path / "moved here")
    run = subprocess.run(["bash", "-n", str(tmp_path / "moved here" / "compile.sh")], capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    assert str(tmp_path) not in (tmp_path / "moved here" / "compile.sh").read_text()


def test_with_atc_the_bundle_holds_the_om(relu: Path, tmp_path: Path, fake_atc: Callable[..., Path]) -> None:
    fake_atc()
    case = migrate(relu, output=tmp_path / "b", soc=SOC)
    assert names(tmp_path / "b") == sorted([*WHOLE, "atc.log", "model.om"])
    assert assert_whole(tmp_path / "b")["atc"]["status"] == 0
    assert case.record.verdict == "ready"
    run = subprocess.run([str(tmp_path / "b" / "compile.sh")], cwd="/", capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")


def test_a_failing_atc_blocks_and_is_tried_again(relu: Path, tmp_path: Path, fake_atc: Callable[..., Path], stages: Stages) -> None:
    fake_atc(f'[ -e "{tmp_path}/memory" ] || exit 1; MAKES_OM')
    assert migrate(relu, output=tmp_path / "b", soc=SOC).record.verdict == "blocked"
    assert names(tmp_path / "b") == sorted([*WHOLE, "atc.log"])
    stages.take()
    (tmp_path / "memory").touch()
    assert migrate(relu, output=tmp_path / "b", soc=SOC, resume=True).record.verdict == "ready"
    assert stages.take() == ["compile_into"]
    assert (tmp_path / "b" / "model.om").read_bytes() == b"om"


def test_resume_does_nothing_twice(hardswish: Path, tmp_path: Path, stages: Stages) -> None:
    first = migrate(hardswish, output=tmp_path / "b", target="mdc510pro", dry_run=True, lang="en")
    assert stages.take() == ["fix", "verify", "compile_into"]
    again = migrate(hardswish, output=tmp_path / "b", target="mdc510pro", dry_run=True, lang="en", resume=True)
    assert stages.take() == []
    assert json_report(again.record) == json_report(first.record)
    assert names(tmp_path / "b") == WHOLE
    assert names(tmp_path) == ["b", "hardswish.onnx"]
    assert_whole(tmp_path / "b")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"soc": "Ascend310P1"}, ["fix", "verify", "compile_into"]),
        ({"shapes": {"x": (2, 3)}}, ["fix", "verify", "compile_into"]),
        ({"select": ["GR504"]}, ["fix"]),
        ({"fold_limit": 1}, ["fix"]),
        ({"bound": 1e-3}, ["verify"]),
        ({"precision_mode": "origin"}, ["compile_into"]),
        ({"dry_run": False}, ["compile_into"]),
        ({"lang": "zh"}, []),
    ],
)
def test_a_changed_option_redoes_what_depends_on_it(
    change: dict[str, Any], expected: list[str], relu: Path, tmp_path: Path, stages: Stages
) -> None:
    model = onnx.load(relu)
    model.graph.node[0].name = "relu"  # nothing to fix: the fixed model stays the same whatever is selected
    onnx.save(model, relu)
    options: dict[str, Any] = {"soc": SOC, "dry_run": True, "lang": "en"}
    migrate(relu, output=tmp_path / "b", **options)
    stages.take()
    migrate(relu, output=tmp_path / "b", **{**options, **change}, resume=True)
    assert stages.take() == expected
    assert_whole(tmp_path / "b")
    assert ("迁移报告" in (tmp_path / "b" / "report.html").read_text(encoding="utf-8")) == (change == {"lang": "zh"})


def test_a_changed_source_redoes_everything(relu: Path, tmp_path: Path, stages: Stages) -> None:
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True)
    ir.save(ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x) => (float[2,3] y) { y = Exp(x) }'), relu)
    stages.take()
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True, resume=True)
    assert stages.take() == ["fix", "verify", "compile_into"]
    assert [node.op_type for node in onnx.load(tmp_path / "b" / "model.onnx").graph.node] == ["Exp"]


def test_changed_feeds_redo_everything(relu: Path, tmp_path: Path, stages: Stages) -> None:
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, x=np.ones((2, 3), "float32"))
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True, feeds=feeds)
    np.savez(feeds, x=np.zeros((2, 3), "float32"))
    stages.take()
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True, feeds=feeds, resume=True)
    assert stages.take() == ["fix", "verify", "compile_into"]


@pytest.mark.parametrize(("name", "expected"), [("model.onnx", ["fix", "compile_into"]), ("compile.sh", ["compile_into"])])
def test_a_touched_file_is_made_again(name: str, expected: list[str], relu: Path, tmp_path: Path, stages: Stages) -> None:
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True)
    good = (tmp_path / "b" / name).read_bytes()
    (tmp_path / "b" / name).write_bytes(good + b"\x00")
    stages.take()
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True, resume=True)
    assert [stage for stage in stages.take() if stage != "verify"] == expected
    assert (tmp_path / "b" / name).read_bytes() == good
    assert_whole(tmp_path / "b")


def test_what_the_user_keeps_in_a_bundle_survives(relu: Path, tmp_path: Path) -> None:
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True)
    (tmp_path / "b" / "notes.txt").write_text("mine")
    (tmp_path / "b" / "data").mkdir()
    (tmp_path / "b" / "data" / "x.bin").write_bytes(b"mine too")
    migrate(relu, output=tmp_path / "b", soc="Ascend310P1", dry_run=True, resume=True)
    assert names(tmp_path / "b") == sorted([*WHOLE, "data", "notes.txt"])
    assert (tmp_path / "b" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "b" / "data" / "x.bin").read_bytes() == b"mine too"
    assert names(tmp_path) == ["b", "relu.onnx"]


def test_an_existing_place_is_refused_untouched(relu: Path, tmp_path: Path) -> None:
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True)
    before = {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir() if path.is_file()}
    with pytest.raises(UsageError, match=r"b` exists already; expected a new place; choose another -o, or pass --resume "):
        migrate(relu, output=tmp_path / "b", soc="Ascend310P1", dry_run=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir() if path.is_file()} == before


def test_an_empty_directory_is_taken(relu: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True)
    assert names(tmp_path / "b") == WHOLE


def test_a_link_to_a_bundle_stays_a_link(relu: Path, tmp_path: Path) -> None:
    migrate(relu, output=tmp_path / "real", soc=SOC, dry_run=True)
    (tmp_path / "b").symlink_to("real")
    migrate(relu, output=tmp_path / "b", soc="Ascend310P1", dry_run=True, resume=True)
    assert (tmp_path / "b").is_symlink()
    assert assert_whole(tmp_path / "real")["target"]["soc"] == "Ascend310P1"
    assert names(tmp_path) == ["b", "real", "relu.onnx"]


def test_a_blocked_model_gets_no_command(save_text: Callable[..., Path], tmp_path: Path) -> None:
    path = save_text("agraph (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    case = migrate(path, output=tmp_path / "b", soc=SOC, dry_run=True)
    assert case.record.verdict == "blocked"
    assert names(tmp_path / "b") == [".jumar", "model.onnx", "report.html", "report.json"]
    assert [str(note) for note in case.record.notes][-1] == "no ATC command was written: errors stand"
    assert {step.name for step in case.record.steps} & {"compile"} == set()


def test_a_bundle_that_became_blocked_loses_its_command(save_text: Callable[..., Path], tmp_path: Path) -> None:
    path = save_text("agraph (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    migrate(path, output=tmp_path / "b", soc=SOC, dry_run=True, shapes={"x": (2, 3)})
    assert names(tmp_path / "b") == WHOLE
    migrate(path, output=tmp_path / "b", soc=SOC, dry_run=True, resume=True)
    assert names(tmp_path / "b") == [".jumar", "model.onnx", "report.html", "report.json"]


def test_a_difference_blocks_the_command(relu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.onnx"
    text = (
        '<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x) => (float[2,3] y) <float f = {1.01}> { r = Relu(x) y = Mul(r, f) }'
    )
    ir.save(ir.from_onnx_text(text), other)
    plain = migrate_module.verify
    monkeypatch.setattr(migrate_module, "verify", lambda model, _against, **options: plain(model, other, **options))
    case = migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True)
    assert [item.code for item in case.record.findings if item.severity == "error"] == ["VF601"]
    assert "compile.sh" not in names(tmp_path / "b")


def test_leftovers_of_a_killed_save_do_not_stop_a_resumed_run(relu: Path, tmp_path: Path) -> None:
    scratch = tmp_path / ".b.partial" / ".model.onnx.abc"
    scratch.mkdir(parents=True)
    (scratch / "model.onnx.data").write_bytes(b"half")
    (tmp_path / ".b.partial" / ".compile.sh.xyz").write_text("half")
    migrate(relu, output=tmp_path / "b", soc=SOC, dry_run=True, resume=True)
    assert names(tmp_path / "b") == WHOLE


class Killed(BaseException):
    """Stands for a SIGKILL between two moves."""


@pytest.mark.parametrize("at", range(1, 9))
def test_a_kill_between_the_last_moves_loses_nothing(at: int, relu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call that moves or removes a directory while a bundle is replaced is the last one of a run in turn."""
    bundle = tmp_path / "b"
    migrate(relu, output=bundle, soc=SOC, dry_run=True)
    (bundle / "notes.txt").write_text("mine")
    calls = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise Killed
            return function(*words, **options)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(bundle_module.shutil, "rmtree", counted(shutil.rmtree))
        patch.setattr(bundle_module.shutil, "move", counted(shutil.move))
        patch.setattr(Path, "rename", counted(Path.rename))
        try:
            migrate(relu, output=bundle, soc=SOC, dry_run=True, precision_mode="origin", resume=True)
        except Killed:
            assert calls == at
        else:
            assert calls < at
            assert at > 4, "a replacement takes at least four such calls"
    if bundle.exists():
        assert_whole(bundle)
    migrate(relu, output=bundle, soc=SOC, dry_run=True, precision_mode="origin", resume=True)
    assert names(bundle) == sorted([*WHOLE, "notes.txt"])
    assert (bundle / "notes.txt").read_text() == "mine"
    assert "--precision_mode_v2=origin" in assert_whole(bundle)["command"]
    assert names(tmp_path) == ["b", "relu.onnx"]


@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_the_old_bundle_or_a_resumable_one(seed: int, hardswish: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    command = [sys.executable, "-c", "from jumar.cli.main import main; main()", "migrate", str(hardswish), "--target", "mdc510pro"]
    command += ["-o", str(bundle), "--dry-run", "--resume", "-q"]
    moments = random.Random(seed)
    for moment in (moments.uniform(0.2, 0.7), moments.uniform(0.5, 1.6)):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if bundle.exists():
            assert_whole(bundle)
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert_whole(bundle)
    assert names(bundle) == WHOLE
    assert names(tmp_path) == ["b", "hardswish.onnx"]


def test_record_survives_the_way_through_a_stage(hardswish: Path, tmp_path: Path) -> None:
    migrate(hardswish, output=tmp_path / "b", target="mdc510pro", dry_run=True)
    for name in ("fix", "verify", "compile"):
        stored = json.loads((tmp_path / "b" / ".jumar" / f"{name}.json").read_text(encoding="utf-8"))["record"]
        assert Record.from_dict(stored).to_dict(lang=None) == stored
