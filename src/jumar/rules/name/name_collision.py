"""NM402: a tensor that is input and output at once."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import used_names
from ...proof.interface import Port
from ...text import say
from ..base import Change, Context, Example, ModelRule
from .illegal_name import cleaned


def _collisions(model: ir.Model) -> list[int]:
    """Positions of outputs that no node makes (an input or a weight) or that are listed twice."""
    seen: set[str] = set()
    found = []
    for index, value in enumerate(model.graph.outputs):
        if value.producer() is None or value.name in seen:
            found.append(index)
        seen.add(value.name or "")
    return found


class NameCollision(ModelRule):
    code = "NM402"
    name = "name-collision"
    since = "0.1"
    safety = "safe"
    severity = "error"
    phase = 30
    DOC_EN = """
    What: an output is also an input or a weight (it is returned untouched).

    Why on Ascend: ATC's outputs are node outputs; a tensor that no node makes cannot be one, and the two ends of the compiled model would share a name.

    Fix: an Identity makes the output, under a new name that the manifest maps to the old one.

    Fix safety: safe; equal in every element.

    Evidence: public bug reports (exporters that return an input).
    """
    DOC_ZH = """
    问题：某个输出同时也是输入或权重（被原样返回）。

    在昇腾上的原因：ATC 的输出是节点的输出；没有节点产生的张量不能作为输出，编译后模型的两端也会同名。

    修复：由 Identity 产生该输出，并使用新名称；新旧名称的对应关系写入 manifest。

    修复安全性：安全；逐元素相等。

    依据：公开的问题报告（导出工具直接返回输入）。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] x, float[2,3] y) { y = Relu(x) }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for index in _collisions(ctx.model):
            value = ctx.model.graph.outputs[index]
            yield self.finding(
                say("output `{name}` is not made by a node of its own", "输出 `{name}` 没有自己的产生节点", name=value.name),
                say("ATC's outputs are node outputs with names of their own", "ATC 的输出是具有独立名称的节点输出"),
                say("put an Identity before it and rename it", "请在其前插入 Identity 并重命名"),
                place=value.name,
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        graph, taken = model.graph, used_names(model)
        outputs: dict[str, Port] = {}
        for index in _collisions(model):
            value = graph.outputs[index]
            name = cleaned(f"{value.name}_out", taken)
            node = ir.node("Identity", [value], outputs=[ir.Value(name=name, type=value.type, shape=value.shape)], name=f"{name}_identity")
            graph.append(node)
            graph.outputs[index] = node.outputs[0]
            dtype = "undefined" if value.dtype is None else value.dtype.name.lower()
            outputs[value.name or ""] = Port(name, dtype, dtype)
        return Change(tuple(outputs), {}, outputs) if outputs else None
