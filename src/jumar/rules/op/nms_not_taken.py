"""OP230: NonMaxSuppression that the target has no kernel for, or not for this form."""

from __future__ import annotations

import onnx_ir as ir

from ...graph import constant_of
from ...targets import Status, Support
from ..base import Context, Example
from ..expansion import ExpansionRule


class NmsNotTaken(ExpansionRule):
    code = "OP230"
    name = "nms-not-taken"
    since = "0.1"
    ops = frozenset(("NonMaxSuppression",))
    phase = 71
    bound = 0.0
    DOC_EN = """
    What: NonMaxSuppression on a target without a kernel for it, or in a form that is not known to work (boxes by their centre, a large or computed limit).

    Why on Ascend: several SoCs (the 610 and BS9SX families among them) have no such kernel. Where there is one, it is documented for boxes given by two corners.

    Fix: boxes by their centre become corners. Where there is no kernel, the selection is written out: the best box that is left is taken, everything that overlaps it too much goes, and so on, as often as a class may have boxes. Shapes must be static and the limit constant. The last node cuts the rows to their number, which depends on the data; what becomes of that is said by OP231 and OP232.

    Fix safety: safe; the same rows in the same order, also among equal scores and equal boxes. A score of minus infinity is never selected. It costs a dozen nodes a selection: above 320 a class it is refused, and above 128 where the overlaps of all pairs would be more than 4 million numbers. A host does it faster: `jumar fix --cut`.

    Evidence: the kernel tables that `jumar targets show NonMaxSuppression` cites; the ONNX operator and its node tests.
    """
    DOC_ZH = """
    问题：目标没有 NonMaxSuppression 的算子实现，或不确定支持这种形式（以中心点给出的框、过大或计算得到的上限）。

    在昇腾上的原因：若干 SoC（包括 610 与 BS9SX 系列）没有该算子实现。有实现时，文档只说明了以两个角点给出的框。

    修复：以中心点给出的框转换为角点。没有算子实现时将选择过程展开：取剩余中得分最高的框，去掉与其重叠过多的框，如此重复，次数为每类允许的框数。形状必须静态，上限必须为常量。最后一个节点按实际数目截取行，该数目依赖数据；对此的处理见 OP231 与 OP232。

    修复安全性：安全；行及其顺序完全相同，得分相等或框相同时也是如此。得分为负无穷的框不会被选中。每次选择需要十余个节点：每类超过 320 个时拒绝；若所有框对的重叠超过 400 万个数，则超过 128 个时拒绝。放在主机上更快：`jumar fix --cut`。

    依据：`jumar targets show NonMaxSuppression` 给出的算子信息库；ONNX 算子定义及其节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,6,4] boxes, float[1,2,6] scores) => (int64[n,3] picked)
        <int64[1] most = {3}, float[1] iou = {0.5}, float[1] least = {0.1}> {
            picked = NonMaxSuppression<center_point_box = 1>(boxes, scores, most, iou, least)
        }
        """,
            edges=False,
            also=("DT301", "OP232"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,7,4] boxes, float[2,3,7] scores) => (int64[n,3] picked)
        <int64[1] most = {3}, float[1] iou = {0.3}, float[1] least = {-0.5}> {
            picked = NonMaxSuppression(boxes, scores, most, iou, least)
        }
        """,
            opsets=(11,),
            soc="BS9SX1AA",
            edges=False,
            also=("DT301", "OP232"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2000,4] boxes, float[1,1,2000] scores) => (int64[n,3] picked)
        <int64[1] most = {400}, float[1] iou = {0.3}, float[1] least = {-0.5}> {
            picked = NonMaxSuppression(boxes, scores, most, iou, least)
        }
        """,
            opsets=(11,),
            soc="BS9SX1AA",
            edges=False,
            cured=False,
            also=("DT301", "OP232"),
        ),
    )

    def troubles(self, node: ir.Node, ctx: Context) -> tuple[Support, ...]:
        found = super().troubles(node, ctx)
        most = node.inputs[2] if len(node.inputs) > 2 else None
        if most is None or constant_of(most) is None:  # OP201 speaks of it
            found = tuple(answer for answer in found if answer.status is not Status.LIMIT_VIOLATED)
        return found
