"""``jumar diagnose``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import CannOption, Output, SocOption, TargetOption, text, verb

HELP = text("Which line of a log says why, and what to do; what an error code means.", "日志中哪一行说明了原因、如何处理；错误码的含义。")


@verb
def command(
    output: Output,
    source: Annotated[
        str,
        typer.Argument(
            metavar="LOG|CODE",
            help=text(
                "a log, a folder of logs, - for standard input; or a code, e.g. E19010, 507011, 139",
                "日志、日志目录，- 表示标准输入；或代码，例如 E19010、507011、139",
            ),
        ),
    ],
    model: Annotated[str | None, typer.Option("--model", metavar="MODEL", help=text("the model that was compiled", "所编译的模型"))] = None,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    status: Annotated[
        int | None,
        typer.Option("--status", metavar="N", help=text("exit status of the program that wrote the log", "写出该日志的程序的退出状态")),
    ] = None,
) -> None:
    from ..verbs.diagnose import diagnose

    output.show(diagnose(source, model=model, soc=soc, target=target, cann=cann, status=status))
