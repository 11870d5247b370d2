"""The check command: a program of the user's that tells good models from bad ones by its exit status."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..atc.process import run_watched
from ..errors import ToolError, UsageError
from ..text import say

Verdict = Literal["passed", "failed", "undecided"]
MODEL, INPUTS = "{model}", "{inputs}"


@dataclass(frozen=True)
class Check:
    """The command and what counts as a failure.

    Attributes:
        command: words of the command line, with ``{model}`` and perhaps ``{inputs}``.
        fail_codes: exit statuses that count as the failure looked for (None: any but 0).
        fail_text: an expression that its output must match besides.
        timeout: seconds; a check that takes longer decides nothing.
    """

    command: tuple[str, ...]
    fail_codes: frozenset[int] | None = None
    fail_text: re.Pattern[str] | None = None
    timeout: float = 600.0

    @classmethod
    def of(cls, command: str, fail_codes: frozenset[int] | None, fail_text: str | None, timeout: float) -> Check:
        """Read the command as a shell would split it. A command without ``{model}`` gets the path as its last word.

        Raises:
            UsageError: no command, open quotes, or an expression that is none.
        """
        try:
            words = shlex.split(command)
            pattern = None if fail_text is None else re.compile(fail_text)
        except (ValueError, re.error) as error:
            raise UsageError(
                say("the check cannot be read: {error}", "无法解析检查命令：{error}", error=str(error)),
                say("expected a command line, and a regular expression for --fail-regex", "应为命令行；--fail-regex 应为正则表达式"),
                say("correct it", "请修正"),
            ) from error
        if not words:
            raise UsageError(
                say("the check is empty", "检查命令为空"),
                say("expected a command", "应为命令"),
                say('for example --check "python check.py {model}"', '例如 --check "python check.py {model}"', model=MODEL),
            )
        if not any(MODEL in word for word in words):
            words.append(MODEL)
        return cls(tuple(words), fail_codes, pattern, timeout)

    @property
    def wants_inputs(self) -> bool:
        return any(INPUTS in word for word in self.command)

    def run(self, model: Path, inputs: Path, log: Path) -> Verdict:
        """Run the command on a model, in the caller's directory.

        Raises:
            ToolError: the command cannot be started.
        """
        words = [word.replace(MODEL, str(model)).replace(INPUTS, str(inputs)) for word in self.command]
        try:
            ended = run_watched(words, log, self.timeout, folder=Path.cwd())
        except ToolError as error:
            raise ToolError(
                error.found,
                say("expected a program that can be run", "应为可运行的程序"),
                say("correct --check", "请修正 --check"),
            ) from error
        if ended.stopped is not None:
            return "undecided"
        if ended.status == 0:
            return "passed"
        if self.fail_codes is not None and ended.status not in self.fail_codes:
            return "undecided"
        if self.fail_text is not None and not self.fail_text.search(log.read_text(encoding="utf-8", errors="replace")):
            return "undecided"
        return "failed"
