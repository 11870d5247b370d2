"""OP277: a tensor rounded to integers and widened again at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, known_shape, node_place
from ...graph.opset.lower.quantized import LIMITS
from ...text import say
from ..base import Change, Context, Example, ModelRule

_WIDE = (ir.DataType.FLOAT,)


@dataclass(frozen=True)
class Pair:
    """A DequantizeLinear that reads a QuantizeLinear with the same scale and zero point, all constant.

    Attributes:
        scale, zero: shaped to spread over the data.
        limits: least and largest integer.
    """

    quantize: ir.Node
    dequantize: ir.Node
    scale: Any
    zero: Any
    limits: tuple[int, int]


def pairs_of(model: ir.Model) -> list[Pair]:
    """The pairs of the main graph, in order."""
    found = []
    for node in model.graph:
        pair = _pair(node) if node.op_type == "DequantizeLinear" and node.domain in ("", "ai.onnx") else None
        if pair is not None:
            found.append(pair)
    return found


def _pair(node: ir.Node) -> Pair | None:
    source = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
    if source is None or source.op_type != "QuantizeLinear" or source.domain not in ("", "ai.onnx") or source.graph is not node.graph:
        return None
    data, integers, result = source.inputs[0] if source.inputs else None, node.inputs[0], node.outputs[0]
    if data is None or data.const_value is not None or data.dtype not in _WIDE or result.dtype not in _WIDE or integers is None:
        return None
    shape, limits = known_shape(data), LIMITS.get(integers.dtype or ir.DataType.FLOAT)
    first, second = _parameters(source, shape), _parameters(node, shape)
    if limits is None or first is None or second is None:
        return None
    if not all(np.array_equal(one, other) for one, other in zip(first, second, strict=True)):
        return None
    return Pair(source, node, first[0], first[1], limits)


def _parameters(node: ir.Node, shape: tuple[int | str | None, ...] | None) -> tuple[Any, Any] | None:
    """Scale and zero point as arrays that spread over the data; None if they are computed, or of a form not written here."""
    told = {key: node.attributes[key] for key in ("axis", "block_size", "precision") if key in node.attributes}
    if len(node.inputs) < 2 or any(item.type != ir.AttributeType.INT for item in told.values()):
        return None
    named = {key: item.as_int() for key, item in told.items()}
    scale = constant_of(node.inputs[1])
    given = node.inputs[2] if len(node.inputs) > 2 else None
    zero = constant_of(given) if given is not None else np.zeros((), np.int64)
    if scale is None or zero is None or named.get("block_size", 0) or named.get("precision", 0) or scale.dtype != np.float32:
        return None
    if zero.dtype.kind not in "iu" or zero.size not in (1, scale.size):
        return None
    wide = zero.astype(np.int64)
    if scale.size == 1:
        return scale.reshape(()), wide.reshape(()) if wide.size == 1 else np.broadcast_to(wide, scale.shape)
    axis = named.get("axis", 1)
    if shape is None or scale.ndim != 1 or not -len(shape) <= axis < len(shape):
        return None
    along = [-1 if place == axis % len(shape) else 1 for place in range(len(shape))]
    return scale.reshape(along), np.broadcast_to(wide, scale.shape).reshape(along)


def described(pairs: list[Pair]) -> tuple[str, str]:
    """Scales and zero points, in few words."""
    scales = np.concatenate([pair.scale.reshape(-1) for pair in pairs])
    zeros = sorted({int(value) for pair in pairs for value in pair.zero.reshape(-1)})
    low, high = float(scales.min()), float(scales.max())
    shown = ", ".join(map(str, zeros[:4])) + (", ..." if len(zeros) > 4 else "")
    return (f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"), shown


class FakeQuantisation(ModelRule):
    code = "OP277"
    name = "fake-quantisation"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 69
    bound = 0.0
    DOC_EN = """
    What: a QuantizeLinear whose result is widened by a DequantizeLinear of the same scale and zero point, as quantisers write around every activation. The finding shows scales and zero points; a zero point other than the middle of the range is asymmetric.

    Why on Ascend: ATC parses neither; its int8 form is AscendQuant and AscendDequant, which a quantisation for Ascend makes from the float model and such scales.

    Fix: Div, Round, Clip and Mul in float: clip(round(x / scale), low - zero, high - zero) * scale, which is the same numbers without a detour through integers. To do without this rounding altogether see OP278.

    Fix safety: safe; equal in every element.

    Evidence: ONNX definition of QuantizeLinear and DequantizeLinear.
    """
    DOC_ZH = """
    问题：QuantizeLinear 的结果由相同 scale 与零点的 DequantizeLinear 立即展宽，量化工具会在每个激活处写入这样的一对。检查结果给出 scale 与零点；零点不在范围中点即为非对称量化。

    在昇腾上的原因：ATC 两者都不解析；其 int8 形式为 AscendQuant 与 AscendDequant，由面向昇腾的量化根据浮点模型和这些 scale 生成。

    修复：用浮点的 Div、Round、Clip、Mul 完成：clip(round(x / scale), low - zero, high - zero) * scale，数值相同，不再绕经整数。若要完全去掉这一舍入，见 OP278。

    修复安全性：安全；逐元素相等。

    依据：ONNX 对 QuantizeLinear 与 DequantizeLinear 的定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <float scale = {0.1}, uint8 zero = {120}> {
            q = QuantizeLinear(x, scale, zero) y = DequantizeLinear(q, scale, zero)
        }
        """,
            opsets=(11, 13, 18),
            edges=False,
            also=("OP275", "OP278"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <float[3] scale = {0.1, 0.02, 0.5}, int8[3] zero = {0, 3, -128}> {
            q = QuantizeLinear<axis = 1>(x, scale, zero) y = DequantizeLinear<axis = 1>(q, scale, zero)
        }
        """,
            opsets=(13, 18),
            edges=False,
            also=("OP275", "OP278"),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        pairs = pairs_of(ctx.model)
        # Before opset 11 there is no Round, and OP275 writes it out.
        if not pairs or ctx.opset < 11 or ctx.takes("QuantizeLinear", "DequantizeLinear"):
            return
        scales, zeros = described(pairs)
        yield self.finding(
            say(
                "{count} tensors are rounded to integers and widened at once (scales {scales}; zero points {zeros})",
                "{count} 个张量被舍入为整数后立即展宽（scale 为 {scales}；零点为 {zeros}）",
                count=len(pairs),
                scales=scales,
                zeros=zeros,
            ),
            say("the model was quantised for another runtime", "模型是为其他运行时量化的"),
            say("write the rounding in floats", "用浮点写出这一舍入"),
            place=node_place(pairs[0].quantize),
        )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        pairs = pairs_of(model)
        for pair in pairs:
            _write(Builder(model, pair.dequantize, self.code), pair)
        drop_unread(model, pairs)
        return Change(tuple(node_place(pair.dequantize) for pair in pairs)) if pairs else None


def _write(builder: Builder, pair: Pair) -> None:
    scale = builder.const(pair.scale, np.float32, "scale")
    rounded = builder.op("Round", builder.op("Div", pair.quantize.inputs[0], scale))
    low, high = ((limit - pair.zero).astype(np.float32) for limit in pair.limits)
    if low.size == 1:
        ends = [builder.const(end.reshape(()), np.float32, name) for end, name in ((low, "low"), (high, "high"))]
        clipped = builder.op("Clip", rounded, *ends)
    else:
        clipped = builder.op(
            "Min", builder.op("Max", rounded, builder.const(low, np.float32, "low")), builder.const(high, np.float32, "high")
        )
    builder.replace(pair.dequantize.outputs[0], builder.op("Mul", clipped, scale))
    builder.remove(pair.dequantize)


def drop_unread(model: ir.Model, pairs: list[Pair]) -> None:
    """Remove the QuantizeLinear nodes that nobody reads any more, and the weights that were theirs."""
    for node in {id(pair.quantize): pair.quantize for pair in pairs}.values():
        if not node.outputs[0].uses() and not node.outputs[0].is_graph_output():
            model.graph.remove(node, safe=True)
    for name, value in list(model.graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del model.graph.initializers[name]
