"""Models with a known problem, and stand-ins for Huawei's compiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jumar.atc import toolchain

MAKES_OM = 'for word in "$@"; do case $word in --output=*) printf om > "${word#--output=}.om";; esac; done; echo ATC run success'
"""What a working ATC does, as far as Jumar can see."""


@pytest.fixture(autouse=True)
def no_atc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No CANN of the machine is used by accident."""
    monkeypatch.setattr(toolchain, "_DEFAULT_HOME", str(tmp_path / "nowhere"))


@pytest.fixture
def fake_atc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Put an ``atc`` with this shell body on PATH (or only into ``folder``); the word MAKES_OM stands for all a working one does."""

    def install(body: str = "MAKES_OM", folder: Path | None = None) -> Path:
        tools = folder or tmp_path / "tools"
        tools.mkdir(parents=True, exist_ok=True)
        program = tools / "atc"
        program.write_text("#!/bin/bash\n" + body.replace("MAKES_OM", MAKES_OM) + "\n")
        program.chmod(0o755)
        if folder is None:
            monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        return program

    return install


@pytest.fixture
def hardswish(save_text: Callable[..., Path]) -> Path:
    """Two HardSwish nodes, which BS9SX1AA does not take; there is a proven rewrite."""
    return save_text("agraph (float[2,3] x) => (float[2,3] y) { t = HardSwish(x) y = HardSwish(t) }", "hardswish.onnx", 14)


@pytest.fixture
def embedding(save_text: Callable[..., Path]) -> Path:
    """An int64 input that the model itself proves to fit int32, with a name ATC cannot take, and an int64 output."""
    text = """agraph (int64[2,3] ids) => (int64[2,3,1] best, float[2,3,2] y)
    <float[4,2] table = {0.5, 1.0, 2.0, 1.5, 2.5, 3.0, 4.0, 3.5}> { y = Gather(table, ids) best = ArgMax<axis = 2>(y) }"""
    return save_text(text, "embedding.onnx")
