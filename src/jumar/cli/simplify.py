"""``jumar simplify``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import FeedsOption, FoldLimitOption, ModelArgument, Output, ShapeOption, size, text, verb
from .gear_options import GearOption

HELP = text("Fold, merge and remove nodes, with proof; for any target.", "折叠、合并并删除节点，附证明；不限目标。")


@verb
def command(
    output: Output,
    model: ModelArgument,
    out: Annotated[str, typer.Option("-o", "--output", metavar="OUT.onnx", help=text("where to write the model", "模型的输出位置"))],
    shape: ShapeOption = None,
    gear: GearOption = None,
    exact: Annotated[bool, typer.Option("--exact", help=text("only what keeps every element equal", "仅做逐元素相等的简化"))] = False,
    no_prove: Annotated[bool, typer.Option("--no-prove", help=text("do not compare with the original", "不与原模型对比"))] = False,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="KIND", help=text("kinds not to do (repeatable)", "不做的简化种类（可重复）"))
    ] = None,
    feeds: FeedsOption = None,
    fold_limit: FoldLimitOption = None,
) -> None:
    from ..graph.fold import DEFAULT_FOLD_LIMIT
    from ..verbs.common import parse_shapes
    from ..verbs.simplify import simplify

    with output.progress() as progress:
        case = simplify(
            model,
            shapes=parse_shapes(shape or []),
            gears=[parse_shapes([item]) for item in gear or ()],
            prove=not no_prove,
            exact=exact,
            without=tuple(without or ()),
            feeds=feeds,
            fold_limit=DEFAULT_FOLD_LIMIT if fold_limit is None else size(fold_limit),
            output=out,
            progress=progress,
        )
    output.show(case.record)
