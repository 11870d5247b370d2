"""OP207: MatMul of more dimensions than the target documents."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, known_shape, static_shape
from ...targets import Status
from ...text import say
from ..base import Context, Example, NodeRule, Refused


class MatMulRankOverLimit(NodeRule):
    code = "OP207"
    name = "matmul-rank-over-limit"
    since = "0.1"
    ops = frozenset({"MatMul"})
    safety = "safe"
    severity = "warning"
    phase = 70
    bound = 1e-6
    covers_support = True
    DOC_EN = """
    What: MatMul whose operands have more dimensions than is documented for the target.

    Why on Ascend: the kernel is documented for a few dimensions only; what happens beyond is not known.

    Fix: the leading dimensions become one, and the result gets them back, if both operands have the same ones or the second is a matrix. The sizes must be known.

    Fix safety: safe within 1e-6 relative; each matrix is multiplied as before. Refused where the leading dimensions broadcast otherwise.

    Evidence: the public ONNX operator list of CANN, as `jumar targets show MatMul` cites it.
    """
    DOC_ZH = """
    问题：MatMul 操作数的维数超过目标文档规定的范围。

    在昇腾上的原因：文档只规定了少数几维，超出后的行为未知。

    修复：若两个操作数的前导维相同，或第二个操作数是矩阵，则将前导维合并为一维，结果再恢复原形状。各维大小必须已知。

    修复安全性：相对误差 1e-6 以内为安全；每个矩阵的乘法与原来相同。前导维以其他方式广播时拒绝改写。

    依据：CANN 公开的 ONNX 算子列表，`jumar targets show MatMul` 给出出处。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,1,3,1,2,3] x, float[1,2,1,3,1,3,4] z) => (float[1,2,1,3,1,2,4] y) { y = MatMul(x, z) }
        """),
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,1,3,1,2,3] x, float[3,2] z) => (float[1,2,1,3,1,2,2] y) { y = MatMul(x, z) }
        """),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,1,3,1,2,3] x, float[2,1,2,1,1,3,2] z) => (float[2,2,2,3,1,2,2] y) { y = MatMul(x, z) }
        """,
            cured=False,
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        # Its dimensions are all that limits of MatMul speak of, so that fewer of them cure it.
        if not any(answer.status in (Status.LIMIT_UNPROVEN, Status.LIMIT_VIOLATED) for answer in ctx.judge(node)):
            return
        ranks = [len(shape) if (shape := known_shape(value)) is not None else "?" for value in node.inputs]
        yield self.finding(
            say(
                "`{node}`: MatMul of {one} and {other} dimensions",
                "`{node}`：{one} 维与 {other} 维的 MatMul",
                node=node.name or node.op_type,
                one=ranks[0],
                other=ranks[1],
            ),
            say("more dimensions than are documented", "维数超过文档规定的范围"),
            say("join the leading dimensions", "请合并前导维"),
            node=node,
            fix="safe" if _joined(node) is not None else "none",
        )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        targets = _joined(node)
        out = static_shape(node.outputs[0])
        if targets is None or out is None:
            raise Refused(say("sizes are open, or the leading dimensions broadcast", "存在未知大小，或前导维需要广播"))
        operands = [
            value if target is None else builder.op("Reshape", value, builder.const(target, np.int64, "joined"))
            for value, target in zip(node.inputs, targets, strict=True)
        ]
        product = builder.op("MatMul", *operands)
        builder.replace(node.outputs[0], builder.op("Reshape", product, builder.const(out, np.int64, "shape")))


def _joined(node: ir.Node) -> tuple[list[int], list[int] | None] | None:
    """The shapes of both operands with one leading dimension (None: stays a matrix), where that is the same product."""
    one, other = static_shape(node.inputs[0]), static_shape(node.inputs[1])
    out = static_shape(node.outputs[0])
    if one is None or other is None or out is None or len(one) < 3 or 0 in (*one, *other):
        return None
    first = [math.prod(one[:-2]), *one[-2:]]
    if len(other) == 2:
        return first, None
    return (first, [math.prod(other[:-2]), *other[-2:]]) if one[:-2] == other[:-2] else None
