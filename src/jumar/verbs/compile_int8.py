"""What ATC does not take together with a deploy model (AscendQuant, AscendDequant)."""

from __future__ import annotations

import onnx_ir as ir

from ..atc.gears import Gears
from ..errors import UsageError
from ..text import say

REFUSED_GEARS = ("batch", "image")
REFUSED_MODES = ("force_fp32", "must_keep_origin_dtype", "origin")


def check_deploy(model: ir.Model, gears: Gears | None, precision_mode: str | None) -> None:
    """Refuse gears and precision modes that a quantised model cannot be built with.

    Raises:
        UsageError: the model is quantised, and one of them is asked for.
    """
    if not any(node.op_type == "AscendQuant" for node in model.graph):
        return
    asked = None
    if gears is not None and gears.kind in REFUSED_GEARS:
        asked = f"--gears ({gears.kind})"
    elif precision_mode in REFUSED_MODES:
        asked = f"--precision-mode {precision_mode}"
    if asked is not None:
        raise UsageError(
            say("the model is quantised, and ATC does not take {asked} with it", "模型已量化，ATC 不支持同时使用 {asked}", asked=asked),
            say("expected one shape and a mode that leaves int8 alone", "应为单一形状，且精度模式不影响 int8"),
            say("build one model for each size, or leave the mode out (QT111)", "请为每种尺寸各构建一个模型，或去掉该模式（QT111）"),
        )
