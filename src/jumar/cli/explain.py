"""``jumar explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import Output, text, verb

HELP = text("What a code means and what the fix is; what is true of what articles claim.", "代码的含义与修复方法；文章说法的实情。")


@verb
def command(
    output: Output,
    code: Annotated[
        str,
        typer.Argument(
            metavar="CODE",
            help=text("of a finding or a claim, e.g. OP101, CL001; or `claims`", "检查结果或说法的代码，例如 OP101、CL001；或 `claims`"),
        ),
    ],
) -> None:
    from ..verbs.explain import explain

    output.show(explain(code, lang=output.lang))
