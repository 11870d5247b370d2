"""PF804: a Transpose of five axes or more, of which some move together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, static_shape
from ...text import say
from ..base import Context, Example, NodeRule, Refused

_FEW = 4
"""Axes that the device's formats have names for (NCHW)."""


def _joined(node: ir.Node) -> tuple[list[int], list[int]] | None:
    """Sizes and order of the axes that are left once those that move together are one; None where that gets a Transpose nowhere."""
    shape = static_shape(node.inputs[0])
    if shape is None or len(shape) <= _FEW or 0 in shape:
        return None
    perm = list(node.attributes["perm"].as_ints()) if "perm" in node.attributes else list(reversed(range(len(shape))))
    groups: list[list[int]] = []
    place = {axis: number for number, axis in enumerate(axis for axis in range(len(shape)) if shape[axis] != 1)}
    for axis in (place[axis] for axis in perm if shape[axis] != 1):
        if groups and groups[-1][-1] + 1 == axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    sizes = [size for size in shape if size != 1]
    ordered = sorted(groups)
    return ([math.prod(sizes[axis] for axis in group) for group in ordered], [ordered.index(group) for group in groups])


class TransposeOfManyAxes(NodeRule):
    code = "PF804"
    name = "transpose-of-many-axes"
    since = "0.1"
    ops = frozenset({"Transpose"})
    safety = "safe"
    severity = "info"
    phase = 77
    DOC_EN = """
    What: a Transpose of five or more axes, some of which stay side by side or have size 1, as windows and patches of vision transformers are made.

    Why on Ascend: the device's formats have four axes; a tensor of more is converted on its way, and kernels and fusions for it are few. Ten of 388 models in the public model zoo had dimensions joined by hand.

    Fix: axes that move together become one before the Transpose and are taken apart after it; both Reshapes move nothing. Where at most four axes are left that is done, and where none moves the Reshape is all.

    Fix safety: safe; equal in every element. Sizes must be known. That it is faster was not measured here, as no device was at hand.

    Evidence: hand-made changes in the public ModelZoo-PyTorch; proven on the user's model.
    """
    DOC_ZH = """
    问题：五维及以上的 Transpose，其中一些维始终相邻或大小为 1，例如视觉 Transformer 中划分窗口与图块的方式。

    在昇腾上的原因：设备的数据格式为四维；更多维的张量在途中需要转换，支持它的算子实现与融合也很少。公开模型库的 388 个模型中有 10 个手工合并了维度。

    修复：在 Transpose 之前把一起移动的维合并，之后再拆开；两个 Reshape 都不搬移数据。合并后不超过四维时改写；若没有任何维移动，则只剩 Reshape。

    修复安全性：安全；逐元素相等。各维大小必须已知。由于没有设备，未测量速度。

    依据：公开的 ModelZoo-PyTorch 中的手工修改；在用户的模型上证明。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,3,2,3,4] x) => (float[1,2,2,3,3,4] y) { y = Transpose<perm = [0, 1, 3, 2, 4, 5]>(x) }
        """),
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,1,3,4,1] x) => (float[2,3,1,1,4] y) { y = Transpose<perm = [0, 2, 4, 1, 3]>(x) }
        """),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        joined, shape = _joined(node), static_shape(node.inputs[0])
        if joined is None or shape is None or len(joined[0]) > _FEW:
            return
        yield self.finding(
            say(
                "`{node}`: of {count} axes {left} move on their own",
                "`{node}`：{count} 个维中只有 {left} 个独立移动",
                node=node.name or node.op_type,
                count=len(shape),
                left=len(joined[0]) if joined[1] != sorted(joined[1]) else 0,
            ),
            say("the device's formats have four axes", "设备的数据格式为四维"),
            say("join the others before, and take them apart afterwards", "请先合并其余的维，之后再拆开"),
            node=node,
        )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        joined, shape, result = _joined(node), static_shape(node.inputs[0]), node.inputs[0]
        if joined is None or shape is None or len(joined[0]) > _FEW:
            raise Refused(say("sizes are open, or too many axes move", "存在未知大小，或移动的维过多"))
        sizes, order = joined
        if order != sorted(order):
            result = builder.op("Transpose", builder.op("Reshape", result, builder.const(sizes, np.int64, "joined")), perm=order)
        perm = node.attributes["perm"].as_ints() if "perm" in node.attributes else reversed(range(len(shape)))
        apart = builder.const([shape[axis] for axis in perm], np.int64, "apart")
        builder.replace(node.outputs[0], builder.op("Reshape", result, apart))
