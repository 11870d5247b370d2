"""GR501: weights listed among the inputs."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx_ir.passes.common import RemoveInitializersFromInputsPass

from ...case import Finding
from ...text import say
from ..base import Change, Context, Example, ModelRule


class InitializerAsInput(ModelRule):
    code = "GR501"
    name = "initializer-as-input"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 10
    DOC_EN = """
    What: initializers are listed among the graph inputs, as IR version 3 demanded.

    Why on Ascend: tools then ask for the shapes of weights in --input_shape, and a weight that may be overridden is no constant.

    Fix: the weights leave the list of inputs; IR version 4 or newer allows that.

    Fix safety: safe; equal in every element. A caller can no longer override a weight by feeding it.

    Evidence: ONNX IR specification, version 4.
    """
    DOC_ZH = """
    问题：按 IR 版本 3 的要求，权重也被列在图输入中。

    在昇腾上的原因：工具会在 --input_shape 中要求给出权重的形状；可被覆盖的权重也不再是常量。

    修复：将权重移出输入列表，IR 版本 4 起允许这样做。

    修复安全性：安全；逐元素相等。调用者不能再通过输入覆盖权重。

    依据：ONNX IR 规范第 4 版。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 3, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[3,2] w = {0.5, -1.0, 2.0, 0.25, 1.5, -0.5}) => (float[2,2] y) { y = MatMul(x, w) }
        """,
            ir_version=3,
            opsets=(8, 11),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        names = [value.name for value in ctx.model.graph.inputs if value.name in ctx.model.graph.initializers]
        if names:
            real = [value.name for value in ctx.model.graph.inputs if value.name not in ctx.model.graph.initializers]
            yield self.finding(
                say(
                    "{count} initializers are listed as inputs; the real inputs are {real}",
                    "{count} 个权重被列为输入；真正的输入是 {real}",
                    count=len(names),
                    real=", ".join(f"`{name}`" for name in real) or "-",
                ),
                say("weights must not appear in --input_shape", "权重不应出现在 --input_shape 中"),
                say("remove them from the inputs", "请将它们移出输入列表"),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        names = tuple(value.name or "" for value in model.graph.inputs if value.name in model.graph.initializers)
        RemoveInitializersFromInputsPass()(model)
        model.ir_version = max(model.ir_version or 0, 4)
        return Change(names) if names else None
