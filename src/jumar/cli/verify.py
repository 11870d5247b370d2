"""``jumar verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import FeedsOption, ModelArgument, Output, ShapeOption, text, verb

HELP = text("Compare the outputs with a reference, in numbers.", "用数值对比输出与参考。")


@verb
def command(
    output: Output,
    model: ModelArgument,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="REF", help=text("the reference model (a bundle knows its own)", "参考模型（bundle 自带记录）")),
    ] = None,
    feeds: FeedsOption = None,
    shape: ShapeOption = None,
    bound: Annotated[
        float | None, typer.Option("--bound", metavar="X", help=text("allowed max_rel (default 1e-4)", "允许的 max_rel（默认 1e-4）"))
    ] = None,
    csv: Annotated[str | None, typer.Option("--csv", metavar="F", help=text("write the table here too", "同时将表格写入此文件"))] = None,
) -> None:
    from ..verbs.common import parse_shapes
    from ..verbs.verify import DEFAULT_BOUND, verify

    with output.progress() as progress:
        case = verify(
            model,
            against,
            feeds=feeds,
            shapes=parse_shapes(shape or []) or None,
            bound=DEFAULT_BOUND if bound is None else bound,
            csv_file=csv,
            progress=progress,
        )
    output.show(case.record)
