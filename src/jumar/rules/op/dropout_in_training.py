"""OP222: Dropout in training mode."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes, constant_of, node_place
from ...graph.training import dropout_trains, to_inference
from ...text import say
from ..base import Change, Context, Example, MeaningRule


class DropoutInTraining(MeaningRule):
    code = "OP222"
    name = "dropout-in-training"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a Dropout whose training_mode is true or computed, with a ratio that is not 0: it sets random elements to 0 and enlarges the others.

    Why on Ascend: each run gives another result, so nothing can be proven or compared; the Dropout of the compiled model passes its input through. The mode is nearly always left over from an export without eval().

    Fix: export again after eval(). Where training_mode is an input of the model, --set-const NAME=false. Or --unsafe OP222 lets every Dropout pass its input through. (A ratio of 0 drops nothing and is no finding.)

    Fix safety: unsafe: the results change, which is the purpose. The changed model is what all later proofs compare with, and the step says so.

    Evidence: ONNX operator definition of Dropout 12 and 13.
    """
    DOC_ZH = """
    问题：Dropout 的 training_mode 为真或由计算得出，且 ratio 不为 0：它随机将元素置 0 并放大其余元素。

    在昇腾上的原因：每次运行结果都不同，因此无法证明或比较；编译后的模型中 Dropout 直接输出其输入。该模式几乎总是导出时没有调用 eval() 所致。

    修复：在 eval() 之后重新导出。若 training_mode 是模型输入，使用 --set-const 名称=false。或者 --unsafe OP222 使所有 Dropout 直接输出其输入。（ratio 为 0 时不丢弃任何元素，不属于问题。）

    修复安全性：不安全：结果会改变，这正是目的。之后的所有证明都以改变后的模型为参考，步骤中会注明。

    依据：Dropout 12、13 的 ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            '<ir_version: 8, opset_import: ["" : OPSET]>\n'
            "agraph (float[2,3] x) => (float[2,3] y) <float half = {0.5}, bool yes = {1}> { z = Dropout(x, half, yes) y = Exp(z) }",
            opsets=(12, 18),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for node in _training(ctx.model):
            mode = node.inputs[2]
            is_input = mode is not None and mode in ctx.model.graph.inputs
            computed = constant_of(mode) is None
            yield self.finding(
                say("`{node}`: Dropout may be in training mode", "`{node}`：Dropout 可能处于训练模式", node=node_place(node))
                if computed
                else say("`{node}`: Dropout is in training mode", "`{node}`：Dropout 处于训练模式", node=node_place(node)),
                say("every run gives another result", "每次运行结果都不同"),
                say("state it with --set-const {name}=false", "用 --set-const {name}=false 给定", name=mode.name)
                if is_input and mode is not None
                else say("export again after eval(), or let it pass its input through", "请在 eval() 之后重新导出，或使其直接输出输入"),
                node=node,
            )

    def restore(self, model: ir.Model) -> Change | None:
        nodes = _training(model)
        for node in nodes:
            to_inference(node, model)
        places = tuple(node_place(node) for node in nodes)
        return Change(places, options={"assumptions": [{"node": place, "meant": "inference mode"} for place in places]}) if nodes else None


def _training(model: ir.Model) -> list[ir.Node]:
    return [node for node in all_nodes(model) if node.op_type == "Dropout" and node.domain in ("", "ai.onnx") and dropout_trains(node)]
