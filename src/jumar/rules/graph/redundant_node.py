"""GR504: nodes that do nothing, undo or repeat others, or are not used."""

from __future__ import annotations

from ...graph.simplify import KINDS
from ...text import Text, say
from ..base import Example
from ..simplification import SimplificationRule
from .constant_control_flow import CONTROL_KINDS

# What other rules are about, and what is no problem in itself.
_NOT_HERE = CONTROL_KINDS | {
    "inline-functions",
    "fold-constants",
    "duplicate-weight",
    "computed-target",
}


class RedundantNode(SimplificationRule):
    code = "GR504"
    name = "redundant-node"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 45
    DOC_EN = """
    What: nodes that pass their input through (Identity, inference Dropout, Cast to the same type, Reshape/Expand/Tile/Slice/Pad that change nothing, identity Transpose, single-input Concat/Sum), undo or repeat the one before (Transpose, Reshape, Slice, Concat or Cast in a row), compute what another node computes, or are not used.

    Why on Ascend: each may cost a kernel launch or a copy, and dead nodes can still be refused by the parser.

    Fix: they are removed or merged, see the page on simplification. A Cast pair that truncates is not touched; the order of inputs is kept.

    Fix safety: safe; equal in every element.

    Evidence: ONNX operator definitions.
    """
    DOC_ZH = """
    问题：直接透传输入的节点（Identity、推理态 Dropout、同类型 Cast、不改变内容的 Reshape/Expand/Tile/Slice/Pad、恒等 Transpose、单输入 Concat/Sum）、抵消或重复前一个节点的节点（连续的 Transpose、Reshape、Slice、Concat 或 Cast）、重复计算的节点，以及未被使用的节点。

    在昇腾上的原因：每个都可能带来一次算子下发或拷贝；未使用的节点仍可能被解析器拒绝。

    修复：将其删除或合并，见“简化”一页。会截断的 Cast 对不做改动；输入顺序保持不变。

    修复安全性：安全；逐元素相等。

    依据：ONNX 算子定义。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y)
        <int64[2] shape = {2, 3}> { a = Identity(x) b = Reshape(a, shape) c = Transpose<perm = [0, 1]>(b) d = Cast<to = 1>(c) y = Relu(d) }
        """),
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { a = Exp(x) b = Exp(x) unused = Abs(x) y = Add(a, b) }
        """),
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Identity(a) }
        """),
    )

    kinds = frozenset(kind for kind, exact in KINDS.items() if exact) - _NOT_HERE
    also = frozenset({"fold-constants", "duplicate-weight", "computed-target"})

    @property
    def words(self) -> tuple[Text, Text]:
        return say("each may cost a kernel launch or a copy", "每个都可能带来一次算子下发或拷贝"), say(
            "remove or merge them", "请将其删除或合并"
        )
