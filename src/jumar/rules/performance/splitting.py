"""One Split in the place of several nodes that each take a part of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ...graph import Builder


def split_along(builder: Builder, opset: int, value: ir.Value, axis: int, sizes: Sequence[int]) -> list[ir.Value]:
    """The parts of a tensor along an axis, in the form of Split that the opset has."""
    if opset >= 13:
        builder.op("Split", value, builder.const(list(sizes), np.int64, "sizes"), outputs=len(sizes), axis=axis)
    else:
        builder.op("Split", value, outputs=len(sizes), axis=axis, split=list(sizes))
    return list(builder.made[-1].outputs)
