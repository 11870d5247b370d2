"""Bad input of `export`: one line that says what was found, expected, and what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def test_without_torch_the_command_to_install_it_is_named(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; sys.argv[1:] = sys.argv[1:]; from jumar.cli.main import main; main()"
    words = ["export", "nets:make", "-o", str(tmp_path / "m.onnx"), "--soc", "Ascend310P3"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.count("\n") == 1 and 'pip install "jumar[torch]"' in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("modules", "names no factory"),
        ("nowhere_at_all:make", "cannot be imported"),
        ("nowhere.py:make", "no such file"),
        ("modules:nothing", "has no `nothing`"),
        ("modules:make_text", "returned str"),
        ("modules:make_failing", r"does not run on the given inputs.*modules.py:\d+"),
        ("modules:make_rows", "nothing is given for x"),
    ],
)
def test_factories_that_do_not_fit(reference: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    import jumar

    monkeypatch.syspath_prepend(str(HERE))
    with pytest.raises(jumar.JumarError, match=message):
        jumar.export(reference, soc="Ascend310P3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"args": (1,)}, "no tensor among the arguments"),
        ({"args": (1, 2, 3)}, "does not take these arguments"),
        ({"input_names": ["a", "b"]}, "2 different names"),
        ({"dynamic": "y:0"}, "no input `y`"),
        ({"inputs": {"z": [1.0]}}, "no tensor z among"),
    ],
)
def test_arguments_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    torch = pytest.importorskip("torch")
    import jumar

    with pytest.raises(jumar.UsageError, match=message):
        jumar.export(torch.nn.ReLU(), **{"args": (torch.ones(2),), "soc": "Ascend310P3", **changes})


def test_what_is_no_module() -> None:
    torch = pytest.importorskip("torch")
    import jumar

    with pytest.raises(jumar.UsageError, match="is no module"):
        jumar.export(torch.relu, (torch.ones(2),), soc="Ascend310P3")
