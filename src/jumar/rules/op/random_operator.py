"""OP221: an operator whose result is random."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import constant_of
from ...text import say
from ..base import Context, Example, NodeRule

_ALWAYS = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"))


class RandomOperator(NodeRule):
    code = "OP221"
    name = "random-operator"
    since = "0.1"
    ops = _ALWAYS | {"Dropout"}
    severity = "error"
    DOC_EN = """
    What: an operator that draws random numbers: RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial, and Dropout that is in training mode.

    Why on Ascend: each run gives another result, and another one than on the machine the model comes from, so nothing can be proven or compared. Dropout in training mode is nearly always left over from an export without eval().

    Fix: export again after eval(); fix training_mode with --set-const where it is an input of the model; draw random tensors on the host and make them an input.

    Fix safety: advice only: what is random cannot be compared, so no rewrite could be proven.

    Evidence: ONNX operator definitions.
    """
    DOC_ZH = """
    问题：模型含有产生随机数的算子：RandomNormal、RandomUniform 及其 Like 形式、Bernoulli、Multinomial，以及处于训练模式的 Dropout。

    在昇腾上的原因：每次运行结果都不同，也与原机器上的结果不同，因此无法证明或比较。训练模式的 Dropout 几乎总是导出时没有调用 eval() 所致。

    修复：在 eval() 之后重新导出；training_mode 是模型输入时用 --set-const 固定；随机张量在主机侧生成并作为输入。

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
        dropout = node.op_type == "Dropout"
        if dropout and not in_training(node):
            return
        yield self.finding(
            say("`{node}`: {op} draws random numbers", "`{node}`：{op} 产生随机数", node=node.name or node.op_type, op=node.op_type)
            if not dropout
            else say("`{node}`: Dropout is in training mode", "`{node}`：Dropout 处于训练模式", node=node.name or node.op_type),
            say("every run gives another result", "每次运行结果都不同"),
            say(
                "export again after eval(), or with --unsafe OP221 let it hand on its input",
                "请在 eval() 之后重新导出，或用 --unsafe OP221 使其直接输出输入",
            )
            if dropout
            else say("draw the numbers on the host and make them an input", "请在主机侧生成随机数并作为输入"),
            node=node,
        )


def in_training(node: ir.Node) -> bool:
    """Whether a Dropout drops anything. A mode or ratio that is computed may be any."""
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return False
    mode, ratio = constant_of(node.inputs[2]), constant_of(node.inputs[1])
    if mode is not None and not np.any(mode):
        return False
    return not (node.inputs[1] is not None and ratio is not None and not np.any(ratio))
