"""Stand-ins for Huawei's compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def fake_tool() -> Callable[[Path, str], Path]:
    """Write an ``atc`` with this shell body into a folder; returns the folder."""

    def write(folder: Path, body: str) -> Path:
        folder.mkdir(parents=True)
        program = folder / "atc"
        program.write_text(f"#!/bin/bash\n{body}\n")
        program.chmod(0o755)
        return folder

    return write
