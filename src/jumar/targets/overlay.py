"""Facts of the user's own: where they are, and the tables that ``jumar targets import`` read from an installed CANN.

They win over the packaged facts; what :mod:`.declared` reads from the TOML files of the same folder wins over both.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import UsageError
from ..text import say
from .versions import is_version, version_key

_SUFFIX = ".json.gz"


def overlay_folder() -> Path:
    """``$JUMAR_TARGETS``, or ``jumar/targets`` below the user's configuration folder."""
    return _folder(os.environ.get("JUMAR_TARGETS"), os.environ.get("XDG_CONFIG_HOME"), os.environ.get("HOME"))


@cache
def _folder(given: str | None, config: str | None, home: str | None) -> Path:
    if given:
        return Path(given).absolute()
    return Path(config or Path(home or Path.home()) / ".config") / "jumar" / "targets"


def imported_file(cann: str, kernels: str) -> Path:
    """Where the imported table of a CANN release and a kernel folder of CANN (``ascend310p``) is kept."""
    return overlay_folder() / f"{cann}_{kernels}{_SUFFIX}"


@cache
def _imported_files(folder: Path) -> Mapping[tuple[str, str], Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(_SUFFIX) and entry.is_file())
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise UsageError(
            say(
                "the folder of your own facts `{path}` cannot be read: {error}",
                "无法读取您自己的数据目录 `{path}`：{error}",
                path=folder,
                error=error.strerror,
            ),
            say("expected a folder", "应为目录"),
            say("check JUMAR_TARGETS", "请检查 JUMAR_TARGETS"),
        ) from error
    found = {}
    for name in names:
        cann, _, kernels = name.removesuffix(_SUFFIX).partition("_")
        if is_version(cann) and kernels:
            found[cann, kernels] = folder / name
    return MappingProxyType(found)


def imported_versions(kernels: str) -> tuple[str, ...]:
    """The CANN releases from which a table for this kernel folder was imported, oldest first."""
    return tuple(sorted((cann for cann, name in _imported_files(overlay_folder()) if name == kernels), key=version_key))


def imported_kernels(cann: str, kernels: str) -> Mapping[str, Any] | None:
    """The kernel table that ``jumar targets import`` made for this CANN and kernel folder, if there is one.

    Raises:
        UsageError: the file is there and cannot be read.
    """
    path = _imported_files(overlay_folder()).get((cann, kernels))
    return None if path is None else _read(path)


@cache
def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(gzip.decompress(path.read_bytes()))
        table = {"source": str(data["source"]), "dtypes": [str(item) for item in data["dtypes"]], "ops": _checked(data["ops"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError) as error:
        raise UsageError(
            say(
                "imported facts `{path}` cannot be read: {error}",
                "无法读取导入的数据 `{path}`：{error}",
                path=path,
                error=str(error)[:100] or type(error).__name__,
            ),
            say("expected what `jumar targets import` writes", "应为 `jumar targets import` 写出的文件"),
            say("import again, or delete the file", "请重新导入，或删除该文件"),
        ) from error
    return MappingProxyType(table)


def _checked(ops: dict[str, dict[str, list[Any]]]) -> dict[str, dict[str, list[Any]]]:
    """The operators of a table, each engine's inputs being name, dtypes and flags.

    Raises:
        AttributeError, TypeError, ValueError: something else.
    """
    for engines in ops.values():
        for kernel in engines.values():
            for name, mask, flags in kernel[0] if kernel else ():
                if not (isinstance(name, str) and isinstance(mask, int) and isinstance(flags, str)):
                    raise TypeError("an input is not name, dtypes and flags")
    return ops


def forget() -> None:
    """Read the folder anew at the next question: something was written to it."""
    _imported_files.cache_clear()
    _read.cache_clear()
