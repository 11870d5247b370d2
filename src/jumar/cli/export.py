"""``jumar export``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import CannOption, OpsetMaxOption, Output, RangeOption, ShapeOption, SocOption, TargetOption, text, verb

HELP = text("PyTorch to ONNX, held to what the module computes.", "将 PyTorch 模块导出为 ONNX，并与模块自身的计算结果对照。")


@verb
def command(
    output: Output,
    module: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CALLABLE",
            help=text(
                "what returns the module, or (module, args), or (module, args, kwargs); its code is run. Or a .pt of TorchScript, or a .pt2",
                "返回模块、(模块, args) 或 (模块, args, kwargs) 的可调用对象；会运行其代码。也可为 TorchScript 的 .pt 或 .pt2",
            ),
        ),
    ],
    out: Annotated[str, typer.Option("-o", "--output", metavar="M.onnx", help=text("where to write the model", "模型的输出位置"))],
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    opset_max: OpsetMaxOption = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="FILE", help=text("a state_dict for the factory's module", "工厂函数所建模块的 state_dict")),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option("--inputs", metavar="NPZ", help=text("arrays named like forward's parameters", "以 forward 的参数名为键的数组")),
    ] = None,
    shape: ShapeOption = None,
    dynamic: Annotated[
        list[str] | None,
        typer.Option(
            "--dynamic",
            metavar="NAME:AXIS=SIZES",
            help=text('open dimensions, e.g. "x:0=1..8,2=320|640"', '可变维度，例如 "x:0=1..8,2=320|640"'),
        ),
    ] = None,
    range_: RangeOption = None,
    exporter: Annotated[
        list[str] | None,
        typer.Option(
            "--exporter", metavar="NAME", help=text("dynamo or torchscript (default: both)", "dynamo 或 torchscript（默认：两者）")
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help=text("seconds each exporter may take", "每个导出器的时间上限（秒）"))
    ] = 900.0,
) -> None:
    from ..verbs.common import parse_ranges, parse_shapes
    from ..verbs.export import export, known_exporters

    with output.progress() as progress:
        case = export(
            module,
            soc=soc,
            target=target,
            cann=cann,
            opset_max=opset_max,
            weights=weights,
            inputs=inputs,
            shapes=parse_shapes(shape or []),
            dynamic=dynamic or (),
            ranges=parse_ranges(range_ or []),
            exporters=known_exporters(exporter),
            timeout=timeout,
            output=out,
            progress=progress,
        )
    output.show(case.record)
