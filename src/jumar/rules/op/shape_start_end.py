"""OP204: Shape that asks for a part of the shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder
from ...targets import Status
from ...text import say
from ..base import Context, Example, NodeRule

_END = int(np.iinfo(np.int32).max)


class ShapeStartEnd(NodeRule):
    code = "OP204"
    name = "shape-start-end"
    since = "0.1"
    ops = frozenset({"Shape"})
    safety = "safe"
    phase = 36
    covers_support = True
    DOC_EN = """
    What: Shape with the attributes start or end (opset 15), which ask for a part of the shape.

    Why on Ascend: the parser reads neither; the compiled model gets the whole shape and goes on computing with it, without a word.

    Fix: the whole Shape and a Slice of it.

    Fix safety: safe; equal in every element.

    Evidence: the Shape parser plug-in of every public CANN state.
    """
    DOC_ZH = """
    问题：Shape 带有 start 或 end 属性（opset 15），只取形状的一部分。

    在昇腾上的原因：解析器两者都不读取；编译后的模型得到完整形状并继续计算，没有任何提示。

    修复：先取完整的 Shape，再用 Slice 截取。

    修复安全性：安全；逐元素相等。

    依据：所有公开 CANN 版本的 Shape 解析插件。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (int64[2] y) { y = Shape<start = 1>(x) }
        """,
            opsets=(15, 18),
            also=("SH202", "DT301"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (int64[1] y) { y = Shape<start = -3, end = -2>(x) }
        """,
            opsets=(15, 18),
            also=("SH202", "DT301"),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        answer = next((item for item in ctx.judge(node) if item.status is Status.ATTRIBUTE_IGNORED), None)
        if answer is not None:
            yield self.finding(
                say(
                    "`{node}`: start and end of Shape are not read",
                    "`{node}`：Shape 的 start 与 end 不会被读取",
                    node=node.name or node.op_type,
                ),
                say("the compiled model would silently use the whole shape", "编译后的模型会静默地使用完整形状"),
                say("slice the whole shape instead", "改为对完整形状做 Slice"),
                node=node,
                fix="safe" if ctx.takes("Shape", "Slice") else "none",
                evidence=answer.evidence,
            )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        start = node.attributes["start"].as_int() if "start" in node.attributes else 0
        end = node.attributes["end"].as_int() if "end" in node.attributes else _END
        whole = builder.op("Shape", node.inputs[0])
        limits = [builder.const([limit], np.int64, name) for name, limit in (("start", start), ("end", end))]
        builder.replace(node.outputs[0], builder.op("Slice", whole, *limits))
