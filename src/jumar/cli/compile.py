"""``jumar compile``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from .common import (
    AippOption,
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
    pairs,
    size,
    text,
    verb,
)
from .gear_options import GearCountOption, GearFlagOption, GearMultipleOption, GearsFromOption, GearsOption

HELP = text("Write the ATC command and a manifest; run atc where it is installed.", "生成 ATC 命令与 manifest；已安装时运行 atc。")


class Tune(str, Enum):
    subgraph = "subgraph"
    operator = "operator"


SplitOption = Annotated[bool, typer.Option("--split", help=text("an .om of its own for each gear", "每个档位各生成一个 .om"))]
FormatOption = Annotated[
    str | None, typer.Option("--input-format", metavar="LAYOUT", help=text("ATC's --input_format", "ATC 的 --input_format"))
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-dtype",
        metavar="NODE",
        help=text("node, or OpType::TYPE, that keeps its dtype (repeatable)", "保持原数据类型的节点或 OpType::类型（可重复）"),
    ),
]
MixlistOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mixlist", metavar="LIST=TYPES", help=text("e.g. black=SoftmaxV2,Exp (repeatable)", "例如 black=SoftmaxV2,Exp（可重复）")
    ),
]
FusionOption = Annotated[
    list[str] | None,
    typer.Option("--fusion-off", metavar="PASS", help=text("fusion pass to switch off (repeatable)", "要关闭的融合（可重复）")),
]
OpPrecisionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--op-precision",
        metavar="NODE=MODE",
        help=text("e.g. OpType::Exp=high_precision (repeatable)", "例如 OpType::Exp=high_precision（可重复）"),
    ),
]
CompressionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--compression",
        metavar="KEY=VALUE",
        help=text("key of --compression_optimize_conf (repeatable)", "--compression_optimize_conf 的键（可重复）"),
    ),
]
AtcOption = Annotated[
    list[str] | None,
    typer.Option("--atc", metavar="FLAG=VALUE", help=text("any further flag of atc (repeatable)", "其他 atc 参数（可重复）")),
]
TuneOption = Annotated[Tune | None, typer.Option("--tune", help=text("run aoe first (needs a device)", "先运行 aoe 调优（需要设备）"))]
VerboseLogOption = Annotated[
    bool, typer.Option("--verbose-log", help=text("keep all of CANN's log in atc-log", "将 CANN 的全部日志保存在 atc-log 中"))
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory-limit", metavar="SIZE", help=text("stop atc beyond this, e.g. 16GB", "超过该内存即终止 atc，例如 16GB")),
]


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
    gears: GearsOption = None,
    gears_from: GearsFromOption = None,
    gear_count: GearCountOption = None,
    gear_multiple: GearMultipleOption = None,
    gear_flag: GearFlagOption = None,
    split: SplitOption = False,
    precision_mode: PrecisionOption = None,
    input_format: FormatOption = None,
    aipp: AippOption = None,
    keep_dtype: KeepOption = None,
    mixlist: MixlistOption = None,
    fusion_off: FusionOption = None,
    op_precision: OpPrecisionOption = None,
    compression: CompressionOption = None,
    atc: AtcOption = None,
    tune: TuneOption = None,
    verbose_log: VerboseLogOption = False,
    memory_limit: MemoryOption = None,
    dry_run: DryRunOption = False,
    timeout: TimeoutOption = 3600.0,
) -> None:
    from ..atc.configs import Configs
    from ..verbs.common import parse_shapes
    from ..verbs.compile import compile

    lists = {name: [item.strip() for item in types.split(",")] for name, types in pairs("--mixlist", mixlist).items()}
    configs = Configs(keep_dtype or (), lists, fusion_off or (), pairs("--op-precision", op_precision), pairs("--compression", compression))
    with output.progress() as progress:
        case = compile(
            model,
            output=out,
            soc=soc,
            target=target,
            cann=cann,
            opset_max=opset_max,
            shapes=parse_shapes(shape or []),
            gears=gears or (),
            gears_from=gears_from,
            gear_count=gear_count,
            gear_multiple=gear_multiple,
            gear_flag=None if gear_flag is None else gear_flag.value,
            split=split,
            precision_mode=precision_mode,
            input_format=input_format,
            aipp=aipp,
            configs=configs,
            options={name.lstrip("-"): value for name, value in pairs("--atc", atc).items()},
            tune=None if tune is None else tune.value,
            verbose_log=verbose_log,
            memory_limit=None if memory_limit is None else size(memory_limit, "--memory-limit 16GB"),
            dry_run=dry_run,
            timeout=timeout,
            progress=progress,
        )
    output.show(case.record)
