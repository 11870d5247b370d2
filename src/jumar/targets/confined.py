"""Reading below one folder and nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NoReturn

from ..errors import UsageError
from ..text import Text, say

MOST_BYTES = 64 << 20
"""Of one file."""


class ConfinedFolder:
    """A folder whose files are read; a link that leads out of it is an error."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()

    def find(self, *parts: str) -> Path | None:
        """The path with all links followed, or None where there is nothing.

        Raises:
            UsageError: it leads out of the folder, or in a circle.
        """
        path = self.base.joinpath(*parts)
        try:
            found = path.resolve(strict=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, RuntimeError) as error:
            bad_file(path, say("{error}", "{error}", error=getattr(error, "strerror", None) or "a link leads in a circle"))
        if not found.is_relative_to(self.base):
            bad_file(path, say("it leads out of `{base}`", "它指向 `{base}` 之外", base=self.base))
        return found

    def names(self, *parts: str) -> list[str]:
        """What is in a folder below, sorted; nothing where there is no such folder."""
        found = self.find(*parts)
        if found is None or not found.is_dir():
            return []
        try:
            return sorted(entry.name for entry in found.iterdir())
        except OSError as error:
            bad_file(found, say("{error}", "{error}", error=error.strerror))

    def read(self, *parts: str) -> bytes | None:
        """A regular file as a whole, or None where there is none.

        Raises:
            UsageError: no regular file, too large, unreadable, or outside.
        """
        found = self.find(*parts)
        if found is None:
            return None
        try:
            handle = os.open(found, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    bad_file(found, say("it is not a regular file", "不是普通文件"))
                raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            bad_file(found, say("{error}", "{error}", error=error.strerror))
        if len(raw) > MOST_BYTES:
            bad_file(found, say("it is larger than {size} MB", "大于 {size} MB", size=MOST_BYTES >> 20))
        return raw


def bad_file(path: Path, problem: Text) -> NoReturn:
    raise UsageError(
        say("`{path}` cannot be imported: {problem}", "无法导入 `{path}`：{problem}", path=path, problem=problem),
        say("expected an installation of CANN", "应为 CANN 的安装目录"),
        say("give the folder that holds `opp`, e.g. ascend-toolkit/latest", "请给出含 `opp` 的目录，例如 ascend-toolkit/latest"),
    )
