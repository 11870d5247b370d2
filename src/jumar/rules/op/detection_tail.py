"""OP234: a detector that suppresses its boxes inside the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import onnx_ir as ir

from ...case import Finding, Severity
from ...graph import all_nodes, constant_of, known_shape, node_place
from ...text import Text, say
from ..base import Context, Example, ModelRule

_MOVES = frozenset(("Cast", "Gather", "GatherND", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
_BEST = frozenset(("ReduceMax", "TopK"))
_FORMS: Mapping[str, Text] = {
    "offsets": say(
        "the boxes of each class are moved apart by their class, so that one run suppresses all (torchvision, YOLO)",
        "按类别把框平移开，从而一次完成全部抑制（torchvision、YOLO）",
    ),
    "best": say("each box keeps its best class only (YOLO)", "每个框只保留得分最高的类别（YOLO）"),
    "classes": say("every class is suppressed by itself (SSD, mmdetection)", "各类别分别抑制（SSD、mmdetection）"),
    "single": say("boxes of one kind", "只有一类框"),
}
_HALF = say(
    "moved apart, coordinates are large: from 2,048 on float16 holds even numbers only, from 65,520 on it is infinite",
    "平移后坐标很大：float16 从 2,048 起只能表示偶数，从 65,520 起为无穷大",
)
_PLAIN = say(
    "it works on few numbers one after the other, which a host does as fast, and makes outputs whose length depends on data",
    "它对少量数据逐个处理，主机同样快；且输出长度依赖数据",
)


class DetectionTail(ModelRule):
    code = "OP234"
    name = "detection-tail"
    since = "0.1"
    ops = frozenset(("NonMaxSuppression",))
    safety = "advice"
    severity: ClassVar[Severity] = "info"
    phase = 49
    DOC_EN = """
    What: the model is a detector and ends in NonMaxSuppression of boxes and scores that it computes. Jumar recognises how classes are told apart: boxes moved by their class (torchvision's batched_nms, YOLO exports with `agnostic=False`), the best class of each box, or a suppression for each class.

    Why on Ascend: the rest of a detector has fixed shapes and runs on the Cube; its tail has neither. Where boxes are moved apart, ATC's default of float16 also rounds their coordinates: 80 classes a picture of 640 pixels apart reach 51,200, where float16 has steps of 32, and boxes of a late class no longer overlap as they should.

    Fix: none is made here, since all three ways are yours to choose. (1) Leave it in: OP230 to OP232 rewrite it where the target needs that; keep moved boxes in float32 (`jumar compile --keep-dtype`). (2) End the device part at the two tensors named, with `jumar.graph.extract`, and suppress on the host; `jumar fix --cut` does so by itself where the device cannot take the tail. (3) Where the finding says that the target has it, export with Ascend's own BatchMultiClassNMS: boxes [N, boxes, 1 or classes, 4] and scores [N, boxes, classes], in float16, give boxes, scores, classes and their number, padded to `max_total_size`. It decides thresholds, best of each class and best of all in one kernel.

    Fix safety: advice. Jumar does not insert BatchMultiClassNMS: no public document says how it orders equal scores, so that a proof here would show nothing.

    Evidence: the ONNX operator; prototype of BatchMultiClassNonMaxSuppression (nn_detect_ops.h) and its parser plug-in; the format of float16 (IEEE 754).
    """
    DOC_ZH = """
    问题：模型是检测器，以 NonMaxSuppression 结尾，其框与得分由模型自身计算。Jumar 识别其区分类别的方式：按类别平移框（torchvision 的 batched_nms、`agnostic=False` 的 YOLO 导出）、每个框只取最高类别，或各类别分别抑制。

    在昇腾上的原因：检测器其余部分形状固定，适合 Cube；尾部两者皆无。若框被平移，ATC 默认的 float16 还会舍入坐标：80 类、每类相隔 640 像素时达到 51,200，此处 float16 的间隔为 32，靠后类别的框的重叠不再正确。

    修复：此处不自动修改，三种做法由用户选择。（1）保留在模型中：目标需要时由 OP230 至 OP232 改写；平移后的框应保持 float32（`jumar compile --keep-dtype`）。（2）用 `jumar.graph.extract` 让设备部分止于所列的两个张量，在主机上做抑制；设备无法执行尾部时 `jumar fix --cut` 会自动这样做。（3）结果说明目标支持时，改用昇腾自有的 BatchMultiClassNMS 导出：float16 的框 [N, 框数, 1 或类别数, 4] 与得分 [N, 框数, 类别数]，输出框、得分、类别及其数量，并填充到 `max_total_size`。阈值、每类最优与总体最优由一个算子完成。

    修复安全性：仅为建议。Jumar 不会插入 BatchMultiClassNMS：没有公开文档说明得分相等时的次序，在此证明没有意义。

    依据：ONNX 算子定义；BatchMultiClassNonMaxSuppression 的原型（nn_detect_ops.h）及其解析插件；float16 的格式（IEEE 754）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,9,4] x, float[1,1,9] scores) => (int64[n,3] y)
        <float[1] scale = {2}, int64[1] most = {4}, float[1] iou = {0.5}, float[1] least = {0.1}> {
            boxes = Mul(x, scale)
            likely = Sigmoid(scores)
            y = NonMaxSuppression(boxes, likely, most, iou, least)
        }
        """,
            opsets=(11, 13),
            edges=False,
            cured=False,
            also=("OP232", "DT301"),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        tails: dict[str, list[ir.Node]] = {}
        for node in all_nodes(ctx.model):
            if node.op_type in self.ops and node.domain in ("", "ai.onnx") and all(map(_is_computed, node.inputs[:2])):
                tails.setdefault(form_of(node), []).append(node)
        for form, nodes in tails.items():
            yield self.finding(
                say(
                    "`{node}` ends a detector: {form}",
                    "`{node}` 是检测器的尾部：{form}",
                    node=node_place(nodes[0]),
                    form=_FORMS[form],
                ),
                _HALF if form == "offsets" else _PLAIN,
                _remedy(ctx, nodes[0]),
                node=nodes[0],
                fix="none",
            )


def _is_computed(value: ir.Value | None) -> bool:
    return value is not None and value.producer() is not None and constant_of(value) is None


def form_of(node: ir.Node) -> str:
    """How the suppression tells classes apart: ``offsets``, ``best``, ``classes`` or ``single``."""
    boxes, scores = node.inputs[0], node.inputs[1]
    shape = None if scores is None else known_shape(scores)
    if shape is not None and len(shape) == 3 and isinstance(shape[1], int) and shape[1] > 1:
        return "classes"
    if _is_offset(boxes):
        return "offsets"
    maker = _maker(scores)
    return "best" if maker is not None and maker.op_type in _BEST else "single"


def _is_offset(boxes: ir.Value | None) -> bool:
    """Whether an integer, a class, times a distance was added to the boxes."""
    added = _maker(boxes)
    return added is not None and added.op_type == "Add" and any(map(_is_class_times_distance, added.inputs))


def _is_class_times_distance(value: ir.Value | None) -> bool:
    product = _maker(value)
    if product is None or product.op_type != "Mul":
        return False
    return any(_is_class(one) and _is_distance(other) for one, other in (product.inputs, product.inputs[::-1]))


def _is_class(value: ir.Value | None) -> bool:
    """Whether it comes from integers, or is an index that was chosen."""
    while value is not None and (maker := value.producer()) is not None:
        if maker.op_type == "Cast" and maker.inputs[0] is not None and maker.inputs[0].dtype is not None:
            return maker.inputs[0].dtype.is_integer()
        if maker.op_type == "ArgMax" or (maker.op_type == "TopK" and value is maker.outputs[1]):
            return True
        if maker.op_type not in _MOVES:
            return False
        value = maker.inputs[0]
    return False


def _is_distance(value: ir.Value | None) -> bool:
    """A number, or the largest coordinate and some more."""
    if value is None:
        return False
    constant = constant_of(value)
    if constant is not None:
        return constant.size == 1
    added = _maker(value)
    if added is not None and added.op_type == "Add":
        return any(maker is not None and maker.op_type == "ReduceMax" for maker in map(_maker, added.inputs))
    return added is not None and added.op_type == "ReduceMax"


def _maker(value: ir.Value | None) -> ir.Node | None:
    """The node that computes the numbers of a tensor: what only moves them is passed."""
    node = None if value is None else value.producer()
    while node is not None and node.op_type in _MOVES and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return node


def _remedy(ctx: Context, node: ir.Node) -> Text:
    if not ctx.in_main_graph(node):
        host = say(
            "`jumar fix` first, which dissolves the subgraph it is in; then cut it off or leave it",
            "先用 `jumar fix` 消除其所在的子图，再决定切出或保留",
        )
    else:
        host = say(
            "leave it, or end the device part at `{boxes}` and `{scores}` (`jumar.graph.extract`) and suppress on the host",
            "保留，或让设备部分止于 `{boxes}` 与 `{scores}`（`jumar.graph.extract`），在主机上做抑制",
            boxes=node.inputs[0].name if node.inputs[0] is not None else "",
            scores=node.inputs[1].name if node.inputs[1] is not None else "",
        )
    if not ctx.takes("BatchMultiClassNMS"):
        return host
    return say(
        "{host}; or export with BatchMultiClassNMS, which this target has (float16)",
        "{host}；或改用该目标支持的 BatchMultiClassNMS（float16）导出",
        host=host,
    )
