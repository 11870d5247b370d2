"""OP249: DepthToSpace or SpaceToDepth in a form that the target does not take."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class BlockSizeNotTaken(ExpansionRule):
    code = "OP249"
    name = "block-size-not-taken"
    since = "0.1"
    ops = frozenset(("DepthToSpace", "SpaceToDepth"))
    bound = 0.0
    always = False
    DOC_EN = """
    What: DepthToSpace or SpaceToDepth with a block size or a type that the target refuses.

    Why on Ascend: the parser refuses blocks of one element, which an export with a scale of 1 leaves behind.

    Fix: a block of one element changes nothing and is left out; another becomes a Reshape, a Transpose and a Reshape.

    Fix safety: safe; equal in every element. Sizes must be known.

    Evidence: the limits that `jumar targets show DepthToSpace` cites; ONNX definitions of both operators.
    """
    DOC_ZH = """
    问题：DepthToSpace 或 SpaceToDepth 的块大小或数据类型被目标拒绝。

    在昇腾上的原因：解析器拒绝大小为 1 的块，而缩放比例为 1 的导出会留下它。

    修复：大小为 1 的块不改变数据，直接去掉；其他情况改为 Reshape、Transpose、Reshape。

    修复安全性：安全；逐元素相等。各维大小必须已知。

    依据：`jumar targets show DepthToSpace` 给出的限制；两个算子的 ONNX 定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,4,2,3] x) => (float[1,4,2,3] y) { z = DepthToSpace<blocksize = 1>(x) y = Relu(z) }
        """,
            opsets=(11, 18),
            edges=False,
        ),
    )
