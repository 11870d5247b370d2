"""OP220: BatchNormalization in training mode."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes, model_opset, node_place
from ...graph.training import batchnorm_obstacle, batchnorm_trains, to_inference
from ...text import say
from ..base import Change, Context, Example, MeaningRule

_WEIGHTS = "<float[3] s = {1.0, 2.0, 3.0}, float[3] b = {0.0, 0.5, 1.0}, float[3] m = {0.1, 0.2, 0.3}, float[3] v = {1.0, 2.0, 0.5}>"


class BatchNormInTraining(MeaningRule):
    code = "OP220"
    name = "batchnorm-in-training"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a BatchNormalization that normalises by the mean and variance of the batch it is given: training_mode = 1, or before opset 14 more than one output.

    Why on Ascend: ATC reads neither the attribute nor the further outputs and normalises by the running statistics, so that the compiled model gives other results than the exported one, without a word. The mode is nearly always left over from an export without eval().

    Fix: export again after eval(). Or --unsafe OP220 puts the nodes into inference mode, if their running statistics are weights and were trained, and nothing reads the statistics they return.

    Fix safety: unsafe: the results change, which is the purpose. The changed model is what all later proofs compare with, and the step says so.

    Evidence: ONNX operator definition of BatchNormalization 9, 14 and 15; the attributes that CANN's ONNX parser reads.
    """
    DOC_ZH = """
    问题：BatchNormalization 使用当前批次的均值和方差归一化：training_mode = 1，或 opset 14 之前有多个输出。

    在昇腾上的原因：ATC 既不读取该属性也不读取其余输出，而是使用滑动统计量归一化，因此编译后的模型与导出的模型结果不同，且没有任何提示。该模式几乎总是导出时没有调用 eval() 所致。

    修复：在 eval() 之后重新导出。或者，若滑动统计量是权重且经过训练，并且没有节点读取其返回的统计量，--unsafe OP220 可将这些节点改为推理模式。

    修复安全性：不安全：结果会改变，这正是目的。之后的所有证明都以改变后的模型为参考，步骤中会注明。

    依据：BatchNormalization 9、14、15 的 ONNX 算子定义；CANN ONNX 解析器读取的属性。
    """
    EXAMPLES = (
        Example(
            '<ir_version: 8, opset_import: ["" : OPSET]>\n'
            f"agraph (float[2,3,4,4] x) => (float[2,3,4,4] y) {_WEIGHTS}"
            " { y, p, q = BatchNormalization<training_mode = 1>(x, s, b, m, v) }",
            opsets=(14, 18),
        ),
        Example(
            '<ir_version: 8, opset_import: ["" : OPSET]>\n'
            f"agraph (float[2,3,4,4] x) => (float[2,3,4,4] y) {_WEIGHTS} {{ y, p, q, r, t = BatchNormalization(x, s, b, m, v) }}",
            opsets=(9, 11, 13),
        ),
        Example(
            '<ir_version: 8, opset_import: ["" : OPSET]>\n'
            "agraph (float[2,3,4,4] x) => (float[2,3,4,4] y) <float[3] o = {1.0, 1.0, 1.0}, float[3] z = {0.0, 0.0, 0.0}>"
            " { y, p, q = BatchNormalization<training_mode = 1>(x, o, z, z, o) }",
            opsets=(14,),
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for node in _training(ctx.model):
            obstacle = batchnorm_obstacle(node)
            yield self.finding(
                say(
                    "`{node}`: BatchNormalization is in training mode",
                    "`{node}`：BatchNormalization 处于训练模式",
                    node=node_place(node),
                ),
                say(
                    "it takes the statistics of the batch; the compiled model takes the running ones",
                    "它使用批次统计量，而编译后的模型使用滑动统计量",
                ),
                say("export again after eval(), or use its running statistics", "请在 eval() 之后重新导出，或使用其滑动统计量")
                if obstacle is None
                else say(
                    "export again after eval(); not rewritten: {reason}", "请在 eval() 之后重新导出；未改写：{reason}", reason=obstacle
                ),
                node=node,
                fix="unsafe" if obstacle is None else "none",
            )

    def restore(self, model: ir.Model) -> Change | None:
        nodes = [node for node in _training(model) if batchnorm_obstacle(node) is None]
        for node in nodes:
            to_inference(node, model)
        places = tuple(node_place(node) for node in nodes)
        return Change(places, options={"assumptions": [{"node": place, "meant": "inference mode"} for place in places]}) if nodes else None


def _training(model: ir.Model) -> list[ir.Node]:
    opset = model_opset(model)
    return [
        node
        for node in all_nodes(model)
        if node.op_type == "BatchNormalization" and node.domain in ("", "ai.onnx") and batchnorm_trains(node, opset)
    ]
