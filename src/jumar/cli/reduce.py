"""``jumar reduce``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import FeedsOption, ModelArgument, Output, ShapeOption, text, verb

HELP = text("The smallest part of a model that still fails a check.", "找出仍使检查失败的最小模型。")


@verb
def command(
    output: Output,
    model: ModelArgument,
    check: Annotated[
        str,
        typer.Option(
            "--check",
            metavar="COMMAND",
            help=text(
                "command that fails on a bad model; {model} is its path, {inputs} an .npz of its inputs",
                "在有问题的模型上失败的命令；{model} 为模型路径，{inputs} 为其输入的 .npz",
            ),
        ),
    ],
    out: Annotated[str, typer.Option("-o", "--output", metavar="OUT.onnx", help=text("where to write the model", "模型的输出位置"))],
    feeds: FeedsOption = None,
    shape: ShapeOption = None,
    fail_code: Annotated[
        list[int] | None,
        typer.Option(
            "--fail-code", metavar="N", help=text("exit status that counts as the failure (repeatable)", "视为失败的退出状态（可重复）")
        ),
    ] = None,
    fail_regex: Annotated[
        str | None, typer.Option("--fail-regex", metavar="RE", help=text("what it prints must match besides", "其输出还须匹配的正则表达式"))
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", help=text("for one check; later decides nothing", "单次检查的时限；超时不作结论")),
    ] = 600.0,
    tries: Annotated[int, typer.Option("--tries", metavar="N", help=text("most checks to run", "最多运行的检查次数"))] = 200,
    resume: Annotated[bool, typer.Option("--resume", help=text("go on with a run that was stopped", "继续被中断的运行"))] = False,
) -> None:
    from ..verbs.common import parse_shapes
    from ..verbs.reduce import reduce

    with output.progress() as progress:
        case = reduce(
            model,
            check=check,
            output=out,
            feeds=feeds,
            shapes=parse_shapes(shape or []),
            fail_codes=fail_code,
            fail_text=fail_regex,
            timeout=timeout,
            tries=tries,
            resume=resume,
            progress=progress,
        )
    output.show(case.record)
