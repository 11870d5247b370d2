"""``jumar doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import Output, text, verb

HELP = text("Report this machine: ATC, driver, NPU, Python packages.", "报告本机情况：ATC、驱动、NPU、Python 包。")


@verb
def command(
    output: Output,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="MANIFEST", help=text("compare with the machine and files of a build", "与某次构建的机器和文件对比")
        ),
    ] = None,
) -> None:
    from ..verbs.doctor import doctor

    output.show(doctor(against=against))
