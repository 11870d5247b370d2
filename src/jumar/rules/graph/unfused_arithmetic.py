"""GR505: arithmetic that fits into the weights of its neighbour."""

from __future__ import annotations

from ...graph.simplify import KINDS
from ...text import Text, say
from ..base import Context, Example
from ..simplification import SimplificationRule

_MAKES_GEMM = frozenset({"matmul-bias"})


class UnfusedArithmetic(SimplificationRule):
    code = "GR505"
    name = "unfused-arithmetic"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 46
    bound = 1e-5
    measure = "max_scaled"
    DOC_EN = """
    What: BatchNormalization, Mul, Add and their like with constant operands beside a Conv, ConvTranspose, Gemm or MatMul, and chains of constant operands.

    Why on Ascend: ATC fuses such nodes only where its own patterns fit; each that is left is a kernel launch and a pass over the tensor.

    Fix: the constants are folded into the weights, computed in float64 and rounded once; MatMul and Add of matrices become Gemm where the target takes it.

    Fix safety: safe; sums are rounded differently, so each changed piece and the whole model must agree within 1e-5 of the largest element of the tensor.

    Evidence: ONNX operator definitions; proven on the user's model.
    """
    DOC_ZH = """
    问题：Conv、ConvTranspose、Gemm 或 MatMul 旁边带常量操作数的 BatchNormalization、Mul、Add 等节点，以及连续的常量运算。

    在昇腾上的原因：ATC 只在符合其自身模式时才融合这些节点；每个剩下的节点都是一次算子下发和一次张量读写。

    修复：将常量并入权重，以 float64 计算并只舍入一次；在目标支持 Gemm 时，二维的 MatMul 与 Add 合并为 Gemm。

    修复安全性：安全；由于求和的舍入不同，每个改动的片段以及整个模型与原来之差不得超过张量最大元素的 1e-5。

    依据：ONNX 算子定义；在用户的模型上证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,1,4,4] x) => (float[1,2,2,2] y)
        <float[2,1,3,3] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0},
         float[2] scale = {1.5, 0.5}, float[2] shift = {0.1, -0.2}, float[2] mean = {0.3, 0.0}, float[2] variance = {1.0, 2.0}> {
            a = Conv(x, w)
            b = BatchNormalization(a, scale, shift, mean, variance)
            y = Relu(b)
        }
        """,
            edges=False,
            also=("OP211",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,2] x) => (float[3,2] y)
        <float[2,2] w = {1.0, 2.0, 3.0, 4.0}, float[2] shift = {0.5, -0.5}> { a = MatMul(x, w) b = Add(a, shift) y = Tanh(b) }
        """,
            edges=False,
        ),
    )
    kinds = frozenset(kind for kind, exact in KINDS.items() if not exact)
    also = frozenset(kind for kind, exact in KINDS.items() if exact) - {"inline-functions"}

    def wanted(self, ctx: Context) -> frozenset[str]:
        return self.kinds if ctx.takes("Gemm") else self.kinds - _MAKES_GEMM

    @property
    def words(self) -> tuple[Text, Text]:
        return (
            say("each may cost a kernel launch and a pass over the tensor", "每个都可能带来一次算子下发和一次张量读写"),
            say("fold the constants into the weights", "请将常量并入权重"),
        )
