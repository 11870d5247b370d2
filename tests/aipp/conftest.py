"""Fixtures of the AIPP tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def real_configs(shared: Path) -> list[dict[str, Any]]:
    """The AIPP files of ModelZoo-PyTorch: ``source`` and the text."""
    rows = json.loads((shared / "facts" / "peers" / "aipp_configs.json").read_text(encoding="utf-8"))["rows"]
    return [{"source": row["source"], "text": "".join(written(block) for block in row["blocks"])} for row in rows]


def written(block: dict[str, str]) -> str:
    return "aipp_op {\n" + "".join(f"  {name} : {value}\n" for name, value in block.items()) + "}\n"
