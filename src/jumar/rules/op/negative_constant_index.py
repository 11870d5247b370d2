"""OP206: constant indices that count from the end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, static_shape
from ...text import say
from ..base import Context, Example, NodeRule, Refused

Indices = npt.NDArray[np.int64]


def _constant_indices(node: ir.Node) -> Indices | None:
    found = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if found is None else found.astype(np.int64)


def _indexed_sizes(node: ir.Node, indices: Indices) -> Indices | None:
    """The size of the axis that each index points into, broadcast to the shape of the indices; None if it is not known."""
    shape = static_shape(node.inputs[0])
    if shape is None:
        return None
    if node.op_type == "Gather":
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
        return np.array(shape[axis], np.int64)
    batch = node.attributes["batch_dims"].as_int() if "batch_dims" in node.attributes else 0
    depth = indices.shape[-1] if indices.ndim else 0
    return np.array(shape[batch : batch + depth], np.int64)


class NegativeConstantIndex(NodeRule):
    code = "OP206"
    name = "negative-constant-index"
    since = "0.1"
    ops = frozenset({"Gather", "GatherND", "ScatterND"})
    safety = "safe"
    severity = "warning"
    phase = 42
    DOC_EN = """
    What: Gather, GatherND or ScatterND with negative constant indices, which count from the end of the axis.

    Why on Ascend: GatherND and ScatterND do not honour them, and Gather does so only from 8.5 on; the compiled model reads elsewhere.

    Fix: the size of the axis is added to them.

    Fix safety: safe; equal in every element. Refused where the size of the axis is not known: pin it with --shape.

    Evidence: the parser plug-ins of the public CANN states and the public operator lists.
    """
    DOC_ZH = """
    问题：Gather、GatherND 或 ScatterND 使用了负的常量索引，即从轴的末尾计数。

    在昇腾上的原因：GatherND 与 ScatterND 不支持负索引，Gather 从 8.5 起才支持；编译后的模型会读取其他位置。

    修复：为其加上该轴的大小。

    修复安全性：安全；逐元素相等。该轴大小未知时拒绝改写：请用 --shape 固定。

    依据：各公开 CANN 版本的解析插件与公开的算子清单。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (float[2,3] y) <int64[3] last = {-1, 0, -5}> { y = Gather<axis = 1>(x, last) }
        """,
            also=("OP112",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,4] x) => (float[2] y) <int64[2,2] where = {-1, 0, 1, -2}> { y = GatherND(x, where) }
        """,
            also=("OP213",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,4] x, float[1,4] u) => (float[3,4] y) <int64[1,1] row = {-1}> { y = ScatterND(x, row, u) }
        """,
            also=("OP213",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[n,4] x) => (float[4] y) <int64 last = {-1}> { y = Gather(x, last) }
        """,
            cured=False,
            also=("OP112", "SH201"),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        indices = _constant_indices(node)
        if indices is not None and np.any(indices < 0):
            known = _indexed_sizes(node, indices) is not None
            yield self.finding(
                say(
                    "`{node}`: {op} with negative constant indices",
                    "`{node}`：{op} 使用了负的常量索引",
                    node=node.name or node.op_type,
                    op=node.op_type,
                ),
                say("not every state of CANN counts them from the end", "并非所有 CANN 版本都按从末尾计数处理"),
                say("add the size of the axis", "请加上该轴的大小")
                if known
                else say("pin the shape with --shape", "请用 --shape 固定形状"),
                node=node,
                fix="safe" if known else "none",
            )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        indices = _constant_indices(node)
        sizes = None if indices is None else _indexed_sizes(node, indices)
        if indices is None or sizes is None:
            raise Refused(say("the size of the axis is not known", "该轴的大小未知"))
        positive = np.where(indices < 0, indices + sizes, indices)
        dtype = node.inputs[1].dtype if node.inputs[1] is not None else None
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        inputs = [node.inputs[0], builder.const(positive, None if dtype is None else dtype.numpy(), "indices"), *node.inputs[2:]]
        builder.replace(node.outputs[0], builder.op(node.op_type, *inputs, **attributes))
