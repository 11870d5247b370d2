"""``jumar quantize``."""

from __future__ import annotations

from typing import Annotated

import typer

from .aipp import PreprocessOption
from .common import CannOption, ModelArgument, Output, SocOption, TargetOption, text, verb

HELP = text("INT8 in the form ATC parses: calibrate, gate, fall back.", "生成 ATC 可解析的 INT8 模型：校准、精度门限、自动回退。")

CalibOption = Annotated[
    str | None,
    typer.Option(
        "--calib",
        metavar="DATA",
        help=text("samples: .npz, .npy, or a folder of .npy, .npz or images", "样本：.npz、.npy，或含有 .npy、.npz、图像的文件夹"),
    ),
]
HeldOption = Annotated[
    str | None,
    typer.Option(
        "--held",
        metavar="DATA",
        help=text(
            "samples for the accuracy gate alone (default: every fifth of --calib)",
            "仅用于精度门限的样本（默认：--calib 中每五个取一个）",
        ),
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=text("auto (default), histogram, max, mse, entropy, percentile", "auto（默认）、histogram、max、mse、entropy、percentile"),
    ),
]
QuantMetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help=text(
            "agreement with the float model: similarity (default), cosine, top1, top5, iou, text",
            "与浮点模型的一致性：similarity（默认）、cosine、top1、top5、iou、text",
        ),
    ),
]
MaxDropOption = Annotated[
    float | None,
    typer.Option("--max-drop", metavar="X", help=text("how much of it may be lost (default 0.01)", "允许的损失（默认 0.01）")),
]
SkipOption = Annotated[
    list[str] | None,
    typer.Option("--skip-layer", metavar="NODE", help=text("keep in floats (repeatable)", "保持浮点（可重复）")),
]
ConfigOption = Annotated[
    str | None, typer.Option("--config", metavar="JSON", help=text("quantization.json, or AMCT's", "quantization.json，或 AMCT 的配置"))
]


@verb
def command(
    output: Output,
    model: ModelArgument,
    out: Annotated[str, typer.Option("-o", "--output", metavar="OUTDIR", help=text("folder of the results", "结果文件夹"))],
    calib: CalibOption = None,
    held: HeldOption = None,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    preprocess: PreprocessOption = None,
    method: MethodOption = None,
    metric: QuantMetricOption = None,
    max_drop: MaxDropOption = None,
    skip_layer: SkipOption = None,
    skip_type: Annotated[
        list[str] | None,
        typer.Option("--skip-type", metavar="OP", help=text("keep this operator in floats (repeatable)", "该类算子保持浮点（可重复）")),
    ] = None,
    config: ConfigOption = None,
    record: Annotated[
        str | None,
        typer.Option("--record", metavar="FILE", help=text("take the scales of AMCT's record file", "使用 AMCT 记录文件中的 scale")),
    ] = None,
    symmetric: Annotated[bool, typer.Option("--symmetric", help=text("activations without offset", "激活不使用 offset"))] = False,
    correct_bias: Annotated[
        bool,
        typer.Option(
            "--correct-bias", help=text("take the mean error of rounded weights off the biases", "从偏置中减去权重舍入的平均误差")
        ),
    ] = False,
    no_fallback: Annotated[
        bool,
        typer.Option("--no-fallback", help=text("report a failed gate instead of putting layers back", "门限未通过时只报告，不恢复层")),
    ] = False,
    samples: Annotated[int, typer.Option("--samples", metavar="N", help=text("use at most so many", "最多使用的样本数"))] = 1000,
) -> None:
    from ..verbs.quantize import DEFAULT_DROP, quantize

    with output.progress() as progress:
        case = quantize(
            model,
            calib=calib,
            held=held,
            output=out,
            soc=soc,
            target=target,
            cann=cann,
            preprocess=preprocess,
            method=method,
            metric=metric,
            max_drop=DEFAULT_DROP if max_drop is None else max_drop,
            config=config,
            record=record,
            skip_layers=skip_layer or (),
            skip_types=skip_type or (),
            symmetric=True if symmetric else None,
            correct_bias=True if correct_bias else None,
            fallback=not no_fallback,
            samples=samples,
            progress=progress,
        )
    output.show(case.record)
