"""OP231: what a NonMaxSuppression chose is read inside the model, where the device has rows that mean nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import onnx_ir as ir

from ...case import Finding, Severity
from ...graph import node_place
from ...graph.masked import Densified, Handler, densify, is_settled, plan, selected_by_kernel, source_nodes, written_out
from ...text import Text, say
from ..base import Change, Context, Example, ModelRule

SELECTIONS = frozenset(("NonMaxSuppression",))
PADDED = "kernel sources of NonMaxSuppressionV7: the output has the largest number of rows there can be, filled with -1 first"
_PLAIN = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Split", "Unsqueeze"))


def planned(ctx: Context, outputs: bool = False) -> Densified:
    """What can be done in this model, remembered."""
    nodes = selections(ctx.model)
    if not nodes:
        return Densified()
    key = (f"selections {outputs}", nodes[0])
    if key not in ctx.tried:
        ctx.ranges()
        ctx.tried[key] = plan(ctx.model, ctx.range_of, NmsRowsRead.code, outputs, sources_of(ctx))
    found = ctx.tried[key]
    assert isinstance(found, Densified)
    return found


def has_kernel(ctx: Context) -> bool:
    return ctx.takes("NonMaxSuppression")


def sources_of(ctx: Context) -> dict[str, Handler | None]:
    """How a selection is made with all its rows: with the kernel, if the target has it."""
    return {"NonMaxSuppression": selected_by_kernel if has_kernel(ctx) else written_out}


def selections(model: ir.Model) -> list[ir.Node]:
    """Selections some of whose readers count on the rows being those that are there."""
    return [node for node in source_nodes(model, dict.fromkeys(SELECTIONS)) if not is_settled(node)]


def only_told(value: ir.Value) -> bool:
    """Whether the rows go to the caller as they are, or a column or the first ones of them: he sees which are -1."""
    for node, _ in value.uses():
        along_rows = node.op_type == "Slice" or (node.op_type == "Gather" and node.inputs[0] is value)
        if not (along_rows or node.op_type in _PLAIN) or not all(only_told(output) for output in node.outputs):
            return False
    return True


class NmsRowsRead(ModelRule):
    code = "OP231"
    name = "nms-rows-read"
    since = "0.1"
    ops = SELECTIONS
    safety = "safe"
    severity: ClassVar[Severity] = "warning"
    phase = 49
    bound = 1e-5
    measure = "max_scaled"
    DOC_EN = """
    What: boxes, scores or classes are gathered by the rows that NonMaxSuppression chose, inside the model.

    Why on Ascend: how many rows there are depends on data, and shapes are fixed when the model is compiled. The kernel, where there is one, gives as many rows as there can be, and fills those that are not there with -1. What is gathered by them is some box or other, and nothing tells it from a real one.

    Fix: the kernel's rows only mark the chosen boxes in a table of all, from which TopK reads them in order; without a kernel the selection is written out (OP230). A mask says which rows are there, and everything that reads it works on all rows: reductions leave the others out, a Scatter does not write them, TopK never chooses them. Where the first rows only are read (`keep[:100]`), no more are computed. An output of the model with such rows: OP232.

    Fix safety: safe within 1e-5 of the largest element. Without a kernel it is refused above 320 rows a class; and always where a reader cannot be told which rows are there; the tail is best cut to the host then (`jumar fix --cut`), or put together anew with Ascend's own BatchMultiClassNMS where `jumar targets show BatchMultiClassNMS` says that the SoC has it.

    Evidence: kernel sources of NonMaxSuppressionV7 (2022-06); the ONNX operator.
    """
    DOC_ZH = """
    问题：模型内部按 NonMaxSuppression 选出的行收集框、得分或类别。

    在昇腾上的原因：行数依赖数据，而形状在编译时就已固定。有算子实现时，输出固定为可能的最大行数，不存在的行填 -1。按这些行收集到的是某个无关的框，无法与真实结果区分。

    修复：算子输出的行仅用于在全部框的表中标记被选中的框，再由 TopK 按次序读出；没有算子实现时展开选择过程（OP230）。用掩码说明哪些行有效；读取它的部分都在全部行上计算：归约忽略无效行，Scatter 不写入，TopK 不会选中。若只读取前若干行（`keep[:100]`），则只计算这些行。模型输出含有这些行的情况见 OP232。

    修复安全性：误差在最大元素的 1e-5 以内为安全。没有算子实现时每类超过 320 行，或某个读取者无法得知哪些行有效时拒绝；此时最好把尾部切到主机（`jumar fix --cut`），或在 `jumar targets show BatchMultiClassNMS` 表明该 SoC 支持时改用昇腾自有的 BatchMultiClassNMS 重新搭建。

    依据：NonMaxSuppressionV7 算子源码（2022-06）；ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,9,4] boxes, float[1,1,9] scores) => (float[1,4] y)
        <int64[1] most = {4}, float[1] iou = {0.5}, float[1] least = {-9}, int64 column = {2}, int64[2] flat = {9,4}> {
            picked = NonMaxSuppression(boxes, scores, most, iou, least)
            places = Gather<axis = 1>(picked, column)
            all = Reshape(boxes, flat)
            kept = Gather<axis = 0>(all, places)
            y = ReduceMax<axes = [0], keepdims = 1>(kept)
        }
        """,
            opsets=(11, 13),
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,9,4] boxes, float[1,1,9] scores) => (float[4,4] y)
        <int64[1] most = {4}, float[1] iou = {0.5}, float[1] least = {-9}, int64 column = {2}, int64[2] flat = {9,4},
         int64[1] late = {-1}, int64[1] end = {100}, int64[1] rows = {0}> {
            picked = NonMaxSuppression(boxes, scores, most, iou, least)
            places = Gather<axis = 1>(picked, column)
            all = Reshape(boxes, flat)
            kept = Gather<axis = 0>(all, places)
            last = Slice(kept, late, end, rows)
            y = MatMul(all, last)
        }
        """,
            opsets=(),
            edges=False,
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        nodes = [node for node in selections(ctx.model) if not only_told(node.outputs[0])]
        if not nodes:
            return
        found = planned(ctx)
        for node in nodes:
            name = node.outputs[0].name or ""
            if name in found.open:  # of an output of the model another rule speaks
                continue
            able = name in found.done
            yield self.finding(
                say(
                    "`{node}`: what it chose is read inside the model, and how much that is depends on data",
                    "`{node}`：其选取结果在模型内部被读取，而数量依赖数据",
                    node=node_place(node),
                ),
                why_of(ctx),
                say("keep all rows, with a mask that says which are there", "保留全部行，用掩码说明哪些有效")
                if able
                else refused(found, name),
                node=node,
                fix="safe" if able else "none",
                evidence=(PADDED,),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        ctx.ranges()  # as the model is before it is edited
        told = {node.outputs[0].name or "" for node in selections(model) if only_told(node.outputs[0])}
        places = {node.outputs[0].name or "": node_place(node) for node in selections(model)}
        if told.issuperset(places):
            return None
        found = densify(model, ctx.range_of, self.code, sources=sources_of(ctx))
        done = tuple(sorted(found.done))
        return Change(tuple(places[name] for name in done), chosen=done) if done else None


def why_of(ctx: Context) -> Text:
    if has_kernel(ctx):
        return say(
            "the device gives as many rows as there can be, and those that are not there are -1",
            "设备输出可能的最大行数，不存在的行为 -1",
        )
    return say("shapes are fixed when the model is compiled", "形状在编译时就已固定")


def refused(found: Densified, name: str) -> Text:
    reason = found.refused.get(name, say("no reason given", "未说明原因"))
    return say("not rewritten: {reason}; cut it to the host (--cut)", "未改写：{reason}；可切到主机（--cut）", reason=reason)
