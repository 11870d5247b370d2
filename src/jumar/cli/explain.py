"""``jumar explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import Output, text, verb

HELP = text("What a code means, why it matters, what the fix is.", "代码的含义、原因与修复方法。")


@verb
def command(
    output: Output,
    code: Annotated[str, typer.Argument(metavar="CODE", help=text("of a finding, e.g. OP101", "检查结果的代码，例如 OP101"))],
) -> None:
    from ..verbs.explain import explain

    output.show(explain(code, lang=output.lang))
