"""DT303: constants that half precision cannot hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes, constant_of, node_place
from ...text import say
from ..base import Context, Example, ModelRule

LARGEST = float(np.finfo(np.float16).max)
# Where a float16 infinity changes the result. Bounds (Clip, Max, Min) mean the same as infinities, and the statistics of a
# BatchNormalization stay float32 or are folded into the weights before anything is rounded.
_COMPUTES = frozenset(("Add", "Conv", "Div", "Gemm", "MatMul", "Mul", "PRelu", "Pow", "Sub", "Where"))
_LOOKED_AT = 4096
"""Elements; masks and scales are small, and weights are not read here."""


def _overflowing(model: ir.Model) -> list[tuple[str, float]]:
    """Place and value of small float constants that are finite in their own type and infinite in float16."""
    found: dict[str, float] = {}
    for node in all_nodes(model):
        for value in node.inputs if node.op_type in _COMPUTES else ():
            tensor = None if value is None else value.const_value
            if (
                value is None
                or (value.name or "") in found
                or value.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)
            ):
                continue
            if tensor is not None and tensor.size > _LOOKED_AT:
                continue
            constant = constant_of(value)
            if constant is None or constant.size > _LOOKED_AT:
                continue
            wide = constant.astype(np.float64).reshape(-1)
            over = wide[np.isfinite(wide) & (np.abs(wide) > LARGEST)]
            if over.size:
                found[value.name or node_place(node)] = float(over[np.abs(over).argmax()])
    return list(found.items())


class Float16Overflow(ModelRule):
    code = "DT303"
    name = "float16-overflow"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: a constant that is added, multiplied or selected is larger than 65504 in magnitude, usually the -1e9 of an attention mask.

    Why on Ascend: ATC's default precision mode computes in float16, where it becomes an infinity; a row that is masked everywhere then gives NaN.

    Fix: use a value that float16 holds, such as -10000, or keep the operator in float32 with a precision mode or keep-list.

    Fix safety: advice only; what the mask is added to decides which value is large enough.

    Evidence: IEEE 754 binary16; ATC's default --precision_mode_v2=fp16.
    """
    DOC_ZH = """
    问题：参与加、乘或选择的某个常量绝对值大于 65504，通常是注意力掩码中的 -1e9。

    在昇腾上的原因：ATC 默认以 float16 计算，它会变成无穷大；整行都被屏蔽时结果为 NaN。

    修复：改用 float16 能表示的数值，例如 -10000；或用精度模式、保持列表让该算子保持 float32。

    修复安全性：仅为建议；多大的数值足够取决于与掩码相加的内容。

    依据：IEEE 754 binary16；ATC 默认的 --precision_mode_v2=fp16。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <float mask = {-1000000000.0}> { y = Add(x, mask) }
        """,
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for name, value in _overflowing(ctx.model):
            yield self.finding(
                say("constant `{name}` holds {value:g}", "常量 `{name}` 含有 {value:g}", name=name, value=value),
                say("float16, ATC's default, ends at 65504: it becomes an infinity", "ATC 默认的 float16 最大为 65504：它会变成无穷大"),
                say("use a value that float16 holds, such as -10000 in a mask", "请改用 float16 能表示的数值，例如掩码用 -10000"),
                place=name,
            )
