"""The ATC command that a log shows: which of its flags a code complains of."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..atc.options import Problem


def command_words(command: str) -> list[str]:
    """The words of a command after the program, as a shell would hand them over; a broken quote ends them."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    ends = [index for index, word in enumerate(words) if word in ("&&", "||", "|", "&", ">", "2>&1")]
    return words[1 : ends[0] if ends else None]


def soc_of(command: str) -> str | None:
    """The value of ``--soc_version``."""
    words = command_words(command)
    for index, word in enumerate(words):
        if word.startswith("--soc_version="):
            return word.partition("=")[2].rstrip(";") or None
        if word == "--soc_version" and index + 1 < len(words):
            return words[index + 1]
    return None


def command_problems(command: str, code: str) -> list[Problem]:
    """What Jumar's linter finds in the command that ATC reports with this code (its two at most)."""
    from ..atc.options import check, parse_argv

    options, problems = parse_argv(command_words(command))
    return [problem for problem in (*problems, *check(options)) if code in problem.atc][:2]
