"""``jumar verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from .aipp import AippMatrixOption, PreprocessOption, TorchvisionOption
from .common import CannOption, FeedsOption, ModelArgument, Output, ShapeOption, SocOption, TargetOption, text, verb

HELP = text(
    "Compare the outputs with a reference, or with what the device's precision makes of them.",
    "将输出与参考对比，或与设备精度下的结果对比。",
)


PrecisionModeOption = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="MODE",
        help=text(
            "emulate the device: fp16, bf16, mixed, or a value of ATC's precision flags; fp32 compares with a reference",
            "模拟设备精度：fp16、bf16、mixed 或 ATC 精度参数的取值；fp32 为与参考对比",
        ),
    ),
]
PerNodeOption = Annotated[
    bool, typer.Option("--per-node", help=text("with --precision: show the errors of each node", "配合 --precision：显示每个节点的误差"))
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help=text(
            "with --precision: similarity (default), cosine, max_abs, max_scaled, euclid, sqnr, top1, top5, iou, text",
            "配合 --precision：similarity（默认）、cosine、max_abs、max_scaled、euclid、sqnr、top1、top5、iou、text",
        ),
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="NODE|OpType::TYPE",
        help=text("with --precision: keep in float32 (repeatable)", "配合 --precision：保持 float32（可重复）"),
    ),
]
KeepListOption = Annotated[
    str | None,
    typer.Option(
        "--keep-list",
        metavar="DIR",
        help=text(
            "with --precision: find what to keep in float32 and write ATC's files",
            "配合 --precision：找出需保持 float32 的节点并写出 ATC 文件",
        ),
    ),
]


@verb
def command(
    output: Output,
    model: ModelArgument,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="REF",
            help=text(
                "the reference: a model (a bundle knows its own), or an .npz of recorded outputs",
                "参考：模型（bundle 自带记录），或记录输出的 .npz",
            ),
        ),
    ] = None,
    feeds: FeedsOption = None,
    shape: ShapeOption = None,
    bound: Annotated[
        float | None,
        typer.Option(
            "--bound",
            metavar="X",
            help=text("allowed max_rel (default 1e-4), or what --metric must reach", "允许的 max_rel（默认 1e-4），或 --metric 应达到的值"),
        ),
    ] = None,
    csv: Annotated[str | None, typer.Option("--csv", metavar="F", help=text("write the table here too", "同时将表格写入此文件"))] = None,
    precision: PrecisionModeOption = None,
    per_node: PerNodeOption = False,
    metric: MetricOption = None,
    keep: KeepOption = None,
    keep_list: KeepListOption = None,
    aipp: Annotated[
        str | None,
        typer.Option(
            "--aipp",
            metavar="F.cfg",
            help=text("run the model behind AIPP, in stages, beside --preprocess", "让模型在 AIPP 之后分阶段运行，与 --preprocess 对比"),
        ),
    ] = None,
    preprocess: PreprocessOption = None,
    torchvision: TorchvisionOption = None,
    image: Annotated[
        list[str] | None,
        typer.Option("--image", metavar="FILE", help=text("with --aipp: a picture (repeatable)", "配合 --aipp：图片（可重复）")),
    ] = None,
    aipp_input: Annotated[
        str | None,
        typer.Option("--aipp-input", metavar="KIND", help=text("with --aipp: images the device is given", "配合 --aipp：设备得到的图像")),
    ] = None,
    aipp_matrix: AippMatrixOption = None,
    triage: Annotated[
        bool,
        typer.Option(
            "--triage",
            help=text(
                "ask preprocessing, inputs, conversion and precision in turn; stop at the culprit",
                "依次检查预处理、输入、转换与精度，找到原因即停",
            ),
        ),
    ] = False,
    device_feeds: Annotated[
        str | None,
        typer.Option(
            "--device-feeds",
            metavar="NPZ",
            help=text("with --triage: what the device program feeds", "配合 --triage：设备端程序送入的数据"),
        ),
    ] = None,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
) -> None:
    from ..verbs.common import parse_shapes

    if triage:
        from ..verbs.triage import triage as run_triage
        from ..verbs.verify import DEFAULT_BOUND

        _alone("--triage", {"--csv": csv, "--per-node": per_node, "--metric": metric, "--keep": keep, "--keep-list": keep_list})
        with output.progress() as progress:
            case = run_triage(
                model,
                against,
                feeds=feeds,
                device_feeds=device_feeds,
                shapes=parse_shapes(shape or []) or None,
                aipp=aipp,
                preprocess=preprocess,
                torchvision=torchvision,
                images=image or (),
                kind=aipp_input,
                matrix=aipp_matrix,
                soc=soc,
                target=target,
                cann=cann,
                precision=precision or "fp16",
                bound=DEFAULT_BOUND if bound is None else bound,
                progress=progress,
            )
        output.show(case.record)
        return
    _needs({"--device-feeds": device_feeds}, "--triage")
    if aipp is not None:
        from ..verbs.aipp_stages import verify_aipp

        _alone(
            "--aipp",
            {
                "--against": against,
                "--feeds": feeds,
                "--shape": shape,
                "--bound": bound,
                "--csv": csv,
                "--per-node": per_node,
                "--metric": metric,
                "--keep": keep,
                "--keep-list": keep_list,
            },
        )
        with output.progress():
            record = verify_aipp(
                model,
                aipp,
                preprocess=preprocess,
                torchvision=torchvision,
                images=image or (),
                kind=aipp_input,
                matrix=aipp_matrix,
                soc=soc,
                target=target,
                cann=cann,
                precision=precision or "fp16",
            )
        output.show(record)
        return
    _needs(
        {
            "--preprocess": preprocess,
            "--torchvision": torchvision,
            "--image": image,
            "--aipp-input": aipp_input,
            "--aipp-matrix": aipp_matrix,
        },
        "--aipp",
    )
    shapes = parse_shapes(shape or []) or None
    emulated = precision is not None and precision != "fp32"
    asked = {
        "--per-node": per_node,
        "--metric": metric,
        "--keep": keep,
        "--keep-list": keep_list,
        "--soc": soc,
        "--target": target,
        "--cann": cann,
    }
    _check_options(emulated, against, [name for name, value in asked.items() if value])
    with output.progress() as progress:
        if emulated and precision is not None:
            from ..verbs.precision import verify_precision

            case = verify_precision(
                model,
                precision,
                soc=soc,
                target=target,
                cann=cann,
                feeds=feeds,
                shapes=shapes,
                metric=metric,
                bound=bound,
                keep=keep or (),
                table=per_node,
                csv_file=csv,
                keep_list=keep_list,
                progress=progress,
            )
        else:
            from ..verbs.verify import DEFAULT_BOUND, verify

            case = verify(
                model,
                against,
                feeds=feeds,
                shapes=shapes,
                bound=DEFAULT_BOUND if bound is None else bound,
                csv_file=csv,
                progress=progress,
            )
    output.show(case.record)


def _alone(option: str, others: dict[str, object]) -> None:
    """Options that have no effect are refused, not ignored.

    Raises:
        UsageError: one of the others is given.
    """
    from ..errors import UsageError
    from ..text import say

    given = next((name for name, value in others.items() if value), None)
    if given is not None:
        raise UsageError(
            say("{name} has no effect with {option}", "{name} 与 {option} 一起使用时无效", name=given, option=option),
            say("expected one of them", "应只给出其一"),
            say("leave one out", "请去掉其一"),
        )


def _needs(options: dict[str, object], option: str) -> None:
    """The same for what belongs to another option.

    Raises:
        UsageError: one of them is given.
    """
    from ..errors import UsageError
    from ..text import say

    given = next((name for name, value in options.items() if value), None)
    if given is not None:
        raise UsageError(
            say("{name} has no effect without {option}", "没有 {option} 时 {name} 无效", name=given, option=option),
            say("expected {option}", "应给出 {option}", option=option),
            say("add it, or leave {name} out", "请加上它，或去掉 {name}", name=given),
        )


def _check_options(emulated: bool, against: str | None, asked: list[str]) -> None:
    """Options that have no effect are refused, not ignored.

    Raises:
        UsageError: --against with an emulated precision, or its options without one.
    """
    from ..errors import UsageError
    from ..text import say

    if emulated and against is not None:
        raise UsageError(
            say("--against has no effect with --precision", "--against 与 --precision 一起使用时无效"),
            say("expected one of them: an emulation is compared with the model itself", "应只给出其一：模拟与模型自身对比"),
            say("leave one out", "请去掉其一"),
        )
    if not emulated and asked:
        raise UsageError(
            say("{option} has no effect without --precision", "没有 --precision 时 {option} 无效", option=asked[0]),
            say("expected a precision to emulate", "应给出要模拟的精度"),
            say("add --precision fp16, or leave it out", "请加上 --precision fp16，或去掉该参数"),
        )
