"""``jumar inspect``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import CannOption, Output, SocOption, TargetOption, text, verb

HELP = text(
    "What a compiled model (.om), an ONNX model or a bundle says of itself.",
    "查看已编译模型（.om）、ONNX 模型或 bundle 的内容。",
)


@verb
def command(
    output: Output,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help=text("an .om or .onnx file, or a bundle", ".om 或 .onnx 文件，或 bundle 目录"))
    ],
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    operators: Annotated[bool, typer.Option("--operators", help=text("list every operator", "列出每个算子"))] = False,
    source: Annotated[
        bool, typer.Option("--source", help=text("list the module and Python line of each node", "列出每个节点所属的模块和 Python 代码行"))
    ] = False,
) -> None:
    from ..verbs.inspect import inspect

    output.show(inspect(file, soc=soc, target=target, cann=cann, operators=operators, source=source))
