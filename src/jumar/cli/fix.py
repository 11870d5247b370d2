"""``jumar fix``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import (
    CannOption,
    CutAicpuOption,
    CutOption,
    FeedsOption,
    FoldLimitOption,
    ModelArgument,
    OneStepOption,
    OpsetMaxOption,
    Output,
    RangeOption,
    SelectOption,
    SetConstOption,
    ShapeOption,
    SocOption,
    TargetOption,
    UnsafeOption,
    codes,
    cut_of,
    size,
    text,
    verb,
)
from .gear_options import GearOption

HELP = text("Rewrite what can be rewritten, with proof.", "改写可以改写的部分，并附证明。")


@verb
def command(
    output: Output,
    model: ModelArgument,
    out: Annotated[str, typer.Option("-o", "--output", metavar="OUT.onnx", help=text("where to write the model", "模型的输出位置"))],
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    opset_max: OpsetMaxOption = None,
    shape: ShapeOption = None,
    gear: GearOption = None,
    range_: RangeOption = None,
    set_const: SetConstOption = None,
    one_step: OneStepOption = None,
    select: SelectOption = None,
    unsafe: UnsafeOption = None,
    feeds: FeedsOption = None,
    fold_limit: FoldLimitOption = None,
    cut: CutOption = False,
    cut_aicpu: CutAicpuOption = False,
) -> None:
    from ..graph.fold import DEFAULT_FOLD_LIMIT
    from ..verbs.common import parse_constants, parse_ranges, parse_shapes
    from ..verbs.fix import fix
    from ..verbs.one_step import parse_one_step

    with output.progress() as progress:
        case = fix(
            model,
            soc=soc,
            target=target,
            cann=cann,
            opset_max=opset_max,
            shapes=parse_shapes(shape or []),
            gears=[parse_shapes([item]) for item in gear or ()],
            ranges=parse_ranges(range_ or []),
            constants=parse_constants(set_const or []),
            one_step=parse_one_step(one_step or []),
            select=codes(select),
            unsafe=codes(unsafe) or (),
            feeds=feeds,
            fold_limit=DEFAULT_FOLD_LIMIT if fold_limit is None else size(fold_limit),
            cut=cut_of(cut, cut_aicpu),
            output=out,
            progress=progress,
        )
    output.show(case.record)
