"""``jumar aipp derive|emulate|check|move``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .common import CannOption, ModelArgument, Output, SocOption, TargetOption, text, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = text(
    "Preprocessing on the device: written from the training transform, emulated, proven equal.",
    "设备上的预处理：由训练时的预处理生成、模拟并证明相等。",
)
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

PreprocessOption = Annotated[
    str | None,
    typer.Option("--preprocess", metavar="P.json", help=text("the transform: our JSON, timm, Hugging Face, OpenCV, Ultralytics, PaddleOCR", "预处理：本工具的 JSON，或 timm、Hugging Face、OpenCV、Ultralytics、PaddleOCR 的描述")),
]  # fmt: skip
TorchvisionOption = Annotated[
    str | None, typer.Option("--torchvision", metavar="MODULE:OBJ", help=text("a torchvision transform or weights, read but not called", "torchvision 的变换或权重，只读取而不调用"))
]  # fmt: skip
KindOption = Annotated[
    str | None,
    typer.Option("--input", metavar="KIND", help=text("images given: rgb bgr xrgb xbgr rgbx bgrx nv12 nv21 nv16 nv61 yuyv yvyu gray", "输入图像：rgb bgr xrgb xbgr rgbx bgrx nv12 nv21 nv16 nv61 yuyv yvyu gray")),
]  # fmt: skip
MatrixOption = Annotated[
    str | None,
    typer.Option(
        "--matrix", metavar="NAME", help=text("standard of YUV images: 601, 601-full, 709, ...", "YUV 图像的标准：601、601-full、709 等")
    ),
]
AippInputOption = Annotated[
    str, typer.Option("--aipp-input", metavar="KIND", help=text("with --aipp: images the device is given (rgb, nv12, ...)", "配合 --aipp：设备得到的图像（rgb、nv12 等）"))
]  # fmt: skip
AippMatrixOption = Annotated[
    str | None, typer.Option("--aipp-matrix", metavar="NAME", help=text("with --aipp: standard of YUV images", "配合 --aipp：YUV 图像的标准"))
]  # fmt: skip
ConfigArgument = Annotated[str, typer.Argument(metavar="F.cfg", help=text("the AIPP file", "AIPP 文件"))]
RankOption = Annotated[int | None, typer.Option("--rank", metavar="N", help=text("number of the model's input", "模型输入的编号"))]


def sizes(option: str, value: str | None) -> Sequence[int] | None:
    """``224,224`` -> (224, 224); one number is both.

    Raises:
        UsageError: no sizes.
    """
    if value is None:
        return None
    from ..errors import UsageError
    from ..text import say

    parts = value.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 2 or not all(part.strip().isdecimal() and 0 < int(part) <= 1 << 16 for part in parts):
        raise UsageError(
            say("{option} `{value}` is no size", "{option} `{value}` 不是大小", option=option, value=value[:40]),
            say("expected HEIGHT,WIDTH", "应为 高,宽"),
            say("for example {option} 224,224", "例如 {option} 224,224", option=option),
        )
    found = [int(part) for part in parts]
    return found * 2 if len(found) == 1 else found


@app.command("derive", help=text("The AIPP file of a training transform.", "由训练时的预处理生成 AIPP 文件。"))
@verb
def derive(
    output: Output,
    preprocess: PreprocessOption = None,
    torchvision: TorchvisionOption = None,
    ultralytics: Annotated[int | None, typer.Option("--ultralytics", metavar="IMGSZ", help=text("a YOLO model of this image size", "该图像大小的 YOLO 模型"))] = None,
    mean: Annotated[str | None, typer.Option("--mean", metavar="NUMBERS", help=text("taken off after scaling, e.g. 0.485,0.456,0.406", "缩放之后减去，例如 0.485,0.456,0.406"))] = None,
    std: Annotated[str | None, typer.Option("--std", metavar="NUMBERS", help=text("divided by, e.g. 0.229,0.224,0.225", "除数，例如 0.229,0.224,0.225"))] = None,
    scale: Annotated[str | None, typer.Option("--scale", metavar="FACTOR", help=text("x/255, none or a factor", "x/255、none 或系数"))] = None,
    order: Annotated[str | None, typer.Option("--order", help=text("channels of the model: RGB, BGR or GRAY", "模型的通道：RGB、BGR 或 GRAY"))] = None,
    size: Annotated[str | None, typer.Option("--size", metavar="H,W", help=text("of the model's input", "模型输入的大小"))] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="H,W", help=text("of the images, if the device shall crop", "图像的大小（由设备裁剪时）"))] = None,
    kind: KindOption = None,
    matrix: MatrixOption = None,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    rank: RankOption = None,
    spelling: Annotated[str, typer.Option("--spelling", help=text("where the mean is written: split, min or mean", "均值的写法：split、min 或 mean"))] = "split",
    dynamic: Annotated[bool, typer.Option("--dynamic", help=text("settings are given when the model runs", "运行时再给出参数"))] = False,
    batch: Annotated[int, typer.Option("--batch", help=text("of a dynamic model", "动态模型的 batch"))] = 1,
    out: Annotated[str | None, typer.Option("-o", "--output", metavar="F.cfg", help=text("where to write the file (default: printed)", "文件的输出位置（默认：打印）"))] = None,
) -> None:  # fmt: skip
    from ..verbs.aipp_derive import derive_aipp

    output.show(
        derive_aipp(
            preprocess,
            torchvision=torchvision,
            ultralytics=ultralytics,
            mean=mean,
            std=std,
            scale=scale,
            order=order,
            size=sizes("--size", size),
            source=sizes("--source", source),
            image=kind or "rgb",
            matrix=matrix,
            soc=soc,
            target=target,
            cann=cann,
            rank=rank or 0,
            spelling=spelling,
            dynamic=dynamic,
            batch=batch,
            output=out,
        )
    )


@app.command("emulate", help=text("What the device makes of an image, bit by bit.", "逐位模拟设备对图像的处理。"))
@verb
def emulate(
    output: Output,
    config: ConfigArgument,
    image: Annotated[str, typer.Option("--image", metavar="FILE", help=text("a picture, .npy, .ppm, or raw bytes", "图片、.npy、.ppm 或原始字节"))],
    out: Annotated[str | None, typer.Option("-o", "--output", metavar="F.npz", help=text("where to write the model's input", "模型输入的输出位置"))] = None,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    model: Annotated[str | None, typer.Option("--model", metavar="MODEL", help=text("the ONNX file, for sizes and names", "ONNX 文件，用于取得大小和名称"))] = None,
    kind: KindOption = None,
    matrix: MatrixOption = None,
    rank: RankOption = None,
) -> None:  # fmt: skip
    from ..verbs.aipp_emulate import emulate_aipp

    output.show(
        emulate_aipp(config, image, output=out, soc=soc, target=target, cann=cann, model=model, kind=kind, matrix=matrix, rank=rank)
    )


@app.command(
    "check",
    help=text("An AIPP file against its chip, its model and the training transform.", "对照芯片、模型和训练时的预处理检查 AIPP 文件。"),
)
@verb
def check(
    output: Output,
    config: ConfigArgument,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    model: Annotated[str | None, typer.Option("--model", metavar="MODEL", help=text("the ONNX file it is inserted into", "要插入的 ONNX 文件"))] = None,
    preprocess: PreprocessOption = None,
    torchvision: TorchvisionOption = None,
    image: Annotated[list[str] | None, typer.Option("--image", metavar="FILE", help=text("also compare on this picture (repeatable)", "另用该图片比较（可重复）"))] = None,
    kind: KindOption = None,
    matrix: MatrixOption = None,
    layout: Annotated[str, typer.Option("--layout", help=text("of the model's input: NCHW or NHWC", "模型输入的布局：NCHW 或 NHWC"))] = "NCHW",
    run: Annotated[bool, typer.Option("--run", help=text("also run the model on both inputs and compare its outputs", "另用两种输入运行模型并比较输出"))] = False,
    out: Annotated[str | None, typer.Option("-o", "--output", metavar="F.cfg", help=text("where to write the corrected file", "修正后文件的输出位置"))] = None,
) -> None:  # fmt: skip
    from ..errors import UsageError
    from ..text import say
    from ..verbs.aipp_check import check_aipp

    if layout not in ("NCHW", "NHWC"):
        raise UsageError(
            say("`{value}` is no layout", "`{value}` 不是布局", value=layout[:20]),
            say("expected NCHW or NHWC", "应为 NCHW 或 NHWC"),
            say("correct --layout", "请修正 --layout"),
        )
    record = check_aipp(
        config,
        soc=soc,
        target=target,
        cann=cann,
        model=model,
        preprocess=preprocess,
        torchvision=torchvision,
        images=image or (),
        kind=kind,
        matrix=matrix,
        layout="NHWC" if layout == "NHWC" else "NCHW",
        output=out,
        run=run,
    )
    output.show(record)


@app.command(
    "move", help=text("Normalisation from the network to AIPP, or back, with proof.", "把归一化从网络移到 AIPP 或反之，并附证明。")
)
@verb
def move(
    output: Output,
    model: ModelArgument,
    to: Annotated[str, typer.Option("--to", help=text("aipp or network", "aipp 或 network"))],
    preprocess: PreprocessOption = None,
    torchvision: TorchvisionOption = None,
    config: Annotated[str | None, typer.Option("--config", metavar="F.cfg", help=text("where to write the AIPP file", "AIPP 文件的输出位置"))] = None,
    out: Annotated[str | None, typer.Option("-o", "--output", metavar="OUT.onnx", help=text("where to write the model", "模型的输出位置"))] = None,
    kind: KindOption = None,
    matrix: MatrixOption = None,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
) -> None:  # fmt: skip
    from ..errors import UsageError
    from ..text import say
    from ..verbs.aipp_common import find_transform
    from ..verbs.aipp_move import move_aipp

    if to not in ("aipp", "network"):
        raise UsageError(
            say("`{value}` is no place to move to", "`{value}` 不是可移动到的位置", value=to[:20]),
            say("expected aipp or network", "应为 aipp 或 network"),
            say("correct --to", "请修正 --to"),
        )
    transform = find_transform(preprocess=preprocess, torchvision=torchvision)
    case = move_aipp(
        model,
        to="aipp" if to == "aipp" else "network",
        preprocess=transform,
        config=config,
        output=out,
        image=kind or "rgb",
        matrix=matrix,
        soc=soc,
        target=target,
        cann=cann,
    )
    output.show(case.record)
