"""OP232: an output of the model has as many rows as NonMaxSuppression chose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import onnx_ir as ir

from ...case import Finding, Severity
from ...graph import node_place
from ...text import say
from ..base import Change, Context, Example, ModelRule
from .data_dependent_output import padded
from .nms_rows_read import PADDED, SELECTIONS, has_kernel, only_told, planned, refused, selections, sources_of, why_of


class NmsRowsOutput(ModelRule):
    code = "OP232"
    name = "nms-rows-output"
    since = "0.1"
    ops = SELECTIONS
    safety = "unsafe"
    severity: ClassVar[Severity] = "warning"
    phase = 49
    bound = 1e-5
    measure = "max_scaled"
    DOC_EN = """
    What: an output of the model has as many rows as NonMaxSuppression chose.

    Why on Ascend: outputs have a fixed size. The kernel, where there is one, fills the rows that are not there with -1. The caller of a model that ends with the rows themselves can tell them (info); where boxes or scores are gathered by them, he cannot (warning).

    Fix: a mask says which rows are there (OP231); the output gets as many rows as there can be, those that are there first, zeros after them, and a further output NAME_count (int32, [1]) says how many are there.

    Fix safety: unsafe: the caller has to cut the output himself. Named, it is proven with the cut made; the manifest has `count_axis` and `count` of each such output, and Jumar's own comparisons and runners cut. Without a kernel it is refused above 320 rows a class: `jumar fix --cut` moves the tail to the host.

    Evidence: kernel sources of NonMaxSuppressionV7 (2022-06); the ONNX operator; the usual form of hand-made migrations (fixed size and a count).
    """
    DOC_ZH = """
    问题：模型某个输出的行数等于 NonMaxSuppression 选取的行数。

    在昇腾上的原因：输出大小固定。有算子实现时，不存在的行填 -1。模型直接输出这些行时，调用方可以识别（提示）；若按这些行收集了框或得分，则无法识别（警告）。

    修复：用掩码说明哪些行有效（OP231）；输出补齐为可能的最大行数，有效行在前，其后填零，并新增输出 NAME_count（int32，[1]）给出有效行数。

    修复安全性：不安全：调用方需自行截取输出。指定该代码后，证明时会先截取再比较；清单中每个此类输出都有 `count_axis` 与 `count`，Jumar 自身的比较与运行会自动截取。没有算子实现时，每类超过 320 行时拒绝：可用 `jumar fix --cut` 把尾部切到主机。

    依据：NonMaxSuppressionV7 算子源码（2022-06）；ONNX 算子定义；手工迁移的常见形式（固定大小加计数）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,9,4] boxes, float[1,2,9] scores) => (int64[n,3] picked)
        <int64[1] most = {4}, float[1] iou = {0.5}, float[1] least = {-9}> {
            picked = NonMaxSuppression(boxes, scores, most, iou, least)
        }
        """,
            edges=False,
            also=("DT301",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,9,4] boxes, float[1,1,9] scores) => (float[n,4] y)
        <int64[1] most = {9}, float[1] iou = {0.5}, float[1] least = {-9}, int64 column = {2}, int64[2] flat = {9,4},
         int64[1] zero = {0}, int64[1] end = {3}> {
            picked = NonMaxSuppression(boxes, scores, most, iou, least)
            places = Gather<axis = 1>(picked, column)
            first = Slice(places, zero, end, zero)
            all = Reshape(boxes, flat)
            y = Gather<axis = 0>(all, first)
        }
        """,
            edges=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        nodes = selections(ctx.model)
        if nodes:
            yield from self._of_selections(nodes, ctx)
        for node in ctx.model.graph:
            if node.op_type == "Slice" and node.metadata_props.get("jumar.rule") == "OP230":
                yield self.finding(
                    say(
                        "`{node}`: how many rows it keeps depends on data",
                        "`{node}`：其保留的行数依赖数据",
                        node=node_place(node),
                    ),
                    say("shapes are fixed when the model is compiled", "形状在编译时就已固定"),
                    say(
                        "from the model as it was: --unsafe {code}, or --cut",
                        "对原模型使用 --unsafe {code} 或 --cut",
                        code=self.code,
                    ),
                    node=node,
                    fix="none",
                )

    def _of_selections(self, nodes: list[ir.Node], ctx: Context) -> Iterator[Finding]:
        first = planned(ctx)
        then = planned(ctx, outputs=True) if first.open else first
        for node in nodes:
            name = node.outputs[0].name or ""
            told = only_told(node.outputs[0])
            if name not in first.open and not told:
                continue
            able = name in then.done and name in first.open
            yield self.finding(
                say(
                    "`{node}`: how many rows an output of the model has depends on what it chooses",
                    "`{node}`：模型某个输出的行数取决于其选取结果",
                    node=node_place(node),
                ),
                why_of(ctx),
                say("give it all rows and a count: --unsafe {code}", "补齐全部行并输出行数：--unsafe {code}", code=self.code)
                if able
                else refused(then, name),
                node=node,
                severity="info" if told and has_kernel(ctx) else "warning",
                fix="unsafe" if able else "none",
                evidence=(PADDED,),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        return padded(model, ctx, self.code, selections(model), sources_of(ctx))
