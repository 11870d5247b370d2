"""OP213: an indexing operator that the target refuses, runs on the AI CPU, or reads only in part."""

from __future__ import annotations

import onnx_ir as ir

from ...graph import constant_of
from ...targets import Support
from ..base import Context, Example
from ..expansion import ExpansionRule


class IndexingNotTaken(ExpansionRule):
    code = "OP213"
    name = "indexing-not-taken"
    since = "0.1"
    ops = frozenset(
        (
            "GatherElements",
            "GatherND",
            "ScatterElements",
            "Scatter",
            "ScatterND",
            "TensorScatter",
            "ReverseSequence",
            "Trilu",
            "EyeLike",
            "Compress",
            "TopK",
            "TfIdfVectorizer",
        )
    )
    bound = 1e-6
    DOC_EN = """
    What: GatherElements, GatherND with batch_dims, ScatterElements, ScatterND with a reduction, TensorScatter, ReverseSequence, Trilu, EyeLike, Compress with a constant condition, TopK of integers and TfIdfVectorizer of integers, where the target does not run them on the AI Core as they are.

    Why on Ascend: several of these run on the AI CPU, which vehicle SoCs may not have; a reduction of ScatterND is not read before CANN 9.2, so that additions are lost without a word.

    Fix: a Gather or ScatterND of the flattened tensor with places computed from the indices; a constant triangle; or, for reductions, a comparison of places with rows and a reduction over the updates, which treats repeated places rightly; n-grams are counted by comparing all windows with all of the pool.

    Fix safety: safe within 1e-6 of the largest element (sums may be added in another order; moves are equal in every element). Shapes must be static; the dense form is refused above 4,194,304 elements. Without reduction, repeated places have no defined result in ONNX.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：GatherElements、带 batch_dims 的 GatherND、ScatterElements、带 reduction 的 ScatterND、TensorScatter、ReverseSequence、Trilu、EyeLike、条件为常量的 Compress、整数 TopK、整数的 TfIdfVectorizer，目标的 AI Core 不能按原样执行。

    在昇腾上的原因：其中一些只能在 AI CPU 上执行，而车载 SoC 可能没有 AI CPU 算子包；CANN 9.2 之前不读取 ScatterND 的 reduction，累加会无声丢失。

    修复：对展平的张量做 Gather 或 ScatterND，位置由索引计算；或使用常量三角矩阵；归约则比较位置与行并对更新值归约，能正确处理重复位置；n-gram 通过所有窗口与词表逐一比较来计数。

    修复安全性：误差在最大元素的 1e-6 以内为安全（求和次序可能不同；搬移逐元素相等）。形状必须静态；稠密形式超过 4,194,304 个元素时拒绝。没有 reduction 时，ONNX 未定义重复位置的结果。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, int64[2,2] i) => (float[2,2] y) { y = GatherElements<axis = 1>(x, i) }
        """,
            opsets=(11, 18),
            soc="BS9SX1AA",
            also=("DT301",),
            ranges={"i": (-3, 2)},
            opset_max=18,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,4] x) => (float[3,4] y) { y = Trilu(x) }
        """,
            opsets=(14, 18),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[4,2] x, int64[3,1] i, float[3,2] u) => (float[4,2] y) { y = ScatterND<reduction = "add">(x, i, u) }
        """,
            opsets=(16, 18),
            also=("DT301",),
            ranges={"i": (-4, 3)},
            edges=False,
        ),
    )

    def troubles(self, node: ir.Node, ctx: Context) -> tuple[Support, ...]:
        """A Compress whose condition is computed has a data-dependent shape, of which another rule speaks."""
        computed = node.op_type == "Compress" and (node.inputs[1] is None or constant_of(node.inputs[1]) is None)
        return () if computed and ctx.in_main_graph(node) else super().troubles(node, ctx)
