"""OP221: an operator whose result is random."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...text import say
from ..base import Context, Example, NodeRule


class RandomOperator(NodeRule):
    code = "OP221"
    name = "random-operator"
    since = "0.1"
    ops = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"))
    severity = "error"
    DOC_EN = """
    What: an operator that draws random numbers: RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial. (Dropout in training mode is OP222.)

    Why on Ascend: each run gives another result, and another one than on the machine the model comes from, so nothing can be proven or compared.

    Fix: draw random tensors on the host and make them an input of the model; export what only training needs (noise, sampling) without it.

    Fix safety: advice only: what is random cannot be compared, so no rewrite could be proven.

    Evidence: ONNX operator definitions.
    """
    DOC_ZH = """
    问题：模型含有产生随机数的算子：RandomNormal、RandomUniform 及其 Like 形式、Bernoulli、Multinomial。（训练模式的 Dropout 属于 OP222。）

    在昇腾上的原因：每次运行结果都不同，也与原机器上的结果不同，因此无法证明或比较。

    修复：在主机侧生成随机张量并作为模型输入；导出时去掉只有训练才需要的部分（噪声、采样）。

    修复安全性：仅为建议：随机结果无法比较，任何改写都无法证明。

    依据：ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { z = RandomNormalLike(x) y = Add(x, z) }
        """,
            cured=False,
            also=("OP104",),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        yield self.finding(
            say("`{node}`: {op} draws random numbers", "`{node}`：{op} 产生随机数", node=node.name or node.op_type, op=node.op_type),
            say("every run gives another result", "每次运行结果都不同"),
            say("draw the numbers on the host and make them an input", "请在主机侧生成随机数并作为输入"),
            node=node,
        )
