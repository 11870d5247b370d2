"""The ATC command and the script are read from the model."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest

from jumar.atc import build_command, check_precision_mode, shell_script
from jumar.atc.command import PRECISION_MODES, input_format
from jumar.errors import UsageError
from jumar.targets import find_target

TARGET = find_target("Ascend310P3")


def model(inputs: str) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph ({inputs}) => (float[1] y) {{ y = Identity(x0) }}')


def test_command_names_every_input_in_order() -> None:
    command = build_command(model("float[1,3,8,8] x0, int64[1,4] ids"), TARGET, "m.onnx", "out/m.om")
    assert command.argv() == [
        "atc",
        "--model=m.onnx",
        "--framework=5",
        "--output=out/m",
        "--soc_version=Ascend310P3",
        "--input_shape=x0:1,3,8,8;ids:1,4",
        "--input_format=ND",
        "--log=error",
    ]


def test_command_text_survives_a_shell() -> None:
    command = build_command(model("float[1] x0"), TARGET, "my model's.onnx", "o ut")
    assert shlex.split(command.text()) == command.argv()


def test_scalars_and_weights_are_not_in_the_shapes() -> None:
    graph = model("float x0, float[2] w")
    assert build_command(graph, TARGET, "m", "o").flags["input_shape"] == "w:2"
    graph.graph.initializers["w"] = graph.graph.inputs[1]
    graph.graph.inputs[1].const_value = ir.tensor([1.0, 2.0], name="w")
    assert "input_shape" not in build_command(graph, TARGET, "m", "o").flags


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("float[1,3,8,8] x0", "NCHW"),
        ("float[1,3,8,8] x0, float[2,3,8,8] b", "NCHW"),
        ("float[1,3,4,8,8] x0", "NCDHW"),
        ("float[1,3,8,8] x0, float[1,3] b", "ND"),
        ("float[1,3] x0", "ND"),
        ("float x0", "ND"),
    ],
)
def test_input_format_follows_the_ranks(inputs: str, expected: str) -> None:
    assert input_format(model(inputs)) == expected


@pytest.mark.parametrize("inputs", ["float[N,3] x0", "float[1] a, float[] x0"])
def test_an_open_shape_is_refused_by_name(inputs: str) -> None:
    graph = model(inputs)
    if "[]" in inputs:
        graph.graph.inputs[1].shape = None
    with pytest.raises(UsageError, match=r'^input `x0` has no fixed shape; .* pin it with --shape "x0:\.\.\."$'):
        build_command(graph, TARGET, "m", "o")


def test_precision_modes_are_passed_on_or_refused() -> None:
    graph = model("float[1] x0")
    for mode in PRECISION_MODES:
        assert build_command(graph, TARGET, "m", "o", precision_mode=mode).flags["precision_mode_v2"] == mode
        check_precision_mode(mode)
    check_precision_mode(None)
    assert "precision_mode_v2" not in build_command(graph, TARGET, "m", "o").flags
    with pytest.raises(UsageError, match=r"^`fp8` is not a precision mode; expected one of: fp16, origin, "):
        build_command(graph, TARGET, "m", "o", precision_mode="fp8")


@pytest.mark.parametrize(
    "words",
    [
        ("model.onnx", "model", "x0"),
        ("/abs/a b/it's $HOME `id`.onnx", "o u't", "x0"),
        ("model.onnx", "model", "a;rm -rf $(pwd)`id`'\"/x"),
    ],
)
def test_script_is_sound_bash_for_every_name(words: tuple[str, str, str], tmp_path: Path) -> None:
    path, output, name = words
    graph = model("float[1] x0")
    graph.graph.inputs[0].name = name
    script = tmp_path / "compile.sh"
    script.write_text(shell_script(build_command(graph, TARGET, path, output), TARGET, {path: "0" * 64}))
    checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_script_passes_hostile_names_unchanged(tmp_path: Path, fake_tool: Callable[[Path, str], Path]) -> None:
    name = "a;touch pwned$(touch pwned)`touch pwned`'\"/x"
    graph = model("float[1] x0")
    graph.graph.inputs[0].name = name
    folder = tmp_path / "it's a $folder"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    command = build_command(graph, TARGET, "model.onnx", "model", precision_mode="fp16")
    (folder / "compile.sh").write_text(shell_script(command, TARGET, {"model.onnx": digest}))
    tools = fake_tool(tmp_path / "bin", f'printf "%s\\n" "$@" > "{tmp_path}/argv"')
    run = subprocess.run(
        ["bash", str(folder / "compile.sh")], cwd="/", env={"PATH": f"{tools}:/usr/bin:/bin"}, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    expected = command.argv()[1:]
    expected[0], expected[2] = f"--model={folder}/model.onnx", f"--output={folder}/model"
    assert sorted((tmp_path / "argv").read_text().splitlines()) == sorted(expected)
    assert not list(tmp_path.rglob("pwned"))


def test_script_without_atc_says_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "compile.sh"
    script.write_text(shell_script(build_command(model("float[1] x0"), TARGET, "m", "o"), TARGET, {"m": "0" * 64}))
    run = subprocess.run(["bash", str(script)], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (2, b"atc was not found: source <CANN>/set_env.sh first\n")
