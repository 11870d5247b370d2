"""OP279: data rounded to 8 bits by its own range while the model runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, known_shape, node_place
from ...text import say
from ..base import Change, Context, Example, ModelRule

_RUNTIME = "com.microsoft"
Write = Callable[[Builder], None]


@dataclass(frozen=True)
class Match:
    """A place where data is rounded by its own range.

    Attributes:
        node: the product or recurrent operator that reads the rounded data.
        end: the last node of the pattern, whose output the float form gives.
        write: makes the float form.
    """

    node: ir.Node
    end: ir.Node
    write: Write


def matches_of(model: ir.Model) -> list[Match]:
    """All of them in the main graph, in order."""
    found = []
    for node in model.graph:
        match = _match(node)
        if match is not None:
            found.append(match)
    return found


def _match(node: ir.Node) -> Match | None:
    if node.domain == _RUNTIME and node.op_type == "DynamicQuantizeLSTM":
        return _recurrent(node)
    if node.domain == _RUNTIME and node.op_type == "DynamicQuantizeMatMul":
        return _product(node)
    if node.domain in ("", "ai.onnx") and node.op_type in ("MatMulInteger", "ConvInteger"):
        return _integer_pattern(node)
    return None


def _given(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _widened(weight: ir.Value | None, scale: ir.Value | None, zero: ir.Value | None, shape: Callable[[Any], Any]) -> Any:
    """A constant weight in float32, ``(integers - zero point) * scale``; None if something of it is computed, or is of a shape that does not fit."""
    integers, factor = constant_of(weight), constant_of(scale)
    middle = np.zeros((), np.int64) if zero is None else constant_of(zero)
    if integers is None or factor is None or middle is None or integers.dtype.kind not in "iu":
        return None
    try:
        wide = (integers.astype(np.float32) - shape(middle.astype(np.float32))) * shape(factor.astype(np.float32))
    except (IndexError, ValueError):
        return None
    return wide.astype(np.float32) if wide.shape == integers.shape else None


def _last_axis(parameter: Any) -> Any:
    return parameter.reshape(()) if parameter.size == 1 else parameter


def _by_direction(parameter: Any) -> Any:
    """[directions] or [directions, columns], to spread over [directions, rows, columns]."""
    return parameter.reshape(parameter.shape[0], 1, -1)


def _recurrent(node: ir.Node) -> Match | None:
    """A DynamicQuantizeLSTM as an LSTM; its weights are the transposes of the standard's."""
    weights = [
        _widened(_given(node, place), _given(node, 8 + 2 * at), _given(node, 9 + 2 * at), _by_direction) for at, place in ((0, 1), (1, 2))
    ]
    if any(weight is None or weight.ndim != 3 for weight in weights):
        return None

    def write(builder: Builder) -> None:
        own = [builder.const(np.ascontiguousarray(weight.transpose(0, 2, 1)), np.float32, "weight") for weight in weights]
        rest = [_given(node, index) for index in range(3, 8)]
        while rest and rest[-1] is None:
            rest.pop()
        kept: dict[str, Any] = dict(node.attributes)
        builder.op("LSTM", node.inputs[0], *own, *rest, outputs=len(node.outputs), **kept)
        for old, new in zip(node.outputs, builder.made[-1].outputs, strict=True):
            new.type, new.shape = new.type or old.type, new.shape or old.shape
            builder.replace(old, new)

    return Match(node, node, write)


def _product(node: ir.Node) -> Match | None:
    """A DynamicQuantizeMatMul as a MatMul."""
    weight = _widened(_given(node, 1), _given(node, 2), _given(node, 3), _last_axis)
    if weight is None:
        return None

    def write(builder: Builder) -> None:
        result = builder.op("MatMul", node.inputs[0], builder.const(weight, np.float32, "weight"))
        bias = _given(node, 4)
        builder.replace(node.outputs[0], result if bias is None else builder.op("Add", result, bias))

    return Match(node, node, write)


def _only_reader(value: ir.Value | None, op_type: str) -> ir.Node | None:
    uses = [] if value is None or value.is_graph_output() else [user for user, _ in value.uses()]
    return uses[0] if len(uses) == 1 and uses[0].op_type == op_type and uses[0].domain in ("", "ai.onnx") else None


def _integer_pattern(node: ir.Node) -> Match | None:
    """``DynamicQuantizeLinear``, a product of integers, ``Cast`` and ``Mul`` with both scales, as a quantiser of weights writes them."""
    data = _given(node, 0)
    source = None if data is None else data.producer()
    if source is None or len(source.outputs) < 3 or source.op_type != "DynamicQuantizeLinear" or _given(node, 2) is not source.outputs[2]:
        return None
    cast = _only_reader(node.outputs[0], "Cast")
    scaled = None if cast is None else _only_reader(cast.outputs[0], "Mul")
    if cast is None or scaled is None or cast.outputs[0].dtype != ir.DataType.FLOAT:
        return None
    other = next((value for value in scaled.inputs if value is not cast.outputs[0]), None)
    scale = _weight_scale(other, source.outputs[1])
    convolution = node.op_type == "ConvInteger"
    shape = known_shape(_given(node, 1))
    if scale is None or shape is None:
        return None

    def along(parameter: Any) -> Any:
        if parameter.size == 1:
            return parameter.reshape(())
        return parameter.reshape(-1, *[1] * (len(shape) - 1)) if convolution else parameter.reshape(-1)

    weight = _widened(_given(node, 1), scale, _given(node, 3), along)
    if weight is None or weight.shape != tuple(shape):
        return None

    def write(builder: Builder) -> None:
        kept: dict[str, Any] = dict(node.attributes)
        own = builder.const(weight, np.float32, "weight")
        builder.replace(scaled.outputs[0], builder.op("Conv" if convolution else "MatMul", source.inputs[0], own, **kept))

    return Match(node, scaled, write)


