"""OP251: a MaxUnpool whose output_shape is not what its pads give."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import constant_of, static_shape
from ...text import say
from ..base import Context, Example, NodeRule


class MaxUnpoolOutputShape(NodeRule):
    code = "OP251"
    name = "maxunpool-output-shape"
    since = "0.1"
    ops = frozenset({"MaxUnpool"})
    severity = "error"
    DOC_EN = """
    What: MaxUnpool with an output_shape other than the one that its kernel, strides and pads give.

    Why on Ascend: the ONNX standard counts its indices in the smaller tensor, ONNX Runtime in the larger one, so the values land in other places; which of them the AI CPU kernel does is not documented.

    Fix: export without output_shape and pad the result, or scatter into a tensor of that shape.

    Fix safety: advice only.

    Evidence: ONNX node test maxunpool_export_with_output_shape against ONNX Runtime.
    """
    DOC_ZH = """
    问题：MaxUnpool 的 output_shape 与 kernel、strides、pads 推出的形状不同。

    在昇腾上的原因：ONNX 标准在较小的张量中计算索引，ONNX Runtime 在较大的张量中计算，数值会落在不同的位置；AI CPU 算子采用哪一种没有文档说明。

    修复：导出时不使用 output_shape，再对结果做 Pad；或直接向该形状的张量做 Scatter。

    修复安全性：仅为建议。

    依据：ONNX 节点测试 maxunpool_export_with_output_shape 与 ONNX Runtime 的对比。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,5,5] y) <int64[4] wanted = {1, 1, 5, 5}> {
            y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i, wanted)
        }
        """,
            cured=False,
            also=("OP104", "DT301"),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        wanted = constant_of(node.inputs[2]) if len(node.inputs) > 2 else None
        if len(node.inputs) < 3 or node.inputs[2] is None or (wanted is not None and wanted.reshape(-1).tolist()[2:] == inferred(node)):
            return
        yield self.finding(
            say(
                "`{node}`: output_shape is not what its pads give",
                "`{node}`：output_shape 与 pads 推出的形状不同",
                node=node.name or node.op_type,
            ),
            say("the standard and ONNX Runtime read its indices differently", "标准与 ONNX Runtime 对其索引的解释不同"),
            say("export without output_shape", "请在导出时不使用 output_shape"),
            node=node,
        )


def inferred(node: ir.Node) -> list[int] | None:
    """The spatial sizes that kernel, strides and pads give; None where sizes are open."""
    shape, kernel = static_shape(node.inputs[0]), node.attributes["kernel_shape"].as_ints()
    if shape is None:
        return None
    strides, pads = (node.attributes.get(name) for name in ("strides", "pads"))
    steps = [1] * len(kernel) if strides is None else list(strides.as_ints())
    cut = [0] * 2 * len(kernel) if pads is None else list(pads.as_ints())
    return [
        (size - 1) * step + width - cut[axis] - cut[len(kernel) + axis]
        for axis, (size, step, width) in enumerate(zip(shape[2:], steps, kernel, strict=True))
    ]
