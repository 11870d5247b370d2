"""DT306: weights that are stored in a small type and widened inside the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, node_place
from ...text import say
from ..base import Context, Example, NodeRule, Refused

_SMALL = frozenset(
    ir.DataType[name]
    for name in (
        *("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT4E2M1"),
        *("INT4", "UINT4", "INT2", "UINT2"),
    )
    if name in ir.DataType.__members__
)
_RESULTS = frozenset((ir.DataType.FLOAT, ir.DataType.FLOAT16))


def _is_stored(node: ir.Node, ctx: Context) -> bool:
    """Whether the node widens constants only, which the target cannot do (DequantizeLinear) or whose type it may not know (Cast)."""
    if any(value is not None and (value.is_graph_input() or ir.convenience.get_const_tensor(value) is None) for value in node.inputs):
        return False
    if node.op_type == "DequantizeLinear":
        return not ctx.takes("DequantizeLinear")
    return node.inputs[0] is not None and node.inputs[0].dtype in _SMALL


def _along(parameter: Any, data: Any, axis: int, block: int) -> Any:
    """A scale or zero point in a shape that broadcasts with the data."""
    if parameter.ndim == 0 or parameter.size == 1:
        return parameter.reshape(())
    if block:
        wide = np.repeat(parameter, block, axis=axis)
        return wide[tuple(slice(size) for size in data.shape)]
    return parameter.reshape([-1 if index == axis % data.ndim else 1 for index in range(data.ndim)])


def _dequantised(node: ir.Node) -> Any:
    data, scale = constant_of(node.inputs[0]), constant_of(node.inputs[1])
    zero = constant_of(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else None
    if data is None or scale is None:
        raise Refused(say("its inputs are not all constants", "其输入并非全部为常量"))
    axis, block = (
        node.attributes[key].as_int() if key in node.attributes else default for key, default in (("axis", 1), ("block_size", 0))
    )
    # As ONNX Runtime does it: a difference of integers, then one product in float32, rounded once more if the result is half.
    wide: Any = data.astype(np.float32) if data.dtype.kind not in "iu" else data.astype(np.int64)
    if zero is not None:
        wide = wide - _along(zero.astype(wide.dtype), data, axis, block)
    with np.errstate(over="ignore", invalid="ignore"):
        return (wide.astype(np.float32) * _along(scale, data, axis, block).astype(np.float32)).astype(scale.dtype)


class StoredWeightType(NodeRule):
    code = "DT306"
    name = "stored-weight-type"
    since = "0.1"
    ops = frozenset(("Cast", "DequantizeLinear"))
    safety = "safe"
    severity = "error"
    phase = 55
    covers_support = True
    DOC_EN = """
    What: a weight is stored in int8, int4, float8 or bfloat16, and a DequantizeLinear or Cast widens it inside the model.

    Why on Ascend: ATC's ONNX parser has no DequantizeLinear, and the small float and integer types have no place in the graph of most SoCs.

    Fix: the weight is stored as the float32 or float16 that it stands for. The file grows; the numbers are the same.

    Fix safety: safe; equal in every element (each value is one exact integer difference and one product in float32, as in ONNX Runtime).

    Evidence: the operator tables; ONNX definition of DequantizeLinear and Cast.
    """
    DOC_ZH = """
    问题：权重以 int8、int4、float8 或 bfloat16 存储，由模型内的 DequantizeLinear 或 Cast 展宽。

    在昇腾上的原因：ATC 的 ONNX 解析器没有 DequantizeLinear；多数 SoC 的图中没有这些小型浮点与整数类型。

    修复：直接以其所代表的 float32 或 float16 存储权重。文件变大，数值不变。

    修复安全性：安全；逐元素相等（每个值为一次精确的整数相减和一次 float32 乘法，与 ONNX Runtime 相同）。

    依据：算子表；ONNX 对 DequantizeLinear 和 Cast 的定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,2] y)
        <int8[3,2] w = {-128, 3, 5, -7, 127, 0}, float[2] s = {0.1, 0.037}, int8[2] z = {3, -9}> {
            wide = DequantizeLinear<axis = 1>(w, s, z) y = MatMul(x, wide) }
        """,
            opsets=(13, 18),
            also=("OP275", "SH202"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <uint8[3] w = {0, 200, 255}, float s = {0.3}> {
            wide = DequantizeLinear(w, s) y = Add(x, wide) }
        """,
            opsets=(11, 18),
            also=("OP275", "SH202"),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        if not _is_stored(node, ctx):
            return
        source = node.inputs[0]
        fixable = node.outputs[0].dtype in _RESULTS and ctx.in_main_graph(node)
        yield self.finding(
            say(
                "`{node}`: weight `{weight}` is stored as {dtype}",
                "`{node}`：权重 `{weight}` 以 {dtype} 存储",
                node=node_place(node),
                weight=None if source is None else source.name,
                dtype="" if source is None or source.dtype is None else source.dtype.name.lower(),
            ),
            say("the target does not widen it", "目标无法将其展宽"),
            say("store it as float", "以浮点存储"),
            node=node,
            severity="error" if node.op_type == "DequantizeLinear" else "warning",
            fix="safe" if fixable else "none",
        )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        wanted = node.outputs[0].dtype
        if wanted not in _RESULTS:
            raise Refused(say("it is not widened to float32 or float16", "其展宽结果不是 float32 或 float16"))
        if node.op_type == "DequantizeLinear":
            array = _dequantised(node)
        else:
            data = constant_of(node.inputs[0])
            if data is None:
                raise Refused(say("its input is not a constant", "其输入不是常量"))
            array = data.astype(np.float32)
        builder.replace(node.outputs[0], builder.const(array.astype(wanted.numpy()), name="weight"))
