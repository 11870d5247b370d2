"""OP210: an operator whose output has as many places as its input has chosen ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from ...case import Finding, Severity
from ...graph import node_place
from ...graph.fold import foldable_nodes
from ...graph.masked import Densified, densify, plan, source_nodes
from ...targets import SEVERITY_ORDER, Support
from ...text import Text, say
from ..base import Change, Context, Example, ModelRule
from ..expansion import is_error


def planned(ctx: Context, outputs: bool = False) -> Densified:
    """What can be done in this model, remembered."""
    nodes = source_nodes(ctx.model)
    if not nodes:
        return Densified()
    key = (f"masked {outputs}", nodes[0])
    if key not in ctx.tried:
        ctx.ranges()
        ctx.tried[key] = plan(ctx.model, ctx.range_of, DataDependentShape.code, outputs)
    found = ctx.tried[key]
    assert isinstance(found, Densified)
    return found


def under_assumption(ctx: Context) -> set[str]:
    """Tensors that nothing but an output of the model, or NaN, keeps from being kept with all places."""
    found = planned(ctx)
    return found.open | (planned(ctx, outputs=True).done - found.done if found.refused else set())


def decisive(node: ir.Node, ctx: Context) -> tuple[Support, Severity]:
    """The worst answer on a node and how severe it is: at best a warning, since all later shapes are unknown too."""
    answer = min(ctx.judge(node), key=lambda item: SEVERITY_ORDER[item.status])
    return answer, "error" if is_error(answer.status) else "warning"


class DataDependentShape(ModelRule):
    code = "OP210"
    name = "data-dependent-shape"
    since = "0.1"
    ops = frozenset(("NonZero", "Compress", "Unique"))
    safety = "safe"
    severity = "warning"
    phase = 47
    bound = 1e-5
    measure = "max_scaled"
    DOC_EN = """
    What: NonZero, Compress or Unique on computed values: boolean indexing, masked_select, index_put, edge lists. As many places come out as are chosen, which only the run time knows.

    Why on Ascend: every later shape is unknown too. Static compilation, memory planning and most AI Core operators need shapes; such operators run on the AI CPU, with a host round trip for each shape.

    Fix: the tensor is kept with all places that could be there, and a mask says which are. Elementwise operators and products of rows work on all places; sums, extremes, means, norms, Softmax and contractions fill what is not there with what has no effect; a Scatter writes it to a place that is cut off, or to the very places it came from as a choice; TopK, ArgMax and NonMaxSuppression never choose it; a count is a sum of the mask. Unique compares all elements with all. If one reader cannot be told so, or the shape of an output of the model depends on data, all is left as it is and the finding says which (an output: see OP215).

    Fix safety: safe within 1e-5 of the largest element (sums are added in another order). Places are moved together by a comparison of all with all, up to 4,194,304 comparisons. The mean of nothing is 0, as ONNX Runtime has it; where the model would fail (the first of nothing), the result means nothing.

    Evidence: ONNX operator definitions; `jumar targets show NonZero`; migrations of others, who removed boolean indexing by hand.
    """
    DOC_ZH = """
    问题：对计算得到的数据使用 NonZero、Compress 或 Unique：布尔索引、masked_select、index_put、边列表等。输出的位置数等于被选中的位置数，只有运行时才知道。

    在昇腾上的原因：其后的形状全部未知。静态编译、内存规划和大多数 AI Core 算子都需要形状；这类算子在 AI CPU 上执行，且每个形状都要与主机往返一次。

    修复：张量保留全部可能的位置，由掩码说明哪些有效。逐元素算子和按行的乘法对所有位置计算；求和、极值、均值、范数、Softmax 与收缩运算用无影响的值填充无效位置；Scatter 把无效位置写到随后切掉的位置，或直接按掩码选择写回原处；TopK、ArgMax 与 NonMaxSuppression 不会选中无效位置；计数即掩码之和。Unique 对所有元素两两比较。若某个读取者无法如此处理，或模型某个输出的形状依赖数据，则保持原样，并在问题中说明（输出的情况见 OP215）。

    修复安全性：误差在最大元素的 1e-5 以内为安全（求和次序不同）。收拢位置需要两两比较，上限为 4,194,304 次。空集的均值为 0，与 ONNX Runtime 一致；原模型会失败之处（如取空集的第一个），结果没有意义。

    依据：ONNX 算子定义；`jumar targets show NonZero`；他人迁移时手工去除布尔索引的做法。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[4,3] x, bool[4] chosen) => (float[3] y) <int64[1] first = {0}> {
            places = NonZero(chosen)
            columns = Transpose<perm = [1, 0]>(places)
            rows = GatherND(x, columns)
            y = ReduceMax<axes = [0], keepdims = 0>(rows)
        }
        """,
            opsets=(11, 13),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[4,3] x) => (float[4,3] y) <float limit = {0.5}> {
            chosen = Greater(x, limit)
            places = NonZero(chosen)
            columns = Transpose<perm = [1, 0]>(places)
            some = GatherND(x, columns)
            less = Sigmoid(some)
            y = ScatterND(x, columns, less)
        }
        """,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[4,3] x, bool[4] chosen) => (float[3] y) <int64[1] last = {-1}, int64[1] all = {-100}, int64[1] axis = {0}> {
            some = Compress<axis = 0>(x, chosen)
            late = Slice(some, all, last, axis)
            y = ReduceMax<axes = [0], keepdims = 0>(late)
        }
        """,
            opsets=(11, 13),
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        nodes = source_nodes(ctx.model)
        if not nodes:
            return
        found, known = planned(ctx), set(foldable_nodes(ctx.model, ctx.fold_limit))
        for node in nodes:
            name = node.outputs[0].name or ""
            if name in under_assumption(ctx) and node not in known:  # of which another rule speaks
                continue
            answer, severity = decisive(node, ctx)
            remedy = self._remedy(name, found, node in known)
            yield self.finding(
                say(
                    "`{node}`: how many places {op} chooses depends on data",
                    "`{node}`：{op} 选取的位置数依赖数据",
                    node=node_place(node),
                    op=node.op_type,
                )
                if node not in known
                else say("`{node}`: {op} of what is constant", "`{node}`：对常量做 {op}", node=node_place(node), op=node.op_type),
                answer.reason or say("all later shapes are unknown", "其后的形状全部未知"),
                remedy,
                node=node,
                severity=severity,
                fix="safe" if name in found.done and node not in known else "none",
                evidence=answer.evidence,
            )

    @staticmethod
    def _remedy(name: str, found: Densified, constant: bool) -> Text:
        if constant:
            return say("compute it once (SH202)", "预先计算一次（SH202）")
        if name in found.done:
            return say("keep all places, with a mask that says which are there", "保留全部位置，用掩码说明哪些有效")
        reason = found.refused.get(name, say("no reason given", "未说明原因"))
        return say("not rewritten: {reason}", "未改写：{reason}", reason=reason)

    def covered(self, ctx: Context) -> Iterable[ir.Node]:
        return source_nodes(ctx.model)

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        ctx.ranges()  # as the model is before it is edited
        places = {node.outputs[0].name or "": node_place(node) for node in source_nodes(model)}
        found = densify(model, ctx.range_of, self.code)
        done = tuple(sorted(found.done))
        return Change(tuple(places[name] for name in done), chosen=done) if done else None