def _weight_scale(value: ir.Value | None, data_scale: ir.Value) -> ir.Value | None:
    """The weight's scale in the product of both scales."""
    product = None if value is None else value.producer()
    if product is None or product.op_type != "Mul" or data_scale not in product.inputs:
        return None
    return next((item for item in product.inputs if item is not data_scale), None)


class DynamicallyQuantised(ModelRule):
    code = "OP279"
    name = "dynamically-quantised"
    since = "0.1"
    safety = "unsafe"
    severity = "info"
    phase = 52
    bound = 0.1
    measure = "max_scaled"
    DOC_EN = """
    What: data that is rounded to 8 bits by its own range while the model runs: DynamicQuantizeLSTM and DynamicQuantizeMatMul of ONNX Runtime, and DynamicQuantizeLinear before a MatMulInteger or ConvInteger, as quantize_dynamic writes them.

    Why on Ascend: the smallest and the largest element have to be found before each product, which costs more than 8 bits save where the product is one of floats anyway; and a recurrent operator that rounds its state at every step has no kernel at all.

    Fix: the float operator with the weights widened to float32 (they keep the values that 8 bits left of them), and the data as it is. Without it the products are written out with their rounding by OP275 and OP237.

    Fix safety: unsafe, because the data is no longer rounded; allow it with --unsafe OP279. Results may differ by 10 % of the largest element; the record states what was measured. They are nearer to the float model than those of the quantised one.

    Evidence: ONNX Runtime's documentation of these operators and its quantiser.
    """
    DOC_ZH = """
    问题：数据在运行时按自身范围舍入为 8 位：ONNX Runtime 的 DynamicQuantizeLSTM 与 DynamicQuantizeMatMul，以及 quantize_dynamic 生成的 DynamicQuantizeLinear 加 MatMulInteger 或 ConvInteger。

    在昇腾上的原因：每次乘法之前都要求出最小和最大元素，而乘法本身仍是浮点，得不偿失；每一步都舍入状态的循环算子更没有实现。

    修复：改用浮点算子，权重展宽为 float32（保留 8 位量化后的取值），数据保持不变。否则由 OP275 与 OP237 连同舍入一起展开这些乘法。

    修复安全性：不安全，因为数据不再舍入；请用 --unsafe OP279 启用。允许相差最大元素的 10%，记录中给出实测值。其结果比量化模型更接近浮点模型。

    依据：ONNX Runtime 对这些算子及其量化工具的文档。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "com.microsoft" : 1]>
        agraph (float[2,4] x) => (float[2,2] y) <int8[4,2] w = {100, -20, 35, 90, -64, 7, 88, -120}, float scale = {0.01}, int8 zero = {3}> {
            y = com.microsoft.DynamicQuantizeMatMul(x, w, scale, zero) }
        """,
            opsets=(13, 18),
            edges=False,
            also=("OP237",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,4] x) => (float[2,2] y) <int8[4,2] w = {100, -20, 35, 90, -64, 7, 88, -120}, float scale = {0.01}, int8 zero = {0}> {
            q, s, z = DynamicQuantizeLinear(x) sums = MatMulInteger(q, w, z, zero) wide = Cast<to = 1>(sums) both = Mul(s, scale)
            y = Mul(wide, both) }
        """,
            opsets=(11, 18),
            edges=False,
            also=("OP275",),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        found = matches_of(ctx.model)
        if not found:
            return
        yield self.finding(
            say(
                "{count} operators round their data to 8 bits by its own range (`{first}`)",
                "{count} 个算子在运行时按数据自身范围将其舍入为 8 位（`{first}`）",
                count=len(found),
                first=node_place(found[0].node),
            ),
            say("the device computes them in floats", "设备以浮点计算它们"),
            say("compute with the data as it is with --unsafe OP279", "用 --unsafe OP279 直接以原数据计算"),
            place=node_place(found[0].node),
        )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        found = matches_of(model)
        for match in found:
            match.write(Builder(model, match.end, self.code))
        _sweep(model)
        return Change(tuple(node_place(match.node) for match in found)) if found else None


def _sweep(model: ir.Model) -> None:
    """Remove what nobody reads any more: the nodes of the patterns, and the weights that were theirs."""
    for node in reversed(list(model.graph)):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            model.graph.remove(node, safe=True)
    for name, value in list(model.graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del model.graph.initializers[name]
