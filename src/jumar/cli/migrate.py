"""``jumar migrate``."""

from __future__ import annotations

from typing import Annotated

import typer

from .aipp import AippInputOption, AippMatrixOption, PreprocessOption
from .common import (
    CannOption,
    CutAicpuOption,
    CutOption,
    DryRunOption,
    FeedsOption,
    FoldLimitOption,
    ModelArgument,
    OneStepOption,
    OpsetMaxOption,
    Output,
    PrecisionOption,
    RangeOption,
    SelectOption,
    SetConstOption,
    ShapeOption,
    SocOption,
    TargetOption,
    TimeoutOption,
    UnsafeOption,
    codes,
    cut_of,
    size,
    text,
    verb,
)
from .gear_options import GearCountOption, GearFlagOption, GearMultipleOption, GearsFromOption, GearsOption
from .quantize import ConfigOption, HeldOption, MaxDropOption, MethodOption, QuantMetricOption

HELP = text("The main job: check, fix, verify, compile, into one bundle.", "主流程：检查、修复、验证、编译，生成一个 bundle。")


@verb
def command(
    output: Output,
    model: ModelArgument,
    out: Annotated[str, typer.Option("-o", "--output", metavar="BUNDLE", help=text("bundle directory", "bundle 目录"))],
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
    range_: RangeOption = None,
    set_const: SetConstOption = None,
    one_step: OneStepOption = None,
    select: SelectOption = None,
    unsafe: UnsafeOption = None,
    cut: CutOption = False,
    cut_aicpu: CutAicpuOption = False,
    feeds: FeedsOption = None,
    bound: Annotated[
        float | None,
        typer.Option(
            "--bound",
            metavar="X",
            help=text("allowed max_rel against the original (default 1e-4)", "相对原模型允许的 max_rel（默认 1e-4）"),
        ),
    ] = None,
    fold_limit: FoldLimitOption = None,
    precision_mode: PrecisionOption = None,
    aipp: Annotated[
        str | None,
        typer.Option(
            "--aipp",
            metavar="FILE|auto",
            help=text("preprocessing to insert; auto writes it from --preprocess", "要插入的预处理配置；auto 由 --preprocess 生成"),
        ),
    ] = None,
    aipp_input: AippInputOption = "rgb",
    aipp_matrix: AippMatrixOption = None,
    quantize: Annotated[
        str | None,
        typer.Option("--quantize", metavar="int8", help=text("compile an int8 model; needs --calib", "编译 int8 模型；需要 --calib")),
    ] = None,
    calib: Annotated[
        str | None,
        typer.Option(
            "--calib",
            metavar="DATA",
            help=text("samples for --quantize, as for `jumar quantize`", "--quantize 的样本，同 `jumar quantize`"),
        ),
    ] = None,
    held: HeldOption = None,
    preprocess: PreprocessOption = None,
    method: MethodOption = None,
    metric: QuantMetricOption = None,
    max_drop: MaxDropOption = None,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    timeout: TimeoutOption = 3600.0,
    resume: Annotated[
        bool, typer.Option("--resume", help=text("redo only what changed in an existing bundle", "只重做已有 bundle 中有变化的部分"))
    ] = False,
) -> None:
    from ..graph.fold import DEFAULT_FOLD_LIMIT
    from ..verbs.common import parse_constants, parse_ranges, parse_shapes
    from ..verbs.migrate import migrate
    from ..verbs.one_step import parse_one_step
    from ..verbs.quantize import DEFAULT_DROP
    from ..verbs.verify import DEFAULT_BOUND

    with output.progress() as progress:
        case = migrate(
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
            ranges=parse_ranges(range_ or []),
            constants=parse_constants(set_const or []),
            one_step=parse_one_step(one_step or []),
            select=codes(select),
            cut=cut_of(cut, cut_aicpu),
            unsafe=codes(unsafe) or (),
            feeds=feeds,
            bound=DEFAULT_BOUND if bound is None else bound,
            fold_limit=DEFAULT_FOLD_LIMIT if fold_limit is None else size(fold_limit),
            precision_mode=precision_mode,
            aipp=aipp,
            aipp_image=aipp_input,
            aipp_matrix=aipp_matrix,
            quantize=quantize,
            calib=calib,
            held=held,
            preprocess=preprocess,
            method=method,
            metric=metric,
            max_drop=DEFAULT_DROP if max_drop is None else max_drop,
            config=config,
            dry_run=dry_run,
            timeout=timeout,
            resume=resume,
            lang=output.lang,
            progress=progress,
        )
    output.show(case.record)
