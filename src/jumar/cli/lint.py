"""``jumar lint``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import CannOption, Output, SocOption, TargetOption, text, verb

HELP = text(
    "What is wrong in ATC commands, in scripts that hold them, and in ATC's configuration files.",
    "检查 ATC 命令、含有它们的脚本以及 ATC 的配置文件中的错误。",
)


@verb
def command(
    output: Output,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help=text(
                "scripts, makefiles, Markdown, configuration files, folders, a command in quotes, or - for standard input",
                "脚本、makefile、Markdown、配置文件、目录、加引号的命令，或用 - 表示标准输入",
            ),
        ),
    ],
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help=text("compare with this ONNX file", "与该 ONNX 文件对照"))
    ] = None,
) -> None:
    from ..verbs.lint import lint, read_standard_input

    items = [read_standard_input() if item == "-" else item for item in inputs]
    output.show(lint(items, soc=soc, target=target, cann=cann, model=model))
