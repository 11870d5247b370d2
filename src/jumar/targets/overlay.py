"""Facts of the user's own: tables read from an installed CANN, and kernels declared by hand. They win over the packaged facts."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..text import say


def overlay_folder() -> Path:
    """``$JUMAR_TARGETS``, or ``jumar/targets`` below the user's configuration folder."""
    given = os.environ.get("JUMAR_TARGETS")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "jumar" / "targets"


@cache
def imported_kernels(cann: str, soc: str) -> dict[str, Any] | None:
    """The kernel table that ``jumar targets import`` made for this CANN and SoC, if there is one.

    Raises:
        UsageError: the file is there and cannot be read.
    """
    path = overlay_folder() / f"{cann}_{soc}.json.gz"
    if not path.is_file():
        return None
    try:
        data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        return {"source": str(data["source"]), "dtypes": list(data["dtypes"]), "ops": dict(data["ops"])}
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise UsageError(
            say(
                "imported facts `{path}` cannot be read: {error}", "无法读取导入的数据 `{path}`：{error}", path=path, error=str(error)[:100]
            ),
            say("expected what `jumar targets import` writes", "应为 `jumar targets import` 写出的文件"),
            say("import again, or delete the file", "请重新导入，或删除该文件"),
        ) from error
