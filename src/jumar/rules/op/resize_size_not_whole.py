"""OP248: a Resize whose scales do not give whole sizes, in a mode that counts from the last pixel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, static_shape
from ...text import say
from ..base import Context, Example, NodeRule, Refused


class ResizeSizeNotWhole(NodeRule):
    code = "OP248"
    name = "resize-size-not-whole"
    since = "0.1"
    ops = frozenset({"Resize"})
    safety = "unsafe"
    severity = "error"
    phase = 68
    DOC_EN = """
    What: Resize with coordinate_transformation_mode align_corners or tf_crop_and_resize and scales that do not give whole sizes.

    Why on Ascend: the ONNX standard's evaluator aligns the last pixel with the fractional size, PyTorch and ONNX Runtime with the rounded one; the results differ visibly, and which of them a kernel computes is not documented.

    Fix: the sizes are written out instead of the scales, which all read alike.

    Fix safety: unsafe; allow it with --unsafe OP248 if the model is to give what ONNX Runtime (and PyTorch) give.

    Evidence: ONNX node tests resize_downsample_scales_*_align_corners against ONNX Runtime.
    """
    DOC_ZH = """
    问题：Resize 的 coordinate_transformation_mode 为 align_corners 或 tf_crop_and_resize，且 scales 得到的大小不是整数。

    在昇腾上的原因：ONNX 标准的参考实现将最后一个像素与小数大小对齐，PyTorch 与 ONNX Runtime 则与取整后的大小对齐；两者结果明显不同，而算子实现采用哪一种没有文档说明。

    修复：写出 sizes 代替 scales，各方对此的解释一致。

    修复安全性：不安全；若模型应得到与 ONNX Runtime（及 PyTorch）一致的结果，请用 --unsafe OP248 启用。

    依据：ONNX 节点测试 resize_downsample_scales_*_align_corners 与 ONNX Runtime 的对比。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,1,2,4] x) => (float[1,1,1,2] y) <float[4] scales = {1.0, 1.0, 0.6, 0.6}> {
            y = Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , scales)
        }
        """,
            opsets=(13, 18),
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,1,4,5] x) => (float[1,1,5,6] y) <float[8] roi = {0, 0, 0.1, 0.2, 1, 1, 0.8, 1.3}, float[4] scales = {1.0, 1.0, 1.3, 1.3}> {
            y = Resize<mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize">(x, roi, scales)
        }
        """,
            opsets=(13, 18),
            edges=False,
            also=("OP111",),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        if _sizes(node) is None:
            return
        yield self.finding(
            say(
                "`{node}`: its scales give sizes that are not whole, and its places are counted from the last pixel",
                "`{node}`：scales 得到的大小不是整数，且其位置以最后一个像素为准",
                node=node.name or node.op_type,
            ),
            say("the standard and ONNX Runtime compute different results", "标准与 ONNX Runtime 的计算结果不同"),
            say("export with sizes, or write them with --unsafe OP248", "请以 sizes 导出，或用 --unsafe OP248 写出大小"),
            node=node,
        )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        sizes = _sizes(node)
        if sizes is None:
            raise Refused(say("its sizes are not known", "其大小未知"))
        kept: dict[str, Any] = dict(node.attributes)
        roi = node.inputs[1] if len(node.inputs) > 1 else None
        written = builder.const(sizes, np.int64, "sizes")
        scales = builder.const([], np.float32, "scales") if ctx.opset < 13 else None
        builder.replace(node.outputs[0], builder.op("Resize", node.inputs[0], roi, scales, written, **kept))


def _sizes(node: ir.Node) -> list[int] | None:
    """The sizes, where this form is at hand and they are known."""
    mode = node.attributes.get("coordinate_transformation_mode")
    if mode is None or mode.as_string() not in ("align_corners", "tf_crop_and_resize") or len(node.inputs) < 3:
        return None
    scales, shape = constant_of(node.inputs[2]), static_shape(node.inputs[0])
    if scales is None or shape is None or not scales.size:
        return None
    given = node.attributes.get("axes")
    axes = list(range(len(shape))) if given is None else [axis % len(shape) for axis in given.as_ints()]
    if scales.size != len(axes):
        return None
    lengths = [shape[axis] for axis in axes]
    exact = [float(scale) * size for scale, size in zip(scales.reshape(-1), lengths, strict=True)]
    if all(abs(size - round(size)) <= 1e-4 for size in exact):
        return None
    return [int(np.floor(np.float32(scale) * np.float32(size))) for scale, size in zip(scales.reshape(-1), lengths, strict=True)]
