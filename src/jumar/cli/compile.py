"""``jumar compile``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import (
    CannOption,
    DryRunOption,
    ModelArgument,
    OpsetMaxOption,
    Output,
    PrecisionOption,
    ShapeOption,
    SocOption,
    TargetOption,
    TimeoutOption,
    text,
    verb,
)

HELP = text("Write the ATC command and a manifest; run atc where it is installed.", "生成 ATC 命令与 manifest；已安装时运行 atc。")


@verb
def command(
    output: Output,
    model: ModelArgument,
    out: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help=text("directory to write into", "输出目录"))],
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    opset_max: OpsetMaxOption = None,
    shape: ShapeOption = None,
    precision_mode: PrecisionOption = None,
    dry_run: DryRunOption = False,
    timeout: TimeoutOption = 3600.0,
) -> None:
    from ..verbs.common import parse_shapes
    from ..verbs.compile import compile

    with output.progress() as progress:
        case = compile(
            model,
            output=out,
            soc=soc,
            target=target,
            cann=cann,
            opset_max=opset_max,
            shapes=parse_shapes(shape or []),
            precision_mode=precision_mode,
            dry_run=dry_run,
            timeout=timeout,
            progress=progress,
        )
    output.show(case.record)
