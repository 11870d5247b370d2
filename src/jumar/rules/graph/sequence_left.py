"""GR512: sequences and optionals that cannot be taken apart."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes, copy_model, node_place, static_shape
from ...graph.simplify import Journal, simplify_graph
from ...graph.simplify.sequences import SEQUENCE_OPS, elements, why_sequence_stands
from ...text import Text, say
from ..base import Context, Example, ModelRule
from .constant_control_flow import CONTROL_KINDS

_ALSO = frozenset({"fold-constants", "unused-node", "no-op"})
_READERS = ("SequenceAt", "SequenceLength", "ConcatFromSequence", "SequenceMap")


class SequenceLeft(ModelRule):
    code = "GR512"
    name = "sequence-left"
    since = "0.1"
    safety = "advice"
    severity = "warning"
    phase = 48
    DOC_EN = """
    What: a sequence of tensors, or an optional, whose elements are not known before the model runs. The finding says why they are not.

    Why on Ascend: operators take and give tensors; a sequence has no place in device memory, and most of its operators have no parser.

    Fix: advice only. Where positions and lengths are constant or follow from shapes, GR506 has taken the sequence apart. For the others: give the sizes with --shape, give a position with --set-const, or pass and return the tensors one by one instead of as a sequence or an optional.

    Fix safety: advice only.

    Evidence: ONNX operator definitions.
    """
    DOC_ZH = """
    问题：张量序列或可选值的元素在运行前未知。检查结果会说明原因。

    在昇腾上的原因：算子只接收和输出张量；序列无法放入设备内存，其多数算子没有解析器。

    修复：仅为建议。位置和长度为常量或由形状决定时，GR506 已将序列拆开。其余情况：用 --shape 给出尺寸，用 --set-const 给出位置，或改为逐个传入和返回张量，而不用序列或可选值。

    修复安全性：仅为建议。

    依据：ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,2] x, float[2,2] z, int64 n) => (float[a,2] y) {
            s = SequenceConstruct(x, z)
            y = SequenceAt(s, n)
        }
        """,
            cured=False,
            also=("OP101", "OP105", "DT301", "SH203"),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        ports = [value for value in (*ctx.model.graph.inputs, *ctx.model.graph.outputs) if not _is_tensor(value)]
        for value in ports:
            yield self._finding(value.name or "", say("it is an input or output of the model", "它是模型的输入或输出"))
        first = next((node for node in all_nodes(ctx.model) if _is_sequence_op(node)), None)
        if first is None:
            return
        for node, reason in self._left(ctx, first):
            yield self._finding(node_place(node), reason, node)

    def _finding(self, place: str, reason: Text, node: ir.Node | None = None) -> Finding:
        return self.finding(
            say(
                "`{place}` needs a sequence or an optional: {reason}",
                "`{place}` 需要序列或可选值：{reason}",
                place=place,
                reason=reason,
            ),
            say("devices hold tensors", "设备只存放张量"),
            say(
                "make positions and sizes constant (--set-const, --shape), or use the tensors one by one",
                "使位置和尺寸成为常量（--set-const、--shape），或逐个使用张量",
            ),
            node=node,
            place=place,
        )

    def _left(self, ctx: Context, first: ir.Node) -> list[tuple[ir.Node, Text]]:
        """What remains when everything known has been taken apart (tried on a copy, remembered for the model)."""
        key = (self.code, first)
        if key not in ctx.tried:
            copy = copy_model(ctx.model)
            simplify_graph(copy, journal=Journal(kinds=CONTROL_KINDS | _ALSO))
            ctx.tried[key] = [(node, reason) for node in all_nodes(copy) if (reason := _reason(node)) is not None]
        found = ctx.tried[key]
        assert isinstance(found, list)
        return found


def _is_tensor(value: ir.Value) -> bool:
    return not isinstance(value.type, (ir.SequenceType, ir.OptionalType))


def _is_sequence_op(node: ir.Node) -> bool:
    return node.op_type in SEQUENCE_OPS and node.domain in ("", "ai.onnx")


def _reason(node: ir.Node) -> Text | None:
    """Why a node that reads a sequence or an optional still does."""
    if not _is_sequence_op(node):
        return None
    if node.op_type in ("OptionalGetElement", "OptionalHasElement"):
        return say("whether there is an element is not known", "是否有元素未知")
    if node.op_type not in _READERS:
        return None
    items = elements(node.inputs[0])
    if items is None:
        return why_sequence_stands(node.inputs[0])
    if node.op_type == "SequenceAt":
        if len({static_shape(item) for item in items}) > 1 or static_shape(items[0] if items else None) is None:
            return say(
                "which element is read is not known, and their shapes differ or are open", "读取哪个元素未知，且各元素形状不同或未知"
            )
        return say("which element is read is not known, or there is none", "读取哪个元素未知，或没有该元素")
    if not items:
        return say("the sequence is empty", "序列为空")
    return say("what it does with the elements is too long to be written out", "对各元素的处理展开后过长")
