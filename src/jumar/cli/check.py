"""``jumar check``."""

from __future__ import annotations

from .common import CannOption, ModelArgument, OpsetMaxOption, Output, ShapeOption, SocOption, TargetOption, text, verb

HELP = text("What will the target refuse, ignore or slow down?", "目标会拒绝、忽略或拖慢哪些部分？")


@verb
def command(
    output: Output,
    model: ModelArgument,
    soc: SocOption = None,
    target: TargetOption = None,
    cann: CannOption = None,
    opset_max: OpsetMaxOption = None,
    shape: ShapeOption = None,
) -> None:
    from ..verbs.check import check
    from ..verbs.common import parse_shapes

    output.show(check(model, soc=soc, target=target, cann=cann, opset_max=opset_max, shapes=parse_shapes(shape or [])).record)
