"""OP225: a recurrent operator that the target refuses, or computes by other equations."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class RecurrentNotTaken(ExpansionRule):
    code = "OP225"
    name = "recurrent-not-taken"
    since = "0.1"
    ops = frozenset(("GRU", "LSTM", "RNN", "com.microsoft::DynamicQuantizeLSTM"))
    bound = 1e-5
    DOC_EN = """
    What: GRU, LSTM, RNN, or ONNX Runtime's DynamicQuantizeLSTM, that the target does not take, or whose attributes its kernel does not honour (a GRU with linear_before_reset=0, which is the ONNX default, and others).

    Why on Ascend: a GRU is lowered to DynamicGRUV2, which computes linear_before_reset=1 whatever the attribute says: the results are wrong without a message. There is no parser for RNN.

    Fix: unrolled over the known number of steps by the equations of the standard: one product with the input for all steps; in each step one product with the state, the gates and the new state. Directions, initial states, lengths of sequences, peepholes, activations, clip, input_forget and layout are those of the node. Where a kernel computes exactly what the node says, it stays.

    Fix safety: safe within 1e-5 of the largest element. Refused above about 4,000 nodes, and where the number of steps or the batch is open. DynamicQuantizeLSTM is refused: it rounds its state at every step by its own range; export the float model.

    Evidence: the limits that `jumar targets show GRU` cites; ONNX definitions and node tests of GRU, LSTM and RNN.
    """
    DOC_ZH = """
    问题：目标不支持该 GRU、LSTM、RNN 或 ONNX Runtime 的 DynamicQuantizeLSTM，或其算子实现不遵循某些属性（例如 linear_before_reset=0 的 GRU，这是 ONNX 的默认值）。

    在昇腾上的原因：GRU 被转换为 DynamicGRUV2，无论属性为何都按 linear_before_reset=1 计算：结果错误且没有任何提示。RNN 没有解析器。

    修复：按标准的公式在已知步数上展开：输入的乘法对所有步一次完成；每步包含一次与状态的乘法、各个门以及新状态。方向、初始状态、序列长度、peephole、激活函数、clip、input_forget 与 layout 均与原节点一致。若算子实现与节点含义完全一致，则保持不变。

    修复安全性：误差在最大元素的 1e-5 以内为安全。超过约 4,000 个节点，或步数、批大小未知时拒绝。DynamicQuantizeLSTM 会被拒绝：它在每一步按自身范围舍入状态；请导出浮点模型。

    依据：`jumar targets show GRU` 给出的限制；GRU、LSTM、RNN 的 ONNX 定义与节点测试。
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
    )
