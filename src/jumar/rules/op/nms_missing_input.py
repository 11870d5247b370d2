"""OP201: NonMaxSuppression without all five inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, static_shape
from ...text import say
from ..base import Context, Example, NodeRule, Refused

_NAMES = ("boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold")
_CRASH = "ultralytics PR 25436: on Ascend310P3 the 2-input form fails in InferShape, the 3- and 4-input forms crash ATC (status 139), 5 inputs compile"


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _too_large(node: ir.Node) -> tuple[int, int] | None:
    """A constant max_output_boxes_per_class above the number of boxes there are, and that number."""
    most, boxes = (_input(node, 2), static_shape(_input(node, 0)))
    constant = None if most is None else constant_of(most)
    if constant is None or not constant.size or boxes is None or len(boxes) != 3 or not boxes[1]:
        return None
    return (int(constant.reshape(-1)[0]), boxes[1]) if int(constant.reshape(-1)[0]) > boxes[1] else None


class NmsMissingInput(NodeRule):
    code = "OP201"
    name = "nms-missing-input"
    since = "0.1"
    ops = frozenset({"NonMaxSuppression"})
    safety = "safe"
    phase = 70
    DOC_EN = """
    What: NonMaxSuppression with two to four of its five inputs, or with a max_output_boxes_per_class that is computed, or larger than the number of boxes (PyTorch exports the largest int64).

    Why on Ascend: ATC reads the fifth input without looking whether it is there. With two inputs InferShape fails; with three or four ATC dies with a segmentation fault and no error code. max_output_boxes_per_class must be a constant; the kernel takes it as int32 and makes its output as large as it says.

    Fix: a limit above the number of boxes becomes that number. The absent thresholds are written out: iou_threshold 0 (the standard's default) and score_threshold the lowest float32, which filters nothing, as the standard says of an absent one. 0.0 would be wrong: scores may be negative.

    Fix safety: safe; the same rows (a score of minus infinity is no longer chosen). Refused when max_output_boxes_per_class is absent: the standard then returns no rows, and no other number can be invented. On the device the output is padded with rows of -1 to max_output * batch * classes.

    Evidence: CANN's NonMaxSuppression parser plug-in and graph pass NonMaxSuppressionV6Fusion (sources); public reports of other converters.
    """
    DOC_ZH = """
    问题：NonMaxSuppression 只有五个输入中的两到四个，或 max_output_boxes_per_class 是计算得到的，或大于框的数量（PyTorch 会导出 int64 最大值）。

    在昇腾上的原因：ATC 不检查第五个输入是否存在就读取它。两个输入时 InferShape 失败；三或四个输入时 ATC 段错误退出，没有错误码。max_output_boxes_per_class 必须为常量；算子以 int32 读取它，并按它决定输出大小。

    修复：大于框数的上限改为框数。补全缺失的阈值：iou_threshold 为 0（标准的默认值），score_threshold 为 float32 最小值，即不过滤，与标准中缺省的含义一致。填 0.0 是错误的：分数可能为负。

    修复安全性：安全；输出行相同（得分为负无穷的框不再被选中）。缺少 max_output_boxes_per_class 时拒绝改写：按标准此时不返回任何行，不能臆造其他数值。设备上的输出以 -1 填充到 max_output * batch * classes 行。

    依据：CANN 的 NonMaxSuppression 解析插件与图优化 NonMaxSuppressionV6Fusion（源码）；其他转换工具的公开报告。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,6,4] boxes, float[1,2,6] scores) => (int64[n,3] picked)
        <int64[1] most = {3}, float[1] iou = {0.5}> { picked = NonMaxSuppression(boxes, scores, most, iou) }
        """,
            edges=False,
            also=("DT301", "OP232"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,6,4] boxes, float[1,2,6] scores) => (int64[n,3] picked)
        <int64[1] most = {3}> { picked = NonMaxSuppression(boxes, scores, most) }
        """,
            edges=False,
            also=("DT301", "OP232"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,6,4] boxes, float[1,2,6] scores) => (int64[n,3] picked)
        <int64[1] most = {9223372036854775807}, float[1] iou = {0.5}, float[1] least = {0.1}> {
            picked = NonMaxSuppression(boxes, scores, most, iou, least)
        }
        """,
            edges=False,
            also=("DT301", "OP230", "OP232"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,6,4] boxes, float[1,2,6] scores) => (int64[n,3] picked) { picked = NonMaxSuppression(boxes, scores) }
        """,
            edges=False,
            also=("DT301", "OP232"),
            cured=False,
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        missing = [name for index, name in enumerate(_NAMES) if _input(node, index) is None]
        most = _input(node, 2)
        if most is None:
            yield self.finding(
                say(
                    "`{node}`: max_output_boxes_per_class is absent, so the standard returns no rows",
                    "`{node}`：缺少 max_output_boxes_per_class，按标准不返回任何行",
                    node=node.name,
                ),
                say(
                    "the exporter probably lost an input, and ATC fails on this form",
                    "导出工具很可能丢失了一个输入，且 ATC 无法处理这种形式",
                ),
                say("export again with the number of boxes per class", "请在导出时给出每类的最大框数"),
                node=node,
                fix="none",
                evidence=(_CRASH,),
            )
            return
        if constant_of(most) is None:
            yield self.finding(
                say(
                    "`{node}`: max_output_boxes_per_class `{name}` is computed",
                    "`{node}`：max_output_boxes_per_class `{name}` 是计算得到的",
                    node=node.name,
                    name=most.name,
                ),
                say("ATC wants it as a constant: it fixes the size of the output", "ATC 要求其为常量：它决定输出的大小"),
                say("export it as a constant", "请以常量导出"),
                node=node,
                fix="none",
            )
        large = _too_large(node)
        if large is not None:
            yield self.finding(
                say(
                    "`{node}`: max_output_boxes_per_class is {most}, of {count} boxes",
                    "`{node}`：max_output_boxes_per_class 为 {most}，而框只有 {count} 个",
                    node=node.name,
                    most=large[0],
                    count=large[1],
                ),
                say("it is read as int32 and decides the size of the output", "它按 int32 读取，并决定输出的大小"),
                say("store the number of boxes", "改为框的数量"),
                node=node,
                severity="error" if large[0] > np.iinfo(np.int32).max else "warning",
            )
        if missing:
            yield self.finding(
                say(
                    "`{node}` has {count} of 5 inputs; {missing} missing",
                    "`{node}` 只有 5 个输入中的 {count} 个，缺少 {missing}",
                    node=node.name,
                    count=len(_NAMES) - len(missing),
                    missing=", ".join(missing),
                ),
                say("ATC reads the fifth input unasked and dies without an error code", "ATC 未检查就读取第五个输入，会无错误码崩溃"),
                say("write the defaults out as constants", "请将默认值写成常量"),
                node=node,
                evidence=(_CRASH,),
            )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        if _input(node, 2) is None:
            raise Refused(say("max_output_boxes_per_class is absent", "缺少 max_output_boxes_per_class"))
        iou = _input(node, 3) or builder.const([0.0], np.float32, "iou_threshold")
        score = _input(node, 4) or builder.const([np.finfo(np.float32).min], np.float32, "score_threshold")
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        large = _too_large(node)
        most = node.inputs[2] if large is None else builder.const([large[1]], np.int64, "max_output_boxes_per_class")
        picked = builder.op("NonMaxSuppression", node.inputs[0], node.inputs[1], most, iou, score, **attributes)
        builder.replace(node.outputs[0], picked)
