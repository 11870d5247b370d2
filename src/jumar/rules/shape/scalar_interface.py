"""SH203: inputs and outputs without dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import known_shape, model_opset, rename_value, tensor_info, used_names
from ...proof.interface import Port
from ...text import say
from ..base import Change, Context, Example, ModelRule
from ..name.illegal_name import cleaned


class ScalarInterface(ModelRule):
    code = "SH203"
    name = "scalar-interface"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 15
    DOC_EN = """
    What: an input or output of the model has rank 0 (a plain number).

    Why on Ascend: --input_shape had no form for a scalar before 9.x, gears and dynamic shapes cannot name it, and runtime APIs describe tensors with at least one dimension. A scalar of fixed shape may be left out of --input_shape, which is what Jumar's command does.

    Fix: it gets the shape [1], with a Squeeze behind the input or an Unsqueeze before the output. The change is recorded in the manifest; verify and the runners go on taking and giving scalars.

    Fix safety: safe; equal in every element. Code that calls the compiled model directly passes the same bytes.

    Evidence: grammar of --input_shape in the ATC sources (9.2 documents the empty form for scalars).
    """
    DOC_ZH = """
    问题：模型的某个输入或输出为 0 维（单个数值）。

    在昇腾上的原因：9.x 之前 --input_shape 没有标量的写法，分档与动态形状无法指定它，运行时接口描述的张量至少有一维。形状固定的标量可以不写入 --input_shape，Jumar 生成的命令即如此。

    修复：改为形状 [1]，在输入之后插入 Squeeze，或在输出之前插入 Unsqueeze。改动记录在 manifest 中；verify 与运行器仍接受和返回标量。

    修复安全性：安全；逐元素相等。直接调用编译后模型的代码传入的字节不变。

    依据：ATC 源码中 --input_shape 的语法（9.2 说明了标量的空写法）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2] x, float s) => (float[2] y) { y = Mul(x, s) }
        """,
            opsets=(11, 13, 18),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float s) => (float t, float y) { t = Neg(s) y = Exp(t) }
        """,
            opsets=(11, 13, 18),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for value in _scalars(ctx.model):
            yield self.finding(
                say("`{name}` is a scalar (rank 0)", "`{name}` 是标量（0 维）", name=value.name),
                say("--input_shape cannot name a scalar before 9.x", "9.x 之前 --input_shape 无法指定标量"),
                say("give it the shape [1]", "改为形状 [1]"),
                place=value.name,
                fix="safe" if _can_change(value) else "none",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        inputs, outputs = {}, {}
        for value in _scalars(model):
            if not _can_change(value) or value.dtype is None:
                continue
            name, dtype = value.name or "", tensor_info(value).dtype
            if value.is_graph_input():
                _widen_input(model, value)
                inputs[name] = Port(name, dtype, dtype, scalar=True)
            else:
                _widen_output(model, value)
                outputs[name] = Port(name, dtype, dtype, scalar=True)
        changed = (*inputs, *outputs)
        return Change(changed, inputs, outputs) if changed else None


def _scalars(model: ir.Model) -> list[ir.Value]:
    graph = model.graph
    ends = dict.fromkeys((*graph.inputs, *graph.outputs))
    return [value for value in ends if known_shape(value) == () and value.name not in graph.initializers]


def _can_change(value: ir.Value) -> bool:
    """A tensor that is both input and output, or is returned twice, is left to the rule about collisions."""
    if value.is_graph_input():
        return not value.is_graph_output()
    graph = value.graph
    return value.producer() is not None and graph is not None and sum(item is value for item in graph.outputs) == 1


def _along_zero(model: ir.Model, op_type: str, value: ir.Value, result: ir.Value) -> ir.Node:
    """Squeeze or Unsqueeze of the only axis, in the form of the model's opset."""
    name = f"{result.name}_{op_type.lower()}"
    if model_opset(model) < 13:
        return ir.node(op_type, [value], {"axes": [0]}, outputs=[result], name=name)
    axes = ir.tensor(np.array([0], np.int64), name=cleaned(f"{name}_axes", used_names(model)))
    weight = ir.Value(name=axes.name, const_value=axes, shape=ir.Shape([1]), type=ir.TensorType(ir.DataType.INT64))
    model.graph.register_initializer(weight)
    return ir.node(op_type, [value, weight], outputs=[result], name=name)


def _widen_input(model: ir.Model, value: ir.Value) -> None:
    scalar = ir.Value(name=cleaned(f"{value.name}_scalar", used_names(model)), type=value.type, shape=ir.Shape([]))
    value.replace_all_uses_with(scalar)
    value.shape = ir.Shape([1])
    node = _along_zero(model, "Squeeze", value, scalar)
    if len(model.graph):
        model.graph.insert_before(model.graph[0], [node])
    else:
        model.graph.append(node)


def _widen_output(model: ir.Model, value: ir.Value) -> None:
    graph, name = model.graph, value.name or ""
    place = next(position for position, output in enumerate(graph.outputs) if output is value)
    rename_value(value, cleaned(f"{name}_scalar", used_names(model)))
    wide = ir.Value(name=name, type=value.type, shape=ir.Shape([1]))
    graph.append(_along_zero(model, "Unsqueeze", value, wide))
    graph.outputs[place] = wide
