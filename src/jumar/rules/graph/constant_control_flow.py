"""GR506: If, Loop and Scan whose course is known."""

from __future__ import annotations

from ...graph.simplify import kinds_of
from ...graph.simplify.sequences import SEQUENCE_OPS
from ...text import Text, say
from ..base import Example
from ..simplification import SimplificationRule

CONTROL_KINDS = kinds_of("If", "Loop", "Scan", *sorted(SEQUENCE_OPS))
"""The simplifications that take control flow and sequences apart."""


class ConstantControlFlow(SimplificationRule):
    code = "GR506"
    name = "constant-control-flow"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 44
    DOC_EN = """
    What: an If whose condition is constant or follows from shapes, a Loop or Scan whose number of iterations does, and sequences and optionals whose elements are known.

    Why on Ascend: control flow takes a parser, subgraphs and a host round trip that few targets have; sequences have none.

    Fix: the branch that is taken replaces the If; a Loop or Scan is unrolled if that adds no more than about a thousand nodes; a known element of a sequence is used directly, and one whose place the run time decides is a slice of all of them, if they have one shape.

    Fix safety: safe; equal in every element.

    Evidence: ONNX operator definitions; proven on the user's model.
    """
    DOC_ZH = """
    问题：条件为常量或由形状决定的 If、迭代次数为常量或由形状决定的 Loop 或 Scan，以及元素已知的序列与可选值。

    在昇腾上的原因：控制流需要解析器、子图以及与主机的往返，很少有目标具备；序列则完全不支持。

    修复：用会执行的分支替换 If；若新增节点不超过约一千个，则展开 Loop 或 Scan；直接使用序列中已知的元素；若位置由运行时决定且各元素形状相同，则从堆叠后的张量中取一个切片。

    修复安全性：安全；逐元素相等。

    依据：ONNX 算子定义；在用户的模型上证明。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y)
        <bool yes = {1}> {
            a = If (yes) <
                then_branch = then_graph () => (float[2,3] t) { t = Relu(x) },
                else_branch = else_graph () => (float[2,3] e) { e = Neg(x) }
            >
            y = Exp(a)
        }
        """),
    )
    kinds = CONTROL_KINDS
    also = frozenset({"fold-constants", "duplicate-weight", "unused-node", "no-op"})

    @property
    def words(self) -> tuple[Text, Text]:
        return (
            say("few targets have a parser and subgraphs for it", "很少有目标具备相应的解析器和子图支持"),
            say("replace it by what it does", "请用其实际执行的内容替换"),
        )
