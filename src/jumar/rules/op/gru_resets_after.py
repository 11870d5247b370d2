"""OP227: a GRU that computes another equation than the framework it probably comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from ...case import Finding, Severity
from ...graph import all_nodes, constant_of, node_place
from ...text import say
from ..base import Change, Context, Example, MeaningRule


class GruResetsAfter(MeaningRule):
    code = "OP227"
    name = "gru-reset-before-product"
    since = "0.1"
    ops = frozenset(("GRU",))
    severity: ClassVar[Severity] = "info"
    DOC_EN = """
    What: a GRU with linear_before_reset = 0, which is the ONNX default, and with a recurrent bias of its own for the candidate state.

    Why on Ascend: PyTorch, cuDNN and Keras (reset_after=True) multiply the recurrent product and its bias by the reset gate, which is linear_before_reset = 1, and only there a second bias means anything of its own. Where an exporter leaves the attribute out, the model computes another equation than the network that was trained, in every runtime. (Ascend's kernel computes linear_before_reset = 1 in any case; OP225.)

    Fix: compare with what the framework gave: `jumar verify MODEL --against outputs.npz --feeds inputs.npz`. If the outputs agree with the attribute set, VF611 says so; then --unsafe OP227 sets it.

    Fix safety: unsafe: the results change, which is the purpose. The changed model is what all later proofs compare with, and the step says so.

    Evidence: the ONNX operator GRU; PyTorch's torch.nn.GRU; a public report of an exporter that dropped the attribute (onnxscript 2852).
    """
    DOC_ZH = """
    问题：GRU 的 linear_before_reset = 0（ONNX 默认值），并且候选状态有独立的循环偏置。

    在昇腾上的原因：PyTorch、cuDNN 与 Keras（reset_after=True）用重置门乘以循环乘积及其偏置，即 linear_before_reset = 1，只有这样第二个偏置才有独立意义。若导出器遗漏该属性，模型在任何运行时上计算的都不是训练时的公式。（昇腾算子实现始终按 linear_before_reset = 1 计算，见 OP225。）

    修复：与框架的输出对比：`jumar verify 模型 --against outputs.npz --feeds inputs.npz`。若设置该属性后输出一致，VF611 会说明；此时用 --unsafe OP227 设置。

    修复安全性：不安全：结果会改变，这正是目的。之后的所有证明都以改变后的模型为参考，步骤中会注明。

    依据：ONNX 算子 GRU；PyTorch 的 torch.nn.GRU；一个导出器遗漏该属性的公开报告（onnxscript 2852）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,1,2] x) => (float[3,1,1,1] y)
        <float[1,3,2] w = {1, 2, -1, 1, 0.5, 2}, float[1,3,1] r = {1, -1, 0.5}, float[1,6] b = {0, 0, 0, 0, 0, 0.5}> {
            y = GRU<hidden_size = 1>(x, w, r, b)
        }
        """,
            opsets=(11, 14),
            also=("OP106", "OP225"),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for node in doubtful(ctx.model):
            yield self.finding(
                say(
                    "`{node}`: linear_before_reset is 0, with a recurrent bias of its own",
                    "`{node}`：linear_before_reset 为 0，却有独立的循环偏置",
                    node=node_place(node),
                ),
                say("PyTorch and cuDNN compute 1; an exporter may have lost it", "PyTorch 与 cuDNN 按 1 计算；可能被导出器遗漏"),
                say(
                    "compare with the framework's outputs: `jumar verify --against outputs.npz`",
                    "请与框架的输出对比：`jumar verify --against outputs.npz`",
                ),
                node=node,
            )

    def restore(self, model: ir.Model) -> Change | None:
        nodes = doubtful(model)
        for node in nodes:
            node.attributes["linear_before_reset"] = ir.AttrInt64("linear_before_reset", 1)
        places = tuple(node_place(node) for node in nodes)
        assumed = [{"node": place, "meant": "linear_before_reset = 1"} for place in places]
        return Change(places, options={"assumptions": assumed}) if nodes else None


def doubtful(model: ir.Model) -> list[ir.Node]:
    """GRUs of the standard with linear_before_reset = 0 and a constant recurrent bias of the candidate state that is not 0."""
    found = []
    for node in all_nodes(model):
        if node.op_type != "GRU" or node.domain not in ("", "ai.onnx") or len(node.inputs) < 4:
            continue
        attribute = node.attributes.get("linear_before_reset")
        bias = constant_of(node.inputs[3])
        if bias is None or bias.ndim != 2 or bias.shape[1] % 6 or (attribute is not None and attribute.as_int() != 0):
            continue
        if np.any(bias[:, -(bias.shape[1] // 6) :] != 0):
            found.append(node)
    return found
