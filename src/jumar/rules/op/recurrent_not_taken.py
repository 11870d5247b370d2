"""OP225: a recurrent operator that the target refuses, or computes by other equations."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from ...targets import TAKEN, Support, judge
from ..base import Context, Example
from ..expansion import ExpansionRule
from ..node_facts import node_facts
from .recurrent_weights_computed import computed_weights


class RecurrentNotTaken(ExpansionRule):
    code = "OP225"
    name = "recurrent-not-taken"
    since = "0.1"
    ops = frozenset(("GRU", "LSTM", "RNN", "com.microsoft::DynamicQuantizeLSTM"))
    bound = 1e-5
    DOC_EN = """
    What: GRU, LSTM, RNN, or ONNX Runtime's DynamicQuantizeLSTM, that the target does not take, or of which its kernel does not honour something (a GRU with linear_before_reset=0, which is the ONNX default, the end states of a backward direction, and others).

    Why on Ascend: a GRU is lowered to DynamicGRUV2, which computes linear_before_reset=1 whatever the attribute says and repeats the last state where a sequence has ended; an LSTM is lowered to DynamicRNN, which has no peepholes. In the published graph passes (2022-06) a GRU of direction=reverse runs forward, and the end states of some directions are read at the wrong end of the sequence; later passes are not published. The results are wrong without a message. There is no parser for RNN.

    Fix: the plain cell stays an operator where that is enough: end states are taken from its output, a backward direction becomes a forward one over the turned sequence, layout=1 becomes transposes, lengths that say nothing are left out. Else it is unrolled over the known number of steps by the equations of the standard: one product with the input for all steps; in each step one product with the state, the gates and the new state. Directions, initial states, lengths of sequences, peepholes, activations, clip, input_forget and layout are those of the node. Clip is applied to the gates, as in ONNX Runtime.

    Fix safety: safe within 1e-5 of the largest element. Refused above about 4,000 nodes, and where the number of steps or the batch is open: for data that comes one step at a time, `jumar fix --one-step INPUT:DIMENSION` makes a model of one step with its states as inputs and outputs. DynamicQuantizeLSTM is refused: it rounds its state at every step by its own range; export the float model, or leave the rounding out with --unsafe OP279.

    Evidence: the limits that `jumar targets show GRU` and `LSTM` cite; ONNX definitions and node tests of GRU, LSTM and RNN.
    """
    DOC_ZH = """
    问题：目标不支持该 GRU、LSTM、RNN 或 ONNX Runtime 的 DynamicQuantizeLSTM，或其算子实现不遵循其中某些内容（例如 linear_before_reset=0 的 GRU，这是 ONNX 的默认值，以及反向计算的最终状态等）。

    在昇腾上的原因：GRU 被转换为 DynamicGRUV2，无论属性为何都按 linear_before_reset=1 计算，并在序列结束之后重复最后的状态；LSTM 被转换为 DynamicRNN，它没有 peephole。在已公开的图融合（2022-06）中，direction=reverse 的 GRU 按正向计算，某些方向的最终状态取自序列的错误一端；之后的图融合未公开。结果错误且没有任何提示。RNN 没有解析器。

    修复：在足够的情况下，基本单元保留为算子：最终状态取自其输出，反向计算变为对翻转序列的正向计算，layout=1 变为转置，无实际作用的序列长度被去掉。否则按标准的公式在已知步数上展开：输入的乘法对所有步一次完成；每步包含一次与状态的乘法、各个门以及新状态。方向、初始状态、序列长度、peephole、激活函数、clip、input_forget 与 layout 均与原节点一致。clip 作用于各个门，与 ONNX Runtime 相同。

    修复安全性：误差在最大元素的 1e-5 以内为安全。超过约 4,000 个节点，或步数、批大小未知时拒绝：对于逐步到来的数据，`jumar fix --one-step 输入:维度` 可生成以状态作为输入和输出的单步模型。DynamicQuantizeLSTM 会被拒绝：它在每一步按自身范围舍入状态；请导出浮点模型，或用 --unsafe OP279 去掉舍入。

    依据：`jumar targets show GRU` 与 `LSTM` 给出的限制；GRU、LSTM、RNN 的 ONNX 定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,2,2] x) => (float[3,1,2,2] y, float[1,2,2] h) <
            float[1,6,2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 0.2, 0.3, -0.4},
            float[1,6,2] r = {0.2, 0.1, -0.3, 0.5, 0.4, -0.6, 0.3, 0.7, -0.1, 0.8, 0.2, 0.6}> {
            y, h = GRU<hidden_size = 2>(x, w, r)
        }
        """,
            edges=False,
        ),
        # Both ends of a plain cell: the operator stays, and they are taken from its output.
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,2,2] x) => (float[3,2,2,1] y, float[2,2,1] h) <
            float[2,4,2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 0.2, 0.3, -0.4, 0.5, 0.1, -0.6, 0.2},
            float[2,4,1] r = {0.2, 0.1, -0.3, 0.5, 0.4, -0.6, 0.3, 0.7}> {
            y, h = LSTM<hidden_size = 1, direction = "bidirectional">(x, w, r)
        }
        """,
            edges=False,
        ),
    )

    def troubles(self, node: ir.Node, ctx: Context) -> tuple[Support, ...]:
        """Weights that are computed from constants count as such: another rule stores them."""
        computed = computed_weights(node)
        if not computed:
            return super().troubles(node, ctx)
        facts = node_facts(node)
        inputs = tuple(replace(item, is_constant=True) if index in computed else item for index, item in enumerate(facts.inputs))
        answer = ctx.support(node.op_type, node.domain)
        found = judge(replace(facts, inputs=inputs), ctx.opset_of(node.domain), ctx.target, ctx.opset, answer)
        return tuple(item for item in found if item.status not in TAKEN)
