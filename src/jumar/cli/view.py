"""``jumar view``."""

from __future__ import annotations

from typing import Annotated

import typer

from ..text import Text, visible
from .common import Output, text, verb

HELP = text("Show a model in Netron (extra: view).", "用 Netron 显示模型（附加组件：view）。")


@verb
def command(
    output: Output,
    file: Annotated[str, typer.Argument(metavar="FILE", help=text("an .onnx or .om file", ".onnx 或 .om 文件"))],
    port: Annotated[int | None, typer.Option("--port", metavar="N", help=text("port to serve on", "服务端口"))] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help=text("serve it, open no browser", "只提供服务，不打开浏览器"))] = False,
) -> None:
    from ..verbs.view import view

    def announce(line: Text) -> None:
        if not output.quiet:
            typer.echo(visible(line.render(output.lang)), err=True)

    view(file, port=port, browse=not no_browser, announce=announce)
