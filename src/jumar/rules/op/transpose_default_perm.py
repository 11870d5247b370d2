"""OP205: Transpose that relies on the default permutation."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, known_shape
from ...text import say
from ..base import Context, Example, NodeRule, Refused


class TransposeDefaultPerm(NodeRule):
    code = "OP205"
    name = "transpose-default-perm"
    since = "0.1"
    ops = frozenset({"Transpose"})
    safety = "safe"
    phase = 36
    covers_support = True
    DOC_EN = """
    What: Transpose without the attribute perm; the standard then reverses the axes.

    Why on Ascend: the parser demands perm and does not apply the default.

    Fix: the reversed axes are written out.

    Fix safety: safe; equal in every element. Refused where the rank is not known.

    Evidence: the Transpose parser plug-in of every public CANN state.
    """
    DOC_ZH = """
    问题：Transpose 没有 perm 属性；按标准此时各轴逆序。

    在昇腾上的原因：解析器要求给出 perm，不会应用默认值。

    修复：将逆序的轴写明。

    修复安全性：安全；逐元素相等。秩未知时拒绝改写。

    依据：所有公开 CANN 版本的 Transpose 解析插件。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (float[4,3,2] y) { y = Transpose(x) }
        """),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        if "perm" not in node.attributes:
            yield self.finding(
                say("`{node}`: Transpose has no perm", "`{node}`：Transpose 没有 perm", node=node.name or node.op_type),
                say("the parser demands it and does not apply the default", "解析器要求给出 perm，不会应用默认值"),
                say("write the reversed axes out", "请写明逆序的轴"),
                node=node,
                fix="safe" if known_shape(node.inputs[0]) is not None else "none",
            )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        shape = known_shape(node.inputs[0])
        if shape is None:
            raise Refused(say("its rank is not known", "其秩未知"))
        builder.replace(node.outputs[0], builder.op("Transpose", node.inputs[0], perm=list(reversed(range(len(shape))))))
